/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/share.h"

#include <criterion/criterion.h>

static struct slice load_slice(const char *name)
{
    struct err err = ERR_NONE;
    struct slice s = {.layers = 4, .seed = 7};
    int rc = model_load(&s.model, name, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    return s;
}

static struct layout parse(const char *text, const struct slice *s, int ranks)
{
    struct err err = ERR_NONE;
    struct layout l;
    int rc = layout_parse(&l, text, &s->model, ranks, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    return l;
}

/* Of 8 ranks with 8 query and 2 KV heads. */
static const struct {
    const char *layout;
    enum share_stage stage;
    struct share want;
} cases[] = {
    {"tp", SHARE_PROJECT, {SHARE_ALL, 3, 8, 3, 4}},
    {"tp", SHARE_KV, {SHARE_ALL, 3, 8, 0, 1}},
    {"tp", SHARE_KV, {SHARE_ALL, 4, 8, 1, 2}},
    {"tp", SHARE_STORE, {SHARE_ALL, 4, 8, 1, 2}},
    {"cp", SHARE_ATTEND, {SHARE_ALL, 3, 8, 0, 8}},
    {"cp", SHARE_OUT, {SHARE_TURN, 3, 8, 0, 8}},
    {"cp:storage=layer", SHARE_ATTEND, {SHARE_TURN, 3, 8, 0, 8}},
    {"dp", SHARE_PROJECT, {SHARE_OWNED, 5, 8, 0, 8}},
    {"dp", SHARE_OUT, {SHARE_OWNED, 5, 8, 0, 8}},
    {"dop", SHARE_PROJECT, {SHARE_ALL, 5, 8, 5, 6}},
    {"dop", SHARE_KV, {SHARE_ALL, 5, 8, 1, 2}},
    {"dop", SHARE_STORE, {SHARE_OWNED, 5, 8, 0, 2}},
    {"dop", SHARE_ATTEND, {SHARE_OWNED, 5, 8, 0, 8}},
    {"dop", SHARE_OUT, {SHARE_ALL, 5, 8, 5, 6}},
    {"helix:kvp=4,tpa=2", SHARE_PROJECT, {SHARE_ALL, 5, 8, 4, 8}},
    {"helix:kvp=4,tpa=2", SHARE_ATTEND, {SHARE_ALL, 5, 8, 4, 8}},
    {"helix:kvp=4,tpa=2", SHARE_OUT, {SHARE_ALL, 5, 8, 5, 6}},
};

Test(share, follows_the_fields_of_the_layout)
{
    struct slice s = load_slice("tiny-gqa");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct share *want = &cases[i].want;
        struct layout l = parse(cases[i].layout, &s, 8);
        struct share got = share_of(&s, &l, cases[i].stage, want->rank);
        cr_assert(got.rule == want->rule && got.ranks == 8 && got.rank == want->rank &&
                      got.first_head == want->first_head && got.end_head == want->end_head,
                  "case %zu: rule %d, heads %d to %d", i, got.rule, got.first_head, got.end_head);
    }
}

Test(share, rows_are_by_owner_or_by_turn)
{
    struct share_row row[] = {{0, 1, 0}, {0, 1, 1}, {1, 0, 9}};
    struct share_rows rows = {row, 3};
    struct share all = {SHARE_ALL, 0, 2, 0, 0}, owned = {SHARE_OWNED, 0, 2, 0, 0},
                 turn = {SHARE_TURN, 0, 2, 0, 0};
    for (int i = 0; i < 3; i++) {
        cr_assert(share_has_row(&all, &rows, i));
        cr_assert_eq(share_has_row(&owned, &rows, i), i == 2);
        cr_assert_eq(share_has_row(&turn, &rows, i), i != 1);
    }
}

/* Only an owner that lacks projections needs rows of queries, or of keys and values. */
Test(share, queries_leave_a_rank_under_dop_alone)
{
    static const char *const names[] = {"tp", "cp", "dp", "helix:kvp=4,tpa=2", "dop"};
    struct slice gqa = load_slice("tiny-gqa"), mla = load_slice("tiny-mla");
    for (int i = 0; i < 5; i++) {
        struct layout l = parse(names[i], &gqa, 8);
        cr_assert_eq(share_stays(&gqa, &l, SHARE_PROJECT, SHARE_ATTEND), i < 4, "%s", names[i]);
        cr_assert_eq(share_stays(&gqa, &l, SHARE_KV, SHARE_STORE), i < 4, "%s", names[i]);
    }
    struct layout dop = parse("dop", &mla, 8);
    cr_assert_not(share_stays(&mla, &dop, SHARE_PROJECT, SHARE_ATTEND));
    cr_assert(share_stays(&mla, &dop, SHARE_KV, SHARE_STORE)); /* KV-A is everywhere */
}
