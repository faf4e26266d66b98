/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/profile.h"

#include <stdio.h>

#include "hw/catalog.h"
#include "hw/interp.h"

const char *const profile_stage_names[STAGE_COUNT] = {
    [STAGE_PROJ] = "proj",
    [STAGE_ATTN_PREFILL] = "attn_prefill",
    [STAGE_ATTN_DECODE] = "attn_decode",
    [STAGE_FFN] = "ffn",
    [STAGE_HEAD] = "head",
};

/* Above 1 because a measured rate may pass a data sheet's, within reason. */
static const double frac_min = 0.001, frac_max = 1.5, time_us_max = 1e9;
static const double factor_min = 0.01, factor_max = 1000;
static const int row_tokens_max = 1 << 20;

static int read_point(struct jobj *o, const char *key, size_t i, json_t *point,
                      struct efficiency *e, struct err *err)
{
    json_t *size = json_array_get(point, 0), *frac = json_array_get(point, 1);
    if (json_array_size(point) != 2 || !json_is_number(size) || !json_is_number(frac))
        return jobj_fail(o, key, err, "point %zu must be [size, fraction]", i);
    e->size[i] = json_number_value(size);
    e->frac[i] = json_number_value(frac);
    if (e->size[i] <= (i > 0 ? e->size[i - 1] : 0))
        return jobj_fail(o, key, err, "point %zu: sizes must be positive and ascend, got %g", i,
                         e->size[i]);
    if (e->frac[i] <= 0 || e->frac[i] > frac_max)
        return jobj_fail(o, key, err,
                         "point %zu: the fraction must be above 0 and at most %g, "
                         "got %g",
                         i, frac_max, e->frac[i]);
    return 0;
}

static int read_efficiency(struct jobj *o, const char *key, struct efficiency *e, struct err *err)
{
    json_t *points;
    if (jobj_array(o, key, true, &points, err) < 0)
        return -1;
    size_t n = json_array_size(points);
    if (n < 1 || n > PROFILE_POINTS_MAX)
        return jobj_fail(o, key, err, "must have 1 to %d points, got %zu", PROFILE_POINTS_MAX, n);
    for (size_t i = 0; i < n; i++)
        if (read_point(o, key, i, json_array_get(points, i), e, err) < 0)
            return -1;
    e->n = (int)n;
    efficiency_init(e);
    return 0;
}

static int read_stages(struct jobj *root, struct profile *p, struct err *err)
{
    struct jobj stages, o;
    if (jobj_open(&stages, root, "stages", true, err) < 0)
        return -1;
    for (int s = 0; s < STAGE_COUNT; s++) {
        if (jobj_open(&o, &stages, profile_stage_names[s], true, err) < 0 ||
            read_efficiency(&o, "flop_frac", &p->stage[s].flop_frac, err) < 0 ||
            read_efficiency(&o, "hbm_frac", &p->stage[s].hbm_frac, err) < 0 ||
            jobj_f64(&o, "launch_us", false, 0, time_us_max, &p->stage[s].launch_us, err) < 0 ||
            jobj_done(&o, err) < 0)
            return -1;
    }
    return jobj_done(&stages, err);
}

static const char *const mla_prefill_names[] = {"expanded", "absorbed"};
static const char *const position_names[] = {"split", "partial"};

static int read_attention(struct jobj *root, struct attention_profile *a, struct err *err)
{
    struct jobj o;
    int mla_prefill = MLA_EXPANDED, positions = POSITIONS_SPLIT;
    int there = jobj_open(&o, root, "attention", false, err);
    if (there <= 0)
        return there;
    if (jobj_enum(&o, "mla_prefill", false, mla_prefill_names, 2, &mla_prefill, err) < 0 ||
        jobj_enum(&o, "positions", false, position_names, 2, &positions, err) < 0 ||
        jobj_int(&o, "row_tokens", false, 0, row_tokens_max, &a->row_tokens, err) < 0 ||
        jobj_f64(&o, "merge_us", false, 0, time_us_max, &a->merge_us, err) < 0 ||
        jobj_f64(&o, "combine_us", false, 0, time_us_max, &a->combine_us, err) < 0 ||
        jobj_f64(&o, "spill_frac", false, 0, 1, &a->spill_frac, err) < 0)
        return -1;
    a->mla_prefill = (enum mla_prefill)mla_prefill;
    a->positions = (enum position_rows)positions;
    return jobj_done(&o, err);
}

static int read_transfer(struct jobj *root, struct profile *p, struct err *err)
{
    struct jobj o;
    p->transfer.beside_frac = 1;
    if (jobj_open(&o, root, "transfer", true, err) < 0)
        return -1;
    const struct {
        const char *key;
        bool required;
        double min, max, *to;
    } number[] = {
        {"weights_factor", true, factor_min, factor_max, &p->transfer.weights_factor},
        {"kv_factor", true, factor_min, factor_max, &p->transfer.kv_factor},
        {"repack_hbm_frac", false, frac_min, frac_max, &p->transfer.repack_hbm_frac},
        {"regroup_hbm_frac", false, frac_min, frac_max, &p->transfer.regroup_hbm_frac},
        {"beside_frac", false, frac_min, 1, &p->transfer.beside_frac},
        {"link_interference", false, 0, factor_max, &p->transfer.link_interference},
        {"regroup_interference", false, 0, factor_max, &p->transfer.regroup_interference},
    };
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        if (jobj_f64(&o, number[i].key, number[i].required, number[i].min, number[i].max,
                     number[i].to, err) < 0)
            return -1;
    return jobj_done(&o, err);
}

