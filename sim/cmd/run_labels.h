/* SPDX-License-Identifier: Apache-2.0
 *
 * What the store knows a run by: a digest of all that it comes from (this program's version, the
 * machine's files, the requests, seed, policy and every option), and the words of its row.
 */
#ifndef SIM_CMD_RUN_LABELS_H
#define SIM_CMD_RUN_LABELS_H

#include "sim/cmd/tune_runs.h"

struct run_labels {
    const struct tune_runs *runs;
    struct digest *draw; /* [rung * draws + draw] */
    struct machine machine;
    char *machine_names; /* what it was loaded by, or NULL */
    char *policy, *settings;
};

void run_labels_init(struct run_labels *l, const struct tune_runs *t);
void run_labels_release(struct run_labels *l);
/* A study_label_fn: its context is the struct run_labels, which keeps the row's strings until the
 * next call. */
int run_labels_make(void *labels, int64_t job, struct run_row *row, struct err *err);

#endif
