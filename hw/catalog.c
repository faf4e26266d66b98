/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/catalog.h"

#include <assert.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/mem.h"

enum { PATH_BYTES = sizeof((struct catalog_doc *)0)->path };

static const struct kind {
    const char *folder, *plural, *singular, *ext;
} kinds[] = {
    {"hw", "models", "model", ".json"},
    {"hw", "devices", "device", ".json"},
    {"hw", "clusters", "cluster", ".json"},
    {"hw", "profiles", "profile", ".json"},
    {"workloads", "presets", "preset", ".json"},
    {"hw", "nccl", "nccl table", ".csv"},
    {"hw/papers", "splash", "SPLASH table", ".csv"},
    {"hw/papers", "helix", "Helix table", ".csv"},
};

static const struct kind *find_kind(const char *plural)
{
    size_t i = 0, n = sizeof kinds / sizeof *kinds;
    while (i < n && strcmp(kinds[i].plural, plural) != 0)
        i++;
    assert(i < n);
    return &kinds[i];
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), len = strlen(end);
    return n > len && strcmp(s + n - len, end) == 0;
}

static bool is_path(const char *name)
{
    return strchr(name, '/') != NULL || ends_with(name, ".json") || ends_with(name, ".csv");
}

static bool is_data_folder(const char *dir)
{
    char path[PATH_BYTES];
    int n = snprintf(path, sizeof path, "%s/hw/models", dir);
    return n > 0 && n < PATH_BYTES && access(path, R_OK | X_OK) == 0;
}

/* Walk up from the program, so that build trees of any depth work. */
static int find_above_program(char dir[PATH_BYTES], struct err *err)
{
    char at[PATH_BYTES - sizeof "/share/wavetank"];
    ssize_t n = readlink("/proc/self/exe", at, sizeof at - 1);
    at[n > 0 ? n : 0] = '\0';
    for (char *slash = strrchr(at, '/'); slash != NULL; slash = strrchr(at, '/')) {
        *slash = '\0';
        snprintf(dir, PATH_BYTES, "%s/share/wavetank", at);
        if (is_data_folder(dir))
            return 0;
        snprintf(dir, PATH_BYTES, "%s", at);
        if (is_data_folder(dir))
            return 0;
    }
    return err_set(err, "no data folder above the program; set WAVETANK_DATA to the folder that "
                        "holds hw/models");
}

static int find_data_folder(char dir[PATH_BYTES], struct err *err)
{
    const char *chosen = getenv("WAVETANK_DATA");
    if (chosen == NULL || chosen[0] == '\0')
        return find_above_program(dir, err);
    if (!is_data_folder(chosen))
        return err_set(err, "WAVETANK_DATA: %s has no readable folder hw/models", chosen);
    snprintf(dir, PATH_BYTES, "%s", chosen);
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char **list_names(const char *data, const struct kind *kind, int *n)
{
    char path[PATH_BYTES + 32];
    char **names = NULL;
    size_t len = 0, cap = 0;
    snprintf(path, sizeof path, "%s/%s/%s", data, kind->folder, kind->plural);
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        if (!ends_with(entry->d_name, kind->ext))
            continue;
        names = xgrow(names, &cap, len + 1, sizeof *names);
        names[len] = xstrdup(entry->d_name);
        names[len][strlen(entry->d_name) - strlen(kind->ext)] = '\0';
        len++;
    }
    if (dir != NULL)
        closedir(dir);
    if (len > 0)
        qsort(names, len, sizeof *names, compare_names);
    *n = (int)len;
    return names;
}

int catalog_folder(char *path, size_t size, struct err *err)
{
    char data[PATH_BYTES];
    if (find_data_folder(data, err) < 0)
        return -1;
    if (strlen(data) >= size)
        return err_set(err, "%s: is too long a path", data);
    snprintf(path, size, "%s", data);
    return 0;
}

char **catalog_names(const char *kind, int *n)
{
    char data[PATH_BYTES];
    struct err ignored = ERR_NONE;
    *n = 0;
    if (find_data_folder(data, &ignored) < 0)
        return NULL;
    return list_names(data, find_kind(kind), n);
}

