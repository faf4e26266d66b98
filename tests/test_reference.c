/* SPDX-License-Identifier: Apache-2.0
 *
 * replay/reference: layers worked out by hand on minuscule models, and laws on the tiny ones:
 * causality, decode equals prefill, requests do not see each other.
 */
#include <math.h>

#include <criterion/criterion.h>

#include "replay/reference.h"
#include "replay/values.h"

enum { REQ = 11, WIDE = 8 /* no minuscule row is wider */ };

static const char *const tiny_models[] = {"tiny-mla", "tiny-gqa", "tiny-moe"};
enum { TINY_MODELS = sizeof(tiny_models) / sizeof(tiny_models[0]) };

static struct slice load(const char *name)
{
    struct err err = ERR_NONE;
    struct slice s = {.seed = 5};
    cr_assert_eq(model_load(&s.model, name, &err), 0, "%s", err.text);
    s.layers = s.model.layers;
    return s;
}

/* One layer, hidden 2, one head of 2, FFN of 1. */
static struct slice minuscule_gqa(void)
{
    return (struct slice){.model = {.layers = 1,
                                    .dense_layers = 1,
                                    .hidden = 2,
                                    .heads = 1,
                                    .kv_heads = 1,
                                    .attention = ATTN_GQA,
                                    .nope_dim = 2,
                                    .v_dim = 2,
                                    .dense_inter = 1},
                          .layers = 1,
                          .seed = 3};
}

/* One layer, hidden 2, two heads of 1 + 2 and 1, latent 2. */
static struct slice minuscule_mla(void)
{
    struct slice s = minuscule_gqa();
    s.model.attention = ATTN_MLA;
    s.model.heads = 2;
    s.model.q_lora = 3;
    s.model.kv_lora = 2;
    s.model.nope_dim = 1;
    s.model.rope_dim = 2;
    s.model.v_dim = 1;
    return s;
}

/* Matrix of layer 0 times x. */
static void apply(const struct slice *s, enum matrix m, int expert, const double *x, double *y)
{
    int rows = slice_rows(s, 0, m);
    for (int row = 0; row < rows; row++) {
        y[row] = 0;
        for (int i = 0; i < slice_columns(s, 0, m); i++)
            y[row] += slice_weight(s, 0, m, expert * rows + row, i) * x[i];
    }
}

static void normed(const double *x, int n, double *y)
{
    double squares = 0;
    for (int i = 0; i < n; i++)
        squares += x[i] * x[i];
    for (int i = 0; i < n; i++)
        y[i] = x[i] / sqrt(squares / n + 1e-6);
}

/* Row before layer 0, and as the attention sees it. */
static void first_row(const struct slice *s, int64_t position, double *x, double *h)
{
    for (int i = 0; i < s->model.hidden; i++)
        x[i] = value_at(s->seed, VALUE_HIDDEN, REQ, position, 0, i);
    normed(x, s->model.hidden, h);
}

/* Add down(silu(gate h) * up h) of a one-wide FFN, h already normed. */
static void add_ffn(const struct slice *s, enum matrix gate, int expert, double weight,
                    const double *h, double *x)
{
    double g, u, y[WIDE];
    apply(s, gate, expert, h, &g);
    apply(s, gate + 1, expert, h, &u);
    double inner = g / (1 + exp(-g)) * u;
    apply(s, gate + 2, expert, &inner, y);
    for (int i = 0; i < s->model.hidden; i++)
        x[i] += weight * y[i];
}

/* Finish a layer of a dense model from its row and attention output before O. */
static void finish_layer(const struct slice *s, const double *o, double *x)
{
    double y[WIDE], h[WIDE];
    apply(s, MAT_O, 0, o, y);
    for (int i = 0; i < s->model.hidden; i++)
        x[i] += y[i];
    normed(x, s->model.hidden, h);
    add_ffn(s, MAT_GATE, 0, 1, h, x);
}

