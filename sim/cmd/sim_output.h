/* SPDX-License-Identifier: Apache-2.0
 *
 * What `sim` says of a finished lineup: as tables, as JSON, as a page.
 */
#ifndef SIM_CMD_SIM_OUTPUT_H
#define SIM_CMD_SIM_OUTPUT_H

#include "sim/cmd/setup.h"
#include "sim/report/sim_html.h"
#include "traces/trace.h"

/* All borrowed. */
struct sim_output {
    const struct setup *setup;
    const struct trace *trace;
    const struct summary *summary;
    const json_t *scenario; /* the options that results depend on */
    const char *profile;    /* name or path */
};

void sim_output_tables(const struct sim_output *o, FILE *out);

/* A new reference. */
json_t *sim_output_json(const struct sim_output *o);

/* Of a result and of runs that were watched; `command` says how the page was asked for. */
void sim_output_page(const struct sim_output *o, const json_t *result,
                     const struct sim_course *course, int n_courses, const char *command,
                     FILE *out);

#endif
