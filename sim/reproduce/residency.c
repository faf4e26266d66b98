/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/reproduce/residency.h"

#include <assert.h>
#include <stdlib.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"
#include "sim/base/rng.h"
#include "sim/layout/footprint.h"

enum { SEED = 20260922, MISSES_MAX = COHORTS / 100, INPUT_MAX = 4000000 };

void cohorts_init(struct cohorts *c, int batch)
{
    size_t n = (size_t)COHORTS * (size_t)batch;
    struct rng rng;
    *c = (struct cohorts){batch, xcalloc(n, sizeof *c->input_at),
                          xcalloc(n, sizeof *c->output_tokens)};
    rng_init(&rng, SEED);
    for (size_t i = 0; i < n; i++)
        c->input_at[i] = rng_f64(&rng);
    for (size_t i = 0; i < n; i++)
        c->output_tokens[i] = (int16_t)rng_range(&rng, 512, 1024);
}

void cohorts_release(struct cohorts *c)
{
    free(c->input_at);
    free(c->output_tokens);
    *c = (struct cohorts){0};
}

/* Tokens on the fullest rank. */
static double load_tokens(const struct cohorts *c, size_t cohort, int64_t longest,
                          const struct layout *l)
{
    int64_t shortest = longest / 2, held[COHORT_RANKS] = {0}, most = 0;
    double width = (double)(longest - shortest + 1);
    size_t at = cohort * (size_t)c->batch;
    int owner = 0;
    for (int i = 0; i < c->batch; i++, at++) {
        held[owner] += shortest + (int64_t)(c->input_at[at] * width) + c->output_tokens[at];
        most = max_i64(most, held[owner]);
        owner = l->kv_owned && owner + 1 < COHORT_RANKS ? owner + 1 : 0;
    }
    return (double)most * footprint_kv_share(l);
}

static bool stay_resident(const struct cohorts *c, int64_t longest, const struct layout *l,
                          double rank_tokens)
{
    int misses = 0;
    for (size_t i = 0; i < COHORTS && misses <= MISSES_MAX; i++)
        misses += load_tokens(c, i, longest, l) > rank_tokens;
    return misses <= MISSES_MAX;
}

int64_t cohorts_longest_input(const struct cohorts *c, const struct layout *l, double rank_tokens)
{
    int64_t fits = 1, too_long = INPUT_MAX;
    assert(l->ranks == COHORT_RANKS);
    while (too_long - fits > 1) {
        int64_t middle = (fits + too_long) / 2;
        if (stay_resident(c, middle, l, rank_tokens))
            fits = middle;
        else
            too_long = middle;
    }
    return fits;
}
