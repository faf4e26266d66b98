/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of two papers beside ours. A section is one table or figure, or a family of them. An
 * exact row must print the paper's very digits; a predicted one has an error, and a goal that
 * nothing depends on.
 */
#ifndef SIM_REPRODUCE_REPRODUCTION_H
#define SIM_REPRODUCE_REPRODUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "sim/base/err.h"

enum row_kind { ROW_EXACT, ROW_PREDICTED };

struct row {
    enum row_kind kind;
    char id[64];
    char paper[24];    /* as printed there; "" for a figure of ours about other rows */
    char ours[24];     /* "" when nothing of ours predicts it */
    double error_frac; /* ours / paper - 1; NAN for words and without a paper's value */
    double goal;       /* of the error, or of `ours` when the paper has no value; NAN: none */
    bool ok;           /* exact: equal; predicted: the goal is met, or there is none */
    char note[24];     /* instead of a verdict; "" without */
};

enum { SPLASH, HELIX, PUBLICATIONS };

struct publication {
    const char *name, *title; /* "splash", "SPLASH" */
    const char *source;
    const char *missing; /* what it has and we do not */
};

extern const struct publication publications[PUBLICATIONS];

/* Its number, or -1 with a message. */
int publication_find(const char *name, struct err *err);

struct section {
    int publication;
    const char *name, *title;
    const char *about; /* what was computed and how; where and why we miss; paragraphs */
    size_t first, n;   /* its rows */
};

enum { SECTIONS_MAX = 16 };

struct reproduction {
    int n_sections;
    struct section section[SECTIONS_MAX];
    struct row *row;
    size_t n, cap;
};

enum { REPRODUCTION_ALL = -1 };

/* A section of the publications in `of` (bits) by name; -1 with a message when there is none. */
int reproduction_find(const char *name, unsigned of, struct err *err);
/* A line a section: name and title. */
void reproduction_list(FILE *out);

/* Compute every section of the publications in `of` (bits), or one. */
int reproduction_run(struct reproduction *r, unsigned of, int only, struct err *err);
void reproduction_release(struct reproduction *r);

/* A row by its id, or NULL. */
const struct row *reproduction_row(const struct reproduction *r, const char *id);

/* Exact rows, and those among them that differ. */
struct row_count {
    size_t exact, differ;
};
struct row_count reproduction_count(const struct reproduction *r);

#endif
