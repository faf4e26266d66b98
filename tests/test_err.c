/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of sim/base/err: the first error wins, places, exit codes and suggestions.
 */
#include "sim/base/err.h"

#include <string.h>

#include <criterion/criterion.h>
#include <criterion/redirect.h>

Test(err, first_error_wins)
{
    struct err err = ERR_NONE;
    cr_assert_eq(err_set(&err, "cause %d", 1), -1);
    cr_assert_eq(err_run(&err, "consequence"), -1);
    cr_assert_str_eq(err.text, "cause 1");
    cr_assert_eq(err.kind, ERR_INPUT);
}

Test(err, place_is_file_and_line)
{
    struct err with = ERR_NONE, without = ERR_NONE;
    err_at(&with, "hw/x.json", 12, "bad %s", "key");
    err_at(&without, "hw/x.json", 0, "empty");
    cr_assert_str_eq(with.text, "hw/x.json:12: bad key");
    cr_assert_str_eq(without.text, "hw/x.json: empty");
}

Test(err, long_text_is_cut_and_terminated)
{
    struct err err = ERR_NONE;
    char word[2000];
    memset(word, 'a', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    err_at(&err, word, 1, "%s", word);
    cr_assert_lt(strlen(err.text), sizeof err.text);
    cr_assert_gt(strlen(err.text), 500);
}

Test(err, report_prints_and_gives_the_exit_code, .init = cr_redirect_stderr)
{
    struct err input = ERR_NONE, run = ERR_NONE;
    err_set(&input, "no such option");
    err_run(&run, "disk full");
    cr_assert_eq(err_report(&input, "wavetank"), 2);
    cr_assert_eq(err_report(&run, "wavetank"), 1);
    fflush(stderr);
    cr_assert_stderr_eq_str("wavetank: no such option\nwavetank: disk full\n");
}

Test(err, nearest_suggests_only_what_is_near)
{
    static const char *const name[] = {"rate", "seed", "hbm_gb_per_s"};
    cr_assert_str_eq(err_nearest("raet", name, 3), "rate");
    cr_assert_str_eq(err_nearest("hbm_gbs", name, 3), "hbm_gb_per_s");
    cr_assert_null(err_nearest("timeline", name, 3));
    cr_assert_null(err_nearest("rate", name, 0));
}
