/* SPDX-License-Identifier: Apache-2.0
 *
 * What a client asks for, checked, and the command that does it. Orders are kept as JSON, so a
 * queued one is as good after a restart:
 *   run   {"trace": "sample:NAME" or an id, "scenario": {options of `sim`, '_' for '-'},
 *          "report": true, "timeline": true}, the last two as asked for
 *   trace {"preset": NAME, "count": N, "seed": N} or {"upload": true}
 */
#ifndef SIM_SERVE_ORDER_H
#define SIM_SERVE_ORDER_H

#include "sim/serve/choices.h"
#include "sim/serve/config.h"
#include "sim/serve/jobs.h"

/* Checks the body of POST /api/runs and fills in the job's name and order; the rest is the
 * caller's. What the options say beyond their names the simulator itself checks. */
int order_read_run(struct job *out, json_t *body, const struct choices *c, struct jobs *s,
                   struct err *err);
/* The same for POST /api/traces. */
int order_read_trace(struct job *out, json_t *body, const struct choices *c, struct err *err);

/* Keys of .scenario that the server takes; ends with NULL. */
extern const char *const order_scenario_keys[];

enum { ORDER_ARGS = 24 };

struct command {
    char *arg[ORDER_ARGS]; /* ends with NULL */
    int n;
    char *folder, *out, *log; /* as worker_ask has them */
};

/* The command line of a job, and whatever files it reads, written. Release it in any case. */
int order_prepare(struct command *cmd, const struct job *j, const struct serve_config *config,
                  const struct choices *c, struct err *err);
void command_release(struct command *cmd);

#endif