/* A step of positions from..to-1 of one request in a fresh reference. */
static struct reference *run(const struct slice *s, int64_t from, int64_t to, double *out,
                             double *lse)
{
    struct reference_row row[16];
    struct reference *r = reference_new(s);
    for (int64_t i = from; i < to; i++)
        row[i - from] = (struct reference_row){REQ, i};
    reference_step(r, row, (int)(to - from), out, lse);
    return r;
}

static void assert_near(const double *a, const double *b, int64_t n, double tolerance)
{
    for (int64_t i = 0; i < n; i++)
        cr_assert(fabs(a[i] - b[i]) <= tolerance, "[%ld] %.17g is not %.17g", (long)i, a[i], b[i]);
}

Test(reference, one_token_attends_to_itself)
{
    struct slice s = minuscule_gqa();
    double x[2], h[2], q[2], k[2], v[2], out[2], lse;

    reference_free(run(&s, 0, 1, out, &lse));
    first_row(&s, 0, x, h);
    apply(&s, MAT_Q_B, 0, h, q);
    apply(&s, MAT_K_B, 0, h, k);
    apply(&s, MAT_V_B, 0, h, v);
    finish_layer(&s, v, x);
    assert_near(out, x, 2, 1e-14);
    cr_assert_float_eq(lse, (q[0] * k[0] + q[1] * k[1]) / sqrt(2), 1e-14);
}

Test(reference, two_tokens_are_weighted_by_softmax)
{
    struct slice s = minuscule_gqa();
    double x[2] = {0}, h0[2], h1[2], q[2], k0[2], k1[2], v0[2], v1[2], out[4], lse[2];

    reference_free(run(&s, 0, 2, out, lse));
    first_row(&s, 0, x, h0);
    first_row(&s, 1, x, h1);
    apply(&s, MAT_Q_B, 0, h1, q);
    apply(&s, MAT_K_B, 0, h0, k0);
    apply(&s, MAT_K_B, 0, h1, k1);
    apply(&s, MAT_V_B, 0, h0, v0);
    apply(&s, MAT_V_B, 0, h1, v1);

    /* Query turned by 1 radian against token 0's key, by nothing against its own. */
    double turned[2] = {q[0] * cos(1) - q[1] * sin(1), q[0] * sin(1) + q[1] * cos(1)};
    double e0 = exp((turned[0] * k0[0] + turned[1] * k0[1]) / sqrt(2));
    double e1 = exp((q[0] * k1[0] + q[1] * k1[1]) / sqrt(2));
    double o[2] = {(e0 * v0[0] + e1 * v1[0]) / (e0 + e1), (e0 * v0[1] + e1 * v1[1]) / (e0 + e1)};
    finish_layer(&s, o, x);
    assert_near(out + 2, x, 2, 1e-14);
    cr_assert_float_eq(lse[1], log(e0 + e1), 1e-14);
}

/* Head of 4: its second pair turns by 10000^(-2/4) = 0.01 a position. */
Test(reference, scores_depend_on_distance_alone)
{
    struct slice s = minuscule_gqa();
    double x[4], h[4], q[4], k[4], out[16 * 4], lse[16], sum = 0;
    s.model.hidden = s.model.nope_dim = s.model.v_dim = 4;

    reference_free(run(&s, 0, 16, out, lse));
    first_row(&s, 15, x, h);
    apply(&s, MAT_Q_B, 0, h, q);
    for (int t = 0; t < 16; t++) {
        double score = 0;
        first_row(&s, t, x, h);
        apply(&s, MAT_K_B, 0, h, k);
        for (int i = 0; i < 4; i += 2) {
            double angle = (15 - t) * (i == 0 ? 1 : 0.01);
            score += cos(angle) * (q[i] * k[i] + q[i + 1] * k[i + 1]);
            score += sin(angle) * (q[i] * k[i + 1] - q[i + 1] * k[i]);
        }
        sum += exp(score / 2);
    }
    cr_assert_float_eq(lse[15], log(sum), 1e-13);
}

