/* SPDX-License-Identifier: Apache-2.0
 *
 * The sections of the Helix paper, and those of them that follow from its formulas: appendix A and
 * the example of HOP-B.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/pareto/pipeline.h"
#include "sim/reproduce/helix.h"
#include "sim/reproduce/paper.h"
#include "sim/reproduce/rows.h"

const struct section_source helix_sections[HELIX_SECTIONS] = {
    {"roofline", "Helix, figure 1: DRAM reads of a layer",
     "Appendix A at B = 8 in FP4 and 8000 GB/s, for Q = 128, K = 8, Hsz = 128, F = 65536: KV\n"
     "and weights by TP at 10^6 tokens; KV by context, and by KVP, at TP 8. Bytes of a token\n"
     "are all layers', without scales.",
     reproduce_roofline},
    {"overlap-example", "Helix, figure 3: the example of HOP-B",
     "Eight requests of 2.0 units of attention and 1.2 of exchange each, one behind the other\n"
     "on two resources. The figure prints 17 for 17.2, and its saving is 25.6 less the rounded\n"
     "17.",
     reproduce_overlap_example},
    {"frontiers", "Helix, figures 5 and 6: frontiers at 10^6 tokens",
     "Every mapping of TP, PP, EP (R1: attention by request, experts over all GPUs), Medha's\n"
     "KVP (405B, a curve of its own beside the baseline) and Helix, by docs/pareto.md, on\n"
     "GB200 in FP4. Ratios are functions; a row has the largest, then where, at_ the frontiers\n"
     "and the curves. 405B's interactivity is what the paper calls the maximum achievable: the\n"
     "fastest of Helix over the fastest of the baseline.\n"
     "\n"
     "Assumed, since the paper does not say: a collective takes 2 us beside its bytes; a\n"
     "request's partial outputs 1 us beside theirs, since figure 3's exchange is 1.2 units a\n"
     "request; a layer 55 us beside what is costed. These are three constants fitted to five\n"
     "figures, all but R1's HOP-B (last section: nearest). Not fitted: links carry 900 GB/s\n"
     "each way; HBM and arithmetic reach their peaks; weights and KV may fill 0.9 of memory\n"
     "less 4 GiB; rows are exchanged in BF16; experts are chosen at random, and a layer waits\n"
     "for the busiest group; GPUs and batches are powers of two; attention by request is\n"
     "within one group of at most 64 GPUs; ratios are read wherever both frontiers have\n"
     "values.\n"
     "\n"
     "R1's largest concurrency stands at the fastest TTL that the baseline reaches, 5.90 ms,\n"
     "with one request on 64 GPUs, where Helix has 32 on as many. At 5.93 ms the baseline\n"
     "needs half the GPUs, and it is 16 times.\n"
     "\n"
     "Medha's curve lies below our baseline, the paper's between the baseline and Helix.\n"
     "Nothing of Medha's exchanges is hidden, as the paper says, and each has the fixed time\n"
     "of the others.",
     reproduce_frontiers},
    {"ablation", "Helix, figure 7: without HOP-B",
     "Tokens/s/user that the points of Helix's frontier lose when their mapping and batch run\n"
     "in lockstep: the largest loss, and the median over points.\n"
     "\n"
     "405B's 12% needs an exchange that costs by request. By bytes a request's takes 4 ns (16\n"
     "heads of 128 in BF16, 4,160 bytes, KVP 8 and TP 8), beside 2 us of attention, and a\n"
     "collective's fixed time is seen once however the batch is cut, since every sub-batch has\n"
     "it: without_exchange_row 405B loses 0.1%.\n"
     "\n"
     "R1's 1% is missed: what costs by request weighs on it as on 405B, and its partial\n"
     "outputs have 32 times the bytes. Bytes alone, in FP4 and without fixed times, give 1%\n"
     "(exchange_of_fp4_bytes), and 405B nothing. So each loss is reached, by opposite\n"
     "assumptions; none gives both.",
     reproduce_ablation},
    {"assumptions", "Helix: what the paper does not say",
     "nearest: of collectives of 0 to 6 us, layers of 0 to 80 us in steps of 5, and rows of 0\n"
     "to 1.5 us in quarters, the setting whose largest error over five figures is least; how\n"
     "many were tried, and how many have all five within 10%. without_fixed_times: all three\n"
     "0, the roofline's own assumption. without_exchange_row: that one 0.\n"
     "exchange_of_fp4_bytes: collectives and rows 0, exchanged values of half a byte.\n"
     "\n"
     "FIGURE.by.ASSUMPTION.RANGE: one assumption varied alone, ours from least to most, and\n"
     "where that is the paper's: near a value between two that were tried (by a straight\n"
     "line), at or by one that was (within 2%), not reached, or no effect (within 0.5%).\n"
     "flop_frac, hbm_frac: shares of the peaks. exchanged_bytes: of a value in exchanged rows.\n"
     "even_experts: every group reads the mean's number. every_batch, every_gpus: all, not\n"
     "powers of two. baseline: tp,pp,ep; tp,pp; with Medha; with attention by request for\n"
     "dense models too. tok_s_user, tok_s_gpu: where the ratio is read.\n"
     "\n"
     "With every batch, or every number of GPUs, 405B's throughput gains 5.8 or 5.2 times.",
     reproduce_assumptions},
};

enum { BATCH = 8 };

static double read_ms(const struct decode_machine *d, double bytes)
{
    return bytes / (d->cluster->device.hbm_gb_per_s * 1e9) * 1e3;
}

/* A curve's name and where on it say the mapping and the context. */
static double curve_ms(const struct decode_machine *d, const char *curve, int at)
{
    struct mapping m = {FAMILY_TP, 1, 1, 1, 8, 8, 1, 1};
    struct decode_plan p;
    int64_t tokens = 1000000;
    if (strstr(curve, ".tp") != NULL)
        m.tpa = m.tpf = at;
    else if (strstr(curve, ".context") != NULL)
        tokens = at;
    else
        m = (struct mapping){FAMILY_HELIX, 1, 1, at, 8, 8 * at, 1, 1};
    decode_plan_init(&p, d, &m, tokens);
    const struct decode_bytes *b = &p.bytes;
    return strncmp(curve, "kv", 2) == 0 ? read_ms(d, BATCH * b->kv)
                                        : read_ms(d, b->proj_in + b->proj_out + b->dense_ffn);
}

