/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of answers that handlers give.
 */
#ifndef SIM_SERVE_ANSWERS_H
#define SIM_SERVE_ANSWERS_H

#include "sim/serve/api.h"
#include "sim/serve/folder.h"

/* Takes the reference. */
void answer_json(struct answer *r, int status, json_t *json);
/* {"error": TEXT} */
void answer_fault(struct answer *r, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* 400 for what the client can mend, 500 for what it cannot. */
void answer_err(struct answer *r, const struct err *err);
/* Borrows nothing. */
void answer_text(struct answer *r, const char *text);
/* A file of the program; 404 when the build has none of that name. */
void answer_asset(struct answer *r, const char *name);
/* A file of the data folder, read as it is sent: however long, it takes no memory. */
void answer_file(struct answer *r, const char *path, const struct run_file *f);

#endif
