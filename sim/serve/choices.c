/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/serve/choices.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hw/catalog.h"
#include "sim/base/file.h"
#include "sim/policy/policy.h"

static const struct sample {
    const char *name, *what;
} samples[] = {
    {"azure_2023_code.csv", "Azure 2023, code completion, its first 500 requests"},
    {"mooncake_conversation.jsonl.gz", "Mooncake, conversation: an hour, 12,031 requests"},
    {"tracelab_rounds.jsonl", "TraceLab: agents' rounds with tools"},
    {"vidur_splitwise_conv.csv", "Splitwise conversation, as Vidur has it"},
    {"weka_0277.csv", "Weka: one coding session"},
};

static json_t *entry(const char *name, const char *what)
{
    return json_pack("{s:s, s:s}", "name", name, "what", what);
}

static void add_names(json_t *all, const char *kind)
{
    int n;
    char **names = catalog_names(kind, &n);
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_string(names[i]));
    json_object_set_new(all, kind, list);
    catalog_free(names, n);
}

static void add_policies(json_t *all)
{
    json_t *list = json_array();
    for (int i = 0; policy_kinds[i] != NULL; i++)
        json_array_append_new(list, entry(policy_kinds[i]->name, policy_kinds[i]->what));
    json_array_append_new(list, entry("best-fixed", "the best of all fixed layouts in hindsight"));
    json_object_set_new(all, "policies", list);
}

static int add_preset(json_t *list, const char *preset, struct err *err)
{
    struct catalog_doc doc;
    char name[CATALOG_NAME_SIZE];
    const char *workload;
    if (catalog_open(&doc, "presets", preset, name, err) < 0)
        return -1;
    int rc = jobj_str(&doc.root, "workload", true, &workload, err);
    if (rc == 0)
        json_array_append_new(list, json_pack("{s:s, s:s}", "name", preset, "workload", workload));
    catalog_close(&doc);
    return rc;
}

static int add_presets(json_t *all, struct err *err)
{
    int n, rc = 0;
    char **names = catalog_names("presets", &n);
    json_t *list = json_array();
    for (int i = 0; rc == 0 && i < n; i++)
        rc = add_preset(list, names[i], err);
    json_object_set_new(all, "presets", list);
    catalog_free(names, n);
    return rc;
}

/* Those that are there: an installed program comes without. */
static void add_samples(json_t *all, const char *folder)
{
    char path[4096];
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        int n = snprintf(path, sizeof path, "%s/%s", folder, samples[i].name);
        if (n < (int)sizeof path && access(path, R_OK) == 0)
            json_array_append_new(list, entry(samples[i].name, samples[i].what));
    }
    json_object_set_new(all, "samples", list);
}

static int settle_data_folder(struct choices *c, struct err *err)
{
    char folder[4096];
    if (catalog_folder(folder, sizeof folder, err) < 0)
        return -1;
    char *absolute = file_absolute(folder);
    setenv("WAVETANK_DATA", absolute, 1);
    int n = snprintf(c->samples, sizeof c->samples, "%s/traces/samples", absolute);
    free(absolute);
    if (n >= (int)sizeof c->samples || access(c->samples, R_OK | X_OK) != 0)
        c->samples[0] = '\0';
    return 0;
}

int choices_load(struct choices *c, struct err *err)
{
    static const char *const kinds[] = {"models", "clusters", "profiles"};
    *c = (struct choices){.json = json_object()};
    if (settle_data_folder(c, err) < 0)
        goto fail;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        add_names(c->json, kinds[i]);
    add_policies(c->json);
    add_samples(c->json, c->samples);
    if (add_presets(c->json, err) < 0)
        goto fail;
    c->text = json_dumps(c->json, JSON_COMPACT);
    return 0;
fail:
    choices_release(c);
    return -1;
}

void choices_release(struct choices *c)
{
    json_decref(c->json);
    free(c->text);
    *c = (struct choices){0};
}

static const char *name_at(json_t *list, size_t i)
{
    json_t *item = json_array_get(list, i);
    return json_string_value(json_is_object(item) ? json_object_get(item, "name") : item);
}

int choices_check(const struct choices *c, const char *list, const char *name, struct err *err)
{
    enum { NAMES_MAX = 256 };
    const char *names[NAMES_MAX];
    json_t *all = json_object_get(c->json, list);
    int n = (int)json_array_size(all);
    n = n < NAMES_MAX ? n : NAMES_MAX;
    for (int i = 0; i < n; i++) {
        names[i] = name_at(all, (size_t)i);
        if (strcmp(names[i], name) == 0)
            return 0;
    }
    const char *near = err_nearest(name, names, n);
    return err_set(err, "\"%.64s\" is not among the %s%s%s%s; GET /api/choices lists them", name,
                   list, near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
}

const char *choices_workload(const struct choices *c, const char *preset)
{
    size_t i;
    json_t *item;
    json_array_foreach (json_object_get(c->json, "presets"), i, item) {
        if (strcmp(json_string_value(json_object_get(item, "name")), preset) == 0)
            return json_string_value(json_object_get(item, "workload"));
    }
    return NULL;
}

static bool ends_like_file(const char *text)
{
    static const char *const ends[] = {".json", ".jsonl", ".csv", ".so", ".gz", ".wtt"};
    size_t len = strlen(text);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t n = strlen(ends[i]);
        if (len >= n && strcmp(text + len - n, ends[i]) == 0)
            return true;
    }
    return false;
}

int choices_check_text(const char *key, const char *text, struct err *err)
{
    for (const char *c = text; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && strchr("_:=,.+- ", *c) == NULL)
            return err_set(err, ".%s: \"%.64s\": the server takes names and numbers, no paths", key,
                           text);
    if (text[0] == '.' || text[0] == '-' || ends_like_file(text))
        return err_set(err, ".%s: \"%.64s\" looks like a file; the server takes names only", key,
                       text);
    return 0;
}
