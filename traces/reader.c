/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/reader.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/mem.h"

const struct trace_reader *const trace_readers[] = {
    &reader_servegen,
    &reader_weka,
    &reader_otel,
    &reader_openhands,
    &reader_sweagent,
    &reader_qwen,
    &reader_ragpulse,
    &reader_tracelab_rounds,
    &reader_llmservingsim,
    &reader_aibrix,
    &reader_mooncake,
    &reader_azure,
    &reader_burstgpt,
    &reader_sarathi,
    &reader_splitwise,
    &reader_tracelab_csv,
    &reader_blis,
    &reader_openhands_csv,
    &reader_weka_csv,
    &reader_lengths,
    &reader_vidur,
    &reader_plain,
    NULL,
};

int reader_next(struct lines *l, struct err *err)
{
    int got;
    while ((got = lines_next(l, err)) > 0 && l->line[strspn(l->line, " \t\r")] == '\0')
        continue;
    return got;
}

static const struct trace_reader *detect(const struct trace_head *h)
{
    const struct trace_reader *const *r = trace_readers;
    while (*r != NULL && !(*r)->detect(h))
        r++;
    return *r;
}

const struct trace_reader *reader_find(struct lines *l, struct err *err)
{
    int got = reader_next(l, err);
    if (got == 0)
        err_at(err, l->path, 0, "is empty, expected a trace");
    if (got <= 0)
        return NULL;
    size_t n;
    const char *ahead = lines_ahead(l, &n);
    char *text = xasprintf("%.*s", (int)n, ahead);
    const struct trace_reader *found = detect(&(struct trace_head){l->line, text});
    free(text);
    if (found == NULL)
        err_at(err, l->path, l->number,
               "no trace format begins like this; see \"wavetank list formats\"");
    lines_unread(l);
    return found;
}

bool reader_has_key(const struct trace_head *h, const char *key)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\"", key);
    return strstr(h->line, quoted) != NULL || strstr(h->text, quoted) != NULL;
}

char *reader_beside(const char *path, const char *ending, const char *other)
{
    size_t len = strlen(path), end = strlen(ending);
    if (len <= end || strcmp(path + len - end, ending) != 0)
        return NULL;
    char *beside = xasprintf("%.*s%s", (int)(len - end), path, other);
    if (access(beside, R_OK) == 0)
        return beside;
    free(beside);
    return NULL;
}

/* What Jansson reads from. */
struct document {
    struct lines *lines;
    struct err *err;
    size_t at; /* in the current line; its length plus one: behind the line end */
    bool failed;
};

static bool next_line(struct document *d)
{
    int got = lines_next(d->lines, d->err);
    d->failed = got < 0;
    d->at = 0;
    return got > 0;
}

static size_t read_document(void *buffer, size_t size, void *document)
{
    struct document *d = document;
    const struct lines *l = d->lines;
    if (d->at > l->len && !next_line(d))
        return d->failed ? (size_t)-1 : 0;
    size_t left = l->len - d->at, n = left < size ? left : size;
    memcpy(buffer, l->line + d->at, n);
    d->at += n;
    if (n < size) {
        ((char *)buffer)[n++] = '\n';
        d->at++;
    }
    return n;
}

json_t *reader_json(struct lines *l, struct err *err)
{
    json_error_t fault;
    struct document d = {.lines = l, .err = err};
    if (!next_line(&d))
        return NULL;
    long first = l->number;
    json_t *root = json_load_callback(read_document, &d, JSON_REJECT_DUPLICATES, &fault);
    if (root == NULL && !d.failed)
        err_at(err, l->path, first + fault.line - 1, "column %d: %s", fault.column, fault.text);
    return root;
}
