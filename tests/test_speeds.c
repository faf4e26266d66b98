/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading tables of measured speeds.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "sim/study/speeds.h"

#define N(array) (sizeof(array) / sizeof *(array))
#define HEAD     "layout,input_len,batch,output_len,throughput_tok_s,step_ms\n"

/* Loads `text` as a table of tiny-mla on h200x8. Release what it gives. */
static int load(struct speeds *s, const char *text, const char *decode_layout, struct err *err)
{
    static struct model model;
    static struct cluster cluster;
    static char path[32];
    snprintf(path, sizeof path, "/tmp/test_speeds_XXXXXX");
    FILE *f = fdopen(mkstemp(path), "w");
    *err = ERR_NONE;
    fputs(text, f);
    fclose(f);
    cr_assert_eq(model_load(&model, "tiny-mla", err), 0, "%s", err->text);
    cr_assert_eq(cluster_load(&cluster, "h200x8", err), 0, "%s", err->text);
    int rc = speeds_load(s, path, &model, &cluster, decode_layout, err);
    unlink(path);
    return rc;
}

static void load_good(struct speeds *s, const char *text, const char *decode_layout)
{
    struct err err;
    cr_assert_eq(load(s, text, decode_layout, &err), 0, "%s", err.text);
}

/* 2 x (90 + 10) tokens at 1000 a second are 0.2 s. */
Test(speeds, a_throughput_counts_all_tokens_of_the_burst)
{
    struct speeds s;
    load_good(&s, HEAD "tp,90,2,10,1000,\n", NULL);
    cr_expect_eq(s.n, 1);
    cr_expect_not(s.row[0].is_step);
    cr_expect_float_eq(s.row[0].s, 0.2, 1e-12);
    cr_expect_eq(s.decode_layout, -1);
    speeds_release(&s);
}

Test(speeds, a_step_time_is_one_step_in_milliseconds)
{
    struct speeds s;
    load_good(&s, HEAD "dp,90,2,0,,12.5\n", NULL);
    cr_expect(s.row[0].is_step);
    cr_expect_float_eq(s.row[0].s, 0.0125, 1e-12);
    cr_expect_eq(s.row[0].input_tokens, 90);
    cr_expect_eq(s.row[0].batch, 2);
    cr_expect_eq(s.row[0].output_tokens, 0);
    speeds_release(&s);
}

Test(speeds, columns_come_in_any_order_with_bom_crlf_blank_lines_and_quotes)
{
    struct speeds s;
    load_good(&s,
              "\xef\xbb\xbfstep_ms,Batch,note,output_len,input_len,layout\r\n\r\n"
              "3,4,x,7,100,\"helix:kvp=8,tpa=1\"\r\n\r\n2,4,,7,100,tp\r\n",
              NULL);
    cr_expect_eq(s.n, 2);
    cr_expect_str_eq(s.layout[0].name, "helix:kvp=8,tpa=1");
    cr_expect_str_eq(s.layout[1].name, "tp");
    cr_expect_eq(s.row[0].batch, 4);
    cr_expect_eq(s.row[0].output_tokens, 7);
    cr_expect_eq(s.row[0].input_tokens, 100);
    cr_expect_float_eq(s.row[1].s, 0.002, 1e-12);
    cr_expect_eq(s.row[1].line, 5);
    speeds_release(&s);
}

Test(speeds, layouts_and_repeats_share_a_shape_and_kinds_do_not)
{
    static const int shapes[] = {0, 0, 0, 1, 2};
    struct speeds s;
    load_good(&s,
              HEAD "tp,100,4,8,900,\ncp,100,4,8,950,\ntp,100,4,8,901,\ntp,100,4,8,,2\n"
                   "tp,100,5,8,900,\n",
              NULL);
    cr_assert_eq(s.n, (int)N(shapes));
    for (size_t i = 0; i < N(shapes); i++)
        cr_expect_eq(s.row[i].shape, shapes[i], "row %zu", i);
    cr_expect_eq(s.n_shapes, 3);
    cr_expect_eq(s.n_layouts, 2);
    speeds_release(&s);
}

Test(speeds, the_decode_pool_may_have_a_layout_that_no_row_has)
{
    struct speeds s;
    load_good(&s, HEAD "tp,90,2,10,1000,\n", "dp");
    cr_expect_eq(s.decode_layout, 1);
    cr_expect_str_eq(s.layout[1].name, "dp");
    speeds_release(&s);
}

static const struct {
    const char *rows, *says;
} refused[] = {
    {"", ": has no rows: nothing is measured"},
    {"tp,90,2,10,,\n", ":2: nothing is measured here"},
    {"tp,90,2,10,5,5\n", ":2: more than one thing is measured here"},
    {"tp,90,2,10,0,\n", ":2: column \"throughput_tok_s\": must be above 0"},
    {"tp,90,2,10,nan,\n", ":2: column \"throughput_tok_s\": \"nan\""},
    {"tp,90,2,10,,-3\n", ":2: column \"step_ms\": \"-3\""},
    {"tp,0,2,10,5,\n", ":2: column \"input_len\": must be in [1, 16777216]"},
    {"tp,90,0,10,5,\n", ":2: column \"batch\": must be in [1, 1048576]"},
    {"tp,90,2,16777217,5,\n", ":2: column \"output_len\": must be in [0, 16777216]"},
    {"tp,90,1.5,10,5,\n", ":2: column \"batch\": \"1.5\""},
    {"tq,90,2,10,5,\n", ":2: "},
    {"tp,90,2,10,5,\n\ntp,90,2,10,5,\n", ":4: says what line 2 says; drop one"},
    {"tp,1048577,1,0,,5\n", ":2: 1048577 query rows are more than a step's 1048576"},
    {"tp,16777215,64,2,5,\n", ":2: 1073741888 tokens are more than a burst's 1073741824"},
    {"tp,90,2,10\n", ":2: has 4 fields where the header has 6"},
};

Test(speeds, refuses_with_file_and_line)
{
    for (size_t i = 0; i < N(refused); i++) {
        struct speeds s;
        struct err err;
        char text[256];
        snprintf(text, sizeof text, HEAD "%s", refused[i].rows);
        cr_expect_eq(load(&s, text, NULL, &err), -1, "%zu", i);
        cr_expect_not_null(strstr(err.text, refused[i].says), "%zu: %s", i, err.text);
        cr_expect_eq(strncmp(err.text, "/tmp/test_speeds_", 17), 0, "%zu: %s", i, err.text);
    }
}

Test(speeds, are_told_by_the_column_of_layouts)
{
    cr_expect(speeds_header("batch, Layout ,step_ms"));
    cr_expect_not(speeds_header("op,ranks,bytes,us"));
    cr_expect_not(speeds_header("{\"plan\":1,\"layout\":\"tp\"}"));
}
