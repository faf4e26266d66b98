/* SPDX-License-Identifier: Apache-2.0
 *
 * One error that a user can cause. Whoever finds the fault sets it; the first one wins, so callers
 * may add context by returning early and never overwrite the cause. Our own bugs are assert().
 */
#ifndef SIM_BASE_ERR_H
#define SIM_BASE_ERR_H

#include <stdbool.h>

enum err_kind {
    ERR_INPUT, /* usage or bad input: exit 2 */
    ERR_RUN,   /* the run itself failed: exit 1 */
};

struct err {
    bool set;
    enum err_kind kind;
    char text[768];
};

#define ERR_NONE ((struct err){0})

/* Record an input error; the text says place, what, and what to do. Returns -1 always, so that
 * `return err_set(err, ...)` reads as "fail with". Keeps an error already there. */
int err_set(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same with "FILE:LINE: " before the text; line 0 leaves the line out. */
int err_at(struct err *err, const char *file, long line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Record a failure of the run (exit 1). Returns -1. */
int err_run(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Print "wavetank: TEXT" on stderr. Returns the exit code that belongs to the error's kind. */
int err_report(const struct err *err, const char *program);

/* The candidate nearest to `word` by edit distance, or NULL when none is near enough to suggest. */
const char *err_nearest(const char *word, const char *const *candidates, int n);

#endif
