/* SPDX-License-Identifier: Apache-2.0
 *
 * The discrete-event engine: replays requests through groups of ranks with continuous batching,
 * chunked prefill, paged KV and a layout policy. Clock in integer picoseconds; same input, same
 * bytes out. With `exact` every step is simulated by itself; without, runs of steps between events
 * are jumped over in closed form, with the same result.
 *
 * Groups either serve whole requests, or prompts are run in a pool of their own, whose groups send
 * the KV over a link to those that decode.
 */
#ifndef SIM_ENGINE_ENGINE_H
#define SIM_ENGINE_ENGINE_H

#include "sim/base/hist.h"
#include "sim/base/opt.h"
#include "sim/base/progress.h"
#include "sim/cost/transition.h"
#include "sim/policy/policy.h"

/* One that waits for others comes delay_ps after the last of them has ended: into the step after
 * the one that begins then, when it is 0. */
struct engine_request {
    int64_t arrival_ps; /* ascending over the array; where it waits, the earliest that it can be */
    int64_t input_tokens, output_tokens;
    int64_t delay_ps;
    size_t after_at; /* first of n_after in engine_input.after; requests may share theirs */
    size_t hash_at;  /* first of n_hashes in engine_input.hash: of its prompt's blocks */
    uint32_t n_after, n_hashes;
    uint32_t session; /* from 1; 0: of none */
};

enum admission {
    ADMIT_RESERVE,
    ADMIT_ON_DEMAND
}; /* input+output reserved | prompt, then page by page */
/* fewest requests | fewest held tokens | longest cached prefix, then fewest requests */
enum owner_rule { OWNER_COUNT, OWNER_KV, OWNER_PREFIX };
enum router_rule { ROUTE_ROUND_ROBIN, ROUTE_LEAST_LOADED, ROUTE_PREFIX_AFFINITY }; /* router.h */
/* Of one that ended without its output: what waits for it is cancelled | comes all the same. */
enum failed_session { SESSION_END, SESSION_GO_ON };

struct engine_config {
    int64_t token_budget; /* query rows of a step, decode rows included; owners share it evenly */
    int64_t max_running;  /* requests of one group */
    int64_t page_tokens;
    int64_t kv_tokens, kv_blocks; /* KV room of each rank, one of them; both 0: what memory holds */
    int admission, owners;
    int64_t replicas; /* groups behind the router: they serve whole requests, or decode */
    bool prefix_cache, exact;
    int64_t slo_ttft_ps, slo_tpot_ps, slo_e2e_ps; /* 0: no limit */
    int64_t deadline_ps;                          /* from arrival, then it is cancelled; 0: none */
    int failed_session;
    int router;
    double affinity_factor;     /* of the least load, up to which a prefix keeps its replica */
    int64_t prefill_replicas;   /* groups that run prompts only; 0: none */
    double kv_link_gb_per_s;    /* of every group's port, see kv_link.h */
    int64_t kv_link_latency_ps; /* from leaving one port to reaching the other */
};

