/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/serve/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/file.h"
#include "sim/base/mem.h"

const struct run_file run_files[] = {
    {"--scenario", "scenario.json", "application/json", "the options that were asked for", NULL},
    {"--json", "result.json", "application/json", "the result: every number", NULL},
    {"--requests", "requests.csv", "text/csv; charset=utf-8", "a row per request and policy", NULL},
    {"--report", "report.html", "text/html; charset=utf-8",
     "a page with charts of what every policy did over time", "report"},
    {"--timeline", "timeline.json.gz", "application/gzip", "steps and requests, for Perfetto",
     "timeline"},
    {NULL, "tables.txt", "text/plain; charset=utf-8", "the tables, as in a terminal", NULL},
    {0},
};

static const char *const trace_ends[] = {"", ".wtt", ".out", ".log"};

const struct run_file *run_file_find(const char *name)
{
    for (const struct run_file *f = run_files; f->name != NULL; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

bool run_file_is_wanted(const struct run_file *f, const json_t *order)
{
    return f->key == NULL || json_is_true(json_object_get(order, f->key));
}

static int make_folder(const char *path, struct err *err)
{
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_set(err, "%s: cannot make the folder: %s", path, strerror(errno));
    return 0;
}

int folder_open(struct serve_config *config, struct err *err)
{
    static const char *const inside[] = {"runs", "traces"};
    char path[SERVE_PATH_BYTES];
    if (make_folder(config->data, err) < 0)
        return -1;
    char *absolute = file_absolute(config->data);
    int n = snprintf(config->folder, sizeof config->folder, "%s", absolute);
    free(absolute);
    if (n >= (int)sizeof config->folder)
        return err_set(err, "%s: is too long a path", config->data);
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        snprintf(path, sizeof path, "%s/%s", config->folder, inside[i]);
        if (make_folder(path, err) < 0)
            return -1;
    }
    if (access(config->folder, W_OK) < 0)
        return err_set(err, "%s: cannot write there: %s", config->folder, strerror(errno));
    return 0;
}

char *folder_jobs(const char *folder)
{
    return xasprintf("%s/jobs.db", folder);
}

char *folder_run(const char *folder, const char *id, const char *name)
{
    return xasprintf("%s/runs/%s%s%s", folder, id, name ? "/" : "", name ? name : "");
}

char *folder_trace(const char *folder, const char *id, const char *end)
{
    return xasprintf("%s/traces/%s%s", folder, id, end);
}

int folder_make_run(const char *folder, const char *id, const char *path, struct err *err)
{
    const char *slash = strrchr(path, '/');
    char *own = folder_run(folder, id, NULL);
    char *link = folder_run(folder, id, slash != NULL ? slash + 1 : path);
    int rc = make_folder(own, err);
    if (rc == 0 && symlink(path, link) < 0 && errno != EEXIST)
        rc = err_run(err, "%s: cannot make the link: %s", link, strerror(errno));
    free(own);
    free(link);
    return rc;
}

static void remove_path(char *path)
{
    remove(path);
    free(path);
}

/* Whatever is in it: a worker that was killed leaves files under names of its own. */
static void remove_run(const char *folder, const char *id)
{
    char *own = folder_run(folder, id, NULL);
    DIR *dir = opendir(own);
    for (struct dirent *at; dir != NULL && (at = readdir(dir)) != NULL;)
        if (strcmp(at->d_name, ".") != 0 && strcmp(at->d_name, "..") != 0)
            remove_path(folder_run(folder, id, at->d_name));
    if (dir != NULL)
        closedir(dir);
    remove_path(own);
}

void folder_remove(const char *folder, const struct job *j)
{
    if (j->kind == JOB_TRACE) {
        for (size_t i = 0; i < sizeof trace_ends / sizeof *trace_ends; i++)
            remove_path(folder_trace(folder, j->id, trace_ends[i]));
        return;
    }
    remove_run(folder, j->id);
}

static int write_all(int fd, const char *data, size_t len, off_t at)
{
    while (len > 0) {
        ssize_t n = pwrite(fd, data, len, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        data += n, len -= (size_t)n, at += n;
    }
    return 0;
}

int folder_write_part(const struct serve_config *config, const char *id, int64_t n,
                      const void *data, size_t len, struct err *err)
{
    int64_t at = n * SERVE_PART_BYTES;
    if (at + (int64_t)len > config->upload_mib << 20)
        return err_set(err, "the upload is larger than %lld MiB (--upload-mib)",
                       (long long)config->upload_mib);
    if (at > folder_trace_bytes(config->folder, id))
        return err_set(err,
                       "part %lld comes before the parts ahead of it are whole: each but the "
                       "last has %d bytes",
                       (long long)n, SERVE_PART_BYTES);
    char *path = folder_trace(config->folder, id, "");
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int rc = fd < 0 || write_all(fd, data, len, (off_t)at) < 0 ? -1 : 0;
    if (rc < 0)
        err_run(err, "cannot keep the part: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    free(path);
    return rc;
}

int64_t folder_trace_bytes(const char *folder, const char *id)
{
    struct stat st;
    int64_t bytes = 0;
    for (int i = 0; i < 2 && bytes == 0; i++) {
        char *path = folder_trace(folder, id, trace_ends[i]);
        if (stat(path, &st) == 0)
            bytes = (int64_t)st.st_size;
        free(path);
    }
    return bytes;
}
