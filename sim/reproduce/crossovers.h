/* SPDX-License-Identifier: Apache-2.0
 *
 * The illustrative latency law of figures 1, 6 and 7 (Eq. 11), in units of 1024 tokens and before
 * it is scaled to a platform (Eq. 12).
 */
#ifndef SIM_REPRODUCE_CROSSOVERS_H
#define SIM_REPRODUCE_CROSSOVERS_H

enum { CROSSOVER_TP, CROSSOVER_CP, CROSSOVER_DP, CROSSOVER_DOP, CROSSOVER_LAYOUTS };
extern const char *const crossover_layouts[CROSSOVER_LAYOUTS];

/* Eq. 11 at 1024 x tokens. */
double crossovers_latency(int layout, double x);

struct crossover {
    const char *from, *to; /* layouts */
    double k_tokens;
};

enum { CROSSOVERS_MAX = 8 };

/* Where the fastest layout changes, in order; returns how often. A layout that leads over less than
 * ten tokens is passed over. */
int crossovers_find(struct crossover out[CROSSOVERS_MAX]);

#endif
