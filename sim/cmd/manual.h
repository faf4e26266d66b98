/* SPDX-License-Identifier: Apache-2.0
 *
 * What a command's help, its man page and the shells' completion are made from: one table a
 * command, its options being those that it parses.
 */
#ifndef SIM_CMD_MANUAL_H
#define SIM_CMD_MANUAL_H

#include <stdio.h>

#include "sim/base/opt.h"

struct manual {
    const char *name;        /* "sim", of an action "plan grid", of the program "" */
    const char *what;        /* in one line */
    const char *synopsis;    /* what follows "wavetank"; a line for each form */
    const char *text;        /* paragraphs; one that has two blanks in a row keeps its lines */
    void (*more)(FILE *out); /* lines that are known at run time only, or NULL */
    const struct opt *options;
    const char *words;    /* what the first argument may be, between blanks; NULL: anything */
    const char *examples; /* command lines */
    const char *see_also; /* of the documentation */
    const struct manual *const *actions; /* that have a manual of their own, then NULL; or NULL */
};

/* The text of --help. */
void manual_print(const struct manual *m, FILE *out);
/* A man page of section 1. */
void manual_print_roff(const struct manual *m, FILE *out);
/* The page's name: "wavetank-plan-grid". */
void manual_page_name(const struct manual *m, char *name, size_t size);

#endif
