/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a step's time goes on the GPU: events on its stream where one stage ends and the next one
 * begins, recorded as the step is enqueued or by graphs as they run; of both a step's time line is
 * put together. A layer ends with a stretch of ON_OTHER (its last sum), so the gap between two
 * graphs belongs there: the stages are what they are in one long graph.
 */
#ifndef REPLAY_CUDA_MARKS_H
#define REPLAY_CUDA_MARKS_H

#include <cuda_runtime_api.h>
#include <stddef.h>

#include "replay/stopwatch.h"
#include "sim/base/err.h"

struct mark {
    cudaEvent_t event;
    enum stage stage; /* from this event on */
};

/* Zero-initialise. */
struct marks {
    struct mark *mark; /* in the order of the stream */
    size_t n, cap;
    cudaEvent_t *event; /* its own */
    size_t used, made, cap_events;
};

void marks_release(struct marks *m);
void marks_reset(struct marks *m);

/* From here on the stream is at this stage. */
int marks_add(struct marks *m, enum stage stage, cudaStream_t stream, struct err *err);

/* Next come those of a graph launched here; borrowed until the reset. */
void marks_append(struct marks *m, const struct marks *graph);

/* After the stream has passed the last mark: nanoseconds of every stage, and from the first mark to
 * the second. */
int marks_read(const struct marks *m, int64_t ns[ON_COUNT], int64_t *first_ns, struct err *err);

#endif
