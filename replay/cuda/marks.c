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
    free(m->stage);
    *m = (struct marks){0};
}

void marks_reset(struct marks *m)
{
    m->n = 0;
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
    m->event = xgrow(m->event, &m->cap, m->n + 1, sizeof *m->event);
    m->stage = xgrow(m->stage, &m->cap_stage, m->n + 1, sizeof *m->stage);
    if (m->n == m->made) {
        if (gpu_try(cudaEventCreate(&m->event[m->n]), "mark", err) < 0)
            return -1;
        m->made++;
    }
    m->stage[m->n] = stage;
    return record(m->event[m->n++], stream, err);
}

int marks_read(const struct marks *m, int64_t ns[ON_COUNT], struct err *err)
{
    memset(ns, 0, ON_COUNT * sizeof *ns);
    for (size_t i = 0; i + 1 < m->n; i++) {
        float ms;
        if (gpu_try(cudaEventElapsedTime(&ms, m->event[i], m->event[i + 1]), "marks", err) < 0)
            return -1;
        ns[m->stage[i]] += (int64_t)(1e6 * (double)ms);
    }
    return 0;
}
