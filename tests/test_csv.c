/* SPDX-License-Identifier: Apache-2.0
 *
 * CSV by column names: what may be missing, text, and quoted fields over lines.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "traces/csv.h"
#include "traces/field.h"

enum { NUMBER, MAYBE, TEXT, MAYBE_TEXT, COLUMNS };

static const struct csv_column columns[COLUMNS] = {
    [NUMBER] = {"number|count", field_tokens, CSV_REQUIRED},
    [MAYBE] = {"maybe", field_tokens, CSV_OPTIONAL},
    [TEXT] = {"text", NULL, CSV_REQUIRED},
    [MAYBE_TEXT] = {"maybe text", NULL, CSV_OPTIONAL},
};

struct table {
    char path[32];
    struct lines lines;
    struct csv csv;
};

static void open_table(struct table *t, const char *text)
{
    struct err err = ERR_NONE;
    strcpy(t->path, "/tmp/test_csv_XXXXXX");
    int fd = mkstemp(t->path);
    cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    cr_assert_eq(lines_open(&t->lines, t->path, &err), 0, "%s", err.text);
    unlink(t->path);
    cr_assert_eq(csv_open(&t->csv, &t->lines, columns, COLUMNS, &err), 0, "%s", err.text);
}

static void close_table(struct table *t)
{
    csv_close(&t->csv);
    lines_close(&t->lines);
}

static void next(struct table *t, long line)
{
    struct err err = ERR_NONE;
    cr_assert_eq(csv_next(&t->csv, &err), 1, "%s", err.text);
    cr_expect_eq(t->csv.line, line, "%ld", t->csv.line);
}

static void expect_text(const struct table *t, int column, const char *text)
{
    struct err err = ERR_NONE;
    const char *found;
    cr_assert_geq(csv_get_text(&t->csv, column, &found, &err), 0, "%s", err.text);
    cr_expect_str_eq(found, text);
}

Test(csv, what_is_optional_may_lack_its_column_or_its_value)
{
    struct table t;
    struct err err = ERR_NONE;
    __int128 value = 77;
    open_table(&t, "text,Count,maybe\na,5,6\nb,7,\n,8,\n");
    next(&t, 2);
    cr_expect(csv_get(&t.csv, NUMBER, &value, &err) == 1 && value == 5);
    cr_expect(csv_get(&t.csv, MAYBE, &value, &err) == 1 && value == 6);
    expect_text(&t, TEXT, "a");
    expect_text(&t, MAYBE_TEXT, "");
    next(&t, 3);
    cr_expect(csv_get(&t.csv, MAYBE, &value, &err) == 0 && value == 6, "left alone");
    next(&t, 4);
    const char *text;
    cr_expect_eq(csv_get_text(&t.csv, TEXT, &text, &err), -1);
    cr_expect_not_null(strstr(err.text, ":4: column \"text\" is empty"), "%s", err.text);
    close_table(&t);
}

Test(csv, quoted_fields_go_over_lines)
{
    struct table t;
    struct err err = ERR_NONE;
    open_table(&t, "number,text,\"maybe\n text\"\n"
                   "1,\"a\n\n\"\"b\"\",\r\n c\",d\n"
                   "2,5\" disk,\"e\"\n"
                   "\n"
                   "3, \"f\ng\" ,h");
    next(&t, 3);
    expect_text(&t, TEXT, "a\n\n\"b\",\n c");
    next(&t, 7);
    expect_text(&t, TEXT, "5\" disk");
    next(&t, 9);
    expect_text(&t, TEXT, "f\ng");
    cr_expect_eq(csv_next(&t.csv, &err), 0);
    close_table(&t);
}

Test(csv, an_open_quote_is_told_where_its_row_begins)
{
    static const char *const texts[] = {
        "number,text\n1,\"a\nb\nc\n",
        "number,text\n1,\"a\n2,b\n3,\"c\"\n",
        "number,text\n1,\"a\nb\"c\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct table t;
        struct err err = ERR_NONE;
        open_table(&t, texts[i]);
        cr_expect_eq(csv_next(&t.csv, &err), -1, "%zu", i);
        cr_expect_not_null(strstr(err.text, ":2: a quoted field does not end"), "%s", err.text);
        close_table(&t);
    }
}

Test(csv, json_has_no_columns)
{
    cr_expect(csv_has_column("a, \"B c\" ,d", "x|b C"));
    cr_expect_not(csv_has_column("a,b", "c"));
    cr_expect_not(csv_has_column("{\"a\",b", "b"));
}
