/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of sim/layout/manifest: the directed switches of the SPLASH paper worked by hand, those
 * with Helix, and laws that hold for every pair of layouts.
 */
#include "sim/layout/manifest.h"

#include <math.h>
#include <stdlib.h>

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "sim/base/units.h"
#include "sim/layout/blocks.h"

#define NEAR(a, b, tol)                                                                            \
    cr_expect_lt(fabs((a) - (b)), tol, "%s = %.9g, not %.9g", #a, a, (double)(b))

static struct model model(const char *name)
{
    struct err err = ERR_NONE;
    struct model m;
    cr_assert_eq(model_load(&m, name, &err), 0, "%s", err.text);
    return m;
}

static struct layout parsed(const char *text, const struct model *m, int ranks)
{
    struct err err = ERR_NONE;
    struct layout l;
    cr_assert_eq(layout_parse(&l, text, m, ranks, &err), 0, "%s", err.text);
    return l;
}

static struct manifest *manifest(const char *from, const char *to, const struct model *m, int ranks)
{
    struct layout a = parsed(from, m, ranks), b = parsed(to, m, ranks);
    return manifest_new(&a, &b, m);
}

static double eq9_bytes(const struct model *m)
{
    struct projection_bytes p = footprint_projections(m);
    return p.in_bytes + p.out_bytes;
}

/* KV received by a rank when each owner's requests have c tokens, T c in all, in units of c. */
enum kv_recv { NOTHING, T_LESS_1, PART };

static double kv_recv_of(enum kv_recv recv, int ranks)
{
    const double received[] = {
        [NOTHING] = 0,
        [T_LESS_1] = ranks - 1,   /* all T c but the c that it has */
        [PART] = 1 - 1.0 / ranks, /* ends with c tokens' worth and has 1/T of it */
    };
    return received[recv];
}

static const struct {
    const char *from, *to;
    enum primitive weights, kv;
    enum kv_recv recv;
} twelve[] = {
    {"tp", "cp", PRIM_ALL_GATHER, PRIM_DISCARD, NOTHING},
    {"tp", "dp", PRIM_ALL_GATHER, PRIM_DISCARD, NOTHING},
    {"tp", "dop", PRIM_KEEP, PRIM_DISCARD, NOTHING},
    {"cp", "tp", PRIM_DISCARD, PRIM_ALL_GATHER, T_LESS_1},
    {"cp", "dp", PRIM_KEEP, PRIM_ALL_TO_ALL, PART},
    {"cp", "dop", PRIM_DISCARD, PRIM_ALL_TO_ALL, PART},
    {"dp", "tp", PRIM_DISCARD, PRIM_ALL_GATHER, T_LESS_1},
    {"dp", "cp", PRIM_KEEP, PRIM_ALL_TO_ALL, PART},
    {"dp", "dop", PRIM_DISCARD, PRIM_KEEP, NOTHING},
    {"dop", "tp", PRIM_KEEP, PRIM_ALL_GATHER, T_LESS_1},
    {"dop", "cp", PRIM_ALL_GATHER, PRIM_ALL_TO_ALL, PART},
    {"dop", "dp", PRIM_ALL_GATHER, PRIM_KEEP, NOTHING},
};

ParameterizedTestParameters(manifest, twelve_directions)
{
    static size_t at[sizeof twelve / sizeof *twelve];
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        at[i] = i;
    return cr_make_param_array(size_t, at, sizeof at / sizeof *at);
}

ParameterizedTest(size_t *i, manifest, twelve_directions)
{
    enum { C = 4096 };
    static const int64_t ctx_tokens[RANKS_MAX] = {C, C, C, C, C, C, C, C};
    struct model m = model("glm-5.3");
    for (int ranks = 2; ranks <= 8; ranks *= 2) {
        struct manifest *mf = manifest(twelve[*i].from, twelve[*i].to, &m, ranks);
        cr_expect_eq(mf->weights.primitive, twelve[*i].weights);
        cr_expect_eq(mf->kv.primitive, twelve[*i].kv);
        bool gathers = twelve[*i].weights == PRIM_ALL_GATHER;
        NEAR(mf->weights.recv_bytes, gathers ? eq9_bytes(&m) * (1 - 1.0 / ranks) : 0, 1e-3);
        cr_expect_eq(mf->weights.repack_bytes, gathers ? eq9_bytes(&m) : 0);
        cr_expect_eq(mf->weights.layers_frac, gathers);
        struct transfer t = manifest_kv_transfer(mf, &m, ctx_tokens);
        double want = C * 788.0 * kv_recv_of(twelve[*i].recv, ranks);
        NEAR(t.recv_bytes, want, 1e-3);
        NEAR(t.link_bytes, want, 1e-3);
        NEAR(t.moved_bytes, ranks * want, 1e-2);
        free(mf);
    }
}

/* The paper's own figures at T = 8: 287 MiB a rank in BF16. */
Test(manifest, deepseek_bf16_rank_receives_287_mib)
{
    struct model m = model("deepseek-v3.2");
    m.attention_weights = (struct weight_format){FMT_BF16, 2};
    struct manifest *mf = manifest("dop", "cp", &m, 8);
    cr_expect_eq(mf->weights.recv_bytes, 287 * MIB);
    free(mf);
}

static const struct {
    const char *model, *from, *to;
    enum primitive weights, kv;
    double in_recv, out_recv; /* shares of Q, K and V (or Q-B and KV-B) and of O */
    double kv_recv;           /* share of the T c tokens */
} with_helix[] = {
    /* MLA: Helix is cp with O sharded. */
    {"glm-5.3", "tp", "helix:kvp=8,tpa=1", PRIM_ALL_GATHER, PRIM_DISCARD, 7. / 8, 0, 0},
    {"glm-5.3", "cp", "helix:kvp=8,tpa=1", PRIM_DISCARD, PRIM_KEEP, 0, 0, 0},
    {"glm-5.3", "dp", "helix:kvp=8,tpa=1", PRIM_DISCARD, PRIM_ALL_TO_ALL, 0, 0, 7. / 64},
    {"glm-5.3", "dop", "helix:kvp=8,tpa=1", PRIM_ALL_GATHER, PRIM_ALL_TO_ALL, 7. / 8, 0, 7. / 64},
    {"glm-5.3", "helix:kvp=8,tpa=1", "tp", PRIM_DISCARD, PRIM_ALL_GATHER, 0, 0, 7. / 8},
    {"glm-5.3", "helix:kvp=8,tpa=1", "cp", PRIM_ALL_GATHER, PRIM_KEEP, 0, 7. / 8, 0},
    {"glm-5.3", "helix:kvp=8,tpa=1", "dp", PRIM_ALL_GATHER, PRIM_ALL_TO_ALL, 0, 7. / 8, 7. / 64},
    {"glm-5.3", "helix:kvp=8,tpa=1", "dop", PRIM_DISCARD, PRIM_ALL_TO_ALL, 0, 0, 7. / 64},
    /* GQA, K = 8: half of the in-projections everywhere, an eighth of KV as (half, quarter). tp's
     * eighth of the heads over all positions shares a 1/32 with it, cp's eighth of the positions
     * (half of a quarter) a 1/16. */
    {"llama-3.1-405b", "tp", "helix:kvp=4,tpa=2", PRIM_ALL_GATHER, PRIM_ALL_TO_ALL, 3. / 8, 0,
     3. / 32},
    {"llama-3.1-405b", "cp", "helix:kvp=4,tpa=2", PRIM_DISCARD, PRIM_ALL_TO_ALL, 0, 0, 1. / 16},
    {"llama-3.1-405b", "dp", "helix:kvp=4,tpa=2", PRIM_DISCARD, PRIM_ALL_TO_ALL, 0, 0, 7. / 64},
    {"llama-3.1-405b", "dop", "helix:kvp=4,tpa=2", PRIM_ALL_GATHER, PRIM_ALL_TO_ALL, 3. / 8, 0,
     7. / 64},
    {"llama-3.1-405b", "helix:kvp=4,tpa=2", "tp", PRIM_DISCARD, PRIM_ALL_TO_ALL, 0, 0, 3. / 32},
    {"llama-3.1-405b", "helix:kvp=4,tpa=2", "cp", PRIM_ALL_GATHER, PRIM_ALL_TO_ALL, 1. / 2, 7. / 8,
     1. / 16},
    {"llama-3.1-405b", "helix:kvp=4,tpa=2", "dp", PRIM_ALL_GATHER, PRIM_ALL_TO_ALL, 1. / 2, 7. / 8,
     7. / 64},
    {"llama-3.1-405b", "helix:kvp=4,tpa=2", "dop", PRIM_DISCARD, PRIM_ALL_TO_ALL, 0, 0, 7. / 64},
    /* With T <= K, tp moves KV all-to-all too: nothing is held twice. */
    {"llama-3.1-405b", "dp", "tp", PRIM_DISCARD, PRIM_ALL_TO_ALL, 0, 0, 7. / 64},
    {"llama-3.1-405b", "tp", "dp", PRIM_ALL_GATHER, PRIM_ALL_TO_ALL, 7. / 8, 7. / 8, 7. / 64},
    {"llama-3.1-405b", "tp", "helix:kvp=1,tpa=8", PRIM_KEEP, PRIM_KEEP, 0, 0, 0},
    /* Sub-batches change who holds what nowhere. */
    {"glm-5.3", "helix:kvp=8,tpa=1", "helix:kvp=8,tpa=1,hopb=4", PRIM_KEEP, PRIM_KEEP, 0, 0, 0},
    {"llama-3.1-405b", "helix:kvp=4,tpa=2,hopb=8", "helix:kvp=4,tpa=2,hopb=2", PRIM_KEEP, PRIM_KEEP,
     0, 0, 0},
    {"llama-3.1-405b", "helix:kvp=4,tpa=2,hopb=8", "helix:kvp=4,tpa=2", PRIM_KEEP, PRIM_KEEP, 0, 0,
     0},
};

ParameterizedTestParameters(manifest, directions_with_helix)
{
    static size_t at[sizeof with_helix / sizeof *with_helix];
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        at[i] = i;
    return cr_make_param_array(size_t, at, sizeof at / sizeof *at);
}

ParameterizedTest(size_t *i, manifest, directions_with_helix)
{
    enum { C = 1024, T = 8 };
    static const int64_t ctx_tokens[T] = {C, C, C, C, C, C, C, C};
    struct model m = model(with_helix[*i].model);
    struct projection_bytes p = footprint_projections(&m);
    struct manifest *mf = manifest(with_helix[*i].from, with_helix[*i].to, &m, T);
    cr_expect_eq(mf->weights.primitive, with_helix[*i].weights);
    cr_expect_eq(mf->kv.primitive, with_helix[*i].kv);
    NEAR(mf->weights.recv_bytes,
         p.in_bytes * with_helix[*i].in_recv + p.out_bytes * with_helix[*i].out_recv, 1e-3);
    double all = T * C * model_kv_bytes_per_token_layer(&m);
    NEAR(manifest_kv_transfer(mf, &m, ctx_tokens).recv_bytes, all * with_helix[*i].kv_recv, 1e-3);
    free(mf);
}

/* T = 16 > K = 8: two ranks share each KV head, so tp keeps two copies of a history. */
Test(manifest, shared_kv_heads_are_gathered)
{
    struct model m = model("llama-3.1-405b");
    struct projection_bytes p = footprint_projections(&m);
    double q = p.in_bytes - p.kv_in_bytes, kv = p.kv_in_bytes;
    struct manifest *to_tp = manifest("dop", "tp", &m, 16), *to_dp = manifest("tp", "dp", &m, 16);
    cr_expect_eq(to_tp->weights.primitive, PRIM_KEEP);
    cr_expect_eq(to_tp->kv.primitive, PRIM_ALL_GATHER);
    cr_expect_eq(to_tp->kv.recv_frac[0][1], 1.0 / 8);
    cr_expect_eq(to_tp->kv.recv_frac[0][0], 0);
    /* Fifteen ranks miss an eighth each. */
    cr_expect_eq(to_tp->kv.send_frac[0][0], 15.0 / 8);
    NEAR(to_dp->weights.recv_bytes, (q + p.out_bytes) * 15 / 16 + kv * 7 / 8, 1e-3);
    cr_expect_eq(to_dp->kv.send_frac[3][0],
                 1.0 / 16); /* half of its head: its twin sends the rest */
    cr_expect_eq(to_dp->kv.send_frac[3][3], 0);
    free(to_tp);
    free(to_dp);
}

static const struct study {
    const char *model;
    int ranks;
    const char *layouts;
} studies[] = {
    {"glm-5.3", 1, "tp,cp,dp,dop"},
    {"glm-5.3", 2, "tp,cp,cp:storage=layer,dp,dop,dop:cache=0.5,helix:kvp=2,tpa=1"},
    {"glm-5.3-flash", 8,
     "tp,cp,cp:storage=layer,dp,dop,dop:cache=0.3,dop:cache=1,helix:kvp=8,tpa=1"},
    {"llama-3.1-405b", 4, "tp,cp,dp,dop,helix:kvp=4,tpa=1,helix:kvp=2,tpa=2,helix:kvp=1,tpa=4"},
    {"llama-3.1-405b", 16,
     "tp,cp,cp:storage=layer,dp,dop:rows=owned,helix:kvp=16,tpa=1,helix:kvp=4,tpa=4,"
     "helix:kvp=2,tpa=8"},
    {"tiny-gqa", 8, "tp,cp,cp:storage=layer,dp,dop,helix:kvp=8,tpa=1,helix:kvp=4,tpa=2"},
};

static int load(const struct study *s, struct model *m, struct layout l[LAYOUT_MAX])
{
    struct err err = ERR_NONE;
    *m = model(s->model);
    int n = layout_parse_list(l, s->layouts, m, s->ranks, &err);
    cr_assert_gt(n, 0, "%s", err.text);
    return n;
}

typedef struct blocks (*request_fn)(const struct layout *, const struct block_grid *, int, int);

/* Laws of one state: what is sent is received; a rank receives nothing exactly when it holds its
 * destination already; kept and received blocks make up the destination; only holders send. */
static void check_move(const struct request_move *mv, const struct layout pair[2],
                       struct block_grid g, request_fn blocks_of)
{
    int ranks = pair[0].ranks;
    for (int owner = 0; owner < (mv->owner_matters ? ranks : 1); owner++) {
        double sent = 0, received = 0;
        for (int r = 0; r < ranks; r++) {
            struct blocks a = blocks_of(&pair[0], &g, r, owner);
            struct blocks b = blocks_of(&pair[1], &g, r, owner);
            struct blocks kept = blocks_and(&a, &b);
            double recv = mv->recv_frac[owner][r];
            sent += mv->send_frac[owner][r];
            received += recv;
            cr_assert_eq(recv == 0, blocks_equal(&kept, &b));
            NEAR(blocks_frac(&kept, &g) + recv, blocks_frac(&b, &g), 1e-12);
            NEAR(mv->repack_frac[owner][r], recv > 0 ? blocks_frac(&b, &g) : 0, 1e-12);
            cr_assert(mv->send_frac[owner][r] == 0 || blocks_frac(&a, &g) > 0);
        }
        NEAR(sent, received, 1e-9);
        cr_assert_eq(received > 0, mv->primitive >= PRIM_ALL_GATHER);
    }
}

ParameterizedTestParameters(manifest, laws_of_every_pair)
{
    static size_t at[sizeof studies / sizeof *studies];
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        at[i] = i;
    return cr_make_param_array(size_t, at, sizeof at / sizeof *at);
}

ParameterizedTest(size_t *s, manifest, laws_of_every_pair)
{
    struct model m;
    struct layout l[LAYOUT_MAX];
    int n = load(&studies[*s], &m, l);
    for (int i = 0; i < n * n; i++) {
        const struct layout pair[2] = {l[i / n], l[i % n]};
        struct manifest *mf = manifest_new(&pair[0], &pair[1], &m);
        check_move(&mf->kv, pair, block_grid_for_kv(pair, 2), blocks_of_kv);
        if (m.linear.layers > 0)
            check_move(&mf->state, pair, block_grid_for_state(pair, 2), blocks_of_state);
        cr_assert_eq(mf->weights.recv_bytes > 0, mf->weights.primitive >= PRIM_ALL_GATHER);
        cr_assert_eq(mf->weights.layers_frac > 0, mf->weights.recv_bytes > 0);
        cr_assert(mf->weights.repack_bytes >= mf->weights.recv_bytes);
        if (i / n == i % n || studies[*s].ranks == 1) {
            cr_assert_eq(mf->weights.primitive, PRIM_KEEP);
            cr_assert_eq(mf->linear_weights.primitive, PRIM_KEEP);
            cr_assert_eq(mf->kv.primitive, PRIM_KEEP);
            cr_assert_eq(mf->state.primitive, PRIM_KEEP);
        }
        free(mf);
    }
}

/* Owner 2 alone has 1,000 tokens: it serves everyone, and every other rank takes it all. */
Test(manifest, lone_owner_is_the_busiest_link)
{
    enum { T = 4 };
    static const int64_t ctx_tokens[T] = {0, 0, 1000, 0};
    struct model m = model("glm-5.3");
    struct manifest *to_tp = manifest("dp", "tp", &m, T), *to_cp = manifest("dp", "cp", &m, T);
    struct transfer tp = manifest_kv_transfer(to_tp, &m, ctx_tokens);
    struct transfer cp = manifest_kv_transfer(to_cp, &m, ctx_tokens);
    cr_expect_eq(tp.recv_bytes, 788 * 1000);
    cr_expect_eq(tp.repack_bytes, 788 * 1000);
    cr_expect_eq(tp.link_bytes, 788 * 3000);
    cr_expect_eq(tp.moved_bytes, 788 * 3000);
    cr_expect_eq(cp.recv_bytes, 788 * 250);
    cr_expect_eq(cp.link_bytes, 788 * 750);
    free(to_tp);
    free(to_cp);
}

/* cp -> dp: an owner assembles c tokens of which it held c/T; dp -> cp: a rank collects its share
 * of the others' and uses its own in place. */
Test(manifest, only_what_receives_is_repacked)
{
    enum { T = 4, C = 1000 };
    static const int64_t ctx_tokens[T] = {C, C, C, C};
    struct model m = model("glm-5.3");
    struct manifest *gather = manifest("cp", "dp", &m, T), *spread = manifest("dp", "cp", &m, T);
    struct manifest *discard = manifest("tp", "cp", &m, T);
    cr_expect_eq(manifest_kv_transfer(gather, &m, ctx_tokens).repack_bytes, 788 * C);
    cr_expect_eq(manifest_kv_transfer(spread, &m, ctx_tokens).repack_bytes, 788 * C * 3 / 4);
    cr_expect_eq(manifest_kv_transfer(discard, &m, ctx_tokens).repack_bytes, 0);
    free(gather);
    free(spread);
    free(discard);
}

Test(manifest, cp_by_layer_trades_with_tp_by_gather_and_discard)
{
    struct model m = model("glm-5.3");
    struct manifest *in = manifest("tp", "cp:storage=layer", &m, 8);
    struct manifest *out = manifest("cp:storage=layer", "tp", &m, 8);
    struct manifest *across = manifest("cp:storage=layer", "cp", &m, 8);
    cr_expect_eq(in->kv.primitive, PRIM_DISCARD);
    cr_expect_eq(out->kv.primitive, PRIM_ALL_GATHER);
    cr_expect_eq(out->kv.recv_frac[0][0], 7.0 / 8);
    cr_expect_eq(across->kv.primitive, PRIM_ALL_TO_ALL);
    cr_expect_eq(across->kv.recv_frac[0][0], 7.0 / 64);
    free(in);
    free(out);
    free(across);
}

static const struct {
    const char *from, *to;
    enum primitive weights;
    double layers_frac;
} cached[] = {
    {"dop:cache=0.25", "dp", PRIM_ALL_GATHER, 0.75},
    {"dop:cache=1", "dp", PRIM_KEEP, 0},
    {"dp", "dop:cache=1", PRIM_KEEP, 0},
    {"dp", "dop:cache=0.25", PRIM_DISCARD, 0},
    {"tp", "dop:cache=0.25", PRIM_ALL_GATHER, 0.25},
    {"dop:cache=0.25", "tp", PRIM_DISCARD, 0},
    {"dop:cache=0.25", "dop:cache=0.75", PRIM_ALL_GATHER, 0.5},
    {"dop:cache=0.75", "dop:cache=0.25", PRIM_DISCARD, 0},
};

ParameterizedTestParameters(manifest, cached_layers_do_not_move)
{
    static size_t at[sizeof cached / sizeof *cached];
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        at[i] = i;
    return cr_make_param_array(size_t, at, sizeof at / sizeof *at);
}

ParameterizedTest(size_t *i, manifest, cached_layers_do_not_move)
{
    struct model m = model("glm-5.3");
    struct manifest *mf = manifest(cached[*i].from, cached[*i].to, &m, 8);
    cr_expect_eq(mf->weights.primitive, cached[*i].weights);
    cr_expect_eq(mf->weights.layers_frac, cached[*i].layers_frac);
    if (cached[*i].layers_frac > 0)
        NEAR(mf->weights.recv_bytes, eq9_bytes(&m) * 7 / 8, 1e-3);
    free(mf);
}

/* GLM-5.3-Flash: a KDA layer's projections are whole wherever its state is. */
Test(manifest, linear_layers_follow_their_state)
{
    enum { T = 8 };
    static const int64_t requests[T] = {2, 2, 2, 2, 2, 2, 2, 2};
    struct model m = model("glm-5.3-flash");
    struct projection_bytes p = footprint_linear_projections(&m);
    struct manifest *to_dop = manifest("tp", "dop", &m, T), *to_dp = manifest("dop", "dp", &m, T);
    cr_expect_eq(to_dop->weights.primitive, PRIM_KEEP);
    cr_expect_eq(to_dop->linear_weights.primitive, PRIM_ALL_GATHER);
    NEAR(to_dop->linear_weights.recv_bytes, (p.in_bytes + p.out_bytes) * 7 / 8, 1e-3);
    cr_expect_eq(to_dop->state.primitive, PRIM_ALL_TO_ALL);
    NEAR(manifest_state_transfer(to_dop, &m, requests).recv_bytes, 2 * 4341760 * 7 / 8.0, 1e-3);
    cr_expect_eq(to_dp->linear_weights.primitive, PRIM_KEEP);
    cr_expect_eq(to_dp->state.primitive, PRIM_KEEP);
    free(to_dop);
    free(to_dp);
}

Test(manifest, models_without_linear_layers_have_no_state)
{
    static const int64_t requests[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    struct model m = model("glm-5.3");
    struct manifest *mf = manifest("tp", "dop", &m, 8);
    cr_expect_eq(mf->linear_weights.primitive, PRIM_KEEP);
    cr_expect_eq(manifest_state_transfer(mf, &m, requests).moved_bytes, 0);
    free(mf);
}

Test(manifest, transit_is_one_layer_and_peak_adds_it)
{
    enum { C = 1 << 20 };
    static const int64_t ctx_tokens[8] = {C, C, C, C, C, C, C, C};
    struct model m = model("glm-5.3");
    struct manifest *mf = manifest("dop", "cp", &m, 8);
    double transit = manifest_transit_bytes(mf, &m, ctx_tokens);
    NEAR(transit, eq9_bytes(&m) * 7 / 8 + 788.0 * C * 7 / 8, 1e-3);
    cr_expect_eq(manifest_peak_bytes(100, 300, 7), 307);
    cr_expect_eq(manifest_peak_bytes(300, 100, 7), 307);
    free(mf);
}

/* A group as large as they come, and its sends still add up. */
Test(manifest, rank_limit_holds, .timeout = 60)
{
    struct model m = model("deepseek-r1");
    struct manifest *mf = manifest("dop", "helix:kvp=128,tpa=1", &m, RANKS_MAX);
    double sent = 0;
    for (int r = 0; r < RANKS_MAX; r++)
        sent += mf->kv.send_frac[127][r];
    NEAR(sent, 127.0 / 128, 1e-12);
    cr_expect_eq(mf->kv.send_frac[127][127], sent);
    free(mf);
}
