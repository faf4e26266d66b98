/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables as text.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "sim/report/table.h"
#include "tests/report_sink.h"

Test(table, columns_are_as_wide_as_needed_and_lines_end_without_blanks)
{
    struct table t;
    struct sink s;
    table_init(&t, "lrl");
    table_add(&t, "name");
    table_add(&t, "n");
    table_skip(&t, 1);
    table_add(&t, "a");
    table_add(&t, "%d", 1000);
    table_add(&t, "x");
    table_skip(&t, 3);
    table_skip(&t, 1);
    table_add(&t, "7");
    table_add(&t, "yy");
    sink_open(&s);
    table_print(&t, s.f);
    cr_expect_str_eq(sink_text(&s), "name     n\n"
                                    "a     1000  x\n"
                                    "\n"
                                    "         7  yy\n");
    free(s.text);
    table_release(&t);
}

/* Words have 70 columns: one more than these seven tens would need another line. */
Test(table, words_are_broken_where_a_line_would_be_too_wide)
{
    static const char seven[] =
        "123456789 123456789 123456789 123456789 123456789 123456789 1234567890";
    struct table t;
    struct sink s;
    table_init(&t, "lw");
    table_add(&t, "12345678");
    table_add(&t, "%s", seven);
    table_add(&t, "a");
    table_add(&t, "%s! end", seven);
    sink_open(&s);
    table_print(&t, s.f);
    cr_expect_str_eq(sink_text(&s),
                     "12345678  123456789 123456789 123456789 123456789 123456789 123456789 "
                     "1234567890\n"
                     "a         123456789 123456789 123456789 123456789 123456789 123456789\n"
                     "          1234567890! end\n");
    free(s.text);
    table_release(&t);
}

/* 80 columns: 12 for names, so that one of 13 stands by itself; a heading widens nothing. */
Test(table, names_that_a_line_has_no_room_for_stand_on_their_own)
{
    static const char thirties[] = "123456789012345678901234567890123";
    struct table t;
    struct sink s;
    table_init(&t, "lrr");
    table_add(&t, "%s, which is as long as it likes to be, for it is a heading of those below",
              thirties);
    table_skip(&t, 2);
    for (int i = 0; i < 2; i++) {
        table_add(&t, "%s", i == 0 ? "  twelve" : "a name of 13.");
        table_add(&t, "%.31s", thirties);
        table_add(&t, "%s", thirties);
    }
    sink_open(&s);
    table_print(&t, s.f);
    cr_expect_str_eq(
        sink_text(&s),
        "123456789012345678901234567890123, which is as long as it likes to be, for it is a "
        "heading of those below\n"
        "  twelve      1234567890123456789012345678901  123456789012345678901234567890123\n"
        "a name of 13.\n"
        "              1234567890123456789012345678901  123456789012345678901234567890123\n");
    free(s.text);
    table_release(&t);
}

Test(table, numbers_have_three_digits_and_no_exponent)
{
    static const struct {
        double x;
        const char *text;
    } cases[] = {
        {0, "0"},          {0.5, "0.500"},   {0.0123456, "0.0123"}, {0.00000012, "0.000000"},
        {0.9994, "0.999"}, {0.9996, "1.00"}, {9.994, "9.99"},       {9.996, "10.0"},
        {99.94, "99.9"},   {99.96, "100"},   {1234567, "1234567"},
    };
    char buf[32];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_str_eq(table_number(cases[i].x, buf, sizeof buf), cases[i].text);
}
