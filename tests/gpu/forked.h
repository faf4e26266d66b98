/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks as forked processes with a GPU each, for programs that test or time what happens between
 * them. The parent never touches CUDA.
 */
#ifndef TESTS_GPU_FORKED_H
#define TESTS_GPU_FORKED_H

#include <stdbool.h>

#include "replay/comm.h"

enum { FORKED_MAX = 16, FORKED_NO_GPU = 77 /* exit code of a rank where there is none */ };

struct forked {
    int rank, ranks;
    struct comm comm;
    void *arg;
};

struct forked_end {
    int status;     /* as waitpid() gives it */
    double after_s; /* since the start */
};

/* Run body, whose result is the rank's exit code, in `ranks` processes whose current devices are
 * those of the same number; with `share`, ranks beyond the last GPU start again at the first. All
 * have ended when this returns, by SIGKILL those that took longer than limit_s, or than 15 s after
 * another ended badly. */
void forked_run(int ranks, bool share, double limit_s, int (*body)(struct forked *f), void *arg,
                struct forked_end end[FORKED_MAX]);

/* Of all ranks: 0 when every one returned 0, FORKED_NO_GPU when one did so, else 1 after saying
 * which failed and how. */
int forked_verdict(int ranks, const struct forked_end *end);

double forked_now_s(void);

#endif
