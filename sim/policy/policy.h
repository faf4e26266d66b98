/* SPDX-License-Identifier: Apache-2.0
 *
 * A policy chooses the layout of the next step. It is asked at step boundaries and may say for how
 * many steps its answer surely holds, so that the engine can jump; it must give the same answers
 * when asked at every step.
 */
#ifndef SIM_POLICY_POLICY_H
#define SIM_POLICY_POLICY_H

#include "sim/base/opt.h"
#include "sim/cost/transition.h"

enum verdict {
    FITS,       /* Eq. 6 holds in the layout and Eq. 5 on the way to it */
    FITS_NOT,   /* the running requests' KV would not fit */
    FITS_NEVER, /* not even the weights do */
};

/* One layout that could run the next step. */
struct candidate {
    enum verdict verdict;
    struct step_cost cost; /* of the batch that the scheduler would build under it */
    struct seg score; /* cost.step, scaled to the same number of query rows for all candidates */
};

/* How a run ended that went on by itself from a decision. Later requests did not come to it, and it
 * may have lost others (deadlines). */
struct outlook {
    int64_t completed;
    __int128 e2e_ps, ttft_ps; /* sums over these */
    int64_t last_finish_ps;
};

/* Of a group at a boundary. */
struct policy_load {
    int64_t decoding, prefilling;    /* running requests */
    int64_t waiting, waiting_tokens; /* the queue, and what it will compute */
};

/* One running request. */
struct policy_request {
    int64_t ctx_tokens;                   /* computed so far, in decode with the coming row */
    int64_t prompt_tokens, output_tokens; /* still to prefill, still to make */
    int owner;
};

struct policy_view {
    int64_t now_ps;
    int64_t step; /* number of the coming one, of the run */
    int current;  /* layout of the last step */
    int n;
    const struct candidate *candidate; /* by layout index */
    int64_t steps_left; /* output tokens that a running request still has to make, on average */

    /* What switching from `current` would cost under the policy's mechanism, exposed picoseconds;
     * lazy, since most decisions do not ask. */
    int64_t (*switch_cost_ps)(const struct policy_view *view, int to);
    /* Go on from this decision in a fork of the run, which asks copies of the policies, until all
     * requests that arrive up to last_arrival_ps have ended. NULL in a fork. */
    void (*foresee)(const struct policy_view *view, int64_t last_arrival_ps, struct outlook *out);
    struct policy_load load;
    /* Request i of load.decoding + load.prefilling, decoding ones first. */
    struct policy_request (*request)(const struct policy_view *view, int64_t i);
    void *context;
};

struct decision {
    int layout;   /* run the next step in it; must be one that FITS */
    int wanted;   /* what it would run if memory allowed; differs from layout when refused */
    int64_t hold; /* steps from now, >= 1, for which all this stays so while only contexts grow */
    int64_t admit_most; /* requests that may run from the next step on; 0: as many as fit */
    const char *fault;  /* why there is no decision, which ends the run; NULL */
};

/* What every switching policy accepts besides its own options. */
struct policy_common {
    int mechanism; /* enum mechanism */
    int on_full;   /* enum on_full */
};

enum on_full {
    ON_FULL_DEFER, /* a switch that does not fit waits: the current layout goes on */
    ON_FULL_HOLD,  /* admission is held until it fits */
};

struct policy_kind {
    const char *name;
    const char *what; /* one line for `list policies` */
    bool may_switch;
    /* Code that is not ours: `state` refers to more, and cannot be copied; answers may depend on
     * all that the view has, the queue as well. */
    bool is_external;
    int mechanism;          /* enum mechanism, unless the user says otherwise */
    const struct opt *opts; /* of `state`; NULL when none */
    size_t state_size;      /* options first, then whatever it keeps between decisions */
    /* Check and compile the options once (layout indices by name...). `arg` is the text after the
     * colon that is not key=value ("tp" of "fixed:tp"), or NULL. */
    int (*init)(void *state, const char *arg, const struct layout *layouts, int n, struct err *err);
    int (*start)(const void *state); /* the layout to launch in; NULL: the first of the list */
    /* Take "key=value" that the option table cannot hold ("margin.tp-dp"). 1 taken, 0 not mine, -1
     * bad. */
    int (*extra)(void *state, const char *key, const char *value, const struct layout *layouts,
                 int n, struct err *err);
    struct decision (*decide)(void *state, const struct policy_view *view);
    /* The group runs `to` from now on (drain: some time after decide asked). May be NULL. */
    void (*switched)(void *state, int from, int to, int64_t now_ps);
    /* Decisions that a budget kept from looking ahead as far as they should. May be NULL. */
    int64_t (*count_cut)(const void *state);
    /* n steps in a layout end now. May be NULL. */
    void (*step_done)(void *state, int layout, int64_t n, int64_t elapsed_ps, int64_t now_ps);
    void (*release)(void *state); /* what it holds beside itself; may be NULL */
};

struct policy {
    char name[96]; /* as the user wrote it */
    const struct policy_kind *kind;
    struct policy_common common;
    bool may_switch;
    int start; /* the layout that a group is launched in */
    void *state;
};

/* Parse "splash:margin=0.05,dwell_ms=50", "fixed:dop:cache=0.25", "tp" (short for fixed:tp),
 * "./mine.lua:key=value". The layouts are the run's list. "best-fixed" is no policy but a choice
 * among runs: the caller's. */
int policy_new(struct policy *p, const char *text, const struct layout *layouts, int n,
               struct err *err);
void policy_release(struct policy *p);
/* With a state of its own, copied byte by byte; not of an external kind. */
void policy_copy(struct policy *to, const struct policy *from);

extern const struct opt policy_common_opts[]; /* of struct policy_common */
extern const struct policy_kind policy_fixed, policy_greedy, policy_splash, policy_oracle;
extern const struct policy_kind policy_flying, policy_shift, policy_loong, policy_drain_restart;
extern const struct policy_kind policy_external;       /* external.h */
extern const struct policy_kind *const policy_kinds[]; /* NULL-terminated */

#endif
