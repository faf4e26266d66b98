/* SPDX-License-Identifier: Apache-2.0
 *
 * What people read of a reproduction, from rows made up by hand.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/reproduction_charts.h"
#include "sim/report/reproduction_html.h"
#include "sim/report/reproduction_report.h"
#include "sim/reproduce/rows.h"

/* Text that a report writes; to be freed. */
struct sink {
    char *text;
    size_t size;
    FILE *f;
};

static void sink_open(struct sink *s)
{
    s->f = open_memstream(&s->text, &s->size);
}

static const char *sink_text(struct sink *s)
{
    fclose(s->f);
    return s->text;
}

static void expect_has(const char *text, const char *part)
{
    cr_expect(strstr(text, part) != NULL, "no \"%s\"", part);
}

Test(reproduction_report, goals_are_shares_of_errors_and_numbers_of_figures)
{
    struct reproduction r = {0};
    struct row_text text;
    rows_predicted(&r, "2.00", 2.1, 0.04, "missed");
    rows_figure(&r, 0.5, 0.75, false, "score");
    rows_exact(&r, "2.00", 2.004, "exact");
    rows_figure(&r, 3, NAN, true, "constant");
    row_text(&r.row[0], &text);
    cr_expect_str_eq(text.error, "+5.0%");
    cr_expect_str_eq(text.goal, "4.0%");
    cr_expect_str_eq(text.word, "missed");
    row_text(&r.row[1], &text);
    cr_expect_str_eq(text.error, "");
    cr_expect_str_eq(text.goal, "0.750");
    row_text(&r.row[2], &text);
    cr_expect_str_eq(text.word, "exact");
    cr_expect_str_eq(text.error, "");
    row_text(&r.row[3], &text);
    cr_expect_str_eq(text.goal, "");
    cr_expect_str_eq(text.word, "");
    reproduction_release(&r);
}

/* The first section has neither errors nor goals; its paragraphs fill lines of 80 columns. */
Test(reproduction_report, text_has_only_the_columns_that_its_rows_fill)
{
    static const char eighty[] = "1234567890 1234567890 1234567890 1234567890\n"
                                 "1234567890 1234567890 12345678901234 more\n\nNext.";
    struct reproduction r = {.n_sections = 2};
    struct sink s;
    rows_exact(&r, "2.00", 2.004, "a");
    rows_predicted(&r, "2.00", 2.1, NAN, "b");
    r.section[0] = (struct section){.title = "One", .about = eighty, .first = 0, .n = 1};
    r.section[1] = (struct section){.title = "Two", .about = "Errors.", .first = 1, .n = 1};
    sink_open(&s);
    reproduction_print(&r, s.f);
    cr_expect_str_eq(sink_text(&s),
                     "One\n"
                     "1234567890 1234567890 1234567890 1234567890 1234567890 1234567890 "
                     "12345678901234\nmore\n\nNext.\n\n"
                     "   paper  ours\n"
                     "a   2.00  2.00  exact\n\n"
                     "Two\nErrors.\n\n"
                     "   paper  ours  error\n"
                     "b   2.00  2.10  +5.0%\n\n"
                     "All 1 exact rows agree.\n");
    free(s.text);
    reproduction_release(&r);
}

/* The longest bar has 290 units: the paper's 2 ms; ours is half as long. Constants have none. */
Test(reproduction_charts, bars_stand_in_the_ratio_of_their_times)
{
    struct reproduction r = {0};
    struct sink s;
    rows_predicted(&r, "2.000", 1, 0.1, "figure5.cp-tp.kv_ms");
    rows_figure(&r, 900, NAN, true, "figure5.kv_all-gather.gb_per_s");
    sink_open(&s);
    primitives_charts(&r, s.f);
    sink_text(&s);
    expect_has(s.text, "y=\"2\" width=\"290.0\"");
    expect_has(s.text, "y=\"17\" width=\"145.0\"");
    expect_has(s.text, ">cp-tp</text>");
    expect_has(s.text, "<title>figure5.cp-tp.kv_ms: paper 2.000, ours 1.000, -50%</title>");
    cr_expect(strstr(s.text, "gb_per_s") == NULL);
    free(s.text);
    reproduction_release(&r);
}

/* On the DCU TP at 1k takes 0.40 + 0.25 + 0.15 - 0.0625 = 0.7375, DP at 14.1k 2.45 + 0.705 +
 * 16.92 / 22.1 = 3.9206, that is 5.316 of 30 on an axis of 272 that ends at 280; 14.1 of 415 are
 * 11.2 of 330 after 60. TP at 58.9k: 15.125 / 0.7375 = 20.508. */
