/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the data files are: hw/KIND/NAME.json (.csv), hw/papers/PAPER/NAME.csv and
 * workloads/presets/NAME.json, under the data folder, which is $WAVETANK_DATA, else the nearest
 * folder above the program that has share/wavetank/hw (installed) or hw (a build tree). Whatever
 * has a '/' or ends in ".json" or
 * ".csv" is a path, not a name.
 */
#ifndef HW_CATALOG_H
#define HW_CATALOG_H

#include "sim/base/err.h"
#include "sim/base/json.h"

/* The data folder itself. */
int catalog_folder(char *path, size_t size, struct err *err);

/* `kind` is "models", "devices", "clusters", "profiles", "nccl", "splash", "helix" or "presets".
 * Writes the path. An unknown name is an error that lists what there is and suggests the nearest.
 */
int catalog_path(const char *kind, const char *name_or_path, char *path, size_t size,
                 struct err *err);

/* The same for what the file `from` names: a path that is not absolute starts in its folder. */
int catalog_path_from(const char *kind, const char *name_or_path, const char *from, char *path,
                      size_t size, struct err *err);

/* Names of one kind, sorted; *n counts them, 0 when there is no data folder. Free with
 * catalog_free. */
char **catalog_names(const char *kind, int *n);
void catalog_free(char **names, int n);

/* One JSON data file being read. Lives on the loader's stack and must not be copied. */
struct catalog_doc {
    char path[4096];
    json_t *json;
    struct jobj root;
};

enum { CATALOG_NAME_SIZE = 48 }; /* bytes of every `name` in hw */

/* Open a data file of a JSON kind and read what all of them have: {"model":1,"name":...,
 * "source":[...]}, the first key being the kind's singular and 1 the format version. On success the
 * caller reads its own keys from doc->root, calls jobj_done() and, always, catalog_close(). */
int catalog_open(struct catalog_doc *doc, const char *kind, const char *name_or_path,
                 char name[CATALOG_NAME_SIZE], struct err *err);
void catalog_close(struct catalog_doc *doc);

/* Copy the required, non-empty string under `key`; one that does not fit is an error. */
int catalog_str(struct jobj *o, const char *key, char *out, size_t size, struct err *err);

#endif
