/* SPDX-License-Identifier: Apache-2.0
 *
 * replay/values: exact BF16 rounding, and a hash whose values look independent and uniform.
 */
#include <math.h>

#include <criterion/criterion.h>

#include "replay/values.h"

enum { SAMPLES = 100000, ARGUMENTS = 5 };

/* One argument at i (0: seed, 1-4: a-d), the others fixed. */
static double along(int argument, int64_t i)
{
    int64_t at[ARGUMENTS] = {7, 3, 41, 2, 100};
    at[argument] = i;
    return value_at((uint64_t)at[0], VALUE_WEIGHT, at[1], at[2], at[3], at[4]);
}

Test(values, bf16_rounds_to_nearest_even)
{
    static const struct {
        double from, to;
    } table[] = {
        {0, 0},
        {1, 1},
        {-0.5, -0.5},
        {1 + 0x1p-7, 1 + 0x1p-7},
        {1 + 0x1p-8, 1},                    /* tie, down to even */
        {1 + 3 * 0x1p-8, 1 + 0x1p-6},       /* tie, up to even */
        {1 + 0x1p-8 + 0x1p-30, 1 + 0x1p-7}, /* rounding to float first would make it a tie */
        {1 + 0x1p-8 - 0x1p-50, 1},          /* just below the tie */
        {1 - 0x1p-9, 1},                    /* tie, carry into the exponent */
        {0.1, 0.10009765625},               /* 0x3dcd */
        {-0.1, -0.10009765625},             /* the sign changes nothing */
        {0.3333333333333333, 0.333984375},  /* 0x3eab */
        {0x1.01p-60, 0x1p-60},              /* tie far down */
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        cr_assert_eq(value_bf16(table[i].from), table[i].to, "%a", table[i].from);
}

Test(values, known_values_stay)
{
    cr_assert_eq(value_at(0, VALUE_HIDDEN, 0, 0, 0, 0), -0x1.d4p-5);
    cr_assert_eq(value_at(1, VALUE_WEIGHT, 3, 4, 5, 6), -0x1.dp-1);
    cr_assert_eq(value_at(7, VALUE_HISTORY, ((int64_t)1 << 40) + 1, 131072, 60, 575), -0x1.d6p-1);
    cr_assert_eq(value_at(UINT64_MAX, VALUE_HIDDEN, -1, 0, 0, 9), -0x1.6cp-4);
}

Test(values, are_bf16_in_range_and_never_zero)
{
    for (int64_t i = 0; i < SAMPLES; i++) {
        double x = along(4, i);
        cr_assert(fabs(x) <= 1 && x != 0 && x == value_bf16(x));
    }
}

/* Deviations of 1e5 uniform samples: mean 0.0018, variance 0.0009; five of them allowed. */
Test(values, mean_is_zero_and_variance_a_third)
{
    for (int argument = 0; argument < ARGUMENTS; argument++) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < SAMPLES; i++) {
            double x = along(argument, i);
            sum += x;
            squares += x * x;
        }
        cr_assert_lt(fabs(sum / SAMPLES), 0.009, "argument %d", argument);
        cr_assert_lt(fabs(squares / SAMPLES - 1.0 / 3), 0.005, "argument %d", argument);
    }
}

/* Two independent values agree once in 768: a binade [2^-k-1, 2^-k) holds 256 numbers of both
 * signs with a chance of 2^-(9+k) each, and 256 * 4^-(9+k) over all k sums to 1/768. */
Test(values, neighbours_are_independent)
{
    for (int argument = 0; argument < ARGUMENTS; argument++) {
        int equal = 0;
        double products = 0;
        for (int64_t i = 0; i < SAMPLES; i++) {
            double x = along(argument, i), next = along(argument, i + 1);
            equal += x == next;
            products += x * next;
        }
        cr_assert(equal > 73 && equal < 187, "argument %d: %d equal", argument, equal);
        cr_assert_lt(fabs(products / SAMPLES), 0.0055, "argument %d", argument);
    }
}

Test(values, the_order_of_arguments_matters)
{
    int equal = 0;
    for (int64_t i = 1; i <= SAMPLES; i++)
        equal += value_at(7, VALUE_HISTORY, i, i + 1, 0, 0) ==
                 value_at(7, VALUE_HISTORY, i + 1, i, 0, 0);
    cr_assert(equal > 73 && equal < 187, "%d equal", equal);
}

Test(values, tags_are_different_worlds)
{
    int equal = 0;
    for (int64_t i = 0; i < SAMPLES; i++)
        equal += value_at(7, VALUE_HIDDEN, 1, i, 0, 0) == value_at(7, VALUE_HISTORY, 1, i, 0, 0);
    cr_assert(equal > 73 && equal < 187, "%d equal", equal);
}

Test(values, high_bits_count)
{
    for (int argument = 0; argument < ARGUMENTS; argument++) {
        int equal = 0;
        for (int64_t i = 0; i < SAMPLES; i++)
            equal += along(argument, i) == along(argument, i + ((int64_t)1 << 32));
        cr_assert(equal > 73 && equal < 187, "argument %d: %d equal", argument, equal);
    }
}
