/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/pareto/mapping.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"
#include "sim/base/opt.h"

const char *const mapping_family_names[FAMILY_COUNT] = {
    [FAMILY_TP] = "tp",   [FAMILY_PP] = "pp",   [FAMILY_EP] = "ep",
    [FAMILY_DPA] = "dpa", [FAMILY_KVP] = "kvp", [FAMILY_HELIX] = "helix",
};

/* How often an axis may be cut. */
struct range {
    int min, max;
};

#define ONE                                                                                        \
    {                                                                                              \
        1, 1                                                                                       \
    }
#define ANY                                                                                        \
    {                                                                                              \
        1, INT_MAX                                                                                 \
    }
#define MANY                                                                                       \
    {                                                                                              \
        2, INT_MAX                                                                                 \
    }

enum ffn_kind { FFN_ANY, FFN_EXPERTS, FFN_DENSE };

static const struct rule {
    struct range pp, dp, kvp, ep;
    enum ffn_kind ffn; /* of models that it is for */
    bool ffn_on_group; /* the FFN has one TP group, not the stage */
    bool kv_undivided; /* TPA <= K: no KV head twice */
} rules[FAMILY_COUNT] = {
    [FAMILY_TP] = {ONE, ONE, ONE, ANY, FFN_ANY, false, false},
    [FAMILY_PP] = {MANY, ONE, ONE, ANY, FFN_ANY, false, false},
    [FAMILY_EP] = {ANY, MANY, ONE, ANY, FFN_EXPERTS, false, false},
    [FAMILY_DPA] = {ANY, MANY, ONE, ONE, FFN_DENSE, false, false},
    [FAMILY_KVP] = {ANY, ONE, MANY, ANY, FFN_ANY, true, false},
    [FAMILY_HELIX] = {ANY, ANY, MANY, ANY, FFN_ANY, false, true},
};

int mapping_stage_gpus(const struct mapping *m)
{
    return m->dp * m->kvp * m->tpa;
}

int mapping_gpus(const struct mapping *m)
{
    return m->pp * mapping_stage_gpus(m);
}

int mapping_ffn_gpus(const struct mapping *m)
{
    return m->tpf * m->ep;
}

bool mapping_overlaps(const struct mapping *m)
{
    return m->family != FAMILY_KVP;
}

struct layout mapping_layout(const struct mapping *m, const struct model *model)
{
    int kv_shards = (int)min_i64(m->tpa, model->kv_heads);
    return (struct layout){
        .kind = m->kvp > 1 ? LAYOUT_HELIX : LAYOUT_TP,
        .ranks = m->kvp * m->tpa,
        .in_shards = m->tpa,
        .kv_in_shards = kv_shards,
        .out_shards = rules[m->family].ffn_on_group ? m->tpa : m->kvp * m->tpa,
        .kv_head_shards = kv_shards,
        .kv_pos_shards = m->kvp,
        .kv_layer_shards = 1,
        .attn_head_shards = m->tpa,
        .attn_pos_shards = m->kvp,
        .sub_batches = m->hopb,
    };
}

/* Where a text's numbers go; `name` as one writes it. */
static const struct opt keys[] = {
    {"pp", 0, OPT_I64, 0 * sizeof(int64_t), "N", "1", 1, RANKS_MAX, NULL, "stages"},
    {"dp", 0, OPT_I64, 1 * sizeof(int64_t), "N", "1", 1, RANKS_MAX, NULL, "attention replicas"},
    {"kvp", 0, OPT_I64, 2 * sizeof(int64_t), "N", "1", 1, RANKS_MAX, NULL, "position shards"},
    {"tpa", 0, OPT_I64, 3 * sizeof(int64_t), "N", "1", 1, RANKS_MAX, NULL, "head shards"},
    {"tpf", 0, OPT_I64, 4 * sizeof(int64_t), "N", "1", 1, RANKS_MAX, NULL, "FFN shards"},
    {"ep", 0, OPT_I64, 5 * sizeof(int64_t), "N", "1", 1, RANKS_MAX, NULL, "expert groups"},
    {"hopb", 0, OPT_I64, 6 * sizeof(int64_t), "N", "1", 1, SUB_BATCHES_MAX, NULL, "sub-batches"},
    {0},
};
enum { N_KEYS = sizeof keys / sizeof *keys - 1 };

char *mapping_text(const struct mapping *m, char text[MAPPING_TEXT_SIZE])
{
    const int value[N_KEYS] = {m->pp, m->dp, m->kvp, m->tpa, m->tpf, m->ep, m->hopb};
    int at = snprintf(text, MAPPING_TEXT_SIZE, "%s", mapping_family_names[m->family]);
    char before = ':';
    for (int i = 0; i < N_KEYS; i++) {
        if (value[i] == 1)
            continue;
        at += snprintf(text + at, (size_t)(MAPPING_TEXT_SIZE - at), "%c%s=%d", before, keys[i].name,
                       value[i]);
        before = ',';
    }
    return text;
}

/* -1 when there is none of that name. */
static int find_family(const char *name, size_t len)
{
    for (int f = 0; f < FAMILY_COUNT; f++)
        if (strlen(mapping_family_names[f]) == len &&
            strncmp(mapping_family_names[f], name, len) == 0)
            return f;
    return -1;
}

