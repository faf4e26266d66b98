/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/serve/folder.h"

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
    {"--json", "result.json", "application/json", "the result: every number"},
    {"--requests", "requests.csv", "text/csv; charset=utf-8", "a row per request and policy"},
    {NULL, "tables.txt", "text/plain; charset=utf-8", "the tables, as in a terminal"},
    {0},
};

/* Besides these, for the server's own use. */
static const char *const own_files[] = {"scenario.json", "log.txt"};
static const char *const trace_ends[] = {"", ".wtt", ".out", ".log"};

const struct run_file *run_file_find(const char *name)
{
    for (const struct run_file *f = run_files; f->name != NULL; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
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

static void remove_path(char *path)
{
    remove(path);
    free(path);
}

void folder_remove(const char *folder, const struct job *j)
{
    if (j->kind == JOB_TRACE) {
        for (size_t i = 0; i < sizeof trace_ends / sizeof *trace_ends; i++)
            remove_path(folder_trace(folder, j->id, trace_ends[i]));
        return;
    }
    for (const struct run_file *f = run_files; f->name != NULL; f++)
        remove_path(folder_run(folder, j->id, f->name));
    for (size_t i = 0; i < sizeof own_files / sizeof *own_files; i++)
        remove_path(folder_run(folder, j->id, own_files[i]));
    remove_path(folder_run(folder, j->id, NULL));
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
