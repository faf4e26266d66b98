/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/study/sample.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double sample_quantile(double *x, int n, double q)
{
    assert(q >= 0 && q <= 1);
    if (n == 0)
        return NAN;
    qsort(x, (size_t)n, sizeof *x, by_value);
    /* 0.95 * 20 is a little over 19: shave off what rounding can add before ceil() */
    int rank = (int)ceil(q * n * (1 - 0x1p-51));
    return x[rank > 1 ? rank - 1 : 0];
}

double sample_median(double *x, int n)
{
    return sample_quantile(x, n, 0.5);
}

struct error_summary sample_errors(double *error, int n)
{
    struct error_summary s = {.n = n};
    for (int i = 0; i < n; i++) {
        s.mean += error[i] / n;
        error[i] = fabs(error[i]);
    }
    s.p50 = sample_quantile(error, n, 0.5);
    s.p95 = sample_quantile(error, n, 0.95);
    s.mean = n > 0 ? s.mean : NAN;
    return s;
}