Test(reference, history_is_used_as_stored)
{
    struct slice s = minuscule_gqa();
    double x[2], h[2], q[2], out[2], lse, sum = 0, o[2] = {0, 0};
    struct reference *r = run(&s, 2, 3, out, &lse);

    first_row(&s, 2, x, h);
    apply(&s, MAT_Q_B, 0, h, q);
    double turned[2] = {q[0] * cos(2) - q[1] * sin(2), q[0] * sin(2) + q[1] * cos(2)};
    for (int t = 0; t < 3; t++) {
        const double *kv = reference_kv(r, REQ, 0, t);
        for (int i = 0; i < 4 && t < 2; i++)
            cr_assert_eq(kv[i], value_at(s.seed, VALUE_HISTORY, REQ, t, 0, i));
        double e = exp((turned[0] * kv[0] + turned[1] * kv[1]) / sqrt(2));
        sum += e;
        o[0] += e * kv[2];
        o[1] += e * kv[3];
    }
    o[0] /= sum;
    o[1] /= sum;
    finish_layer(&s, o, x);
    assert_near(out, x, 2, 1e-14);
    cr_assert_float_eq(lse, log(sum), 1e-14);
    reference_free(r);
}

Test(reference, query_heads_share_kv_heads_in_order)
{
    struct slice s = minuscule_gqa();
    double x[2], h[2], q[8], k[4], out[2], lse[4];
    s.model.heads = 4;
    s.model.kv_heads = 2;

    reference_free(run(&s, 0, 1, out, lse));
    first_row(&s, 0, x, h);
    apply(&s, MAT_Q_B, 0, h, q);
    apply(&s, MAT_K_B, 0, h, k);
    for (int head = 0; head < 4; head++) {
        const double *a = q + 2 * head, *b = k + (head < 2 ? 0 : 2);
        cr_assert_float_eq(lse[head], (a[0] * b[0] + a[1] * b[1]) / sqrt(2), 1e-14);
    }
}

Test(reference, mla_expands_the_latent_for_each_head)
{
    struct slice s = minuscule_mla();
    double x[2], h[2], q_a[3], q[6], kv[4], k[2], v[2], out[2], lse[2];

    reference_free(run(&s, 0, 1, out, lse));
    first_row(&s, 0, x, h);
    apply(&s, MAT_Q_A, 0, h, q_a);
    apply(&s, MAT_Q_B, 0, q_a, q);
    apply(&s, MAT_KV_A, 0, h, kv);
    apply(&s, MAT_K_B, 0, kv, k);
    apply(&s, MAT_V_B, 0, kv, v);
    finish_layer(&s, v, x);
    assert_near(out, x, 2, 1e-14);
    for (int head = 0; head < 2; head++) {
        const double *of = q + 3 * head; /* no-position part, then rotary */
        double score = of[0] * k[head] + of[1] * kv[2] + of[2] * kv[3];
        cr_assert_float_eq(lse[head], score / sqrt(3), 1e-14);
    }
}

Test(reference, mla_scores_turn_with_distance)
{
    struct slice s = minuscule_mla();
    double x[2], h[2], q_a[3], q[6], kv[4], k[2], out[4], lse[4], sum[2] = {0, 0};

    reference_free(run(&s, 0, 2, out, lse));
    first_row(&s, 1, x, h);
    apply(&s, MAT_Q_A, 0, h, q_a);
    apply(&s, MAT_Q_B, 0, q_a, q);
    for (int t = 0; t < 2; t++) {
        double c = cos(1 - t), d = sin(1 - t);
        first_row(&s, t, x, h);
        apply(&s, MAT_KV_A, 0, h, kv);
        apply(&s, MAT_K_B, 0, kv, k);
        for (int head = 0; head < 2; head++) {
            const double *of = q + 3 * head;
            double rotary = (of[1] * c - of[2] * d) * kv[2] + (of[1] * d + of[2] * c) * kv[3];
            sum[head] += exp((of[0] * k[head] + rotary) / sqrt(3));
        }
    }
    cr_assert_float_eq(lse[2], log(sum[0]), 1e-14);
    cr_assert_float_eq(lse[3], log(sum[1]), 1e-14);
}

