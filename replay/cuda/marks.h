/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a step's time goes on the GPU: events on its stream where one stage ends and the next one
 * begins, in graphs too.
 */
#ifndef REPLAY_CUDA_MARKS_H
#define REPLAY_CUDA_MARKS_H

#include <cuda_runtime_api.h>
#include <stddef.h>

#include "replay/stopwatch.h"
#include "sim/base/err.h"

/* Zero-initialise. */
struct marks {
    cudaEvent_t *event;
    enum stage *stage; /* from this event on */
    size_t n, cap, cap_stage, made;
};

void marks_release(struct marks *m);
void marks_reset(struct marks *m);

/* From here on the stream is at this stage. */
int marks_add(struct marks *m, enum stage stage, cudaStream_t stream, struct err *err);

/* After the stream has passed the last mark: nanoseconds of every stage. */
int marks_read(const struct marks *m, int64_t ns[ON_COUNT], struct err *err);

#endif