static int compare_kv_bytes(struct reproduction *r, const struct helix_data *d, struct err *err)
{
    struct paper stated;
    if (paper_load(&stated, "helix/stated", "name,from|value", err) < 0)
        return -1;
    for (int i = 0; i < HELIX_MODELS; i++) {
        char id[96];
        snprintf(id, sizeof id, "kv_kb.%s", d->model[i].name);
        rows_exact(r, paper_text(&stated, paper_find(&stated, id, NULL), 2),
                   model_kv_bytes_per_token(&d->model[i]) / 1e3, "helix.%s", id);
    }
    paper_release(&stated);
    return 0;
}

int reproduce_roofline(struct reproduction *r, struct err *err)
{
    struct paper p;
    struct helix_data d;
    if (helix_load(&d, err) < 0 || compare_kv_bytes(r, &d, err) < 0 ||
        paper_load(&p, "helix/figure1", "curve,at,from|ms", err) < 0)
        return -1;
    struct model *m = &d.model[HELIX_405B];
    struct decode_machine machine = {.model = m, .cluster = &d.cluster, .arithmetic = FMT_FP4};
    m->dense_inter = 65536;
    for (int i = 0; i < p.rows; i++) {
        const char *curve = paper_text(&p, i, 0), *at = paper_text(&p, i, 1);
        rows_exact(r, paper_text(&p, i, 3), curve_ms(&machine, curve, atoi(at)),
                   "helix.figure1.%s.%s", curve, at);
    }
    paper_release(&p);
    return 0;
}

int reproduce_overlap_example(struct reproduction *r, struct err *err)
{
    enum { REQUESTS = 8 };
    struct pipeline_part part[REQUESTS], whole = {0};
    struct paper stated;
    if (paper_load(&stated, "helix/stated", "name,from|value", err) < 0)
        return -1;
    for (int i = 0; i < REQUESTS; i++) {
        part[i] = (struct pipeline_part){2.0, 1.2};
        whole.compute_s += part[i].compute_s;
        whole.exchange_s += part[i].exchange_s;
    }
    double lockstep = pipeline_end_s(&whole, 1, NULL);
    double overlapped = pipeline_end_s(part, REQUESTS, NULL);
    const struct {
        const char *name;
        double ours;
    } rows[] = {{"example.attention", whole.compute_s},
                {"example.exchange", whole.exchange_s},
                {"example.lockstep", lockstep},
                {"example.overlapped", overlapped},
                {"example.saving", lockstep - round(overlapped)}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        rows_exact(r, paper_text(&stated, paper_find(&stated, rows[i].name, NULL), 2), rows[i].ours,
                   "helix.%s", rows[i].name);
    paper_release(&stated);
    return 0;
}
