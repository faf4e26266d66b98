/* SPDX-License-Identifier: Apache-2.0
 *
 * One process of this same program that does one job, within limits of memory and time, in a
 * process group of its own. Whatever happens to it happens to its job only.
 */
#ifndef SIM_SERVE_WORKER_H
#define SIM_SERVE_WORKER_H

#include <stdint.h>
#include <sys/types.h>

#include "sim/base/err.h"

struct worker_ask {
    char *const *argv;     /* "wavetank", "sim", ..., NULL */
    const char *folder;    /* where it runs: what relative paths begin at */
    const char *out, *log; /* files for its standard output and error */
    int64_t memory_bytes;  /* of address space; 0: no limit */
    int64_t cpu_s;
};

struct worker {
    pid_t pid;
    int progress_fd; /* ours to read and to close: lines as sim/base/progress.h writes them */
};

/* To be called once, before any worker starts: it sets what they inherit. */
void worker_prepare(void);
int worker_start(struct worker *w, const struct worker_ask *ask, struct err *err);
/* At once and for good, with whatever it started; the caller still waits for it. */
void worker_kill(const struct worker *w);
/* Why it failed, in words for a user: its status as waitpid() gives it, and its log's last line.
 * NULL when it did not. The caller frees. */
char *worker_fault(int status, const char *log);

#endif