static int read_collectives(struct jobj *root, struct profile *p, struct err *err)
{
    char path[4096];
    if (catalog_str(root, "collectives", p->collectives_name, sizeof p->collectives_name, err) <
            0 ||
        jobj_done(root, err) < 0 ||
        catalog_path_from("nccl", p->collectives_name, root->file, path, sizeof path, err) < 0)
        return -1;
    return collective_load(&p->collectives, path, err);
}

static int read_profile(struct jobj *root, struct profile *p, struct err *err)
{
    static const char *const kinds[] = {"analytic", "measured", "fitted"};
    int kind;
    if (jobj_enum(root, "kind", true, kinds, 3, &kind, err) < 0 || read_stages(root, p, err) < 0 ||
        read_attention(root, &p->attention, err) < 0 ||
        jobj_f64(root, "layer_launch_us", true, 0, time_us_max, &p->layer_launch_us, err) < 0 ||
        jobj_f64(root, "step_launch_us", true, 0, time_us_max, &p->step_launch_us, err) < 0 ||
        jobj_f64(root, "overlap_frac", true, 0, 1, &p->overlap_frac, err) < 0 ||
        jobj_f64(root, "expert_imbalance", true, 1, factor_max, &p->expert_imbalance, err) < 0 ||
        read_transfer(root, p, err) < 0)
        return -1;
    snprintf(p->kind, sizeof p->kind, "%s", kinds[kind]);
    return read_collectives(root, p, err);
}

int profile_load(struct profile *p, const char *name_or_path, struct err *err)
{
    struct catalog_doc doc;
    struct profile read = {0};
    if (catalog_open(&doc, "profiles", name_or_path, read.name, err) < 0)
        return -1;
    int status = read_profile(&doc.root, &read, err);
    catalog_close(&doc);
    if (status == 0)
        *p = read;
    return status;
}

void profile_release(struct profile *p)
{
    collective_release(&p->collectives);
}

static void write_text(const char *text, FILE *out)
{
    json_t *string = json_string(text);
    json_dumpf(string, out, JSON_ENCODE_ANY);
    json_decref(string);
}

static void write_efficiency(const char *key, const struct efficiency *e, FILE *out)
{
    fprintf(out, "            \"%s\": [", key);
    for (int i = 0; i < e->n; i++)
        fprintf(out, "%s[%.9g, %.9g]", i > 0 ? ", " : "", e->size[i], e->frac[i]);
    fputs("]", out);
}

static void write_stage(const struct profile *p, int s, FILE *out)
{
    const struct stage_profile *stage = &p->stage[s];
    fprintf(out, "        \"%s\": {\n", profile_stage_names[s]);
    write_efficiency("flop_frac", &stage->flop_frac, out);
    fputs(",\n", out);
    write_efficiency("hbm_frac", &stage->hbm_frac, out);
    if (stage->launch_us > 0)
        fprintf(out, ",\n            \"launch_us\": %.9g", stage->launch_us);
    fprintf(out, "\n        }%s\n", s + 1 < STAGE_COUNT ? "," : "");
}

static void write_unless(const char *key, double value, double what, FILE *out)
{
    if (value != what)
        fprintf(out, ", \"%s\": %.9g", key, value);
}

void profile_write(const struct profile *p, const char *const *source, int n, FILE *out)
{
    fputs("{\n    \"profile\": 1,\n    \"name\": ", out);
    write_text(p->name, out);
    fprintf(out, ",\n    \"kind\": \"%s\",\n    \"source\": [", p->kind);
    for (int i = 0; i < n; i++) {
        fputs(i > 0 ? ",\n        " : "\n        ", out);
        write_text(source[i], out);
    }
    fputs("\n    ],\n    \"stages\": {\n", out);
    for (int s = 0; s < STAGE_COUNT; s++)
        write_stage(p, s, out);
    fprintf(out,
            "    },\n"
            "    \"attention\": {\"mla_prefill\": \"%s\", \"positions\": \"%s\", "
            "\"row_tokens\": %d, \"merge_us\": %.9g, \"combine_us\": %.9g, \"spill_frac\": %.9g},\n"
            "    \"layer_launch_us\": %.9g,\n"
            "    \"step_launch_us\": %.9g,\n"
            "    \"overlap_frac\": %.9g,\n"
            "    \"expert_imbalance\": %.9g,\n"
            "    \"transfer\": {\"weights_factor\": %.9g, \"kv_factor\": %.9g",
            mla_prefill_names[p->attention.mla_prefill], position_names[p->attention.positions],
            p->attention.row_tokens, p->attention.merge_us, p->attention.combine_us,
            p->attention.spill_frac, p->layer_launch_us, p->step_launch_us, p->overlap_frac,
            p->expert_imbalance, p->transfer.weights_factor, p->transfer.kv_factor);
    write_unless("repack_hbm_frac", p->transfer.repack_hbm_frac, 0, out);
    write_unless("regroup_hbm_frac", p->transfer.regroup_hbm_frac, 0, out);
    write_unless("beside_frac", p->transfer.beside_frac, 1, out);
    write_unless("link_interference", p->transfer.link_interference, 0, out);
    write_unless("regroup_interference", p->transfer.regroup_interference, 0, out);
    fputs("},\n    \"collectives\": ", out);
    write_text(p->collectives_name, out);
    fputs("\n}\n", out);
}

void efficiency_init(struct efficiency *e)
{
    for (int i = 0; i < e->n; i++)
        e->log2_size[i] = interp_log2(e->size[i]);
}

double efficiency_at(const struct efficiency *e, double size)
{
    int i = 0;
    while (i < e->n && e->size[i] <= size)
        i++;
    if (i == 0)
        return e->frac[0];
    if (i == e->n)
        return e->frac[e->n - 1];
    return interp_linear(interp_log2(size), e->log2_size[i - 1], e->frac[i - 1], e->log2_size[i],
                         e->frac[i]);
}
