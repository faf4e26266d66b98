/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/base/ints.h"
#include "sim/base/rng.h"
#include "sim/study/trial_steps.h"

#define K 1024LL /* tokens, as in --context 64K */

/* Who owns the i-th request. */
enum owners { OWNERS_IN_TURN, OWNERS_ONE, OWNERS_MOSTLY_ONE };

static int owner_of(enum owners owners, int i, int ranks)
{
    if (owners == OWNERS_IN_TURN)
        return i % ranks;
    /* Three in four on the first; with few requests some ranks own none. */
    bool elsewhere = owners == OWNERS_MOSTLY_ONE && ranks > 1 && i % 4 == 3;
    return elsewhere ? 1 + i / 4 % (ranks - 1) : 0;
}

/* What a step has: decoding requests of a group, and prefill chunks. */
struct shape {
    int batch, chunks;
    int64_t q, chunk_ctx_tokens;
};

static const int batches[] = {1, 2, 4, 8, 16, 32, 64};

/* By the decoding requests' context; each with a mixed step as well. */
static const struct {
    int64_t ctx_tokens;
    struct shape mixed;
} decode[] = {
    {1 * K, {8, 1, 256, 256}},       {4 * K, {32, 1, 512, 8 * K}},   {16 * K, {16, 2, 512, 8 * K}},
    {64 * K, {16, 1, 1024, 32 * K}}, {128 * K, {4, 1, 2048, 8 * K}},
};

static const struct {
    enum owners owners;
    int64_t ctx_tokens;
} uneven[] = {
    {OWNERS_ONE, 4 * K},
    {OWNERS_ONE, 64 * K},
    {OWNERS_MOSTLY_ONE, 4 * K},
    {OWNERS_MOSTLY_ONE, 64 * K},
};
static const int uneven_batches[] = {4, 16};

static const int64_t chunk_rows[] = {64, 256, 512, 1024, 2048};
/* Of the request with the chunk; 0: the chunk is all of it. */
static const int64_t chunk_ctx_tokens[] = {0, 8 * K, 32 * K, 128 * K};
static const int64_t chunk_pairs_max =
    128 * K * K; /* of a row and a token: longer ones take long */

static const int64_t switch_ctx_tokens[] = {4 * K, 32 * K, 128 * K};
enum { SWITCH_BATCH = 16 };

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

struct grid {
    struct trial_steps steps;
    struct rng draws;
    int64_t max_tokens; /* of all requests at once */
    int64_t next_req;
};

enum { GROUP_MAX = 64 };

/* Decoding requests that shapes of one context share, so that a replay makes up their history once:
 * the first has that context, the others between half of it and all of it. */
struct group {
    enum owners owners;
    int64_t first_req;
    int64_t ctx_tokens[GROUP_MAX];
};

static struct group new_group(struct grid *g, enum owners owners, int64_t ctx_tokens)
{
    struct group group = {.owners = owners, .first_req = g->next_req, .ctx_tokens = {ctx_tokens}};
    for (int i = 1; i < GROUP_MAX; i++)
        group.ctx_tokens[i] = rng_range(&g->draws, ctx_tokens / 2, ctx_tokens);
    g->next_req += GROUP_MAX;
    return group;
}

static int64_t group_tokens(const struct group *group, int batch)
{
    int64_t sum = 0;
    for (int i = 0; i < batch; i++)
        sum += group->ctx_tokens[i];
    return sum;
}

static bool is_allowed(const struct grid *g, int64_t longest_tokens, int64_t all_tokens)
{
    return longest_tokens <= cost_model(g->steps.setting->cost)->max_context_tokens &&
           all_tokens <= g->max_tokens;
}

static void add_decode(struct grid *g, const struct group *group, int batch)
{
    for (int i = 0; i < batch; i++)
        trial_steps_add(&g->steps, group->first_req + i,
                        owner_of(group->owners, i, cost_ranks(g->steps.setting->cost)),
                        group->ctx_tokens[i], 1);
}