Test(reproduction_charts, crossovers_and_limits_lie_on_the_curves)
{
    struct reproduction r = {0};
    struct sink s;
    rows_exact(&r, "14.1", 14.1, "figure6.dcu.tp-dp.k_tokens");
    rows_exact(&r, "58.9", 58.9, "figure6.dcu.tp.limit_k");
    sink_open(&s);
    regimes_charts(&r, s.f);
    sink_text(&s);
    expect_has(s.text,
               "<use href=\"#m2\" class=\"open s2\" x=\"71.2\" y=\"231.8\"><title>from tp to "
               "dp at 14.1k tokens; the paper has 14.1k");
    expect_has(s.text,
               "<use href=\"#m0\" class=\"mark c0\" x=\"106.8\" y=\"94.1\"><title>tp: KV fits "
               "up to 58.9k tokens</title>");
    free(s.text);
    reproduction_release(&r);
}

/* Both of one throughput, a tenth too high: 0.8 x 10 to 1.25 x 11 on 330 units after 60. */
Test(reproduction_charts, a_parity_chart_has_the_paper_to_the_right_and_ours_upwards)
{
    struct reproduction r = {0};
    struct sink s;
    char mark[64];
    rows_predicted(&r, "10.0", 11, NAN, "table5.batch.4x1024.cp.ktok_s");
    sink_open(&s);
    throughput_charts(&r, s.f);
    sink_text(&s);
    double ratio = log(1.25 * 11 / 8);
    snprintf(mark, sizeof mark, "class=\"mark c1\" x=\"%.1f\" y=\"%.1f\"",
             60 + 330 * log(1.25) / ratio, 344 - 336 * log(11.0 / 8) / ratio);
    expect_has(s.text, mark);
    free(s.text);
    reproduction_release(&r);
}

/* TP 1 and 8 on an axis from 1 / 1.1 to 8.8, 1.024 and 0.128 ms on one as long, both of a factor of
 * 9.68: 330 units after 60, 272 that end at 280. */
Test(reproduction_charts, a_helix_curve_has_its_abscissa_in_the_ids)
{
    struct reproduction r = {0};
    struct sink s;
    char mark[64];
    rows_exact(&r, "1.024", 1.024, "helix.figure1.kv_ms.tp.1");
    rows_exact(&r, "0.128", 0.128, "helix.figure1.kv_ms.tp.8");
    rows_exact(&r, "0.064", 0.064, "helix.figure1.kv_ms.kvp.2");
    sink_open(&s);
    roofline_charts(&r, s.f);
    sink_text(&s);
    snprintf(mark, sizeof mark, "class=\"mark c0\" x=\"%.1f\" y=\"%.1f\"",
             60 + 330 * log(8.8) / log(9.68), 280 - 272 * log(1.1) / log(9.68));
    expect_has(s.text, mark);
    expect_has(s.text, "<title>helix.figure1.kv_ms.tp.8: 0.128</title>");
    cr_expect(strstr(s.text, "Figure 1, middle") == NULL); /* without rows no figure */
    free(s.text);
    reproduction_release(&r);
}

Test(reproduction_report, a_scanned_row_has_its_range_and_a_note)
{
    struct reproduction r = {0};
    struct row_text text;
    rows_scanned(&r, "1.5", 1.121, 2.38, "near 4.9", "by.%s", "collective_us");
    row_text(&r.row[0], &text);
    cr_expect_str_eq(r.row[0].id, "by.collective_us");
    cr_expect_str_eq(r.row[0].ours, "1.12 to 2.38");
    cr_expect_str_eq(text.word, "near 4.9");
    cr_expect_str_eq(text.error, "");
    json_t *document = reproduction_json(&r);
    json_t *row = json_array_get(json_object_get(document, "rows"), 0);
    cr_expect_str_eq(json_string_value(json_object_get(row, "note")), "near 4.9");
    json_decref(document);
    reproduction_release(&r);
}

Test(reproduction_html, opens_with_the_verdict_and_has_every_row)
{
    static const char *const parts[] = {"<!DOCTYPE html>",
                                        "1 of 2 exact rows differ.",
                                        "<b>1 of 2</b><span>exact rows agree",
                                        "<b>0 of 1</b>",
                                        "href=\"#kv-bytes\"",
                                        "<h2 id=\"kv-bytes\">KV &amp; more",
                                        "<td>one",
                                        "<td>DIFFERS",
                                        "<td>missed",
                                        "</html>"};
    struct reproduction r = {0};
    struct sink s;
    rows_exact(&r, "1", 1, "one");
    rows_exact(&r, "2", 3, "two");
    rows_predicted(&r, "2", 3, 0.1, "three");
    r.section[r.n_sections++] = (struct section){SPLASH, "kv-bytes", "KV & more", "About.", 0, r.n};
    sink_open(&s);
    reproduction_html(&r, s.f);
    const char *at = sink_text(&s);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *found = strstr(at, parts[i]);
        cr_expect(found != NULL, "no \"%s\", or not in its place", parts[i]);
        at = found != NULL ? found : at;
    }
    cr_expect(strstr(s.text, "<script") == NULL);
    cr_expect(strstr(s.text, "http:") == NULL);
    cr_expect(strstr(s.text, "https:") == NULL);
    free(s.text);
    reproduction_release(&r);
}
