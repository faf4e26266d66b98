/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of sim/layout/layout: what each name means, lists with variants, refusals and their words.
 */
#include "sim/layout/layout.h"

#include <string.h>

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

/* The few fields that layouts depend on. */
static const struct model mla = {
    .name = "mla", .heads = 64, .kv_heads = 1, .attention = ATTN_MLA, .layers = 78};
static const struct model gqa = {
    .name = "gqa", .heads = 128, .kv_heads = 8, .attention = ATTN_GQA, .layers = 126};
static const struct model odd = {.name = "odd", .heads = 24, .kv_heads = 8, .attention = ATTN_GQA};

static struct layout parsed(const char *text, const struct model *m, int ranks)
{
    struct err err = ERR_NONE;
    struct layout l;
    cr_assert_eq(layout_parse(&l, text, m, ranks, &err), 0, "%s", err.text);
    return l;
}

static const struct {
    const char *text, *name;
    const struct model *m;
    int ranks;
    int in, kv_in, out;   /* projections */
    int head, pos, layer; /* KV */
    int attn_head, attn_pos;
    bool owned, rows_owned;
    double cache;
} meaning[] = {
    {"tp", "tp", &mla, 8, 8, 8, 8, 1, 1, 1, 8, 1, false, false, 0},
    {"cp", "cp", &mla, 8, 1, 1, 1, 1, 8, 1, 1, 8, false, false, 0},
    {"cp:storage=position", "cp", &mla, 8, 1, 1, 1, 1, 8, 1, 1, 8, false, false, 0},
    {"cp:storage=layer", "cp:storage=layer", &mla, 8, 1, 1, 1, 1, 1, 8, 1, 8, false, false, 0},
    {"dp", "dp", &mla, 8, 1, 1, 1, 1, 1, 1, 1, 1, true, true, 0},
    {"dop", "dop", &mla, 8, 8, 8, 8, 1, 1, 1, 1, 1, true, false, 0},
    {"dop:cache=0", "dop", &mla, 8, 8, 8, 8, 1, 1, 1, 1, 1, true, false, 0},
    {"dop:rows=owned,cache=0.250", "dop:cache=0.25,rows=owned", &mla, 8, 8, 8, 8, 1, 1, 1, 1, 1,
     true, true, 0.25},
    {"helix:kvp=8,tpa=1", "helix:kvp=8,tpa=1", &mla, 8, 1, 1, 8, 1, 8, 1, 1, 8, false, false, 0},
    {"helix:tpa=2,kvp=4", "helix:kvp=4,tpa=2", &gqa, 8, 2, 2, 8, 2, 4, 1, 2, 4, false, false, 0},
    {"tp", "tp", &gqa, 4, 4, 4, 4, 4, 1, 1, 4, 1, false, false, 0},
    {"tp", "tp", &gqa, 16, 16, 8, 16, 8, 1, 1, 16, 1, false, false, 0}, /* T > K */
    {"dop", "dop", &gqa, 16, 16, 8, 16, 1, 1, 1, 1, 1, true, false, 0},
    {"tp", "tp", &mla, 1, 1, 1, 1, 1, 1, 1, 1, 1, false, false, 0},
};

ParameterizedTestParameters(layout, name_means_two_choices)
{
    static size_t at[sizeof meaning / sizeof *meaning];
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        at[i] = i;
    return cr_make_param_array(size_t, at, sizeof at / sizeof *at);
}

ParameterizedTest(size_t *i, layout, name_means_two_choices)
{
    struct layout l = parsed(meaning[*i].text, meaning[*i].m, meaning[*i].ranks);
    cr_expect_str_eq(l.name, meaning[*i].name);
    cr_expect_eq(l.ranks, meaning[*i].ranks);
    cr_expect_eq(l.in_shards, meaning[*i].in);
    cr_expect_eq(l.kv_in_shards, meaning[*i].kv_in);
    cr_expect_eq(l.out_shards, meaning[*i].out);
    cr_expect_eq(l.kv_head_shards, meaning[*i].head);
    cr_expect_eq(l.kv_pos_shards, meaning[*i].pos);
    cr_expect_eq(l.kv_layer_shards, meaning[*i].layer);
    cr_expect_eq(l.attn_head_shards, meaning[*i].attn_head);
    cr_expect_eq(l.attn_pos_shards, meaning[*i].attn_pos);
    cr_expect_eq(l.kv_owned, meaning[*i].owned);
    cr_expect_eq(l.rows_owned, meaning[*i].rows_owned);
    cr_expect_eq(l.full_weights_frac, meaning[*i].cache);
}

