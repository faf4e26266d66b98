/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures 1, 6 and 7: how long inputs may be under each layout, the scale that follows from it, and
 * where the fastest layout changes.
 */
#include <assert.h>
#include <string.h>

#include "sim/base/units.h"
#include "sim/reproduce/crossovers.h"
#include "sim/reproduce/paper.h"
#include "sim/reproduce/pools.h"
#include "sim/reproduce/residency.h"
#include "sim/reproduce/rows.h"

enum { REFERENCE, REGIMES = 3 };

static const char *const platforms[REGIMES] = {"dcu", "h200", "b200"};

/* Longest inputs under tp. */
struct tp_limits {
    double tokens[REGIMES];
};

static int regime_of(const char *platform)
{
    int i = 0;
    while (i < REGIMES && strcmp(platforms[i], platform) != 0)
        i++;
    assert(i < REGIMES);
    return i;
}

/* The DCU reference: 52.8 GiB for projections, 24 GiB when whole, and KV of 64 KiB a token. */
static double dcu_tokens(const struct layout *l)
{
    return (double)(int64_t)((52.8 - 24.0 / l->in_shards) * GIB / (64 * KIB));
}

static int room_of(const char *platform, const struct layout *l, double *rank_tokens,
                   struct err *err)
{
    if (strcmp(platform, "b200") == 0)
        return pools_table3_tokens("b200", l->name, rank_tokens, err);
    if (strcmp(platform, "h200") == 0)
        return pools_appendix_b_tokens(l->name, rank_tokens, err);
    *rank_tokens = dcu_tokens(l);
    return 0;
}

static int longest_input(const struct cohorts *c, const char *platform, const char *layout,
                         int64_t *tokens, struct err *err)
{
    struct model m;
    struct layout l;
    double room;
    if (model_load(&m, "deepseek-v3.2", err) < 0 ||
        layout_parse(&l, layout, &m, COHORT_RANKS, err) < 0 ||
        room_of(platform, &l, &room, err) < 0)
        return -1;
    *tokens = cohorts_longest_input(c, &l, room);
    return 0;
}

static int compare_limit(struct reproduction *r, const struct paper *p, int row, struct cohorts *c,
                         struct tp_limits *tp, struct err *err)
{
    const char *figure = paper_text(p, row, 0), *platform = paper_text(p, row, 1);
    const char *layout = paper_text(p, row, 2);
    int batch = (int)paper_number(p, row, 3);
    int64_t tokens;
    if (c->batch != batch) {
        cohorts_release(c);
        cohorts_init(c, batch);
    }
    if (longest_input(c, platform, layout, &tokens, err) < 0)
        return -1;
    rows_exact(r, paper_text(p, row, 4), (double)tokens / 1024, "figure%s.%s.%s.limit_k", figure,
               platform, layout);
    rows_exact(r, paper_text(p, row, 5), (double)tokens, "figure%s.%s.%s.limit_tokens", figure,
               platform, layout);
    if (strcmp(layout, "tp") == 0)
        tp->tokens[regime_of(platform)] = (double)tokens;
    return 0;
}

static int compare_limits(struct reproduction *r, struct tp_limits *tp, struct err *err)
{
    struct paper p;
    struct cohorts c = {0};
    int rc = 0;
    if (paper_load(&p, "residency", "figure,platform,layout|batch,k_tokens,tokens", err) < 0)
        return -1;
    for (int i = 0; i < p.rows && rc == 0; i++)
        rc = compare_limit(r, &p, i, &c, tp, err);
    cohorts_release(&c);
    paper_release(&p);
    return rc;
}

static int compare_scales(struct reproduction *r, const struct tp_limits *tp, struct err *err)
{
    struct paper said;
    if (paper_load(&said, "stated", "name,from|value", err) < 0)
        return -1;
    for (int i = REFERENCE + 1; i < REGIMES; i++) {
        char name[24];
        snprintf(name, sizeof name, "alpha.%s", platforms[i]);
        rows_exact(r, paper_text(&said, paper_find(&said, name, NULL), 2),
                   tp->tokens[i] / tp->tokens[REFERENCE], "eq12.%s", name);
    }
    paper_release(&said);
    return 0;
}

static int compare_crossovers(struct reproduction *r, const struct tp_limits *tp, struct err *err)
{
    struct paper p;
    struct crossover found[CROSSOVERS_MAX];
    int n = crossovers_find(found);
    if (paper_load(&p, "crossovers", "figure,platform,from,to|k_tokens", err) < 0)
        return -1;
    rows_exact(r, "3", n, "eq11.crossovers");
    for (int row = 0; row < p.rows; row++) {
        const char *platform = paper_text(&p, row, 1);
        const char *from = paper_text(&p, row, 2), *to = paper_text(&p, row, 3);
        double k_tokens = -1; /* not found */
        for (int i = 0; i < n; i++)
            if (strcmp(found[i].from, from) == 0 && strcmp(found[i].to, to) == 0)
                k_tokens =
                    found[i].k_tokens * tp->tokens[regime_of(platform)] / tp->tokens[REFERENCE];
        rows_exact(r, paper_text(&p, row, 4), k_tokens, "figure%s.%s.%s-%s.k_tokens",
                   paper_text(&p, row, 0), platform, from, to);
    }
    paper_release(&p);
    return 0;
}

int reproduce_regimes(struct reproduction *r, struct err *err)
{
    struct tp_limits tp = {0};
    if (compare_limits(r, &tp, err) < 0 || compare_scales(r, &tp, err) < 0)
        return -1;
    return compare_crossovers(r, &tp, err);
}
