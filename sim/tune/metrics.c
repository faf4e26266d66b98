/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/tune/metrics.h"

#include <stdio.h>
#include <string.h>

#define WHOLE(name)                                                                                \
    {                                                                                              \
        name, NULL, name, true                                                                     \
    }
#define REAL(name)                                                                                 \
    {                                                                                              \
        name, NULL, name, false                                                                    \
    }
/* clang-format off */
#define PARTS(object)                                                                              \
    {object "_mean", object, "mean", false}, {object "_p50", object, "p50", false},                \
    {object "_p90", object, "p90", false}, {object "_p99", object, "p99", false}
/* clang-format on */

const struct metric metric_table[METRIC_COUNT] = {
    WHOLE("requests"),
    WHOLE("completed"),
    WHOLE("rejected"),
    WHOLE("cancelled"),
    WHOLE("preemptions"),
    REAL("makespan_s"),
    REAL("total_tok_s"),
    REAL("output_tok_s"),
    REAL("goodput_req_s"),
    REAL("goodput_tok_s"),
    PARTS("queued_s"),
    PARTS("ttft_s"),
    PARTS("tpot_s"),
    PARTS("e2e_s"),
    WHOLE("steps"),
    WHOLE("events"),
    WHOLE("switches"),
    WHOLE("switches_refused"),
    REAL("switch_exposed_s"),
    REAL("kv_peak_frac"),
    REAL("prefix_hit_frac"),
    WHOLE("prefix_cached_tokens"),
    WHOLE("prefix_block_tokens"),
    WHOLE("prefix_evicted_blocks"),
};

int metric_find(const char *name)
{
    for (int i = 0; i < METRIC_COUNT; i++)
        if (strcmp(metric_table[i].name, name) == 0)
            return i;
    return -1;
}

const char *metric_nearest(const char *name)
{
    const char *names[METRIC_COUNT];
    for (int i = 0; i < METRIC_COUNT; i++)
        names[i] = metric_table[i].name;
    return err_nearest(name, names, METRIC_COUNT);
}

char *metric_text(int metric, double value, char buf[METRIC_TEXT_SIZE])
{
    if (metric_table[metric].whole)
        snprintf(buf, METRIC_TEXT_SIZE, "%lld", (long long)value);
    else
        snprintf(buf, METRIC_TEXT_SIZE, "%.9g", value);
    return buf;
}
