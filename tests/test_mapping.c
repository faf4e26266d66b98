/* SPDX-License-Identifier: Apache-2.0
 *
 * Mappings: text, rules, enumeration, and what they say of who holds which KV.
 */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "sim/base/rng.h"
#include "sim/layout/footprint.h"
#include "sim/pareto/mapping.h"

static struct model gqa(int heads, int kv_heads)
{
    struct model m = {.name = "m", .layers = 8, .dense_layers = 8, .hidden = 64};
    m.heads = heads;
    m.kv_heads = kv_heads;
    m.attention = ATTN_GQA;
    m.nope_dim = m.v_dim = 16;
    m.dense_inter = 256;
    return m;
}

static struct model moe(void)
{
    struct model m = gqa(8, 2);
    m.dense_layers = 1;
    m.moe.experts = 16;
    m.moe.topk = 2;
    m.moe.inter = 64;
    return m;
}

static const struct refusal {
    const char *text, *why;
    bool experts;
} refusals[] = {
    {"tq:tpa=2", "unknown family \"tq\"", false},
    {"tp:tpx=2", "tpx", false},
    {"tp:tpa=2,tpf=4", "tpf x ep must be dp x kvp x tpa", false},
    {"tp:kvp=2,tpf=2", "has no kvp", false},
    {"pp:tpa=2,tpf=2", "needs pp > 1", false},
    {"ep:dp=4,ep=4", "for models with experts", false},
    {"dpa:dp=2,tpf=2", "for models without experts", true},
    {"kvp:kvp=4,tpa=2,tpf=8", "tpf x ep must be tpa", false},
    {"helix:kvp=2,tpa=4,tpf=8", "tpa must be at most the KV heads", false},
    {"helix:tpa=2,tpf=2", "needs kvp > 1", false},
    {"kvp:kvp=4,tpa=2,tpf=2,hopb=2", "leave hopb out", false},
    {"tp:tpa=3,tpf=3", "tpa does not divide the heads", false},
    {"pp:pp=9", "more stages than layers", false},
    {"ep:dp=32,ep=32", "more EP ranks than experts", true},
    {"helix:kvp=128,tpa=2,tpf=128,ep=2", "more than 128 GPUs", true},
};
enum { N_REFUSALS = sizeof refusals / sizeof *refusals };

Test(mapping, what_cannot_be_is_refused_with_the_reason)
{
    for (int i = 0; i < N_REFUSALS; i++) {
        struct model m = refusals[i].experts ? moe() : gqa(8, 2);
        struct mapping map;
        struct err err = ERR_NONE;
        cr_assert_eq(mapping_parse(&map, refusals[i].text, &m, &err), -1, "%s", refusals[i].text);
        cr_assert(strstr(err.text, refusals[i].why) != NULL, "%s: %s", refusals[i].text, err.text);
    }
}

Test(mapping, text_is_read_back)
{
    static const char *const texts[] = {"tp:tpa=4,tpf=4", "pp:pp=2", "helix:pp=2,kvp=4,tpa=2,tpf=8",
                                        "helix:kvp=4,tpf=4,hopb=8", "kvp:kvp=3,tpa=2,tpf=2"};
    struct model m = gqa(8, 2);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct mapping map;
        struct err err = ERR_NONE;
        char text[MAPPING_TEXT_SIZE];
        cr_assert_eq(mapping_parse(&map, texts[i], &m, &err), 0, "%s", err.text);
        cr_assert_str_eq(mapping_text(&map, text), texts[i]);
    }
}

/* 8 heads, 2 KV heads, 4 GPUs: tp 4. Helix: kvp 4, or kvp 2 and the other 2 at pp, dp or tpa. */
Test(mapping, enumeration_finds_each_once)
{
    struct model m = gqa(8, 2);
    struct mapping *list = NULL;
    size_t n = 0, cap = 0;
    mapping_enumerate(&m, 1u << FAMILY_TP | 1u << FAMILY_HELIX, 4, &list, &n, &cap);
    cr_assert_eq(n, 5);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            cr_assert_neq(memcmp(&list[i], &list[k], sizeof *list), 0);
    free(list);
}