int mapping_parse(struct mapping *m, const char *text, const struct model *model, struct err *err)
{
    int64_t value[N_KEYS];
    size_t len = strcspn(text, ":");
    int family = find_family(text, len);
    if (family < 0)
        return err_set(err,
                       "mapping \"%s\": unknown family \"%.*s\"; use tp, pp, ep, dpa, kvp or "
                       "helix, as in helix:kvp=8,tpa=8,tpf=64",
                       text, (int)len, text);
    opt_defaults(keys, value);
    if (text[len] == ':' && opt_parse_list(keys, value, "mapping", text + len + 1, err) < 0)
        return -1;
    struct mapping parsed = {.family = (enum mapping_family)family,
                             .pp = (int)value[0],
                             .dp = (int)value[1],
                             .kvp = (int)value[2],
                             .tpa = (int)value[3],
                             .tpf = (int)value[4],
                             .ep = (int)value[5],
                             .hopb = (int)value[6]};
    if (mapping_check(&parsed, model, err) < 0)
        return -1;
    *m = parsed;
    return 0;
}

static bool has_experts(const struct model *model)
{
    return model->moe.experts > 0;
}

/* Why the family cannot have these numbers, or NULL. */
static const char *broken_rule(const struct mapping *m, const struct model *model)
{
    const struct rule *r = &rules[m->family];
    const struct {
        struct range range;
        int value;
        const char *few, *many;
    } axis[] = {
        {r->pp, m->pp, "needs pp > 1", "has no pp"},
        {r->dp, m->dp, "needs dp > 1", "has no dp"},
        {r->kvp, m->kvp, "needs kvp > 1", "has no kvp"},
        {r->ep, m->ep, "needs ep > 1", "has no ep"},
    };
    for (size_t i = 0; i < sizeof axis / sizeof *axis; i++) {
        if (axis[i].value < axis[i].range.min)
            return axis[i].few;
        if (axis[i].value > axis[i].range.max)
            return axis[i].many;
    }
    if (r->ffn == FFN_EXPERTS && !has_experts(model))
        return "is for models with experts";
    if (r->ffn == FFN_DENSE && has_experts(model))
        return "is for models without experts; ep is the same with them";
    if (mapping_ffn_gpus(m) != (r->ffn_on_group ? m->tpa : mapping_stage_gpus(m)))
        return r->ffn_on_group ? "has its FFN on the TP group: tpf x ep must be tpa"
                               : "has its FFN on a stage's GPUs: tpf x ep must be dp x kvp x tpa";
    if (r->kv_undivided && m->tpa > model->kv_heads)
        return "has no KV head twice: tpa must be at most the KV heads";
    if (m->hopb > 1 && (m->kvp == 1 || !mapping_overlaps(m)))
        return "has no exchange that HOP-B could hide: leave hopb out";
    return NULL;
}

/* Why the model cannot be cut so, or NULL. */
static const char *impossible_cut(const struct mapping *m, const struct model *model)
{
    int heads = model->kv_heads;
    if (mapping_gpus(m) > RANKS_MAX)
        return "it takes more than 128 GPUs";
    if (m->pp > model->layers)
        return "there are more stages than layers";
    if (model->heads % m->tpa != 0)
        return "tpa does not divide the heads";
    if (model->attention == ATTN_GQA && heads % m->tpa != 0 && m->tpa % heads != 0)
        return "tpa and the KV heads do not divide each other";
    if (m->ep > (has_experts(model) ? model->moe.experts : 1))
        return "there are more EP ranks than experts";
    return NULL;
}

int mapping_check(const struct mapping *m, const struct model *model, struct err *err)
{
    char text[MAPPING_TEXT_SIZE];
    const char *broken = broken_rule(m, model);
    if (broken != NULL)
        return err_set(err, "mapping \"%s\": %s %s", mapping_text(m, text),
                       mapping_family_names[m->family], broken);
    const char *impossible = impossible_cut(m, model);
    if (impossible != NULL)
        return err_set(err, "mapping \"%s\": %s of %s", mapping_text(m, text), impossible,
                       model->name);
    return 0;
}

struct enumeration {
    const struct model *model;
    unsigned families;
    struct mapping **list;
    size_t *n, *cap;
};

static void take(const struct enumeration *e, const struct mapping *m)
{
    if (broken_rule(m, e->model) != NULL || impossible_cut(m, e->model) != NULL)
        return;
    *e->list = xgrow(*e->list, e->cap, *e->n + 1, sizeof **e->list);
    (*e->list)[(*e->n)++] = *m;
}

/* Every family and FFN of one grid of attention. */
static void take_grid(const struct enumeration *e, struct mapping m)
{
    for (int f = 0; f < FAMILY_COUNT; f++) {
        if ((e->families >> f & 1) == 0)
            continue;
        m.family = (enum mapping_family)f;
        int ffn_gpus = rules[f].ffn_on_group ? m.tpa : mapping_stage_gpus(&m);
        for (m.ep = 1; m.ep <= ffn_gpus; m.ep++) {
            m.tpf = ffn_gpus / m.ep;
            if (ffn_gpus % m.ep == 0)
                take(e, &m);
        }
    }
}

void mapping_enumerate(const struct model *model, unsigned families, int gpus,
                       struct mapping **list, size_t *n, size_t *cap)
{
    const struct enumeration e = {model, families, list, n, cap};
    struct mapping m = {.hopb = 1};
    for (m.pp = 1; m.pp <= gpus; m.pp++)
        for (m.dp = 1; gpus % m.pp == 0 && m.dp <= gpus / m.pp; m.dp++)
            for (m.kvp = 1; m.kvp <= gpus / m.pp / m.dp; m.kvp++) {
                m.tpa = gpus / (m.pp * m.dp * m.kvp);
                if (mapping_gpus(&m) == gpus)
                    take_grid(&e, m);
            }
}
