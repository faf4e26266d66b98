/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include <criterion/criterion.h>

#include "traces/names.h"

Test(names, number_in_order_of_appearance)
{
    struct names s = {0};
    cr_expect_eq(names_find(&s, "a"), -1);
    cr_expect_eq(names_number(&s, "b"), 0);
    cr_expect_eq(names_number(&s, ""), 1);
    cr_expect_eq(names_number(&s, "b"), 0);
    cr_expect_eq(names_find(&s, "a"), -1);
    cr_expect_str_eq(s.name[1], "");
    names_release(&s);
}

Test(names, many_keep_their_numbers)
{
    struct names s = {0};
    char name[16];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 5000; i++) {
            snprintf(name, sizeof name, "%x", i * 7919);
            cr_assert_eq(names_number(&s, name), i);
        }
    cr_expect_eq(s.n, 5000);
    names_release(&s);
}