/* All families on 16 GPUs with experts: everything found holds, and is on 16 GPUs. */
Test(mapping, enumeration_finds_what_the_rules_allow)
{
    struct model m = moe();
    struct mapping *list = NULL;
    size_t n = 0, cap = 0, of[FAMILY_COUNT] = {0};
    mapping_enumerate(&m, (1u << FAMILY_COUNT) - 1, 16, &list, &n, &cap);
    for (size_t i = 0; i < n; i++) {
        struct err err = ERR_NONE;
        of[list[i].family]++;
        cr_assert_eq(mapping_check(&list[i], &m, &err), 0, "%s", err.text);
        cr_assert_eq(mapping_gpus(&list[i]), 16);
    }
    for (int f = 0; f < FAMILY_COUNT; f++)
        cr_assert_eq(of[f] > 0, f != FAMILY_DPA && f != FAMILY_TP, "%s", mapping_family_names[f]);
    free(list);
}

/* A random model of at most 128 heads with a divisor of them as KV heads (MLA: one latent). */
static struct model any_model(struct rng *rng)
{
    int kv_heads = 1 << rng_range(rng, 0, 4), share = 1 << rng_range(rng, 0, 3);
    struct model m = gqa(kv_heads * share, kv_heads);
    if (rng_range(rng, 0, 2) == 0) {
        m.attention = ATTN_MLA;
        m.kv_heads = 1;
    }
    return m;
}

/* How often the GPUs of a replica hold a request's KV, together. */
static double copies(const struct mapping *map, const struct model *m)
{
    struct layout l = mapping_layout(map, m);
    return l.ranks * footprint_kv_share(&l);
}

Test(mapping, kv_is_never_twice_while_tpa_is_at_most_k_and_always_beyond)
{
    struct rng rng;
    int beyond = 0, within = 0;
    rng_init(&rng, 11);
    for (int round = 0; round < 300; round++) {
        struct model m = any_model(&rng);
        struct mapping *list = NULL;
        size_t n = 0, cap = 0;
        int gpus = round % 2 ? 1 << rng_range(&rng, 0, 6) : (int)rng_range(&rng, 1, 72);
        mapping_enumerate(&m, (1u << FAMILY_COUNT) - 1, gpus, &list, &n, &cap);
        for (size_t i = 0; i < n; i++) {
            double expected = list[i].tpa <= m.kv_heads ? 1 : (double)list[i].tpa / m.kv_heads;
            cr_assert_float_eq(copies(&list[i], &m), expected, 1e-12);
            cr_assert(list[i].family != FAMILY_HELIX || expected == 1);
            beyond += expected > 1;
            within += expected == 1;
        }
        free(list);
    }
    cr_assert(beyond > 100 && within > 100, "%d %d", beyond, within);
}

/* The same ownership as sim/layout reads from "tp" and "helix:...". */
Test(mapping, owns_what_the_layout_of_that_name_owns)
{
    struct model m = gqa(8, 2);
    struct mapping map;
    struct layout l;
    struct err err = ERR_NONE;
    cr_assert_eq(mapping_parse(&map, "helix:kvp=2,tpa=2,tpf=4", &m, &err), 0);
    cr_assert_eq(layout_parse(&l, "helix:kvp=2,tpa=2", &m, 4, &err), 0, "%s", err.text);
    struct layout own = mapping_layout(&map, &m);
    struct projection_bytes p = {.in_bytes = 12, .kv_in_bytes = 4, .out_bytes = 8};
    cr_assert_float_eq(footprint_kv_share(&own), footprint_kv_share(&l), 0);
    cr_assert_float_eq(footprint_layer_weights_bytes(&p, &own),
                       footprint_layer_weights_bytes(&p, &l), 0);
    cr_assert_eq(mapping_parse(&map, "tp:tpa=8,tpf=8", &m, &err), 0);
    cr_assert_eq(layout_parse(&l, "tp", &m, 8, &err), 0);
    own = mapping_layout(&map, &m);
    cr_assert_float_eq(footprint_kv_share(&own), footprint_kv_share(&l), 0);
    cr_assert_float_eq(footprint_layer_weights_bytes(&p, &own),
                       footprint_layer_weights_bytes(&p, &l), 0);
}
