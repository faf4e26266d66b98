/* SPDX-License-Identifier: Apache-2.0
 *
 * What the server counts, as text for Prometheus.
 */
#ifndef SIM_SERVE_METRICS_H
#define SIM_SERVE_METRICS_H

#include <stdint.h>

#include "sim/serve/jobs.h"

struct evbuffer;

struct metrics {
    int64_t answers[6];             /* by the status' first digit */
    int64_t ended[JOB_STATE_COUNT]; /* jobs, by how they ended */
    int64_t upload_bytes;
    int64_t dropped; /* connections that were too slow */
    /* Now. */
    int64_t connections, watchers, workers, queued;
};

void metrics_count_answer(struct metrics *m, int status);
void metrics_print(const struct metrics *m, struct evbuffer *out);

#endif
