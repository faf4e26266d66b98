/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/reproduce/primitives.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sim/reproduce/rows.h"

static const char *const names[TRANSPORTED_COUNT] = {
    [WEIGHTS_GATHERED] = "weights_all-gather",
    [KV_GATHERED] = "kv_all-gather",
    [KV_EXCHANGED] = "kv_all-to-all",
};

/* A cell of the figure that is not empty or zero: what crosses the network, and in what time. */
struct cell {
    enum transported what;
    double bytes, s;
};

enum { WEIGHT_COLUMN = 2, KV_COLUMN = 3, MS_PER_S = 1000 };

static struct cell cell_of(const struct platform *p, const struct paper *figure, int row,
                           int column)
{
    int from = platform_layout(p, paper_text(figure, row, 0));
    int to = platform_layout(p, paper_text(figure, row, 1));
    const struct manifest *mf = cost_manifest(p->cost, from, to);
    struct cell c = {.s = paper_number(figure, row, column) / MS_PER_S};
    if (column == WEIGHT_COLUMN) {
        c.what = WEIGHTS_GATHERED;
        c.bytes = mf->weights.recv_bytes;
    } else {
        c.what = mf->kv.primitive == PRIM_ALL_GATHER ? KV_GATHERED : KV_EXCHANGED;
        c.bytes = manifest_kv_transfer(mf, &p->model, p->owned_tokens).recv_bytes;
    }
    return c;
}

static int load_figure(const struct platform *p, struct paper *figure, struct err *err)
{
    return paper_load(figure, p->primitives_table, "src,dst|weight_ms,kv_ms", err);
}

int primitives_fit(const struct platform *p, struct bandwidths *out, struct err *err)
{
    struct paper figure;
    double rates[TRANSPORTED_COUNT] = {0}, squares[TRANSPORTED_COUNT] = {0};
    if (load_figure(p, &figure, err) < 0)
        return -1;
    for (int row = 0; row < figure.rows; row++)
        for (int column = WEIGHT_COLUMN; column <= KV_COLUMN; column++) {
            struct cell c = cell_of(p, &figure, row, column);
            double rate = c.s > 0 ? c.bytes / c.s : 0;
            rates[c.what] += rate;
            squares[c.what] += rate * rate;
        }
    for (int i = 0; i < TRANSPORTED_COUNT; i++)
        out->bytes_per_s[i] = squares[i] / rates[i];
    paper_release(&figure);
    return 0;
}

/* The paper's own variation of a cell. */
static const double repeats_frac = 0.10;

static void compare_cells(struct reproduction *r, const struct platform *p,
                          const struct paper *figure, const struct bandwidths *fitted)
{
    for (int column = WEIGHT_COLUMN; column <= KV_COLUMN; column++)
        for (int row = 0; row < figure->rows; row++) {
            struct cell c = cell_of(p, figure, row, column);
            if (c.s > 0)
                rows_predicted(r, paper_text(figure, row, column),
                               c.bytes / fitted->bytes_per_s[c.what] * MS_PER_S, repeats_frac,
                               "%s.%s-%s.%s_ms", p->primitives_table, paper_text(figure, row, 0),
                               paper_text(figure, row, 1),
                               column == WEIGHT_COLUMN ? "weights" : "kv");
        }
}

static void show_constants(struct reproduction *r, const struct platform *p,
                           const struct bandwidths *fitted)
{
    int cp = platform_layout(p, "cp"), dp = platform_layout(p, "dp");
    struct transfer exchanged =
        manifest_kv_transfer(cost_manifest(p->cost, cp, dp), &p->model, p->owned_tokens);
    for (int i = 0; i < TRANSPORTED_COUNT; i++)
        rows_figure(r, fitted->bytes_per_s[i] / 1e9, NAN, true, "%s.%s.gb_per_s",
                    p->primitives_table, names[i]);
    rows_figure(r, exchanged.recv_bytes / fitted->bytes_per_s[KV_GATHERED] * MS_PER_S, NAN, true,
                "%s.%s.volume_exact_ms", p->primitives_table, names[KV_EXCHANGED]);
}

/* KV from DOP to CP: as long as the busiest owner sends. */
static double exchange_ms(const struct platform *p, const struct bandwidths *fitted, int requests,
                          int64_t ctx_tokens)
{
    int64_t owned_tokens[RANKS_MAX];
    const struct manifest *mf =
        cost_manifest(p->cost, platform_layout(p, "dop"), platform_layout(p, "cp"));
    platform_deal(p, requests, ctx_tokens, owned_tokens);
    struct transfer t = manifest_kv_transfer(mf, &p->model, owned_tokens);
    return t.link_bytes / fitted->bytes_per_s[KV_EXCHANGED] * MS_PER_S;
}

/* Fewer requests of the measured length: ours, and by the paper's Eq. 14 from its measurement. */
static void show_fewer_requests(struct reproduction *r, const struct platform *p,
                                const struct bandwidths *fitted, double measured_ms)
{
    static const int requests[] = {1, 4, 8};
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        rows_figure(r, exchange_ms(p, fitted, requests[i], p->ctx_tokens), NAN, true,
                    "%sa.%dx%" PRId64 ".kv_ms", p->primitives_table, requests[i], p->ctx_tokens);
        rows_figure(r, measured_ms * requests[i] / SWITCH_BATCH, NAN, true,
                    "%sa.%dx%" PRId64 ".linear_ms", p->primitives_table, requests[i],
                    p->ctx_tokens);
    }
}

/* Panel a: what is printed of it, then what is drawn. */
static void compare_scaling(struct reproduction *r, const struct platform *p,
                            const struct paper *scaling, const struct bandwidths *fitted)
{
    enum { K_TOKENS = 2, KV_MS = 3 };
    for (int row = 0; row < scaling->rows; row++) {
        if (strcmp(paper_text(scaling, row, 0), p->primitives_table) != 0)
            continue;
        int64_t ctx_tokens = (int64_t)paper_number(scaling, row, K_TOKENS) * 1024;
        rows_predicted(r, paper_text(scaling, row, KV_MS),
                       exchange_ms(p, fitted, SWITCH_BATCH, ctx_tokens), repeats_frac,
                       "%sa.%dx%" PRId64 ".kv_ms", p->primitives_table, SWITCH_BATCH, ctx_tokens);
    }
    int measured = paper_find(scaling, p->primitives_table, "measured");
    show_fewer_requests(r, p, fitted, paper_number(scaling, measured, KV_MS));
}

static int reproduce_figure(struct reproduction *r, const struct platform *p, struct err *err)
{
    struct paper figure = {0}, scaling = {0};
    struct bandwidths fitted;
    int rc = -1;
    if (primitives_fit(p, &fitted, err) < 0 || load_figure(p, &figure, err) < 0 ||
        paper_load(&scaling, "kv_scaling", "figure,from|k_tokens,kv_ms", err) < 0)
        goto out;
    compare_cells(r, p, &figure, &fitted);
    show_constants(r, p, &fitted);
    compare_scaling(r, p, &scaling, &fitted);
    rc = 0;
out:
    paper_release(&scaling);
    paper_release(&figure);
    return rc;
}

int reproduce_primitives(struct reproduction *r, struct err *err)
{
    int rc = 0;
    for (int i = 0; i < PLATFORMS && rc == 0; i++) {
        struct platform p;
        if (platform_load(&p, i, err) < 0)
            return -1;
        rc = reproduce_figure(r, &p, err);
        platform_release(&p);
    }
    return rc;
}
