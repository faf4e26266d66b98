/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures 5 to 7 of the Helix paper under the assumptions of helix_setting: gains, frontiers, and
 * one over the other as curves.
 */
#include <math.h>

#include "sim/reproduce/helix.h"
#include "sim/reproduce/paper.h"
#include "sim/reproduce/rows.h"

/* Of every figure that is predicted. */
static const double goal_frac = 0.10;

static void add_frontier(struct reproduction *r, int model, const char *name,
                         const struct frontier *f)
{
    for (size_t i = 0; i < f->n; i++)
        rows_figure(r, f->point[i].tok_s_gpu, NAN, true, "helix.%s.%s.at_%.4g_tok_s_user",
                    helix_model_ids[model], name, f->point[i].tok_s_user);
}

static void add_curve(struct reproduction *r, int model, int figure, const struct ratio_curve *c)
{
    bool ttl = figure == HELIX_CONCURRENCY;
    for (size_t i = 0; i < c->n; i++)
        rows_figure(r, c->point[i].ratio, NAN, true, "helix.%s.at_%.4g_%s",
                    helix_figure_ids[model][figure], ttl ? 1e3 / c->point[i].at : c->point[i].at,
                    ttl ? "ms" : "tok_s_gpu");
}

static void add_curves(struct reproduction *r, int model, const struct helix_case *c)
{
    struct frontier both;
    struct ratio_curve user, gpu;
    helix_union(c, &both);
    ratio_interactivity(&user, &both, &c->baseline);
    ratio_concurrency(&gpu, &both, &c->baseline);
    add_curve(r, model, HELIX_CONCURRENCY, &gpu);
    add_curve(r, model, HELIX_INTERACTIVITY, &user);
    ratio_release(&user);
    ratio_release(&gpu);
    frontier_release(&both);
}

static void compare(struct reproduction *r, const struct paper *stated, int model, int figure,
                    const struct helix_gains *g)
{
    const char *id = helix_figure_ids[model][figure];
    rows_predicted(r, paper_text(stated, paper_find(stated, id, NULL), 2), g->figure[figure],
                   goal_frac, "helix.%s", id);
}

static void add_gains(struct reproduction *r, const struct paper *stated, int model,
                      const struct helix_case *c)
{
    struct helix_gains g;
    const char *id = helix_model_ids[model];
    helix_gains(c, model, &g);
    compare(r, stated, model, HELIX_CONCURRENCY, &g);
    rows_figure(r, 1e3 / g.gain.concurrency.at, NAN, true, "helix.%s.largest_at_ms",
                helix_figure_ids[model][HELIX_CONCURRENCY]);
    compare(r, stated, model, HELIX_INTERACTIVITY, &g);
    rows_figure(r, g.gain.interactivity.ratio, NAN, true, "helix.%s.largest",
                helix_figure_ids[model][HELIX_INTERACTIVITY]);
    rows_figure(r, g.gain.interactivity.at, NAN, true, "helix.%s.largest_at_tok_s_gpu",
                helix_figure_ids[model][HELIX_INTERACTIVITY]);
    rows_figure(r, g.gain.fastest_ratio, NAN, true, "helix.%s.fastest_over_fastest", id);
    rows_figure(r, (double)c->configs, NAN, true, "helix.%s.configurations", id);
}

/* What a section has of each model, whose search is done. */
typedef void add_fn(struct reproduction *r, const struct paper *stated, int model,
                    const struct helix_case *c);

static int search_both(struct reproduction *r, add_fn *add, struct err *err)
{
    struct paper stated;
    struct helix_data d;
    if (helix_load(&d, err) < 0 || paper_load(&stated, "helix/stated", "name,from|value", err) < 0)
        return -1;
    for (int model = 0; model < HELIX_MODELS; model++) {
        struct helix_case c;
        helix_search(&c, &d, model, &helix_setting);
        add(r, &stated, model, &c);
        helix_case_release(&c);
    }
    paper_release(&stated);
    return 0;
}

static void add_figure(struct reproduction *r, const struct paper *stated, int model,
                       const struct helix_case *c)
{
    add_gains(r, stated, model, c);
    add_frontier(r, model, "baseline", &c->baseline);
    add_frontier(r, model, "medha", &c->medha);
    add_frontier(r, model, "helix", &c->helix);
    add_curves(r, model, c);
}

int reproduce_frontiers(struct reproduction *r, struct err *err)
{
    return search_both(r, add_figure, err);
}

static void add_ablation(struct reproduction *r, const struct paper *stated, int model,
                         const struct helix_case *c)
{
    struct helix_gains g;
    helix_gains(c, model, &g);
    compare(r, stated, model, HELIX_HOPB, &g);
    rows_figure(r, g.hopb_median_frac, NAN, true, "helix.%s.median",
                helix_figure_ids[model][HELIX_HOPB]);
    add_frontier(r, model, "hopb_on", &c->helix);
    add_frontier(r, model, "hopb_off", &c->helix_lockstep);
}

int reproduce_ablation(struct reproduction *r, struct err *err)
{
    return search_both(r, add_ablation, err);
}
