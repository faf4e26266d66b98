/* SPDX-License-Identifier: Apache-2.0
 *
 * What a model is, as far as serving time and memory depend on it. Read from hw/models/NAME.json.
 */
#ifndef HW_MODEL_H
#define HW_MODEL_H

#include <stdint.h>

#include "sim/base/err.h"

enum number_format { FMT_FP32, FMT_BF16, FMT_FP8, FMT_INT8, FMT_FP4, FMT_COUNT };

extern const char *const number_format_names[FMT_COUNT]; /* "fp32", "bf16", ... */

enum attention_kind { ATTN_MLA, ATTN_GQA };

/* Stored weights of one kind: format of the numbers and of the scales beside them. */
struct weight_format {
    enum number_format format;
    double bytes_per_param; /* scales included: FP8 with a 128x128 FP32 grid is 1 + 4/16384 */
};

struct model {
    char name[48];
    int layers;       /* transformer layers, MTP left out */
    int dense_layers; /* the first so many have a dense FFN; = layers when there is no MoE */
    int hidden, vocab;
    int heads, kv_heads;        /* MLA: kv_heads = 1, one latent shared by all heads */
    int64_t max_context_tokens; /* INT64_MAX when the file sets none */

    enum attention_kind attention;
    int q_lora, kv_lora;           /* MLA ranks */
    int nope_dim, rope_dim, v_dim; /* per head; GQA: nope_dim = head size, rope_dim = 0 */

    struct {
        int heads, dim, topk; /* heads = 0: dense attention, no indexer */
        int layers;           /* how many layers compute indexer scores (the rest share them) */
        int pool;             /* consecutive tokens that share one indexer key */
    } indexer;

    struct {
        int layers, heads, dim, conv;  /* KDA: layers = 0 when there is none; conv = kernel width */
        int64_t state_bytes_per_layer; /* recurrent + convolution state of one request */
    } linear;

    struct {
        int experts, topk, shared, inter; /* experts = 0: every FFN is dense */
    } moe;
    int dense_inter;

    struct weight_format attention_weights, ffn_weights, embedding_weights, router_weights;
    enum number_format activations; /* hidden rows and exchanged query and output rows */

    /* KV bytes of one token in one cache-bearing layer, by part. */
    struct {
        enum number_format format; /* of the latent or of K and V */
        double latent_bytes, scale_bytes, rope_bytes, indexer_bytes; /* MLA */
        double head_bytes; /* GQA: K and V of one KV head */
    } kv;
};

/* Load by name ("deepseek-v3.2", looked up in the data folder) or path ("./mine.json"). Every
 * field is checked; unknown names get a suggestion. */
int model_load(struct model *m, const char *name_or_path, struct err *err);

/* Layers that hold KV: all but the linear ones. */
int model_kv_layers(const struct model *m);

/* KV bytes of one token in one cache-bearing layer (788 for DeepSeek-V3.2 FP8). */
double model_kv_bytes_per_token_layer(const struct model *m);

/* The same over all layers (48,068 for DeepSeek-V3.2 FP8, 61,464 for GLM-5.3). */
double model_kv_bytes_per_token(const struct model *m);

/* Bytes of one element in a format: 4, 2, 1, 1, 0.5. */
double number_format_bytes(enum number_format f);

#endif