Test(reference, mla_turns_the_rotary_part_alone)
{
    struct slice s = minuscule_mla();
    double x[2], h[2], kv[4], out[2];
    struct reference *r = run(&s, 5, 6, out, NULL);
    const double *stored = reference_kv(r, REQ, 0, 5);

    first_row(&s, 5, x, h);
    apply(&s, MAT_KV_A, 0, h, kv);
    cr_assert_eq(stored[0], kv[0]);
    cr_assert_eq(stored[1], kv[1]);
    cr_assert_float_eq(stored[2], kv[2] * cos(5) - kv[3] * sin(5), 1e-14);
    cr_assert_float_eq(stored[3], kv[2] * sin(5) + kv[3] * cos(5), 1e-14);
    reference_free(r);
}

Test(reference, rotary_keeps_lengths)
{
    enum { HEAD = 32, KV_HEADS = 2, FAR = 300 };
    struct slice s = load("tiny-gqa");
    double x[256], h[256], k[KV_HEADS * HEAD], v[KV_HEADS * HEAD], out[256];
    struct reference *r = run(&s, FAR, FAR + 1, out, NULL);
    const double *stored = reference_kv(r, REQ, 0, FAR);

    first_row(&s, FAR, x, h);
    apply(&s, MAT_K_B, 0, h, k);
    apply(&s, MAT_V_B, 0, h, v);
    for (int head = 0; head < KV_HEADS; head++) {
        const double *key = stored + 2 * head * HEAD;
        double before = 0, after = 0;
        for (int i = 0; i < HEAD; i++) {
            before += k[head * HEAD + i] * k[head * HEAD + i];
            after += key[i] * key[i];
        }
        cr_assert_float_eq(after, before, 1e-13 * before);
        cr_assert_neq(key[0], k[head * HEAD]);
        assert_near(key + HEAD, v + head * HEAD, HEAD, 0);
    }
    reference_free(r);
}

Test(reference, moe_weighs_the_chosen_experts_and_adds_the_shared_one)
{
    struct slice s = minuscule_gqa();
    double x[2], h[2], v[2], y[2], logit[3], out[2];
    s.model.dense_layers = 0;
    s.model.moe.experts = 3;
    s.model.moe.topk = 2;
    s.model.moe.shared = 1;
    s.model.moe.inter = 1;

    reference_free(run(&s, 0, 1, out, NULL));
    first_row(&s, 0, x, h);
    apply(&s, MAT_V_B, 0, h, v);
    apply(&s, MAT_O, 0, v, y);
    x[0] += y[0];
    x[1] += y[1];
    normed(x, 2, h);
    apply(&s, MAT_ROUTER, 0, h, logit);
    int last = 0; /* the one not chosen */
    for (int e = 1; e < 3; e++)
        if (logit[e] < logit[last])
            last = e;
    int a = (last + 1) % 3, b = (last + 2) % 3;
    double share = 1 / (1 + exp(logit[b] - logit[a]));
    add_ffn(&s, MAT_GATE, a, share, h, x);
    add_ffn(&s, MAT_GATE, b, 1 - share, h, x);
    add_ffn(&s, MAT_SHARED_GATE, 0, 1, h, x);
    assert_near(out, x, 2, 1e-14);
}

Test(reference, moe_of_one_expert_is_a_dense_ffn)
{
    struct slice dense = minuscule_gqa();
    dense.model.dense_inter = 3;
    struct slice moe = dense;
    moe.model.dense_layers = 0;
    moe.model.moe.experts = moe.model.moe.topk = 1;
    moe.model.moe.inter = 3;

    double a[8], b[8];
    reference_free(run(&dense, 0, 4, a, NULL));
    reference_free(run(&moe, 0, 4, b, NULL));
    assert_near(a, b, 8, 0);
}

