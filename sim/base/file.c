/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/base/file.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "sim/base/mem.h"

enum { BLOCK_BYTES = 64 << 10, OUTFILES_MAX = 32 };

int lines_open(struct lines *l, const char *path, struct err *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    struct stat st;
    if (path[0] == '\0')
        return err_set(err, "a file name is empty; give a path, or \"-\" for standard input");
    if (!is_stdin && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return err_set(err, "%s: is a directory, expected a file", path);
    errno = 0;
    int fd = is_stdin ? dup(STDIN_FILENO) : -1;
    gzFile gz = is_stdin ? gzdopen(fd, "rb") : gzopen(path, "rb");
    if (gz == NULL) {
        err_set(err, "%s: cannot open: %s", is_stdin ? "standard input" : path,
                errno ? strerror(errno) : "out of memory");
        if (fd >= 0)
            close(fd);
        return -1;
    }
    gzbuffer(gz, BLOCK_BYTES);
    *l = (struct lines){
        .path = is_stdin ? "standard input" : path, .gz = gz, .buf = xmalloc(BLOCK_BYTES)};
    return 0;
}

static int fail_read(const struct lines *l, struct err *err)
{
    int saved = errno, code;
    const char *text = gzerror(l->gz, &code);
    if (code == Z_ERRNO)
        return err_set(err, "%s: cannot read: %s", l->path, strerror(saved));
    if (code == Z_BUF_ERROR)
        return err_set(err, "%s: compressed file is truncated after line %ld", l->path,
                       l->number - 1);
    return err_set(err, "%s: compressed file is damaged: %s", l->path, text);
}

/* 1: bytes in buf, 0: end, -1: error. */
static int refill(struct lines *l, struct err *err)
{
    if (l->eof)
        return 0;
    int got = gzread(l->gz, l->buf, BLOCK_BYTES), code;
    if (got < 0)
        return fail_read(l, err);
    if (got == 0) {
        /* zlib hands out what a truncated file holds and tells only here */
        gzerror(l->gz, &code);
        if (code != Z_OK && code != Z_STREAM_END)
            return fail_read(l, err);
        l->eof = true;
    }
    l->buf_len = (size_t)got;
    l->buf_at = 0;
    return got > 0;
}

/* Move bytes up to the next LF from buf to the line. Returns whether the line is complete. */
static bool take(struct lines *l)
{
    const char *from = l->buf + l->buf_at;
    size_t left = l->buf_len - l->buf_at;
    const char *lf = memchr(from, '\n', left);
    size_t n = lf ? (size_t)(lf - from) : left;
    l->line = xgrow(l->line, &l->cap, l->len + n + 1, 1);
    memcpy(l->line + l->len, from, n);
    l->len += n;
    l->buf_at += n + (lf != NULL);
    return lf != NULL;
}

static int finish_line(struct lines *l, struct err *err)
{
    static const char bom[] = "\xEF\xBB\xBF";
    if (l->len > 0 && l->line[l->len - 1] == '\r')
        l->len--;
    if (l->number == 1 && l->len >= 3 && memcmp(l->line, bom, 3) == 0) {
        l->len -= 3;
        memmove(l->line, l->line + 3, l->len);
    }
    l->line[l->len] = '\0';
    if (memchr(l->line, '\0', l->len) != NULL)
        return err_at(err, l->path, l->number, "looks binary (has a NUL byte), expected text");
    return 1;
}

int lines_next(struct lines *l, struct err *err)
{
    if (l->unread) {
        l->unread = false;
        return 1;
    }
    l->len = 0;
    l->number++;
    for (bool complete = false, begun = false; !complete; begun = true) {
        int got = l->buf_at < l->buf_len ? 1 : refill(l, err);
        if (got < 0)
            return -1;
        if (got == 0 && !begun) {
            l->number--;
            return 0;
        }
        if (got == 0)
            break;
        complete = take(l);
        if (l->len > LINE_BYTES_MAX)
            return err_at(err, l->path, l->number, "line is longer than %d MiB, expected text",
                          LINE_BYTES_MAX >> 20);
    }
    return finish_line(l, err);
}

void lines_unread(struct lines *l)
{
    assert(l->number > 0 && !l->unread);
    l->unread = true;
}

const char *lines_ahead(const struct lines *l, size_t *n)
{
    *n = l->buf_len - l->buf_at;
    return l->buf + l->buf_at;
}

void lines_close(struct lines *l)
{
    if (l->gz != NULL)
        gzclose(l->gz);
    free(l->buf);
    free(l->line);
    *l = (struct lines){0};
}

char *file_absolute(const char *path)
{
    char here[4096];
    if (path[0] == '/' || getcwd(here, sizeof here) == NULL)
        return xstrdup(path);
    return xasprintf("%s/%s", here, path);
}

/* The temporary files, for the signal handler. */
static _Atomic(char *) pending[OUTFILES_MAX];

/* NULL finds a free slot. */
static _Atomic(char *) *find_pending(const char *tmp)
{
    for (int i = 0; i < OUTFILES_MAX; i++) {
        const char *p = pending[i];
        if (p == tmp || (p != NULL && tmp != NULL && strcmp(p, tmp) == 0))
            return &pending[i];
    }
    return NULL;
}

static int open_direct(struct outfile *o, const char *path, struct err *err)
{
    FILE *f = fopen(path, "w");
    if (f == NULL)
        return err_set(err, "%s: cannot write: %s", path, strerror(errno));
    *o = (struct outfile){.f = f, .path = xstrdup(path)};
    return 0;
}

static int open_beside(struct outfile *o, const char *path, struct err *err)
{
    char *tmp = xasprintf("%s.tmp.%ld", path, (long)getpid());
    FILE *f = NULL;
    if (find_pending(tmp) != NULL) {
        err_set(err, "%s: is named for two outputs; give each its own file", path);
        goto out;
    }
    unlink(tmp); /* a killed process with our id may have left one */
    f = fopen(tmp, "wx");
    if (f == NULL) {
        err_set(err, "%s: cannot create a file there: %s", path, strerror(errno));
        goto out;
    }
    _Atomic(char *) *slot = find_pending(NULL);
    assert(slot != NULL);
    *slot = tmp;
    *o = (struct outfile){.f = f, .path = xstrdup(path), .tmp = tmp};
    tmp = NULL;
out:
    free(tmp);
    return f != NULL ? 0 : -1;
}

int outfile_open(struct outfile *o, const char *path, struct err *err)
{
    struct stat st;
    if (strcmp(path, "-") == 0) {
        *o = (struct outfile){.f = stdout};
        return 0;
    }
    if (path[0] == '\0')
        return err_set(err, "a file name is empty; give a path, or \"-\" for standard output");
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return err_set(err, "%s: is a directory, expected a file to write", path);
    if (lstat(path, &st) != 0)
        return open_beside(o, path, err);
    if (access(path, W_OK) != 0 && !S_ISLNK(st.st_mode))
        return err_set(err, "%s: cannot write: %s", path, strerror(errno));
    /* a rename would replace the device, pipe or link (/dev/stdout is one) by a plain file */
    return S_ISREG(st.st_mode) ? open_beside(o, path, err) : open_direct(o, path, err);
}

static void forget(struct outfile *o)
{
    if (o->tmp != NULL)
        *find_pending(o->tmp) = NULL;
    free(o->path);
    free(o->tmp);
    *o = (struct outfile){0};
}

int outfile_commit(struct outfile *o, struct err *err)
{
    const char *path = o->path ? o->path : "standard output";
    int fault = 0;
    if (fflush(o->f) != 0)
        fault = errno;
    else if (ferror(o->f))
        fault = EIO;
    if (o->path != NULL && fclose(o->f) != 0 && fault == 0)
        fault = errno;
    if (fault == 0 && o->tmp != NULL && rename(o->tmp, path) != 0)
        fault = errno;
    if (fault != 0) {
        err_set(err, "%s: cannot write: %s", path, strerror(fault));
        if (o->tmp != NULL)
            unlink(o->tmp);
    }
    forget(o);
    return fault != 0 ? -1 : 0;
}

void outfile_abort(struct outfile *o)
{
    if (o->f == NULL)
        return;
    if (o->path != NULL)
        fclose(o->f);
    if (o->tmp != NULL)
        unlink(o->tmp);
    forget(o);
}

void outfile_abort_all(void)
{
    for (int i = 0; i < OUTFILES_MAX; i++) {
        const char *tmp = pending[i];
        if (tmp != NULL)
            unlink(tmp);
    }
}
