/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/reproduce/reproduction.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "sim/reproduce/rows.h"

const struct publication publications[PUBLICATIONS] = {
    [SPLASH] = {"splash", "SPLASH", "arXiv 2609.37626",
                "Not reproduced: the gain of 1.3 to 1.73 times over fixed layouts, which follows\n"
                "from no table of the paper and for which no load is described (its last section\n"
                "has ours, on loads of ours); '11.3 GiB for all 78 layers' (78 x 145.73 MiB are\n"
                "11.1); quantiles other than p50; TTFT and the admission studies.\n"},
    [HELIX] = {"helix", "Helix", "arXiv 2507.07120",
               "Not reproduced: absolute times and the axes of figures 5 to 7, which are\n"
               "normalised; the scale of the frontiers is ours.\n"},
};

static const struct section_source splash_sections[] = {
    {"projections", "Eq. 9: the projections that move",
     "One layer that holds KV, and what each rank receives at T = 8. The 145.73 MiB of the\n"
     "text are not Eq. 9's but a whole attention block's with its indexer, in FP8 with scales.",
     reproduce_projections},
    {"kv-bytes", "KV bytes of a token",
     "Over all layers that hold KV: FP8 with scales, rotary part and indexer keys.",
     reproduce_kv_bytes},
    {"loads", "Table 2: loads of the busiest rank",
     "For 20 requests on 8 ranks, where an owner holds 3 at most and 2.5 in the mean.",
     reproduce_loads},
    {"pools", "Table 3 and the H200 pools of appendix B",
     "GiB follow from the tokens beside them and one padding page of 64. On H200 the bytes of\n"
     "a token are GLM-5.3's. Appendix B's pools exchange GLM-5.3's weights and KV for\n"
     "DeepSeek-V3.2's.",
     reproduce_pools},
    {"regimes", "Figures 1, 6, 7: longest inputs, and crossovers",
     "Limits: the longest nominal input at which 99% of 200,000 cohorts, drawn with\n"
     "PCG64(20260922), stay resident. Their ratios under TP scale Eq. 11 and 12, whose\n"
     "crossovers are found by bisection.",
     reproduce_regimes},
    {"manifest", "Figure 3, Eq. 2 and 3: what a switch moves",
     "Twelve directions on three platforms, of one layer that holds KV and 16 requests. The\n"
     "paper's MiB are its shares (7/8 of Eq. 9; 7/8 or 7/64 of the batch's KV), received by\n"
     "each rank.",
     reproduce_manifest},
    {"primitives", "Figures 5, 9, 11: network cost of a layer",
     "Volume over an effective bandwidth of each primitive, fitted to the figure (three\n"
     "constants a platform). The KV all-to-alls carry an eighth of what the all-gathers carry\n"
     "and take as long, as if they too gathered everything: volume_exact is what they would\n"
     "take at the all-gathers' bandwidth.\n\n"
     "Panels a: KV from DOP to CP of BxLENGTH. The paper's lines are its Eq. 14, linear in B,\n"
     "from one point that it measured (linear_ms). Ours take as long as the busiest owner\n"
     "sends: one request for B = 1, 4 and 8, two for 16. No other point was measured; if\n"
     "everything is gathered, Eq. 14 is right.",
     reproduce_primitives},
    {"switches", "Tables 1, 7, 8: overhead of a switch",
     "p50 of switches of 16 requests: Eq. 7 of sim/cost with the bandwidths above, inside the\n"
     "target-ready step that the paper measured. Moving a layer's weights, or its KV, takes\n"
     "stretch x its primitive + fixed_ms: two constants a platform, fitted to all overheads at\n"
     "once. A handoff of 0.025 ms, the same on all platforms, stands for the switches that move\n"
     "nothing (met within half of the last printed digit).\n\n"
     "DCU: an overlapped overhead is 0.19 to 0.42 of a layer's share of the blocking one. Our\n"
     "reading, which the paper does not state: the first layer that holds KV is the fourth, and\n"
     "the three KDA layers before it hide its preparation, what exceeds the primitive. Hence the\n"
     "constants are fitted to the DCU's blocking overheads alone. Missed: tp-cp, tp-dp, dop-dp,\n"
     "1.68 to 1.72 ms where Figure 9's primitive has 1.12 to 1.33; the paper does not tell\n"
     "preparation, waits of later layers and slower computation apart.\n\n"
     "B200: dop-cp is missed. It is 1.37 times a layer's share of its blocking overhead (dop-tp\n"
     "1.23, all others 0.95 to 1.13), and what moves is dop-dp's weights and dp-cp's KV, which\n"
     "take 8.92 ms by themselves, not 11.76.\n\n"
     "under_bound: ours against what the paper says every p50 stays under, 0.51, 1.8 and 1.39%\n"
     "of the target-ready step. H200's dop-cp exceeds it: 9.71 ms, the bound is 9.69, the\n"
     "paper's own value 9.65.\n\n"
     "p95: a simulated switch takes one time, and the paper does not say in what its runs\n"
     "differ; p95 over p50 is the paper's, from least to most. KDA layers move nothing here:\n"
     "Table 7 moves nothing from TP to DOP, though by Table 3 DOP replicates their projections.",
     reproduce_switches},
    {"throughput", "Tables 4, 5, 6: throughput of four layouts",
     "Total throughput in 1000 tokens/s of B prompts of one length, named\n"
     "sweep.BxLENGTH.layout. Two pools: prompts are prefilled in the layout (steps by the cost\n"
     "model, chunks of 8,192 tokens), then decoded in a pool that all layouts share, where steps\n"
     "grow with the requests in it (sim/study/burst.h). Twelve constants a platform, and where\n"
     "the start ends, by least absolute errors; each shape is predicted without it. A linear\n"
     "regression with six terms a layout (24 constants) scores 6.3, 4.3, 8.4% MAPE and 3.7,\n"
     "3.8, 3.2% regret on B200, DCU, H200.\n"
     "\n"
     "decode_s: a request alone in the decode pool. decode_beside_s: more for each there.\n"
     "spread_kv_s: more for a batch whose KV no prefill rank holds all of (all but TP).\n"
     "attention_slowdown: of prefill, over the cost model. LAYOUT_start_slowdown: all else of\n"
     "prefill over the cost model for the first start_tokens of a batch (the best of 1/2, 3/4,\n"
     "1, 3/2 x 2^20); sustained: for the others. The terms were chosen with these tables in\n"
     "sight, and say how prefill behaves, not why: past its start DP is 1.4 to 2.5 times as slow\n"
     "on all three, CP 1.6 and TP 1.3 times on H200, DOP, with DP's owners, within a tenth.\n"
     "sigma: one standard deviation over the value, by jackknife over shapes; above 0.25 the\n"
     "table does not tell (spread_kv_s everywhere, decode_beside_s on B200 and DCU; on H200\n"
     "attention, dp_start and tp_sustained).\n"
     "\n"
     "mape_floor is half of what two measurements of one shape differ by: 1.3, 1.9, 3.8%, from\n"
     "which we are 5.0, 2.1, 3.1 points.\n"
     "straight_lines_mape is what is left of the batch sweeps when each layout and length has\n"
     "its own best line in B, in hindsight; ours there is 7.4, 3.5, 7.2% held out. falls:\n"
     "neighbours in a sweep of which the larger takes less time. What is missed most: 16 prompts\n"
     "of 1K take 3 to 6 s longer than 32 on B200 (not by TP); there 8 of 128K take 17 to 35%\n"
     "longer than we say (not by TP); DP on H200 (15 to 29% at 32x32K, 16x64K, 16x128K,\n"
     "16x256K) and DOP on DCU (17 to 26% at 16x128K, 32x64K, 32x128K, 64x64K). 32 prompts of\n"
     "64K were measured twice, 25 to 32% apart by DP and DOP on DCU and by CP and DOP on H200:\n"
     "there no prediction is near both.",
     reproduce_throughput},
    {"end-to-end", "End to end: splash over fixed layouts",
     "Whole runs of the engine: one group of eight ranks, from prompt to last token, step times\n"
     "by the platform's analytic profile. rollout_64k, rollout_128k: 256 prompts of that length\n"
     "at once, whose answers end by halves after every 1,024 tokens. agentic: 32 sessions of 16\n"
     "turns, whose cached prompts grow by 8,192 tokens to 128K. mixed: 256 prompts of 1K to 128K\n"
     "at once. Gains of splash (margin 5%, starting in TP) over a fixed layout: its throughput\n"
     "over the layout's, the layout's mean E2E over its own; .free: when switches take no time.\n"
     "ktok_s counts input, cached too, and output. The paper's gain of 1.3 to 1.73 times follows\n"
     "from none of its tables, and its load is not described: nothing is asserted here. Below 1\n"
     "splash loses, though its switches cost next to nothing: it compares steps alone. What\n"
     "DOP's larger KV pool has admitted finds no room elsewhere (mixed; rollouts on H200), and\n"
     "TP's small pool drops cached prompts (agentic on DCU and H200): without_dop, without_tp\n"
     "are the throughput when splash never switches into these, over that when it may.",
     reproduce_end_to_end},
};

