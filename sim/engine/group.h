/* SPDX-License-Identifier: Apache-2.0
 *
 * One group: T ranks that serve one model copy. It holds its waiting and running requests, their KV
 * pages, the layout it runs and the step in progress. engine.c drives it; no one else includes
 * this.
 *
 * A request waits, is admitted (KV reserved), prefills in chunks, then decodes one token a step. In
 * decode its item's context counts the row of the coming step, so it holds input + made tokens.
 *
 * With a pool for prompts, a request is prefilled in one group, waits there for room in the group
 * that is to decode it, and holds KV in both, computing in neither, until that has been moved.
 */
#ifndef SIM_ENGINE_GROUP_H
#define SIM_ENGINE_GROUP_H

#include "sim/engine/engine.h"
#include "sim/engine/eventq.h"
#include "sim/engine/kv.h"
#include "sim/engine/kv_link.h"
#include "sim/engine/prefix.h"
#include "sim/engine/queue.h"
#include "sim/engine/waits.h"

/* A request's KV in a group. */
struct held {
    int32_t owner;
    int64_t tokens;        /* what its pages are counted for */
    int64_t shared_tokens; /* of these, at the front, in blocks of the prefix cache */
};

/* What the engine knows of a request while it is in flight. */
struct flight {
    int64_t made_tokens;    /* output tokens so far; stale in decode, see decode_end */
    int64_t kv_tokens;      /* prefill: how far it has come */
    int64_t prefill_tokens; /* its goal: input, and after a preemption what was made as well */
    int64_t admitted;       /* order of admission, for choosing whom to preempt */
    int64_t queued_since_ps, moving_since_ps;
    int32_t group;    /* where it waits, runs or goes to */
    struct held held; /* there, from its admission on */
    /* From the last chunk in a prefill group until the KV is in the group that decodes. */
    bool kv_elsewhere;
    bool is_due;        /* its client has left meanwhile */
    int32_t from_group; /* where its KV is, */
    struct held from;   /* and what it holds there */
};

/* A prefill chunk of the batch being built. */
struct chunk {
    uint32_t req;
    int32_t q;
};

struct step {
    bool running;
    int64_t start_ps, exposed_ps;
    struct seg cost;
    int64_t n; /* steps planned: all but the last may be cut off by an event */
    int64_t generation;
    struct span_record span; /* for an observer that asks for it; else unset */
};

struct group {
    int id;
    int64_t now_ps; /* of group_clock() */
    struct engine *engine;
    struct pool_result *result; /* of its pool */
    struct policy *policy;
    bool prompts_only;
    int layout;
    int pending;         /* layout to switch to once the batch is finished (drain), or -1 */
    int wanted;          /* what the policy last wanted in vain, or -1 */
    bool admission_held; /* until that one fits, or nothing runs that it was for */
    int64_t admit_most;  /* requests that the policy lets run; 0: no limit of its */
    int owed_from; /* a drained switch left this layout and is charged to the next step, or -1 */
    struct weighed drained_why; /* of a drained switch, when it was decided */
    bool wake_due;

    struct queue waiting;
    uint32_t *prefill; /* ids in order of admission */
    size_t n_prefill, cap_prefill;

    /* Decode: parallel arrays. `item` has room for the chunks behind the n_decode items. */
    struct batch_item *item;
    uint32_t *item_req;
    int64_t *decode_end; /* value of decode_steps at which the request is done */
    size_t n_decode, cap_item, cap_item_req, cap_end;
    int64_t decode_steps; /* so far, over the group's life */

    struct chunk *chunk;
    size_t n_chunks, cap_chunk;

    uint32_t *due; /* to be cancelled at the coming boundary */
    size_t n_due, cap_due;

    struct kv kv;
    struct prefix prefix;
    int n_of_owner[RANKS_MAX];
    int64_t held_of_owner[RANKS_MAX];
    int last_owner;
    int64_t admissions;
    int64_t remaining_tokens; /* output tokens that the running requests still have to make */
    int64_t queued_tokens;    /* to compute for those that wait or whose KV is on its way here */

    size_t n_moving; /* hold KV here without running: on their way to another group, or from one */
    int64_t leaving_tokens[RANKS_MAX]; /* KV of the former, by owner */
    struct queue landed;               /* the latter whose KV is there: they decode from the next
                                          boundary on */

    struct step step;
};

struct engine {
    const struct cost *cost;
    const struct engine_request *request;
    const uint64_t *hash;
    int64_t block_tokens; /* of a hash */
    struct flight *flight;
    const struct engine_config *config;
    const struct engine_observer *observer;
    struct run_result *out;
    struct eventq *events;
    struct waits *waits;
    struct kv_link *link;
    double token_bytes, state_bytes; /* of a request's KV: a token's, and beside its tokens */
    struct group *group;             /* all; those that prompts are handed to come first */
    struct err *err;
    struct simulation
        *simulation; /* that this is the engine of; NULL in a fork, which forks no more */
    /* Integrals over time of how many requests wait, are between pools and run, over all groups. */
    __int128 queued_area_ps, moving_area_ps, running_area_ps;
};

void group_init(struct group *g, struct engine *e, int id, struct policy *policy,
                enum pool_kind pool);
void group_release(struct group *g);
/* The same in another engine, under another policy. */
void group_copy(struct group *to, const struct group *from, struct engine *e,
                struct policy *policy);
