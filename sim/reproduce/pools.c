/* SPDX-License-Identifier: Apache-2.0
 *
 * Table 3, and appendix B's pools of DeepSeek-V3.2 on H200, which the figures need too.
 */
#include "sim/reproduce/pools.h"

#include <string.h>

#include "sim/base/units.h"
#include "sim/reproduce/paper.h"
#include "sim/reproduce/rows.h"

enum { T = 8, PAGE_TOKENS = 64 };

static int load_table3(struct paper *p, struct err *err)
{
    return paper_load(p, "table3", "platform,layout|gib_per_card,gib_per_group,distinct_tokens",
                      err);
}

/* Every rank of tp holds all tokens. */
static double tokens_per_rank(const struct paper *table3, int row)
{
    double tokens = paper_number(table3, row, 4);
    return strcmp(paper_text(table3, row, 1), "tp") == 0 ? tokens : tokens / T;
}

int pools_table3_tokens(const char *platform, const char *layout, double *tokens, struct err *err)
{
    struct paper p;
    if (load_table3(&p, err) < 0)
        return -1;
    int row = paper_find(&p, platform, layout);
    if (row >= 0)
        *tokens = tokens_per_rank(&p, row);
    paper_release(&p);
    return row >= 0 ? 0 : err_set(err, "table3: no row %s, %s", platform, layout);
}

int pools_appendix_b_tokens(const char *layout, double *tokens, struct err *err)
{
    struct model from, to;
    struct layout l;
    double filled = 0;
    if (model_load(&from, "glm-5.3", err) < 0 || model_load(&to, "deepseek-v3.2", err) < 0 ||
        layout_parse(&l, layout, &from, T, err) < 0 ||
        pools_table3_tokens("h200", layout, &filled, err) < 0)
        return -1;
    /* The authors' engine gives every layer an indexer, also those that share one. */
    from.indexer.layers = from.layers;
    double bytes = filled * model_kv_bytes_per_token(&from) + footprint_common_bytes(&from, T) +
                   footprint_weights_bytes(&from, &l) - footprint_common_bytes(&to, T) -
                   footprint_weights_bytes(&to, &l);
    int64_t pages = (int64_t)(bytes / model_kv_bytes_per_token(&to)) / PAGE_TOKENS;
    *tokens = (double)(pages * PAGE_TOKENS);
    return 0;
}

static int compare_table3(struct reproduction *r, const struct paper *p, struct err *err)
{
    for (int i = 0; i < p->rows; i++) {
        const char *platform = paper_text(p, i, 0), *layout = paper_text(p, i, 1);
        struct model m;
        if (model_load(&m, strcmp(platform, "dcu") == 0 ? "glm-5.3-flash" : "glm-5.3", err) < 0)
            return -1;
        double allocated = tokens_per_rank(p, i) + PAGE_TOKENS;
        double gib = allocated * model_kv_bytes_per_token(&m) / GIB;
        rows_exact(r, paper_text(p, i, 2), gib, "table3.%s.%s.gib_per_card", platform, layout);
        rows_exact(r, paper_text(p, i, 3), gib * T, "table3.%s.%s.gib_per_group", platform, layout);
    }
    return 0;
}

/* What sharding the projections leaves free, measured on B200: tokens of DOP over those of DP. */
static int compare_freed(struct reproduction *r, struct err *err)
{
    struct paper said;
    struct model m;
    double dop = 0, dp = 0;
    if (model_load(&m, "glm-5.3", err) < 0 || pools_table3_tokens("b200", "dop", &dop, err) < 0 ||
        pools_table3_tokens("b200", "dp", &dp, err) < 0 ||
        paper_load(&said, "stated", "name,from|value", err) < 0)
        return -1;
    rows_exact(r, paper_text(&said, paper_find(&said, "dop_over_dp_gib", NULL), 2),
               (dop - dp) * model_kv_bytes_per_token(&m) / GIB, "table3.dop_over_dp_gib");
    paper_release(&said);
    return 0;
}

static int compare_appendix_b(struct reproduction *r, struct err *err)
{
    struct paper p;
    int rc = 0;
    if (paper_load(&p, "pools", "layout|tokens", err) < 0)
        return -1;
    for (int i = 0; i < p.rows && rc == 0; i++) {
        double tokens;
        rc = pools_appendix_b_tokens(paper_text(&p, i, 0), &tokens, err);
        if (rc == 0)
            rows_exact(r, paper_text(&p, i, 1), tokens, "appendix_b.h200.%s.tokens",
                       paper_text(&p, i, 0));
    }
    paper_release(&p);
    return rc;
}

int reproduce_pools(struct reproduction *r, struct err *err)
{
    struct paper p;
    if (load_table3(&p, err) < 0)
        return -1;
    int rc = compare_table3(r, &p, err);
    paper_release(&p);
    if (rc < 0 || compare_freed(r, err) < 0)
        return -1;
    return compare_appendix_b(r, err);
}