enum {
    SPLASH_SECTIONS = sizeof splash_sections / sizeof *splash_sections,
    N_SECTIONS = SPLASH_SECTIONS + HELIX_SECTIONS
};
_Static_assert((int)N_SECTIONS <= (int)SECTIONS_MAX, "room for all sections");

static int publication_of(int section)
{
    return section < (int)SPLASH_SECTIONS ? SPLASH : HELIX;
}

static const struct section_source *source_of(int section)
{
    return publication_of(section) == SPLASH ? &splash_sections[section]
                                             : &helix_sections[section - SPLASH_SECTIONS];
}

int publication_find(const char *name, struct err *err)
{
    for (int i = 0; i < PUBLICATIONS; i++)
        if (strcmp(publications[i].name, name) == 0)
            return i;
    return err_set(err, "reproduce: no paper \"%.64s\"; there are splash and helix", name);
}

int reproduction_find(const char *name, unsigned of, struct err *err)
{
    const char *names[N_SECTIONS];
    int n = 0;
    for (int i = 0; i < N_SECTIONS; i++) {
        if (!(of >> publication_of(i) & 1))
            continue;
        names[n++] = source_of(i)->name;
        if (strcmp(source_of(i)->name, name) == 0)
            return i;
    }
    const char *near = err_nearest(name, names, n);
    return err_set(err, "--only: no section \"%.64s\"%s%s%s; see --help", name,
                   near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
}

void reproduction_list(FILE *out)
{
    for (int i = 0; i < N_SECTIONS; i++) {
        if (i == 0 || publication_of(i) != publication_of(i - 1))
            fprintf(out, "%s:\n", publications[publication_of(i)].name);
        fprintf(out, "  %-15s %s\n", source_of(i)->name, source_of(i)->title);
    }
}

int reproduction_run(struct reproduction *r, unsigned of, int only, struct err *err)
{
    *r = (struct reproduction){0};
    for (int i = 0; i < N_SECTIONS; i++) {
        int publication = publication_of(i);
        if (!(of >> publication & 1) || (only != REPRODUCTION_ALL && only != i))
            continue;
        const struct section_source *source = source_of(i);
        struct section *s = &r->section[r->n_sections++];
        *s = (struct section){publication, source->name, source->title, source->about, r->n, 0};
        if (source->run(r, err) < 0) {
            reproduction_release(r);
            return -1;
        }
        s->n = r->n - s->first;
    }
    return 0;
}

void reproduction_release(struct reproduction *r)
{
    free(r->row);
    *r = (struct reproduction){0};
}

const struct row *reproduction_row(const struct reproduction *r, const char *id)
{
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->row[i].id, id) == 0)
            return &r->row[i];
    return NULL;
}

