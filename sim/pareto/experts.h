/* SPDX-License-Identifier: Apache-2.0
 *
 * How many different experts a decode step reads. Routing is taken to be uniform at random: a row
 * chooses k of E, so that one expert is chosen by some of n rows with p = 1 - (1 - k/E)^n.
 */
#ifndef SIM_PARETO_EXPERTS_H
#define SIM_PARETO_EXPERTS_H

#include <stdint.h>

/* Expected distinct experts among all of them: E p. */
double experts_chosen(int experts, int topk, int64_t rows);

/* Expected distinct experts on the busiest of `groups` that have ceil(E / groups) each: the mean of
 * the largest of so many independent binomial (ceil(E / groups), p) draws,
 * sum over x >= 0 of 1 - F(x)^groups. */
double experts_busiest(int experts, int topk, int64_t rows, int groups);

#endif
