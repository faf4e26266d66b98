/* SPDX-License-Identifier: Apache-2.0
 *
 * replay/slice: shapes of the tiny models, worked out by hand, and what a weight is.
 */
#include <math.h>

#include <criterion/criterion.h>

#include "replay/slice.h"
#include "replay/values.h"

struct expected {
    enum matrix m;
    int rows, columns;
};

static struct slice load(const char *name)
{
    struct err err = ERR_NONE;
    struct slice s = {.seed = 5};
    cr_assert_eq(model_load(&s.model, name, &err), 0, "%s", err.text);
    s.layers = s.model.layers;
    return s;
}

static void check(const struct slice *s, int layer, const struct expected *e, int n)
{
    for (int i = 0; i < n; i++) {
        cr_assert_eq(slice_rows(s, layer, e[i].m), e[i].rows, "matrix %d", e[i].m);
        cr_assert_eq(slice_columns(s, layer, e[i].m), e[i].columns, "matrix %d", e[i].m);
    }
}

Test(slice, mla_shapes)
{
    static const struct expected all[] = {
        {MAT_Q_A, 96, 256},      {MAT_Q_B, 8 * 48, 96},   {MAT_KV_A, 80, 256},
        {MAT_K_B, 8 * 32, 64},   {MAT_V_B, 8 * 32, 64},   {MAT_O, 256, 8 * 32},
        {MAT_GATE, 512, 256},    {MAT_UP, 512, 256},      {MAT_DOWN, 256, 512},
        {MAT_ROUTER, 0, 0},      {MAT_SHARED_GATE, 0, 0}, {MAT_SHARED_UP, 0, 0},
        {MAT_SHARED_DOWN, 0, 0},
    };
    struct slice s = load("tiny-mla");
    check(&s, 3, all, MAT_COUNT);
    cr_assert_eq(slice_kv_width(&s), 64 + 16);
    cr_assert(!slice_is_moe(&s, 3));
}

Test(slice, gqa_shapes)
{
    static const struct expected all[] = {
        {MAT_Q_A, 0, 0},      {MAT_Q_B, 256, 256}, {MAT_KV_A, 0, 0},     {MAT_K_B, 64, 256},
        {MAT_V_B, 64, 256},   {MAT_O, 256, 256},   {MAT_GATE, 512, 256}, {MAT_UP, 512, 256},
        {MAT_DOWN, 256, 512}, {MAT_ROUTER, 0, 0},
    };
    struct slice s = load("tiny-gqa");
    check(&s, 0, all, sizeof(all) / sizeof(all[0]));
    cr_assert_eq(slice_kv_width(&s), 2 * 2 * 32);
}

Test(slice, moe_layers_follow_the_dense_ones)
{
    static const struct expected dense[] = {
        {MAT_GATE, 512, 256}, {MAT_DOWN, 256, 512}, {MAT_ROUTER, 0, 0}, {MAT_SHARED_DOWN, 0, 0}};
    static const struct expected sparse[] = {
        {MAT_GATE, 128, 256},
        {MAT_UP, 128, 256},
        {MAT_DOWN, 256, 128},
        {MAT_ROUTER, 16, 256},
        {MAT_SHARED_GATE, 2 * 128, 256},
        {MAT_SHARED_UP, 256, 256},
        {MAT_SHARED_DOWN, 256, 2 * 128},
    };
    struct slice s = load("tiny-moe");
    s.model.moe.shared = 2;
    cr_assert(!slice_is_moe(&s, 0) && slice_is_moe(&s, 1));
    check(&s, 0, dense, sizeof(dense) / sizeof(dense[0]));
    check(&s, 1, sparse, sizeof(sparse) / sizeof(sparse[0]));
}

Test(slice, weight_is_its_value_over_the_root_of_columns)
{
    struct slice s = load("tiny-mla");
    double value = value_at(5, VALUE_WEIGHT, MAT_Q_A, 17, 2, 33);
    cr_assert_eq(slice_weight(&s, 2, MAT_Q_A, 17, 33), value / 16); /* 256 columns: exact */

    value = value_at(5, VALUE_WEIGHT, MAT_Q_B, 200, 1, 95);
    cr_assert_eq(slice_weight(&s, 1, MAT_Q_B, 200, 95), value_bf16(value / sqrt(96)));
}

/* A row of n weights with variance 1/(3n) keeps about a third of its input's mean square. */
Test(slice, rows_have_square_length_of_a_third)
{
    struct slice s = load("tiny-mla");
    double squares = 0;
    for (int row = 0; row < 512; row++)
        for (int i = 0; i < 256; i++)
            squares += pow(slice_weight(&s, 0, MAT_GATE, row, i), 2);
    cr_assert_lt(fabs(squares / 512 - 1.0 / 3), 0.005, "%g", squares / 512);
}

Test(slice, experts_layers_matrices_and_seeds_differ)
{
    struct slice s = load("tiny-moe"), other = s;
    other.seed++;
    int equal = 0;
    for (int i = 0; i < 256; i++) {
        double w = slice_weight(&s, 1, MAT_GATE, 5, i);
        equal += w == slice_weight(&s, 1, MAT_GATE, 128 + 5, i);
        equal += w == slice_weight(&s, 2, MAT_GATE, 5, i);
        equal += w == slice_weight(&s, 1, MAT_UP, 5, i);
        equal += w == slice_weight(&other, 1, MAT_GATE, 5, i);
    }
    cr_assert_lt(equal, 12, "%d", equal); /* 1024 / 768 = 1.3 expected */
}