struct row_count reproduction_count(const struct reproduction *r)
{
    struct row_count count = {0};
    for (size_t i = 0; i < r->n; i++) {
        count.exact += r->row[i].kind == ROW_EXACT;
        count.differ += r->row[i].kind == ROW_EXACT && !r->row[i].ok;
    }
    return count;
}

static struct row *add(struct reproduction *r, enum row_kind kind, const char *paper,
                       const char *id, va_list ap)
{
    r->row = xgrow(r->row, &r->cap, r->n + 1, sizeof *r->row);
    struct row *row = &r->row[r->n++];
    *row = (struct row){.kind = kind, .error_frac = NAN, .goal = NAN};
    int n = vsnprintf(row->id, sizeof row->id, id, ap);
    size_t length = strlen(paper);
    assert(n > 0 && (size_t)n < sizeof row->id && length < sizeof row->paper);
    memcpy(row->paper, paper, length);
    return row;
}

static int decimals_of(const char *number)
{
    const char *point = strchr(number, '.');
    return point != NULL ? (int)strlen(point + 1) : 0;
}

static double error_of(double paper, double ours)
{
    return paper != 0 ? ours / paper - 1 : NAN;
}

void rows_exact(struct reproduction *r, const char *paper, double ours, const char *id, ...)
{
    va_list ap;
    va_start(ap, id);
    struct row *row = add(r, ROW_EXACT, paper, id, ap);
    va_end(ap);
    snprintf(row->ours, sizeof row->ours, "%.*f", decimals_of(paper), ours);
    row->error_frac = error_of(strtod(paper, NULL), strtod(row->ours, NULL));
    row->ok = strcmp(row->paper, row->ours) == 0;
}

