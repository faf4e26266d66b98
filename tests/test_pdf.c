/* SPDX-License-Identifier: Apache-2.0
 *
 * Lengths with probabilities: what is read of Python's text, what is refused, what is drawn.
 */
#include "traces/pdf.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static struct pdf parsed(const char *text)
{
    struct pdf p = {0};
    struct err err = ERR_NONE;
    cr_assert_eq(pdf_parse(&p, text, &err), 0, "%s: %s", text, err.text);
    return p;
}

Test(pdf, reads_numbers_as_python_writes_them)
{
    struct pdf p = parsed(" {4: 7.5e-05, 5:0.25,208 : 0.749925} ");
    cr_assert_eq(p.n, 3);
    cr_expect_eq(p.bin[0].tokens, 4);
    cr_expect_eq(p.bin[0].up_to, 75000000000000);
    cr_expect_eq(p.bin[1].up_to, 250075000000000000);
    cr_expect_eq(p.bin[2].tokens, 208);
    cr_expect_eq(p.bin[2].up_to, 1000000000000000000);
    pdf_release(&p);
    p = parsed("{}");
    cr_expect_eq(p.n, 0);
    pdf_release(&p);
    p = parsed("{7: 1}");
    pdf_release(&p);
    p = parsed("{7: 0.5, 8: 0.495}"); /* within a hundredth */
    pdf_release(&p);
}

static const struct {
    const char *text, *message;
} malformed[] = {
    {"", "after 0 characters: expected '{'"},
    {"[]", "after 0 characters: expected '{'"},
    {"{", "after 1 characters: expected a whole number of tokens"},
    {"{7", "after 2 characters: expected ':'"},
    {"{7: ", "after 4 characters: expected a probability from 0 to 1"},
    {"{7: 1", "after 5 characters: expected ',' or '}'"},
    {"{7: 1,}", "after 6 characters: expected a whole number of tokens"},
    {"{7: 1} x", "after 7 characters: expected nothing more"},
    {"{7: 1}{}", "after 6 characters: expected nothing more"},
    {"{'7': 1}", "after 1 characters: expected a whole number of tokens"},
    {"{-7: 1}", "after 3 characters: expected a whole number of tokens"},
    {"{7.5: 1}", "after 4 characters: expected a whole number of tokens"},
    {"{7: nan}", "after 4 characters: expected a probability from 0 to 1"},
    {"{7: 1.001}", "after 9 characters: expected a probability from 0 to 1"},
    {"{7: -0.5}", "after 8 characters: expected a probability from 0 to 1"},
    {"{7: 0.5, 7: 0.5}", "after 10 characters: expected more tokens than before: they ascend"},
    {"{8: 0.5, 7: 0.5}", "after 10 characters: expected more tokens than before: they ascend"},
    {"{7: 0.5, 8: 0.48}", "the probabilities are 0.98 together, expected 1"},
    {"{7: 0}", "the probabilities are 0 together, expected 1"},
    {"{7: 1, 8: 1, 9: 1}", "after 17 characters: the probabilities are more than 1 together"},
    {"{7: 0.5000000000000000000000000000000000000000000000, 8: 0.5}",
     "after 4 characters: expected a probability from 0 to 1"},
};

Test(pdf, refuses_malformed_text_with_the_place)
{
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        struct pdf p = {.n = 77};
        struct err err = ERR_NONE;
        cr_expect_eq(pdf_parse(&p, malformed[i].text, &err), -1, "%s", malformed[i].text);
        cr_expect_str_eq(err.text, malformed[i].message, "%s: %s", malformed[i].text, err.text);
        cr_expect_eq(p.n, 77);
    }
}

/* A share drawn 100,000 times is within 5 standard errors: 5 sqrt(0.25 / 1e5) = 0.0079. */
Test(pdf, draws_each_length_as_often_as_it_says)
{
    enum { DRAWS = 100000 };
    struct pdf p = parsed("{10: 0.125, 20: 0, 30: 0.5, 40: 0.365}"); /* 0.99 together */
    int drawn[5] = {0};
    struct rng r;
    rng_init(&r, 3);
    for (int i = 0; i < DRAWS; i++)
        drawn[pdf_draw(&p, &r) / 10]++;
    cr_expect_eq(drawn[0] + drawn[2], 0);
    cr_expect_float_eq(drawn[1] / (double)DRAWS, 0.125 / 0.99, 0.008);
    cr_expect_float_eq(drawn[3] / (double)DRAWS, 0.5 / 0.99, 0.008);
    cr_expect_float_eq(drawn[4] / (double)DRAWS, 0.365 / 0.99, 0.008);
    pdf_release(&p);
}
