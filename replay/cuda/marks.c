/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/cuda/marks.h"

#include <stdlib.h>
#include <string.h>

#include "replay/cuda/gpu.h"
#include "sim/base/mem.h"

void marks_release(struct marks *m)
{
    for (size_t i = 0; i < m->made; i++)
        cudaEventDestroy(m->event[i]);
    free(m->event);
    free(m->mark);
    *m = (struct marks){0};
}

void marks_reset(struct marks *m)
{
    m->n = m->used = 0;
}

static void append(struct marks *m, struct mark mark)
{
    m->mark = xgrow(m->mark, &m->cap, m->n + 1, sizeof *m->mark);
    m->mark[m->n++] = mark;
}

void marks_append(struct marks *m, const struct marks *graph)
{
    for (size_t i = 0; i < graph->n; i++)
        append(m, graph->mark[i]);
}

static int record(cudaEvent_t event, cudaStream_t stream, struct err *err)
{
    enum cudaStreamCaptureStatus status;
    if (gpu_try(cudaStreamIsCapturing(stream, &status), "mark", err) < 0)
        return -1;
    unsigned flags =
        status == cudaStreamCaptureStatusActive ? cudaEventRecordExternal : cudaEventRecordDefault;
    return gpu_try(cudaEventRecordWithFlags(event, stream, flags), "mark", err);
}

int marks_add(struct marks *m, enum stage stage, cudaStream_t stream, struct err *err)
{
    m->event = xgrow(m->event, &m->cap_events, m->used + 1, sizeof *m->event);
    if (m->used == m->made) {
        if (gpu_try(cudaEventCreate(&m->event[m->used]), "mark", err) < 0)
            return -1;
        m->made++;
    }
    cudaEvent_t event = m->event[m->used++];
    append(m, (struct mark){event, stage});
    return record(event, stream, err);
}

int marks_read(const struct marks *m, int64_t ns[ON_COUNT], int64_t *first_ns, struct err *err)
{
    memset(ns, 0, ON_COUNT * sizeof *ns);
    for (size_t i = 0; i + 1 < m->n; i++) {
        float ms;
        if (gpu_try(cudaEventElapsedTime(&ms, m->mark[i].event, m->mark[i + 1].event), "marks",
                    err) < 0)
            return -1;
        int64_t stretch_ns = (int64_t)(1e6 * (double)ms);
        ns[m->mark[i].stage] += stretch_ns;
        if (i == 0)
            *first_ns = stretch_ns;
    }
    return 0;
}
