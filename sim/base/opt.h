/* SPDX-License-Identifier: Apache-2.0
 *
 * One table describes a command's options: it parses argv, a JSON config file and "key=value,..."
 * lists, prints --help and dumps the effective settings. Tables end with a zeroed entry.
 */
#ifndef SIM_BASE_OPT_H
#define SIM_BASE_OPT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "sim/base/err.h"

enum opt_type {
    OPT_FLAG,   /* bool, no argument (0 or 1 in a list) */
    OPT_I64,    /* int64_t in [min, max] */
    OPT_F64,    /* double in [min, max] */
    OPT_TIME,   /* int64_t picoseconds: "50ms"; min and max in seconds */
    OPT_TOKENS, /* int64_t: "64K" */
    OPT_STR,    /* const char *, borrowed as each parser says */
    OPT_ENUM,   /* int: index into choices */
    OPT_LIST,   /* struct opt_list of strings: the option may repeat; no default */
};

struct opt_list {
    int n, cap;
    const char **item;
};

struct opt {
    const char *name; /* "token-budget"; in JSON and lists written with '_' */
    char letter;      /* short form or 0 */
    enum opt_type type;
    size_t offset;       /* of the field in the settings struct */
    const char *arg;     /* "FILE", NULL for flags */
    const char *def;     /* default as text, parsed like an argument; NULL: leave zero */
    double min, max;     /* for numbers; both 0: no limit */
    const char *choices; /* "reserve|ondemand" for OPT_ENUM */
    const char *help;
};

/* Set every field of `settings` to its default. Asserts that defaults parse. For a list it must be
 * called once only, since it forgets the items. */
void opt_defaults(const struct opt *table, void *settings);

/* Parse argv[1..]; "--name value", "--name=value", "-n value", "--" and "-" work. Positional
 * arguments are moved to the front of argv[1..] and *n_args is their count. "--help" and "-h" set
 * *help and end the parse.
 * Unknown option: error with "did you mean". Strings are borrowed from argv. */
int opt_parse_argv(const struct opt *table, void *settings, int argc, char **argv, int *n_args,
                   bool *help, struct err *err);

/* Parse a JSON object of settings ('_' for '-'); `file` is for messages. Values may be written as
 * on the command line ("50ms") or as plain numbers, true and false; a list is an array of strings;
 * null leaves the option alone. What opt_dump() writes is accepted. String options borrow from
 * `obj`, which must outlive them. */
int opt_parse_json(const struct opt *table, void *settings, const char *file, json_t *obj,
                   struct err *err);

/* Parse "key=value,key=value"; `what` names the owner in messages ("policy splash"). Unknown keys
 * are refused with a suggestion. Strings are copied and leak by intent (settings live for the run).
 */
int opt_parse_list(const struct opt *table, void *settings, const char *what, const char *text,
                   struct err *err);

/* Set one option from text. Returns -1 with a message on bad values. */
int opt_set(const struct opt *table, void *settings, const char *name, const char *value,
            struct err *err);

/* Help text: one entry per option with argument, range, default, choices. */
void opt_help(const struct opt *table, FILE *out);

/* The help sentence and, in brackets, range, choices and default; to be freed. */
char *opt_describe(const struct opt *o);

/* The effective settings as a new JSON object, keys with '_'. A time is a number of seconds under
 * the option's name with "_s" appended. */
json_t *opt_dump(const struct opt *table, const void *settings);

/* Free what OPT_LIST fields hold. */
void opt_release(const struct opt *table, void *settings);

#endif