/* Rows for a command's option table; `base` is the offset of a struct engine_config. */
/* clang-format off */
#define ENGINE_OPTS(base)                                                                          \
    {"token-budget", 0, OPT_TOKENS, (base) + offsetof(struct engine_config, token_budget),         \
     "N", "8192", 1, 1 << 24, NULL, "query rows per step: decode rows and prefill chunks"},        \
    {"max-running", 0, OPT_I64, (base) + offsetof(struct engine_config, max_running),              \
     "N", "256", 1, 1 << 20, NULL, "running requests per group"},                                  \
    {"page-tokens", 0, OPT_I64, (base) + offsetof(struct engine_config, page_tokens),              \
     "N", "64", 1, 1 << 20, NULL, "tokens per KV page"},                                           \
    {"kv-tokens", 0, OPT_TOKENS, (base) + offsetof(struct engine_config, kv_tokens),               \
     "N", "0", 0, 1e12, NULL, "KV room of each rank, in tokens that it stores (0: its memory's)"}, \
    {"kv-blocks", 0, OPT_I64, (base) + offsetof(struct engine_config, kv_blocks),                  \
     "N", "0", 0, 1e9, NULL, "the same in pages, which engines call blocks"},                     \
    {"admission", 0, OPT_ENUM, (base) + offsetof(struct engine_config, admission),                 \
     "MODE", "reserve", 0, 0, "reserve|on-demand",                                                 \
     "reserve input and output KV, or grow page by page and preempt"},                             \
    {"owners", 0, OPT_ENUM, (base) + offsetof(struct engine_config, owners),                       \
     "RULE", "count", 0, 0, "count|kv|prefix",                                                     \
     "balance request owners by count or held KV, or go where most of the prompt is cached"},      \
    {"prefix-cache", 0, OPT_FLAG, (base) + offsetof(struct engine_config, prefix_cache),           \
     NULL, NULL, 0, 0, NULL, "keep prompt blocks and skip the prefill of those found again"},      \
    {"replicas", 0, OPT_I64, (base) + offsetof(struct engine_config, replicas),                    \
     "R", "1", 1, 1024, NULL, "groups behind the router"},                                         \
    {"deadline", 0, OPT_TIME, (base) + offsetof(struct engine_config, deadline_ps),                \
     "TIME", "0s", 0, 1e5, NULL,                                                                   \
     "cancel a request that has not finished so long after its arrival (0: never)"},               \
    {"failed-session", 0, OPT_ENUM, (base) + offsetof(struct engine_config, failed_session),       \
     "HOW", "end", 0, 0, "end|go-on",                                                              \
     "what waits for a request that was rejected or cancelled: is cancelled too, or comes as if "  \
     "that had finished"},                                                                         \
    {"exact", 0, OPT_FLAG, (base) + offsetof(struct engine_config, exact),                         \
     NULL, NULL, 0, 0, NULL, "simulate every step by itself (same result, slower)"},               \
    {"router", 0, OPT_ENUM, (base) + offsetof(struct engine_config, router),                       \
     "RULE", "round-robin", 0, 0, "round-robin|least-loaded|prefix-affinity",                      \
     "which replica a request goes to"},                                                           \
    {"affinity-factor", 0, OPT_F64, (base) + offsetof(struct engine_config, affinity_factor),      \
     "X", "2", 1, 1e6, NULL, "a prefix leaves its replica at X times the least load"},             \
    {"prefill-replicas", 0, OPT_I64, (base) + offsetof(struct engine_config, prefill_replicas),    \
     "P", "0", 0, 1024, NULL, "groups that run prompts only; the R replicas then decode"},         \
    {"kv-link-gb-per-s", 0, OPT_F64, (base) + offsetof(struct engine_config, kv_link_gb_per_s),    \
     "X", "50", 0.1, 1e6, NULL, "bandwidth at which a group sends or receives KV"},                \
    {"kv-link-latency", 0, OPT_TIME, (base) + offsetof(struct engine_config, kv_link_latency_ps),  \
     "TIME", "10us", 0, 10, NULL, "latency of a KV transfer"}
/* clang-format on */

/* Refuses what contradicts itself, in words of the options. */
int engine_config_check(const struct engine_config *c, struct err *err);
/* Pages of each rank that kv_tokens or kv_blocks ask for; 0: what memory holds. */
int64_t engine_config_pages(const struct engine_config *c);

enum request_state { REQ_PENDING, REQ_COMPLETED, REQ_REJECTED, REQ_CANCELLED, REQ_COUNT };
extern const char *const request_state_names[REQ_COUNT];
/* Why one was rejected or cancelled. */
enum end_reason {
    REASON_NONE,
    REJECT_TOO_LONG,
    REJECT_KV,
    CANCEL_DEADLINE,
    CANCEL_SESSION, /* it waited for one that was rejected or cancelled */
    REASON_COUNT
};
extern const char *const end_reason_names[REASON_COUNT];

struct request_result {
    /* Absolute. Where no token was made, the first token's time is the end's; of one that was
     * rejected, or cancelled with its session, all are alike. */
    int64_t arrival_ps, first_token_ps, finish_ps;
    int64_t cached_tokens;        /* of its prompt, found in the cache before any preemption */
    int64_t admitted_ps;          /* absolute: it left the queue for the first time */
    int64_t queued_ps, moving_ps; /* of finish - arrival: waiting, and with KV between pools */
    int64_t transfer_start_ps, transfer_end_ps; /* of its KV; 0, 0: it went nowhere */
    int32_t preemptions;
    uint8_t state, reason;
};

