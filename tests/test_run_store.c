/* SPDX-License-Identifier: Apache-2.0
 *
 * The store of runs: what goes in comes out, once, and nothing else is taken for one.
 */
#include <criterion/criterion.h>
#include <sqlite3.h>
#include <string.h>

#include "tests/run_stores.h"

Test(run_store, gives_back_what_was_added)
{
    struct err err = ERR_NONE;
    struct metrics m;
    struct run_store *s = fresh(path_a);
    add(s, "k", "p", 3, 0.1);
    cr_expect_eq(run_store_find(s, "other", &m, &err), 0);
    cr_assert_eq(run_store_find(s, "k", &m, &err), 1);
    cr_expect_eq(m.value[metric_find("e2e_s_mean")], 0.1); /* the same bits */
    cr_expect_eq(m.value[metric_find("requests")], 12345678901.0);
    drop(s, path_a);
}

static int note(void *text, const struct run_row *row, struct err *err)
{
    (void)err;
    strcat(text, row->key);
    strcat(text, strcmp(row->trace, "it's \"here\"") == 0 && row->wall_ns == 1000 ? "+" : "-");
    return 0;
}

Test(run_store, a_key_is_there_once_and_rows_come_in_order)
{
    struct err err = ERR_NONE;
    struct metrics m;
    char text[64] = "";
    struct run_store *s = fresh(path_a);
    add(s, "b", "p", 0, 1);
    add(s, "c", "p", 0, 1);
    add(s, "a", "p", 0, 1);
    add(s, "b", "p", 0, 2); /* the first stays */
    cr_assert_eq(run_store_each(s, note, text, &err), 0);
    cr_expect_str_eq(text, "a+b+c+");
    run_store_find(s, "b", &m, &err);
    cr_expect_eq(m.value[metric_find("e2e_s_mean")], 1);
    drop(s, path_a);
}

Test(run_store, a_second_one_sees_what_the_first_wrote)
{
    struct err err = ERR_NONE;
    struct metrics m;
    struct run_store *s = fresh(path_a), *other = run_store_open(path_a, &err);
    cr_assert_not_null(other, "%s", err.text);
    add(s, "k", "p", 0, 1);
    cr_expect_eq(run_store_find(other, "k", &m, &err), 1);
    add(other, "l", "p", 0, 1);
    cr_expect_eq(run_store_find(s, "l", &m, &err), 1);
    run_store_close(other);
    drop(s, path_a);
}

static void execute(const char *path, const char *sql)
{
    sqlite3 *db;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

Test(run_store, other_databases_are_refused)
{
    struct err err = ERR_NONE, later = ERR_NONE;
    close(mkstemp(path_a));
    execute(path_a, "CREATE TABLE run(x)");
    cr_expect_null(run_store_open(path_a, &err));
    cr_expect(strstr(err.text, ": is a database, but not one of wavetank's") != NULL);
    unlink(path_a);
    run_store_close(fresh(path_b));
    execute(path_b, "PRAGMA user_version=2");
    cr_expect_null(run_store_open_to_read(path_b, &later));
    cr_expect(strstr(later.text, ": has format 2, this program knows 1") != NULL);
    unlink(path_b);
}
