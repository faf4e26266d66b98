/* SPDX-License-Identifier: Apache-2.0
 *
 * The data folder: DIR/jobs.db, DIR/runs/ID/ with what a run wrote, DIR/traces/ID with an upload or
 * ID.wtt with a drawn trace. All paths are made here, from ids and from names in a table, so none
 * leads out of it.
 */
#ifndef SIM_SERVE_FOLDER_H
#define SIM_SERVE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "sim/serve/config.h"
#include "sim/serve/jobs.h"

/* What a run reads and leaves, to download. A new option of `sim` that writes a file needs one row
 * here. */
struct run_file {
    const char *option; /* of `sim`; NULL: its standard output */
    const char *name, *type;
    const char *what; /* for people */
    const char *key;  /* of an order, which must be true for it; NULL: every run has it */
};
extern const struct run_file run_files[]; /* ends with a NULL name */
/* NULL for a name that is not in the table. */
const struct run_file *run_file_find(const char *name);
bool run_file_is_wanted(const struct run_file *f, const json_t *order);

/* Makes the folder and those inside it, readable by the user alone; sets config->folder. */
int folder_open(struct serve_config *config, struct err *err);

/* Paths, in memory that the caller frees; the id must be one. */
char *folder_jobs(const char *folder);
char *folder_run(const char *folder, const char *id, const char *name);  /* NULL: its folder */
char *folder_trace(const char *folder, const char *id, const char *end); /* ".wtt", "" */

/* Makes the run's folder, with a link in it to the trace at `path`, under the name of that file: a
 * worker that runs there names none of the server's paths in what it writes. Both may be there. */
int folder_make_run(const char *folder, const char *id, const char *path, struct err *err);

/* All files of a job. Files that are not there are no error. */
void folder_remove(const char *folder, const struct job *j);

/* Writes one part of an upload: number n begins at n * SERVE_PART_BYTES, and there is no gap. A
 * part may come twice. */
int folder_write_part(const struct serve_config *config, const char *id, int64_t n,
                      const void *data, size_t len, struct err *err);
/* Bytes of an upload so far, or of a drawn trace. */
int64_t folder_trace_bytes(const char *folder, const char *id);

#endif