static const struct {
    const char *text;
    const struct model *m;
    int ranks;
    const char *says;
} refused[] = {
    {"dpo", &mla, 8, "unknown layout \"dpo\" (did you mean \"d"},
    {"heilx:kvp=8,tpa=1", &mla, 8, "unknown layout \"heilx\" (did you mean \"helix\"?)"},
    {"", &mla, 8, "unknown layout \"\"; there are tp, cp"},
    {"TP", &mla, 8, "unknown layout \"TP\""},
    {"dop:cache=1.01", &mla, 8, "cache"},
    {"dop:cache=-0.1", &mla, 8, "cache"},
    {"dop:cahce=0.5", &mla, 8, "cache"}, /* suggested */
    {"dop:rows=owner", &mla, 8, "rows"},
    {"tp:cache=0.5", &mla, 8, "layout tp: unknown key \"cache\""},
    {"cp:storage", &mla, 8, "expected key=value"},
    {"helix", &mla, 8, "give both, as in helix:kvp=8,tpa=1"},
    {"helix:kvp=8", &mla, 8, "give both"},
    {"helix:kvp=4,tpa=4", &gqa, 8, "kvp * tpa is 16, but there are 8 ranks"},
    {"helix:kvp=4,tpa=2", &mla, 8, "tpa may not exceed the 1 KV head of mla"},
    {"helix:kvp=1,tpa=16", &gqa, 16, "tpa may not exceed the 8 KV heads of gqa"},
    {"helix:kvp=0,tpa=8", &gqa, 8, "kvp"},
    {"helix:kvp=8,tpa=1,hopb=0", &mla, 8, "layout helix: hopb: must be in [1, 8], got \"0\""},
    {"helix:kvp=8,tpa=1,hopb=9", &mla, 8, "layout helix: hopb: must be in [1, 8], got \"9\""},
    {"helix:kvp=1,tpa=8,hopb=2", &gqa, 8, "partial results, and kvp=1 has none"},
    {"helix:hopb=2", &mla, 8, "give both"},
    {"cp:hopb=2", &mla, 8, "layout cp: unknown key \"hopb\""},
    {"tp", &mla, 72, "the 64 heads of mla cannot be split 72 ways"},
    {"helix:kvp=72,tpa=1", &mla, 72, "cannot be split 72 ways"},
    {"tp", &odd, 12, "8 KV heads of odd can be neither split nor shared evenly by 12 ranks"},
    {"dop", &odd, 12, "can be neither split nor shared evenly"},
    {"dp", &mla, 0, "a group has 1 to 128 ranks, not 0"},
    {"dp", &mla, 129, "a group has 1 to 128 ranks, not 129"},
};

ParameterizedTestParameters(layout, refusal_says_why)
{
    static size_t at[sizeof refused / sizeof *refused];
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        at[i] = i;
    return cr_make_param_array(size_t, at, sizeof at / sizeof *at);
}

ParameterizedTest(size_t *i, layout, refusal_says_why)
{
    struct err err = ERR_NONE;
    struct layout l = {.ranks = 4711};
    cr_expect_eq(layout_parse(&l, refused[*i].text, refused[*i].m, refused[*i].ranks, &err), -1);
    cr_expect_not_null(strstr(err.text, refused[*i].says), "%s: \"%s\"", refused[*i].text,
                       err.text);
    cr_expect_eq(l.ranks, 4711);
}

/* Who holds what does not depend on it: tests/test_manifest.c. */
Test(layout, hopb_is_left_out_of_the_name_where_it_cuts_nothing)
{
    struct layout four = parsed("helix:hopb=4,kvp=4,tpa=2", &gqa, 8);
    cr_expect_str_eq(four.name, "helix:kvp=4,tpa=2,hopb=4");
    cr_expect_eq(four.sub_batches, 4);
    cr_expect_eq(parsed("helix:kvp=8,tpa=1,hopb=8", &mla, 8).sub_batches, 8);
    struct layout one = parsed("helix:kvp=4,tpa=2,hopb=1", &gqa, 8);
    cr_expect_str_eq(one.name, "helix:kvp=4,tpa=2");
    cr_expect_eq(one.sub_batches, 1);
    cr_expect_eq(parsed("helix:kvp=1,tpa=8,hopb=1", &gqa, 8).sub_batches, 1);
    cr_expect_eq(parsed("cp", &mla, 8).sub_batches, 1);
    cr_expect_eq(parsed("dop:rows=owned", &mla, 8).sub_batches, 1);
}

