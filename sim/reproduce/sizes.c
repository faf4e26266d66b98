/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes that follow from a model alone: Eq. 9, bytes of a token, Table 2.
 */
#include <math.h>
#include <string.h>

#include "sim/base/units.h"
#include "sim/layout/footprint.h"
#include "sim/reproduce/paper.h"
#include "sim/reproduce/rows.h"

enum { T = 8 };

static const struct stored {
    const char *name;
    struct weight_format format;
} formats[] = {
    {"bf16", {FMT_BF16, 2}},
    {"fp8", {FMT_FP8, 1}},
    {"fp8+scales", {FMT_FP8, 1 + 4.0 / (128 * 128)}},
};

enum { FORMATS = sizeof formats / sizeof *formats };

static int load_as(struct model *m, const char *name, const char *format, struct err *err)
{
    int f = 0;
    while (f < FORMATS && strcmp(formats[f].name, format) != 0)
        f++;
    if (f == FORMATS)
        return err_set(err, "projections: unknown format \"%s\"", format);
    if (model_load(m, name, err) < 0)
        return -1;
    m->attention_weights = formats[f].format;
    return 0;
}

static double eq9_bytes(const struct model *m)
{
    struct projection_bytes p = footprint_projections(m);
    return p.in_bytes + p.out_bytes;
}

/* The norms before attention and FFN are a layer's, not its attention block's. */
static double attention_block_bytes(const struct model *m)
{
    double layer_norms = 2 * m->hidden * number_format_bytes(FMT_BF16);
    return eq9_bytes(m) + footprint_replicated_attention_bytes(m, true) - layer_norms;
}

/* The numbers that the text gives of DeepSeek-V3 in BF16, and of GLM-5.3. */
static int projections_of_text(struct reproduction *r, struct err *err)
{
    struct paper said;
    struct model v3 = {0}, glm = {0};
    if (load_as(&v3, "deepseek-v3.2", "bf16", err) < 0 ||
        load_as(&glm, "glm-5.3", "fp8+scales", err) < 0 ||
        paper_load(&said, "stated", "name,from|value", err) < 0)
        return -1;
    struct projection_bytes p = footprint_projections(&v3);
    double kv_b = 2.0 * v3.heads * v3.kv_lora * (v3.nope_dim + v3.v_dim);
    const struct {
        const char *name;
        double mib;
    } ours[] = {
        {"matrix_mib.q_b", (p.in_bytes - kv_b) / MIB},
        {"matrix_mib.kv_b", kv_b / MIB},
        {"matrix_mib.o", p.out_bytes / MIB},
        {"group_mib", (T - 1) * eq9_bytes(&v3) / MIB},
        {"attention_block_mib", attention_block_bytes(&glm) * (T - 1) / T / MIB},
    };
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        rows_exact(r, paper_text(&said, paper_find(&said, ours[i].name, NULL), 2), ours[i].mib,
                   "eq9.%s", ours[i].name);
    paper_release(&said);
    return 0;
}

int reproduce_projections(struct reproduction *r, struct err *err)
{
    struct paper p;
    int rc = 0;
    if (projections_of_text(r, err) < 0 ||
        paper_load(&p, "projections", "model,format,from|whole_mib,received_mib", err) < 0)
        return -1;
    for (int i = 0; i < p.rows && rc == 0; i++) {
        const char *name = paper_text(&p, i, 0), *format = paper_text(&p, i, 1);
        struct model m;
        rc = load_as(&m, name, format, err);
        if (rc < 0)
            break;
        double mib = eq9_bytes(&m) / MIB;
        rows_exact(r, paper_text(&p, i, 3), mib, "eq9.%s.%s.whole_mib", name, format);
        rows_exact(r, paper_text(&p, i, 4), mib * (T - 1) / T, "eq9.%s.%s.received_mib", name,
                   format);
    }
    paper_release(&p);
    return rc;
}

int reproduce_kv_bytes(struct reproduction *r, struct err *err)
{
    static const char prefix[] = "kv_bytes.";
    struct paper p;
    int rc = 0;
    if (paper_load(&p, "stated", "name,from|value", err) < 0)
        return -1;
    for (int i = 0; i < p.rows && rc == 0; i++) {
        const char *name = paper_text(&p, i, 0);
        struct model m;
        if (strncmp(name, prefix, strlen(prefix)) != 0)
            continue;
        rc = model_load(&m, name + strlen(prefix), err);
        if (rc == 0)
            rows_exact(r, paper_text(&p, i, 2), model_kv_bytes_per_token(&m), "%s", name);
    }
    paper_release(&p);
    return rc;
}

/* What the formulas of Table 2 come to. */
static double load_of(const char *formula, double requests)
{
    const struct {
        const char *formula;
        double value;
    } known[] = {{"1", 1},
                 {"1/T", 1.0 / T},
                 {"B", requests},
                 {"B/T", requests / T},
                 {"ceil(B/T)", ceil(requests / T)}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].formula, formula) == 0)
            return known[i].value;
    return NAN;
}

static void compare_load(struct reproduction *r, const struct paper *p, int row, int column,
                         double ours)
{
    enum { REQUESTS = 20 };
    static const char *const names[] = {"", "weights", "kv_stored", "kv_read", "attention_work"};
    char paper[24];
    snprintf(paper, sizeof paper, "%.3f", load_of(paper_text(p, row, column), REQUESTS));
    rows_exact(r, paper, ours, "table2.%s.%s", paper_text(p, row, 0), names[column]);
}

int reproduce_loads(struct reproduction *r, struct err *err)
{
    struct paper p;
    struct model m;
    int rc = 0;
    if (model_load(&m, "glm-5.3", err) < 0 ||
        paper_load(&p, "table2", "layout,weights,kv_stored,kv_read,attention_work", err) < 0)
        return -1;
    for (int i = 0; i < p.rows && rc == 0; i++) {
        struct layout l;
        rc = layout_parse(&l, paper_text(&p, i, 0), &m, T, err);
        if (rc < 0)
            break;
        struct loads ours = footprint_loads(&m, &l, 20);
        compare_load(r, &p, i, 1, ours.weights);
        compare_load(r, &p, i, 2, ours.kv_stored);
        compare_load(r, &p, i, 3, ours.kv_read);
        compare_load(r, &p, i, 4, ours.attention_work);
    }
    paper_release(&p);
    return rc;
}