void catalog_free(char **names, int n)
{
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
}

static int fail_unknown(const struct kind *kind, const char *name, char *const *names, int n,
                        struct err *err)
{
    char list[512] = "none", hint[96] = "";
    size_t used = 0;
    for (int i = 0; i < n && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
    const char *near = err_nearest(name, (const char *const *)names, n);
    if (near != NULL)
        snprintf(hint, sizeof hint, " (did you mean \"%s\"?)", near);
    return err_set(err, "unknown %s \"%.64s\"%s; %s: %s", kind->singular, name, hint, kind->plural,
                   list);
}

static int path_of_name(const struct kind *kind, const char *name, char path[PATH_BYTES],
                        struct err *err)
{
    char data[PATH_BYTES];
    int n, len = -1;
    if (find_data_folder(data, err) < 0)
        return -1;
    char **names = list_names(data, kind, &n);
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            len = snprintf(path, PATH_BYTES, "%s/%s/%s/%s%s", data, kind->folder, kind->plural,
                           name, kind->ext);
    if (len < 0)
        fail_unknown(kind, name, names, n, err);
    catalog_free(names, n);
    return len;
}

int catalog_path(const char *kind, const char *name_or_path, char *path, size_t size,
                 struct err *err)
{
    char found[PATH_BYTES];
    int len = is_path(name_or_path) ? snprintf(found, sizeof found, "%s", name_or_path)
                                    : path_of_name(find_kind(kind), name_or_path, found, err);
    if (len < 0)
        return -1;
    if (len >= PATH_BYTES || (size_t)len >= size)
        return err_set(err, "%.64s...: the path is too long", found);
    memcpy(path, found, (size_t)len + 1);
    return 0;
}

int catalog_path_from(const char *kind, const char *name_or_path, const char *from, char *path,
                      size_t size, struct err *err)
{
    const char *slash = strrchr(from, '/');
    char beside[PATH_BYTES];
    if (!is_path(name_or_path) || name_or_path[0] == '/' || slash == NULL)
        return catalog_path(kind, name_or_path, path, size, err);
    int len = snprintf(beside, sizeof beside, "%.*s/%s", (int)(slash - from), from, name_or_path);
    if (len >= PATH_BYTES)
        return err_set(err, "%.64s...: the path is too long", beside);
    return catalog_path(kind, beside, path, size, err);
}

int catalog_str(struct jobj *o, const char *key, char *out, size_t size, struct err *err)
{
    const char *text;
    if (jobj_str(o, key, true, &text, err) < 0)
        return -1;
    if (text[0] == '\0' || strlen(text) >= size)
        return jobj_fail(o, key, err, "must have 1 to %zu bytes", size - 1);
    memcpy(out, text, strlen(text) + 1);
    return 0;
}

/* Every data file says where its numbers come from. */
static int check_source(struct jobj *root, struct err *err)
{
    json_t *source;
    if (jobj_array(root, "source", true, &source, err) < 0)
        return -1;
    bool ok = json_array_size(source) > 0;
    for (size_t i = 0; i < json_array_size(source); i++)
        ok = ok && json_is_string(json_array_get(source, i));
    return ok ? 0 : jobj_fail(root, "source", err, "must list where the numbers come from");
}

int catalog_open(struct catalog_doc *doc, const char *kind, const char *name_or_path,
                 char name[CATALOG_NAME_SIZE], struct err *err)
{
    int version;
    doc->json = NULL;
    if (catalog_path(kind, name_or_path, doc->path, sizeof doc->path, err) < 0)
        return -1;
    doc->json = json_load_path(doc->path, err);
    if (doc->json == NULL || jobj_root(&doc->root, doc->path, doc->json, err) < 0 ||
        jobj_int(&doc->root, find_kind(kind)->singular, true, 1, 1, &version, err) < 0 ||
        catalog_str(&doc->root, "name", name, CATALOG_NAME_SIZE, err) < 0 ||
        check_source(&doc->root, err) < 0) {
        catalog_close(doc);
        return -1;
    }
    return 0;
}

void catalog_close(struct catalog_doc *doc)
{
    json_decref(doc->json);
    doc->json = NULL;
}
