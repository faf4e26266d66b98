/* SPDX-License-Identifier: Apache-2.0
 *
 * How long trace_load() takes: best of some runs for each TRACE, and how many times faster than the
 * first. usage: bench_load TRACE...
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "traces/trace.h"

enum { RUNS = 15 };

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

/* Negative on error, which is printed. */
static double load_ms(const char *path)
{
    double best_ms = -1;
    for (int i = 0; i < RUNS; i++) {
        struct err err = ERR_NONE;
        struct trace t = {0};
        double began_ms = now_ms();
        if (trace_load(&t, path, &(struct trace_reading){0}, &err) < 0) {
            err_report(&err, "bench_load");
            return -1;
        }
        double took_ms = now_ms() - began_ms;
        best_ms = best_ms < 0 || took_ms < best_ms ? took_ms : best_ms;
        trace_release(&t);
    }
    return best_ms;
}

int main(int argc, char **argv)
{
    double first_ms = 0;
    for (int i = 1; i < argc; i++) {
        double ms = load_ms(argv[i]);
        if (ms < 0)
            return 2;
        first_ms = i == 1 ? ms : first_ms;
        const char *ending = strrchr(argv[i], '.');
        printf("loading the %-7s %8.2f ms %8.1fx\n", ending ? ending : argv[i], ms, first_ms / ms);
    }
    return 0;
}