enum pool_kind { POOL_DECODE, POOL_PREFILL, POOL_COUNT }; /* without prefill: POOL_DECODE is all */

struct pool_result {
    int64_t replicas, busy_ps, switches, switch_exposed_ps;
    int64_t layout_ps[LAYOUT_MAX];
};

struct link_result {
    int64_t transfers, bytes;
    int64_t busiest_ps;  /* time for which the busiest port was busy */
    struct hist wait_ps; /* of transfers: from when there was room for the KV to their start */
};

struct run_result {
    int64_t requests, completed, rejected, cancelled, preemptions;
    int64_t ended_by[REASON_COUNT];
    int64_t input_tokens, output_tokens; /* of completed requests */
    int64_t cached_tokens;               /* of these input tokens, found in the cache */
    int64_t cache_block_tokens;          /* that the cache keeps as one; 0 without */
    int64_t cache_evictions;             /* of such blocks, each owner's copy by itself */
    int64_t makespan_ps;                 /* first arrival to last finish */
    int64_t busy_ps;                     /* all groups' step time */
    int64_t slo_met;                     /* completed within all limits */
    int64_t slo_output_tokens;           /* of these */
    struct hist queued_ps, ttft_ps, tpot_ps, e2e_ps; /* of completed requests */
    int64_t steps, events, switches, switches_refused, switch_exposed_ps;
    int64_t layout_ps[LAYOUT_MAX];
    struct pool_result pool[POOL_COUNT]; /* what the sums above are of */
    struct link_result link;
    int64_t forks, searches_cut; /* of policies that look ahead: cut short by their budgets */
    double kv_peak_frac;
    uint64_t wall_ns;
    struct request_result *request; /* one per input request */
};

/* One executed step, for plans; only with `exact`. */
struct step_record {
    int64_t index, at_ps, step_ps, exposed_ps; /* step_ps includes exposed_ps */
    int group, layout, from;                   /* from = -1: no switch */
    enum mechanism mechanism;
    const struct batch *batch;
    const uint32_t *req; /* request of each batch item */
    const struct step_cost *cost;
};

/* What a decision weighed, by policy.h's scores: the coming step in the layout of before and in
 * another. Both 0: nothing was. */
struct weighed {
    int64_t stay_ps, go_ps;
    bool forced; /* the running requests' KV no longer fitted where it was */
};

/* Steps that ran one after the other, alike but for contexts that grow. One, where it has a prefill
 * chunk or switches, and always with `exact`. */
struct span_record {
    int64_t index, n; /* of the first, counted over all groups as they end; how many */
    int64_t start_ps, end_ps, exposed_ps;
    int group, layout, from; /* from = -1: no switch */
    enum mechanism mechanism;
    struct weighed switch_why;   /* when that was decided */
    int wanted;                  /* layout that the policy wants and memory forbids; -1: none */
    struct weighed wanted_why;   /* against the layout of before */
    int64_t n_waiting, kv_pages; /* at the start: in the queue; used of the fullest pool */
    int64_t kv_capacity_pages;   /* of each pool */
    struct step_cost cost;       /* its segments hold for all n */
    const struct batch *batch;   /* of the first */
};

struct engine_observer {
    void (*step)(void *context, const struct step_record *r); /* at its start; or NULL */
    void (*span)(void *context, const struct span_record *r); /* at its end; or NULL */
    void *context;
};

/* What a run is made of; everything is borrowed. */
struct engine_input {
    const struct cost *cost;
    const struct engine_request *request;
    int64_t n_requests;
    const uint32_t *after; /* what requests wait for: places in `request`, each before their own */
    const uint64_t *hash;  /* each of block_tokens of a prompt and all before them; or NULL */
    int64_t block_tokens;  /* positive with config->prefix_cache */
    struct policy *policy; /* one per replica, fresh; then one per prefill replica */
    const struct engine_config *config;
    const struct engine_observer *observer; /* or NULL; its step() needs config->exact */
    struct progress *progress;              /* or NULL */
};

/* Run to the end. Fails only when a policy breaks its contract. */
int engine_run(const struct engine_input *in, struct run_result *out, struct err *err);
void run_result_release(struct run_result *r);
void run_result_copy(struct run_result *to, const struct run_result *from);

#endif
