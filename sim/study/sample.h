/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics of a sample small enough to sort: quantiles are nearest-rank, so every one is a value
 * that occurred. What an empty sample has none of is NAN.
 */
#ifndef SIM_STUDY_SAMPLE_H
#define SIM_STUDY_SAMPLE_H

/* Signed errors: how large, and which way. */
struct error_summary {
    int n;
    double p50, p95; /* of the absolute values */
    double mean;     /* of the signed ones */
};

/* The smallest value that at least ceil(q n) of the n values do not exceed; 0 <= q <= 1. Sorts x.
 */
double sample_quantile(double *x, int n, double q);
double sample_median(double *x, int n);

/* Of signed errors, which become absolute and sorted. */
struct error_summary sample_errors(double *error, int n);

#endif
