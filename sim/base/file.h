/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of text. Input: one line at a time from a path, a .gz file or "-" (standard input); a BOM,
 * CR before LF and a missing last newline are accepted. Output: written to a temporary file beside
 * the target and renamed when complete, so that no half-written result is ever seen.
 */
#ifndef SIM_BASE_FILE_H
#define SIM_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "sim/base/err.h"

struct lines {
    const char *path; /* borrowed; "standard input" for "-" */
    void *gz;         /* gzFile: reads plain files as they are */
    char *buf;        /* raw bytes */
    size_t buf_len, buf_at;
    char *line; /* current line, NUL-terminated, without line end */
    size_t len, cap;
    long number; /* of the current line, from 1 */
    bool eof;
    bool unread; /* lines_unread() was called */
};

enum { LINE_BYTES_MAX = 64 << 20 };

/* Refuses directories and what cannot be read, with a message. */
int lines_open(struct lines *l, const char *path, struct err *err);
/* 1: l->line holds the next line; 0: end; -1: read error, NUL byte (binary file), truncated gzip or
 * a line over LINE_BYTES_MAX. */
int lines_next(struct lines *l, struct err *err);
/* Give the current line back: the next lines_next() returns it again. */
void lines_unread(struct lines *l);
/* What is read of the file behind the current line: *n bytes, not terminated, maybe none. */
const char *lines_ahead(const struct lines *l, size_t *n);
void lines_close(struct lines *l);

/* The path as it reads from any folder; the caller frees. */
char *file_absolute(const char *path);

struct outfile {
    FILE *f;
    char *path; /* NULL for "-" (stdout) */
    char *tmp;  /* NULL when `path` itself is written: a device, a pipe or a symbolic link */
};

/* Open `path` for writing ("-" is stdout). Fails when the folder is missing or not writable, or the
 * path is a directory. */
int outfile_open(struct outfile *o, const char *path, struct err *err);
/* Flush, check, close and rename. On failure the temporary file is removed and err says why. */
int outfile_commit(struct outfile *o, struct err *err);
/* Throw away; does nothing after a commit. */
void outfile_abort(struct outfile *o);

/* Remove every temporary file still open; called from the handler of SIGINT and SIGTERM, so
 * async-signal-safe. */
void outfile_abort_all(void);

#endif
