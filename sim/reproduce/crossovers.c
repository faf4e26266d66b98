/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/reproduce/crossovers.h"

const char *const crossover_layouts[CROSSOVER_LAYOUTS] = {
    [CROSSOVER_TP] = "tp", [CROSSOVER_CP] = "cp", [CROSSOVER_DP] = "dp", [CROSSOVER_DOP] = "dop"};

static double positive(double x)
{
    return x > 0 ? x : 0;
}

static double at_owner(double x)
{
    return 0.05 * x + 1.2 * x / (x + 8);
}

double crossovers_latency(int layout, double x)
{
    switch (layout) {
    case CROSSOVER_TP: return 0.40 + 0.25 * x + positive(0.15 - 0.0625 * x);
    case CROSSOVER_CP: return 2.55 + 0.05 * x + positive(3.40 - 0.025 * x);
    case CROSSOVER_DP: return 2.45 + at_owner(x);
    default: return 0.45 + at_owner(x) + positive(4.80 - 0.35 * at_owner(x));
    }
}

static int fastest(double x)
{
    int best = 0;
    for (int l = 1; l < CROSSOVER_LAYOUTS; l++)
        if (crossovers_latency(l, x) < crossovers_latency(best, x))
            best = l;
    return best;
}

/* Where `layout` stops being the fastest, between a and b. */
static double end_of(int layout, double a, double b)
{
    for (int i = 0; i < 60; i++) {
        double middle = (a + b) / 2;
        if (fastest(middle) == layout)
            a = middle;
        else
            b = middle;
    }
    return a;
}

int crossovers_find(struct crossover out[CROSSOVERS_MAX])
{
    const double step = 0.01, longest = 400;
    int n = 0, before = fastest(step);
    for (double x = step; x < longest && n < CROSSOVERS_MAX; x += step) {
        int after = fastest(x + step);
        if (after != before)
            out[n++] = (struct crossover){crossover_layouts[before], crossover_layouts[after],
                                          end_of(before, x, x + step)};
        before = after;
    }
    return n;
}
