/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/pareto/pipeline.h"

#include <stddef.h>

double pipeline_end_s(const struct pipeline_part *part, int n, struct pipeline_span *span)
{
    double compute_s = 0, link_s = 0;
    for (int i = 0; i < n; i++) {
        struct pipeline_span s = {.compute_start_s = compute_s};
        compute_s += part[i].compute_s;
        s.compute_end_s = compute_s;
        s.exchange_start_s = link_s > compute_s ? link_s : compute_s;
        link_s = s.exchange_start_s + part[i].exchange_s;
        s.exchange_end_s = link_s;
        if (span != NULL)
            span[i] = s;
    }
    return link_s;
}
