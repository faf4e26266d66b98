/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/study/first_runs.h"

#include <stdlib.h>

#include "sim/base/mem.h"
#include "sim/study/sample.h"

/* `buf` has room for all steps. */
static struct first_run summarize(const struct joined *j, bool after_switch, double *buf)
{
    struct first_run f = {0};
    for (int i = 0; i < j->n; i++) {
        const struct joined_step *s = &j->step[i];
        if (s->kind == STEP_STEADY && s->first_ns > 0 && joined_is_settled(j, i) == after_switch)
            buf[f.n++] = (double)s->first_ns / (double)s->meas->step_ns - 1;
    }
    f.p50 = sample_median(buf, f.n);
    f.p95 = sample_quantile(buf, f.n, 0.95);
    return f;
}

void first_runs_init(struct first_runs *f, const struct joined *j)
{
    double *buf = xcalloc((size_t)j->n, sizeof *buf);
    f->after_switch = summarize(j, true, buf);
    f->others = summarize(j, false, buf);
    free(buf);
}