Test(layout, layouts_without_head_shards_fit_any_rank_count)
{
    cr_expect_eq(parsed("cp", &mla, 72).kv_pos_shards, 72);
    cr_expect(parsed("dp", &odd, 12).kv_owned);
    cr_expect_eq(parsed("cp", &mla, RANKS_MAX).ranks, RANKS_MAX);
}

Test(layout, list_keeps_commas_of_variants)
{
    struct err err = ERR_NONE;
    struct layout l[LAYOUT_MAX];
    int n = layout_parse_list(l,
                              "tp,helix:kvp=4,tpa=2,dop:cache=0.5,rows=owned,dop,cp,"
                              "helix:kvp=4,tpa=2,hopb=4,helix:kvp=4,tpa=2,hopb=2",
                              &gqa, 8, &err);
    cr_assert_eq(n, 7, "%s", err.text);
    cr_expect_str_eq(l[0].name, "tp");
    cr_expect_str_eq(l[1].name, "helix:kvp=4,tpa=2");
    cr_expect_str_eq(l[2].name, "dop:cache=0.5,rows=owned");
    cr_expect_str_eq(l[3].name, "dop");
    cr_expect_str_eq(l[4].name, "cp");
    cr_expect_str_eq(l[5].name, "helix:kvp=4,tpa=2,hopb=4");
    cr_expect_str_eq(l[6].name, "helix:kvp=4,tpa=2,hopb=2");
}

static const char *const bad_lists[][2] = {
    {"tp,cp,tp", "layout \"tp\" is named twice"},
    {"dop,dop:cache=0", "layout \"dop:cache=0\" is named twice"},
    {"helix:kvp=8,tpa=1,helix:kvp=8,tpa=1,hopb=1", "hopb=1\" is named twice"},
    {"tp,,cp", "unknown layout \"\""},
    {"tp,", "unknown layout \"\""},
    {"tp,hleix:kvp=8,tpa=1", "unknown layout \"hleix\" (did you mean \"helix\"?)"},
    {"tp,cache=0.5", "unknown layout \"tp,cache=0.5\""},
    {"cp,dop:cache=.01,dop:cache=.02,dop:cache=.03,dop:cache=.04,dop:cache=.05,dop:cache=.06,"
     "dop:cache=.07,dop:cache=.08,dop:cache=.09,dop:cache=.10,dop:cache=.11,dop:cache=.12,"
     "dop:cache=.13,dop:cache=.14,dop:cache=.15,dp",
     "more than 16 layouts"},
};

ParameterizedTestParameters(layout, list_refuses)
{
    static size_t at[sizeof bad_lists / sizeof *bad_lists];
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        at[i] = i;
    return cr_make_param_array(size_t, at, sizeof at / sizeof *at);
}

ParameterizedTest(size_t *i, layout, list_refuses)
{
    struct err err = ERR_NONE;
    struct layout l[LAYOUT_MAX] = {{.ranks = 4711}};
    cr_expect_eq(layout_parse_list(l, bad_lists[*i][0], &mla, 8, &err), -1);
    cr_expect_not_null(strstr(err.text, bad_lists[*i][1]), "%s", err.text);
    cr_expect_eq(l[0].ranks, 4711);
}

Test(layout, sixteen_layouts_fit)
{
    struct err err = ERR_NONE;
    struct layout l[LAYOUT_MAX];
    cr_expect_eq(layout_parse_list(l,
                                   "tp,cp,dp,dop,cp:storage=layer,dop:cache=.1,dop:cache=.2,"
                                   "dop:cache=.3,dop:cache=.4,dop:cache=.5,dop:cache=.6,"
                                   "dop:cache=.7,dop:cache=.8,dop:cache=.9,dop:cache=1,"
                                   "helix:kvp=8,tpa=1",
                                   &mla, 8, &err),
                 LAYOUT_MAX, "%s", err.text);
}

Test(layout, linear_layers_of_an_owner_keep_whole_projections)
{
    struct layout dop = parsed("dop:cache=0.5", &mla, 8), tp = parsed("tp", &mla, 8);
    struct layout of_dop = layout_of_linear(&dop), of_tp = layout_of_linear(&tp);
    cr_expect_eq(of_dop.in_shards, 1);
    cr_expect_eq(of_dop.out_shards, 1);
    cr_expect_eq(of_dop.full_weights_frac, 0);
    cr_expect_eq(of_tp.in_shards, 8);
}
