/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/pdf.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "traces/field.h"

#define ONE 1000000000000000000LL /* probability 1 */

enum { DIGITS = 18, NUMBER_BYTES = 48 };

struct cursor {
    const char *text, *at;
};

static int fail(const struct cursor *c, struct err *err, const char *fault)
{
    return err_set(err, "after %td characters: %s", c->at - c->text, fault);
}

static void skip_blanks(struct cursor *c)
{
    c->at += strspn(c->at, " \t");
}

static bool skip(struct cursor *c, char wanted)
{
    skip_blanks(c);
    bool there = *c->at == wanted;
    c->at += there;
    return there;
}

/* The text of the number that comes next; an empty one when there is none, or an endless one. */
static void take_number(struct cursor *c, char number[NUMBER_BYTES])
{
    skip_blanks(c);
    size_t n = strspn(c->at, "0123456789.eE+-");
    n = n < NUMBER_BYTES ? n : 0;
    memcpy(number, c->at, n);
    number[n] = '\0';
    c->at += n;
}

/* "208: 0.01" */
static int parse_bin(struct pdf *p, struct cursor *c, struct err *err)
{
    char number[NUMBER_BYTES];
    __int128 tokens, probability;
    const struct pdf_bin *before = p->n > 0 ? &p->bin[p->n - 1] : NULL;
    take_number(c, number);
    if (field_tokens(number, &tokens) != NULL)
        return fail(c, err, "expected a whole number of tokens");
    if (before != NULL && tokens <= before->tokens)
        return fail(c, err, "expected more tokens than before: they ascend");
    if (!skip(c, ':'))
        return fail(c, err, "expected ':'");
    take_number(c, number);
    if (field_decimal(number, DIGITS, &probability) != NULL || probability > ONE)
        return fail(c, err, "expected a probability from 0 to 1");
    int64_t sum = before != NULL ? before->up_to : 0;
    if (sum > ONE + ONE / 100)
        return fail(c, err, "the probabilities are more than 1 together");
    p->bin = xgrow(p->bin, &p->cap, p->n + 1, sizeof *p->bin);
    p->bin[p->n++] = (struct pdf_bin){(int64_t)tokens, sum + (int64_t)probability};
    return 0;
}

static int parse(struct pdf *p, const char *text, struct err *err)
{
    struct cursor c = {text, text};
    if (!skip(&c, '{'))
        return fail(&c, err, "expected '{'");
    bool more = !skip(&c, '}');
    while (more) {
        if (parse_bin(p, &c, err) < 0)
            return -1;
        more = skip(&c, ',');
        if (!more && !skip(&c, '}'))
            return fail(&c, err, "expected ',' or '}'");
    }
    skip_blanks(&c);
    if (*c.at != '\0')
        return fail(&c, err, "expected nothing more");
    int64_t sum = p->n > 0 ? p->bin[p->n - 1].up_to : ONE;
    if (llabs(sum - ONE) > ONE / 100)
        return err_set(err, "the probabilities are %.6g together, expected 1",
                       (double)sum / (double)ONE);
    return 0;
}

int pdf_parse(struct pdf *p, const char *text, struct err *err)
{
    struct pdf parsed = {0};
    if (parse(&parsed, text, err) < 0) {
        pdf_release(&parsed);
        return -1;
    }
    *p = parsed;
    return 0;
}

int64_t pdf_draw(const struct pdf *p, struct rng *r)
{
    assert(p->n > 0);
    int64_t lot = rng_range(r, 0, p->bin[p->n - 1].up_to - 1);
    size_t low = 0, high = p->n - 1; /* the first bin that goes beyond the lot is among these */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->bin[middle].up_to > lot)
            high = middle;
        else
            low = middle + 1;
    }
    return p->bin[low].tokens;
}

void pdf_release(struct pdf *p)
{
    free(p->bin);
    *p = (struct pdf){0};
}