void rows_exact_text(struct reproduction *r, const char *paper, const char *ours, const char *id,
                     ...)
{
    va_list ap;
    va_start(ap, id);
    struct row *row = add(r, ROW_EXACT, paper, id, ap);
    va_end(ap);
    snprintf(row->ours, sizeof row->ours, "%s", ours);
    row->ok = strcmp(row->paper, row->ours) == 0;
}

bool rows_predicted(struct reproduction *r, const char *paper, double ours, double goal_frac,
                    const char *id, ...)
{
    double printed = strtod(paper, NULL), half_digit = 0.5 * pow(10, -decimals_of(paper));
    va_list ap;
    va_start(ap, id);
    struct row *row = add(r, ROW_PREDICTED, paper, id, ap);
    va_end(ap);
    snprintf(row->ours, sizeof row->ours, "%.*f", decimals_of(paper), ours);
    row->error_frac = error_of(printed, ours);
    row->goal = goal_frac;
    row->ok = isnan(goal_frac) || fabs(row->error_frac) <= goal_frac ||
              fabs(ours - printed) <= half_digit * (1 + 1e-9);
    return row->ok;
}

void rows_figure(struct reproduction *r, double ours, double goal, bool ok, const char *id, ...)
{
    va_list ap;
    va_start(ap, id);
    struct row *row = add(r, ROW_PREDICTED, "", id, ap);
    va_end(ap);
    snprintf(row->ours, sizeof row->ours, "%.4g", ours);
    row->goal = goal;
    row->ok = ok;
}

void rows_unpredicted(struct reproduction *r, const char *paper, const char *id, ...)
{
    va_list ap;
    va_start(ap, id);
    struct row *row = add(r, ROW_PREDICTED, paper, id, ap);
    va_end(ap);
    row->ok = true;
}

void rows_scanned(struct reproduction *r, const char *paper, double low, double high,
                  const char *note, const char *id, ...)
{
    va_list ap;
    va_start(ap, id);
    struct row *row = add(r, ROW_PREDICTED, paper, id, ap);
    va_end(ap);
    snprintf(row->ours, sizeof row->ours, "%.3g to %.3g", low, high);
    snprintf(row->note, sizeof row->note, "%s", note);
    row->ok = true;
}