/* Requests with rows in the coming steps. */
int64_t group_running(const struct group *g);
/* The time is now_ps: whatever changes how many wait or run says so first. */
void group_clock(struct group *g, int64_t now_ps);
/* An idle group wakes once everything that arrives now has arrived. */
void group_wake(struct group *g, int64_t now_ps);
/* Tokens that a request makes here: of a prompt alone the first. */
int64_t group_output_goal(const struct group *g, uint32_t req);
/* All that a request which waits here has to compute. */
int64_t group_work_tokens(const struct group *g, uint32_t req);
/* Tokens, prompt and output, that the group would have to compute from a time on, with one more
 * request: what steps that ended before have done is not in it. */
int64_t group_load_with(const struct group *g, uint32_t req, int64_t before_ps);

/* A request arrives: queue it, or reject it when it could never fit. True when queued. */
bool group_arrive(struct group *g, uint32_t req, int64_t now_ps);
/* The same for one that was prefilled elsewhere, and is known to fit. */
void group_enqueue(struct group *g, uint32_t req, int64_t now_ps);
/* As steps start, or before the last one of a jump: record how full the fullest pool of the current
 * layout is, and evict cached blocks for which that leaves no room. */
void group_note_peak(struct group *g);
/* Account for n steps of the running batch, which end now: contexts grow, chunks land, requests
 * finish. */
void group_advance(struct group *g, int64_t n, int64_t now_ps);

/* A request takes KV at an owner, gives back what it held at one, or has its next row in decode. */
void group_hold_kv(struct group *g, uint32_t req, int owner, int64_t tokens);
void group_drop_kv(struct group *g, uint32_t req, struct held *h);
void group_start_decode(struct group *g, uint32_t req);
/* Out of decode, out of prefill; one that has been taken out of the queue. */
void group_remove_decode(struct group *g, size_t i);
void group_remove_prefill(struct group *g, size_t i);
void group_note_left(struct group *g, uint32_t req);

/* admission.c: move requests from the queue to prefill, or send for their KV, while they fit. */
void group_admit(struct group *g);
/* On demand: preempt the youngest until the running requests fit the current layout. One that is
 * alone stays, as the policy has to go where it fits, unless the group drains. */
void group_make_room(struct group *g);

/* handover.c: its prompt is done here: its KV stays until it is told to leave. */
void group_hand_over(struct group *g, uint32_t req, int64_t now_ps);
/* There is room here for the KV of a request that was handed over: send for it. */
void group_fetch(struct group *g, uint32_t req, int owner, int64_t tokens);
/* The KV has been moved: where it was gives back its pages, `to` decodes from its next boundary. */
void group_land(struct group *to, uint32_t req, int64_t now_ps);
/* At a boundary: those whose KV is there begin to decode, or end when their client has left. */
void group_join(struct group *g);
/* One whose KV nobody has sent for ends: where that is gives back its pages. */
void group_cancel_moving(struct engine *e, uint32_t req, int64_t now_ps);

/* ending.c: how a request ends that does not complete. */
/* It is rejected or cancelled, as the reason says, and is nowhere any more. */
void request_fail(struct engine *e, uint32_t req, enum end_reason reason, int64_t now_ps);
/* Would it be past its deadline if it finished now? */
bool request_is_late(const struct engine *e, uint32_t req, int64_t now_ps);
/* Its client leaves now: it will be cancelled at the first boundary not before, at once where no
 * step runs; while its KV is on its way, when that is there. */
void group_expire(struct group *g, uint32_t req, int64_t now_ps);
/* At a boundary: cancel those. */
void group_cancel_due(struct group *g);

/* batch.c: lay the step's chunks behind the decode items, from one shared budget or from each
 * owner's share of it. Query rows of the whole batch. */
int64_t group_build(struct group *g, bool owned);
struct batch group_batch(const struct group *g);
/* Live tokens per owner outside the prefix cache, for the price of a switch. */
void group_live_tokens(const struct group *g, int64_t *ctx_tokens);

/* reuse.c: the prompt's tokens that an owner has cached (at KV_COMMON: anyone), from its first; or
 * only as far as running requests use them. 0 without a cache, as nothing below does anything. */
int64_t group_cached_tokens(const struct group *g, uint32_t req, int place);
int64_t group_used_tokens(const struct group *g, uint32_t req, int place);
/* A request in prefill skips the blocks that follow and are cached under the current layout. */
void group_reuse(struct group *g, uint32_t req);
/* What it has computed of its prompt becomes blocks that others may use; it lets go of them. */
void group_share(struct group *g, uint32_t req);
void group_unshare(struct group *g, uint32_t req, struct held *h);

/* step.c: at a step boundary: admit, ask the policy, switch, and schedule the next step or go idle.
 */
void group_boundary(struct group *g, int64_t now_ps);
/* The second half of it, from asking the policy on; something runs. */
void group_decide(struct group *g, int64_t now_ps);
/* The step in progress ends now: account for it, then the boundary. */
void group_step_end(struct group *g, int64_t now_ps);
/* Something happened: an idle group wakes now; planned steps are cut at the first boundary not
 * before from_ps. */
void group_notify(struct group *g, int64_t now_ps, int64_t from_ps);

#endif
