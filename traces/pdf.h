/* SPDX-License-Identifier: Apache-2.0
 *
 * Lengths and their probabilities, as a Python dictionary in a string: "{208: 0.01, 209: 0.02}".
 */
#ifndef TRACES_PDF_H
#define TRACES_PDF_H

#include <stddef.h>
#include <stdint.h>

#include "sim/base/err.h"
#include "sim/base/rng.h"

/* Zero-initialised it is empty. */
struct pdf {
    size_t n, cap;
    struct pdf_bin {
        int64_t tokens;
        int64_t up_to; /* sum of the probabilities so far, in units of 10^-18 */
    } * bin;
};

/* Strict: whole numbers in ascending order, probabilities from 0 to 1 whose sum is 1 within a
 * hundredth; "{}" is empty. The message tells what is wrong and after how many characters. */
int pdf_parse(struct pdf *p, const char *text, struct err *err);
/* By lot, with the probabilities divided by their sum. Not of an empty one. */
int64_t pdf_draw(const struct pdf *p, struct rng *r);
void pdf_release(struct pdf *p);

#endif
