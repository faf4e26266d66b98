/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cmd/machine.h"

#include <stdlib.h>
#include <string.h>

#include "hw/collective.h"

/* A JSON data file, and where it is. */
struct part {
    char path[4096];
    json_t *json;
};

static int add(struct digest *d, const char *kind, const char *name, struct part *part,
               struct err *err)
{
    if (catalog_path(kind, name, part->path, sizeof part->path, err) < 0 ||
        (part->json = json_load_path(part->path, err)) == NULL)
        return -1;
    char *text = json_dumps(part->json, JSON_COMPACT | JSON_SORT_KEYS);
    digest_text(d, text);
    free(text);
    return 0;
}

/* What the file says under a key; "" when that is no text, which its loader refuses. */
static const char *text_of(const struct part *part, const char *key)
{
    const char *text = json_string_value(json_object_get(part->json, key));
    return text != NULL ? text : "";
}

static void keep_name(char name[CATALOG_NAME_SIZE], const struct part *part)
{
    snprintf(name, CATALOG_NAME_SIZE, "%s", text_of(part, "name"));
}

static int add_collectives(struct digest *d, const struct part *profile, struct err *err)
{
    char path[4096], *text;
    size_t size;
    struct collective_table table;
    if (catalog_path_from("nccl", text_of(profile, "collectives"), profile->path, path, sizeof path,
                          err) < 0 ||
        collective_load(&table, path, err) < 0)
        return -1;
    FILE *f = open_memstream(&text, &size);
    collective_write(&table, f);
    fclose(f);
    digest_text(d, text);
    free(text);
    collective_release(&table);
    return 0;
}

int machine_load(struct machine *m, const struct setup_options *o, struct err *err)
{
    struct part model = {0}, cluster = {0}, device = {0}, profile = {0};
    struct machine made = {.model = ""};
    struct digest *d = &made.digest;
    digest_init(d);
    int rc = add(d, "models", o->model, &model, err);
    if (rc == 0)
        rc = add(d, "clusters", o->cluster, &cluster, err);
    if (rc == 0)
        rc = add(d, "devices", text_of(&cluster, "device"), &device, err);
    if (rc == 0)
        rc = add(d, "profiles", o->profile != NULL ? o->profile : text_of(&cluster, "profile"),
                 &profile, err);
    if (rc == 0)
        rc = add_collectives(d, &profile, err);
    if (rc == 0) {
        keep_name(made.model, &model);
        keep_name(made.cluster, &cluster);
        keep_name(made.profile, &profile);
        *m = made;
    }
    json_decref(model.json);
    json_decref(cluster.json);
    json_decref(device.json);
    json_decref(profile.json);
    return rc;
}
