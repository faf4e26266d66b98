/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/serve/answers.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <event2/buffer.h>

#include "sim/web/asset.h"

void answer_json(struct answer *r, int status, json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9));
    r->status = status;
    r->type = "application/json";
    evbuffer_add(r->body, text, strlen(text));
    free(text);
    json_decref(json);
}

void answer_fault(struct answer *r, int status, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    json_t *error = json_string(text);
    /* what a client sent may be no UTF-8, and be quoted */
    answer_json(r, status,
                json_pack("{s:o}", "error",
                          error != NULL ? error : json_string("the request is no UTF-8")));
}

void answer_err(struct answer *r, const struct err *err)
{
    answer_fault(r, err->kind == ERR_INPUT ? 400 : 500, "%s", err->text);
}

void answer_text(struct answer *r, const char *text)
{
    r->status = 200;
    r->type = "text/plain; charset=utf-8";
    evbuffer_add(r->body, text, strlen(text));
}

void answer_asset(struct answer *r, const char *name)
{
    const struct asset *a = asset_find(name);
    if (a == NULL) {
        answer_fault(r, 404, "the program has no such file");
        return;
    }
    r->status = 200;
    r->type = a->type;
    evbuffer_add_reference(r->body, a->data, a->len, NULL, NULL);
}

void answer_file(struct answer *r, const char *path, const struct run_file *f)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        if (fd >= 0)
            close(fd);
        answer_fault(r, 404, "the run's file is no longer there");
        return;
    }
    r->status = 200;
    r->type = f->type;
    r->name = f->name;
    if (st.st_size == 0)
        close(fd);
    else
        evbuffer_add_file(r->body, fd, 0, (ev_off_t)st.st_size);
}
