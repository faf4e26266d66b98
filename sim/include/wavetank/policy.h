/* SPDX-License-Identifier: Apache-2.0
 *
 * A layout policy of your own, as a shared object: wavetank sim TRACE ... --policy ./mine.so. It
 * exports the one function wavetank_policy(), is asked at step boundaries in which layout the next
 * step runs, and sees what the built-in policies see. docs/policies.md is the tutorial.
 *
 * Plain C99. Layouts are indices into the run's --layouts, times are integer picoseconds. What
 * begins with `size` may get more fields at its end: whoever fills such a structure sets `size`,
 * and fields behind it are not there. The others never change within one WAVETANK_POLICY_ABI.
 */
#ifndef WAVETANK_POLICY_H
#define WAVETANK_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WAVETANK_POLICY_ABI 1
#define WAVETANK_FOREVER    INT64_MAX /* a hold, or the n of a segment, without end */

/* a_ps + b_ps * i for step i of the next n steps, while only contexts grow. */
struct wavetank_seg {
    int64_t a_ps, b_ps, n;
};

enum wavetank_verdict {
    WAVETANK_FITS,       /* it may be chosen */
    WAVETANK_FITS_NOT,   /* the running requests' KV would not fit */
    WAVETANK_FITS_NEVER, /* not even the weights do */
};

/* The coming step, were it run in one layout. */
struct wavetank_candidate {
    int32_t verdict;
    int64_t rows;              /* query rows of the batch that would be built */
    struct wavetank_seg score; /* step, scaled to the same number of rows for all candidates */
    struct wavetank_seg step;  /* predicted time; the stages' sum and what comes once a step */
    struct wavetank_seg proj, attn, exchange, ffn;
};

struct wavetank_request {
    int64_t ctx_tokens;    /* computed so far, in decode with the coming row */
    int64_t prompt_tokens; /* still to prefill; 0 in decode */
    int64_t output_tokens; /* still to make */
    int32_t owner;         /* rank that holds it under layouts whose ranks own requests */
};

/* For init. Everything lives until fini. */
struct wavetank_setup {
    size_t size;
    const char *path; /* the policy's file */
    int32_t n_layouts, n_options;
    const char *const *layout; /* names, by index */
    const char *const *key;    /* "key=value" behind the path, in order */
    const char *const *value;
    uint64_t seed; /* seed=N among the options, or 0: for random draws, so that runs repeat */
};

/* For decide. Everything is valid until it returns. */
struct wavetank_view {
    size_t size;
    int64_t step; /* number of the coming step in the run */
    int64_t now_ps;
    int64_t since_switch_ps;    /* since this group last switched; -1: not yet */
    int32_t current, n_layouts; /* the layout of the last step, and how many there are */
    const struct wavetank_candidate *candidate; /* by layout */
    int64_t n_decoding, n_prefilling;           /* running requests */
    int64_t n_waiting, waiting_tokens;          /* the queue, and the tokens that it will compute */
    int64_t steps_left; /* output tokens that a running request still makes, on average */

    /* Request i of n_decoding + n_prefilling, decoding ones first. */
    struct wavetank_request (*request)(const struct wavetank_view *view, int64_t i);
    /* What a switch from `current` would add to the next step. */
    int64_t (*switch_cost_ps)(const struct wavetank_view *view, int32_t to);
    /* Does `to` cost less than `from` by more than margin_ppm / 1e6 of it? Exact; *hold gets the
     * steps from now for which the answer stays so. */
    bool (*leads)(const struct wavetank_view *view, int32_t from, int32_t to, int64_t margin_ppm,
                  int64_t *hold);
    const void *context; /* the simulator's own */
};

/* What decide answers; comes filled in with "stay, ask me at the next step". */
struct wavetank_decision {
    size_t size;
    int32_t layout; /* of the next step; must be one that fits */
    int32_t wanted; /* what it would be if memory allowed; -1: the same */
    int64_t hold;   /* steps from now, >= 1, for which all this stays so while only contexts grow:
                       the simulator may skip asking, or ask nevertheless */
    int64_t admit_most; /* requests that may run, from the next step on; 0: as many as fit */
    const char *error;  /* ends the run with this message; NULL: none */
};

/* For step_done: the n steps that end now. Steps that were skipped are told at once. */
struct wavetank_step {
    size_t size;
    int64_t now_ps, n, elapsed_ps;
    int32_t layout;
};

struct wavetank_policy {
    uint32_t abi; /* WAVETANK_POLICY_ABI */
    size_t size;
    /* State for one group of ranks, or NULL with a message in `error`. A run has one state per
     * group, and one more is made to check the options: keep nothing in global variables. */
    void *(*init)(const struct wavetank_setup *setup, char *error, size_t error_size);
    /* The layout to launch in; may be NULL: the first of --layouts. */
    int32_t (*start)(void *state);
    void (*decide)(void *state, const struct wavetank_view *view, struct wavetank_decision *out);
    /* The group runs `to` from now on. May be NULL, as all below. */
    void (*switched)(void *state, int32_t from, int32_t to, int64_t now_ps);
    void (*step_done)(void *state, const struct wavetank_step *step);
    void (*fini)(void *state);
};

/* What a shared object exports. The result lives as long as the object. */
const struct wavetank_policy *wavetank_policy(void);

#ifdef __cplusplus
}
#endif

#endif