/* Hidden of 1 makes a router row one number, and a seed where both are the same is soon found:
 * the router ties, and expert 0 is the dense FFN with the same rows. */
Test(reference, tied_experts_go_to_the_lower_index)
{
    struct slice dense = minuscule_gqa();
    dense.model.hidden = 1;
    struct slice moe = dense;
    moe.model.dense_layers = 0;
    moe.model.moe.experts = 2;
    moe.model.moe.topk = 1;
    moe.model.moe.inter = 1;
    while (slice_weight(&moe, 0, MAT_ROUTER, 0, 0) != slice_weight(&moe, 0, MAT_ROUTER, 1, 0))
        moe.seed++;
    dense.seed = moe.seed;

    double a, b;
    reference_free(run(&dense, 0, 1, &a, NULL));
    reference_free(run(&moe, 0, 1, &b, NULL));
    cr_assert_eq(a, b);
}

Test(reference, later_rows_do_not_change_earlier_ones)
{
    for (int m = 0; m < TINY_MODELS; m++) {
        struct slice s = load(tiny_models[m]);
        double few[3 * 256], many[6 * 256], few_lse[3 * 8], many_lse[6 * 8];
        reference_free(run(&s, 2, 5, few, few_lse));
        reference_free(run(&s, 2, 8, many, many_lse));
        assert_near(few, many, 3 * 256, 0);
        assert_near(few_lse, many_lse, 3 * 8, 0);
    }
}

/* Six rows after three of history: at once, or a chunk of two and four decodes that share their
 * steps with another request. */
Test(reference, steps_give_what_one_prefill_gives)
{
    for (int m = 0; m < TINY_MODELS; m++) {
        struct slice s = load(tiny_models[m]);
        double whole[6 * 256], whole_lse[6 * 8], out[3 * 256], lse[3 * 8];
        struct reference *prefill = run(&s, 3, 9, whole, whole_lse), *steps = reference_new(&s);

        reference_step(steps, (struct reference_row[]){{REQ, 3}, {REQ, 4}}, 2, out, lse);
        assert_near(out, whole, 2 * 256, 1e-12);
        assert_near(lse, whole_lse, 2 * 8, 1e-12);
        for (int64_t i = 5; i < 9; i++) {
            struct reference_row row[] = {{2, 2 * i}, {2, 2 * i + 1}, {REQ, i}};
            reference_step(steps, row, 3, out, lse);
            assert_near(out + 2 * 256, whole + (i - 3) * 256, 256, 1e-12);
            assert_near(lse + 2 * 8, whole_lse + (i - 3) * 8, 8, 1e-12);
        }
        for (int layer = 0; layer < s.layers; layer++)
            for (int64_t t = 0; t < 9; t++)
                assert_near(reference_kv(steps, REQ, layer, t),
                            reference_kv(prefill, REQ, layer, t), slice_kv_width(&s), 1e-12);
        reference_free(prefill);
        reference_free(steps);
    }
}

Test(reference, positions_run_again_are_overwritten)
{
    struct slice s = load("tiny-mla");
    double out[6 * 256], again[2 * 256];
    struct reference *r = run(&s, 0, 6, out, NULL);
    reference_step(r, (struct reference_row[]){{REQ, 2}, {REQ, 3}}, 2, again, NULL);
    assert_near(again, out + 2 * 256, 2 * 256, 1e-12);
    reference_free(r);
}

/* Outputs neither vanish nor blow up: each layer adds a part of about the size of its input. */
Test(reference, outputs_keep_a_sensible_size)
{
    for (int m = 0; m < TINY_MODELS; m++) {
        struct slice s = load(tiny_models[m]);
        double out[256], squares = 0;
        reference_free(run(&s, 20, 21, out, NULL));
        for (int i = 0; i < 256; i++)
            squares += out[i] * out[i] / 256;
        cr_assert(squares > 0.2 && squares < 5, "%s: %g", tiny_models[m], squares);
    }
}
