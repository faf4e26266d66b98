/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/model.h"

#include <stddef.h>

#include "hw/catalog.h"

enum { COUNT_MAX = 1 << 20, STATE_DIM_MAX = 1 << 16, TOKEN_BYTES_MAX = 1 << 20 };

const char *const number_format_names[FMT_COUNT] = {
    [FMT_FP32] = "fp32", [FMT_BF16] = "bf16", [FMT_FP8] = "fp8",
    [FMT_INT8] = "int8", [FMT_FP4] = "fp4",
};

double number_format_bytes(enum number_format f)
{
    static const double bytes[FMT_COUNT] = {
        [FMT_FP32] = 4, [FMT_BF16] = 2, [FMT_FP8] = 1, [FMT_INT8] = 1, [FMT_FP4] = 0.5,
    };
    return bytes[f];
}

int model_kv_layers(const struct model *m)
{
    return m->layers - m->linear.layers;
}

double model_kv_bytes_per_token_layer(const struct model *m)
{
    if (m->attention == ATTN_GQA)
        return m->kv_heads * m->kv.head_bytes;
    return m->kv.latent_bytes + m->kv.scale_bytes + m->kv.rope_bytes + m->kv.indexer_bytes;
}

double model_kv_bytes_per_token(const struct model *m)
{
    return model_kv_layers(m) * model_kv_bytes_per_token_layer(m);
}

/* An int of struct model under a JSON key. Tables end with a zeroed entry. */
struct field {
    const char *key;
    size_t offset;
    int min, max;
};

#define AT(member) offsetof(struct model, member)

static const struct field shape_fields[] = {
    {"layers", AT(layers), 1, COUNT_MAX},
    {"hidden", AT(hidden), 1, COUNT_MAX},
    {"vocab", AT(vocab), 1, COUNT_MAX},
    {0},
};
static const struct field mla_fields[] = {
    {"heads", AT(heads), 1, COUNT_MAX},
    {"q_lora", AT(q_lora), 1, COUNT_MAX},
    {"kv_lora", AT(kv_lora), 1, COUNT_MAX},
    {"nope_dim", AT(nope_dim), 1, COUNT_MAX},
    {"rope_dim", AT(rope_dim), 0, COUNT_MAX},
    {"v_dim", AT(v_dim), 1, COUNT_MAX},
    {0},
};
static const struct field gqa_fields[] = {
    {"heads", AT(heads), 1, COUNT_MAX},
    {"kv_heads", AT(kv_heads), 1, COUNT_MAX},
    {"head_dim", AT(nope_dim), 1, COUNT_MAX},
    {0},
};
static const struct field indexer_fields[] = {
    {"heads", AT(indexer.heads), 1, COUNT_MAX}, {"dim", AT(indexer.dim), 1, COUNT_MAX},
    {"topk", AT(indexer.topk), 1, COUNT_MAX},   {"layers", AT(indexer.layers), 1, COUNT_MAX},
    {"pool", AT(indexer.pool), 1, COUNT_MAX},   {0},
};
static const struct field linear_fields[] = {
    {"layers", AT(linear.layers), 1, COUNT_MAX},
    {"heads", AT(linear.heads), 1, STATE_DIM_MAX},
    {"dim", AT(linear.dim), 1, STATE_DIM_MAX},
    {"conv", AT(linear.conv), 1, STATE_DIM_MAX},
    {0},
};
static const struct field moe_fields[] = {
    {"experts", AT(moe.experts), 1, COUNT_MAX},
    {"topk", AT(moe.topk), 1, COUNT_MAX},
    {"shared", AT(moe.shared), 0, COUNT_MAX},
    {"inter", AT(moe.inter), 1, COUNT_MAX},
    {0},
};

static int read_fields(struct jobj *o, const struct field *field, struct model *m, struct err *err)
{
    for (; field->key != NULL; field++) {
        int *out = (int *)((char *)m + field->offset);
        if (jobj_int(o, field->key, true, field->min, field->max, out, err) < 0)
            return -1;
    }
    return 0;
}

/* An optional object of ints; without it the fields stay 0. */
static int read_part(struct jobj *root, const char *key, const struct field *field, struct model *m,
                     struct err *err)
{
    struct jobj o;
    int there = jobj_open(&o, root, key, false, err);
    if (there <= 0)
        return there;
    return read_fields(&o, field, m, err) < 0 ? -1 : jobj_done(&o, err);
}

static int read_attention(struct jobj *root, struct model *m, struct err *err)
{
    static const char *const kinds[] = {[ATTN_MLA] = "mla", [ATTN_GQA] = "gqa"};
    struct jobj o;
    int kind;
    if (jobj_open(&o, root, "attention", true, err) < 0 ||
        jobj_enum(&o, "kind", true, kinds, 2, &kind, err) < 0 ||
        read_fields(&o, kind == ATTN_MLA ? mla_fields : gqa_fields, m, err) < 0)
        return -1;
    m->attention = (enum attention_kind)kind;
    if (kind == ATTN_MLA)
        m->kv_heads = 1;
    else
        m->v_dim = m->nope_dim;
    if (m->heads % m->kv_heads != 0)
        return jobj_fail(&o, "kv_heads", err, "must divide heads (%d), got %d", m->heads,
                         m->kv_heads);
    return jobj_done(&o, err);
}

static int read_linear(struct jobj *root, struct model *m, struct err *err)
{
    if (read_part(root, "linear", linear_fields, m, err) < 0)
        return -1;
    if (m->linear.layers >= m->layers)
        return jobj_fail(root, "linear", err, "layers must be below the model's %d", m->layers);
    int64_t width = (int64_t)m->linear.heads * m->linear.dim;
    m->linear.state_bytes_per_layer =
        width * m->linear.dim * 4 + 3 * width * (m->linear.conv - 1) * 2;
    return 0;
}