static void run_decode(struct grid *g, const struct group *group, const struct shape *s)
{
    struct trial_steps *t = &g->steps;
    if (!is_allowed(g, max_i64(group->ctx_tokens[0], s->chunk_ctx_tokens),
                    group_tokens(group, s->batch) + s->chunks * s->chunk_ctx_tokens))
        return;
    trial_steps_clear(t);
    add_decode(g, group, s->batch);
    for (int i = 0; i < s->chunks; i++)
        trial_steps_add(t, g->next_req++, i % cost_ranks(t->setting->cost), s->chunk_ctx_tokens,
                        s->q);
    trial_steps_run_each(t);
}

static void run_decodes(struct grid *g)
{
    for (int c = 0; c < COUNT(decode); c++) {
        struct group group = new_group(g, OWNERS_IN_TURN, decode[c].ctx_tokens);
        for (int b = 0; b < COUNT(batches); b++)
            run_decode(g, &group, &(struct shape){.batch = batches[b]});
        run_decode(g, &group, &decode[c].mixed);
    }
}

static void run_uneven(struct grid *g)
{
    for (int u = 0; u < COUNT(uneven); u++) {
        struct group group = new_group(g, uneven[u].owners, uneven[u].ctx_tokens);
        for (int b = 0; b < COUNT(uneven_batches); b++)
            run_decode(g, &group, &(struct shape){.batch = uneven_batches[b]});
    }
}

static void run_prefills(struct grid *g)
{
    struct trial_steps *t = &g->steps;
    for (int c = 0; c < COUNT(chunk_ctx_tokens); c++)
        for (int q = 0; q < COUNT(chunk_rows); q++) {
            int64_t ctx_tokens = max_i64(chunk_ctx_tokens[c], chunk_rows[q]);
            if (!is_allowed(g, ctx_tokens, ctx_tokens) ||
                chunk_rows[q] * ctx_tokens > chunk_pairs_max)
                continue;
            trial_steps_clear(t);
            trial_steps_add(t, g->next_req, (int)(g->next_req % cost_ranks(t->setting->cost)),
                            ctx_tokens, chunk_rows[q]);
            g->next_req++;
            trial_steps_run_each(t);
        }
}

static bool fits_all(const struct trial_steps *t)
{
    for (int l = 0; l < cost_n_layouts(t->setting->cost); l++)
        if (!trial_steps_fit(t, l))
            return false;
    return true;
}

/* Every directed pair once: from each layout to all later ones but the next and back, then to the
 * next; in the end back down. */
static void tour(struct trial_steps *t)
{
    int n = cost_n_layouts(t->setting->cost);
    trial_steps_run(t, 0, MECH_FREE);
    for (int i = 0; i < n; i++) {
        for (int far = i + 2; far < n; far++) {
            trial_steps_run(t, far, MECH_BLOCKING);
            trial_steps_run(t, i, MECH_BLOCKING);
        }
        if (i + 1 < n)
            trial_steps_run(t, i + 1, MECH_BLOCKING);
    }
    for (int i = n - 2; i >= 0; i--)
        trial_steps_run(t, i, MECH_BLOCKING);
}

static void run_switches(struct grid *g)
{
    struct trial_steps *t = &g->steps;
    int n = cost_n_layouts(t->setting->cost);
    for (int c = 0; n > 1 && c < COUNT(switch_ctx_tokens); c++) {
        struct group group = new_group(g, OWNERS_IN_TURN, switch_ctx_tokens[c]);
        for (int batch = SWITCH_BATCH; batch > 0; batch /= 2) {
            if (!is_allowed(g, group.ctx_tokens[0], group_tokens(&group, batch)))
                continue;
            trial_steps_clear(t);
            add_decode(g, &group, batch);
            if (fits_all(t)) {
                tour(t);
                break;
            }
        }
    }
}

int trial_plans_grid(struct plan *out, const struct trial_setting *setting, int64_t max_tokens,
                     struct err *err)
{
    struct grid g = {.max_tokens = max_tokens};
    trial_steps_init(&g.steps, setting);
    rng_stream(&g.draws, setting->seed, "grid");
    run_decodes(&g);
    run_uneven(&g);
    run_prefills(&g);
    run_switches(&g);
    if (g.steps.plan.n == 0) {
        trial_steps_release(&g.steps);
        return err_set(err,
                       "--max-tokens: no shape of the grid has %lld tokens or fewer and fits; "
                       "the smallest has %lld",
                       (long long)max_tokens, (long long)chunk_rows[0]);
    }
    *out = trial_steps_take(&g.steps);
    return 0;
}