static int read_indexer(struct jobj *root, struct model *m, struct err *err)
{
    if (read_part(root, "indexer", indexer_fields, m, err) < 0)
        return -1;
    if (m->indexer.heads > 0 && m->attention != ATTN_MLA)
        return jobj_fail(root, "indexer", err, "works on MLA attention only; remove it");
    if (m->indexer.layers > model_kv_layers(m))
        return jobj_fail(root, "indexer", err, "layers must not exceed the %d that hold KV",
                         model_kv_layers(m));
    return 0;
}

static int read_ffn(struct jobj *root, struct model *m, struct err *err)
{
    if (read_part(root, "moe", moe_fields, m, err) < 0)
        return -1;
    if (m->moe.topk > m->moe.experts)
        return jobj_fail(root, "moe", err, "topk (%d) must not exceed experts (%d)", m->moe.topk,
                         m->moe.experts);
    bool sparse = m->moe.experts > 0;
    m->dense_layers = m->layers;
    if (jobj_int(root, "dense_layers", sparse, sparse ? 0 : m->layers,
                 sparse ? m->layers - 1 : m->layers, &m->dense_layers, err) < 0)
        return -1;
    return jobj_int(root, "dense_inter", m->dense_layers > 0, 1, COUNT_MAX, &m->dense_inter, err);
}

static int read_weight(struct jobj *up, const char *key, bool required, struct weight_format *w,
                       struct err *err)
{
    struct jobj o;
    int format;
    int there = jobj_open(&o, up, key, required, err);
    if (there <= 0)
        return there;
    if (jobj_enum(&o, "format", true, number_format_names, FMT_COUNT, &format, err) < 0)
        return -1;
    w->format = (enum number_format)format;
    w->bytes_per_param = number_format_bytes(w->format);
    if (jobj_f64(&o, "bytes_per_param", false, w->bytes_per_param, 2 * w->bytes_per_param,
                 &w->bytes_per_param, err) < 0)
        return -1;
    return jobj_done(&o, err);
}

static int read_weights(struct jobj *root, struct model *m, struct err *err)
{
    struct jobj o;
    if (jobj_open(&o, root, "weights", true, err) < 0 ||
        read_weight(&o, "attention", true, &m->attention_weights, err) < 0 ||
        read_weight(&o, "ffn", true, &m->ffn_weights, err) < 0 ||
        read_weight(&o, "embedding", true, &m->embedding_weights, err) < 0 ||
        read_weight(&o, "router", m->moe.experts > 0, &m->router_weights, err) < 0)
        return -1;
    return jobj_done(&o, err);
}

/* The lower bounds are the numbers themselves: they catch a size given for another format. */
static int read_mla_kv(struct jobj *o, struct model *m, struct err *err)
{
    double bytes = number_format_bytes(m->kv.format), max = TOKEN_BYTES_MAX;
    bool indexed = m->indexer.heads > 0;
    if (jobj_f64(o, "latent_bytes", true, m->kv_lora * bytes, max, &m->kv.latent_bytes, err) < 0 ||
        jobj_f64(o, "scale_bytes", false, 0, max, &m->kv.scale_bytes, err) < 0 ||
        jobj_f64(o, "rope_bytes", m->rope_dim > 0, m->rope_dim * bytes, max, &m->kv.rope_bytes,
                 err) < 0)
        return -1;
    return jobj_f64(o, "indexer_bytes", indexed, indexed ? 1 : 0, indexed ? max : 0,
                    &m->kv.indexer_bytes, err);
}

static int read_kv(struct jobj *root, struct model *m, struct err *err)
{
    struct jobj o;
    int format, status;
    if (jobj_open(&o, root, "kv", true, err) < 0 ||
        jobj_enum(&o, "format", true, number_format_names, FMT_COUNT, &format, err) < 0)
        return -1;
    m->kv.format = (enum number_format)format;
    if (m->attention == ATTN_MLA)
        status = read_mla_kv(&o, m, err);
    else
        status =
            jobj_f64(&o, "head_bytes", true, 2 * m->nope_dim * number_format_bytes(m->kv.format),
                     TOKEN_BYTES_MAX, &m->kv.head_bytes, err);
    return status < 0 ? -1 : jobj_done(&o, err);
}

static int read_model(struct jobj *root, struct model *m, struct err *err)
{
    int activations;
    m->max_context_tokens = INT64_MAX;
    if (read_fields(root, shape_fields, m, err) < 0 ||
        jobj_i64(root, "max_context_tokens", false, 1, INT64_MAX, &m->max_context_tokens, err) <
            0 ||
        read_attention(root, m, err) < 0 || read_linear(root, m, err) < 0 ||
        read_indexer(root, m, err) < 0 || read_ffn(root, m, err) < 0 ||
        read_weights(root, m, err) < 0 || read_kv(root, m, err) < 0 ||
        jobj_enum(root, "activations", true, number_format_names, FMT_COUNT, &activations, err) < 0)
        return -1;
    m->activations = (enum number_format)activations;
    return jobj_done(root, err);
}

int model_load(struct model *m, const char *name_or_path, struct err *err)
{
    struct catalog_doc doc;
    struct model read = {0};
    if (catalog_open(&doc, "models", name_or_path, read.name, err) < 0)
        return -1;
    int status = read_model(&doc.root, &read, err);
    catalog_close(&doc);
    if (status == 0)
        *m = read;
    return status;
}
