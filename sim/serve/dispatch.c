/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/serve/dispatch.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "sim/serve/answers.h"

enum { PARTS_MAX = 2, PATH_CHARS_MAX = 256 };

struct match {
    char *part[PARTS_MAX]; /* into `text` */
    char text[PATH_CHARS_MAX];
};

/* Both cut at each '/'. A part is never empty. */
static bool matches(const char *pattern, const char *path, struct match *m)
{
    int n = 0;
    char *at = m->text;
    memcpy(m->text, path, strlen(path) + 1);
    while (*pattern != '\0' && *at != '\0') {
        if (*pattern != '{') {
            if (*pattern++ != *at++)
                return false;
            continue;
        }
        size_t len = strcspn(at, "/");
        if (len == 0)
            return false;
        m->part[n++] = at;
        pattern += strcspn(pattern, "}") + 1;
        at += len;
        if (*at == '/') {
            *at++ = '\0';
            if (*pattern++ != '/')
                return false;
        }
    }
    return *pattern == '\0' && *at == '\0';
}

/* In time that does not tell how much of it is right. */
static bool is_token(const char *authorization, const char *token)
{
    static const char scheme[] = "Bearer ";
    if (authorization == NULL || strncmp(authorization, scheme, strlen(scheme)) != 0)
        return false;
    const char *given = authorization + strlen(scheme);
    size_t len = strlen(token), given_len = strlen(given);
    unsigned wrong = len != given_len;
    for (size_t i = 0; i < given_len; i++)
        wrong |= (unsigned char)given[i] ^ (unsigned char)token[i % len];
    return wrong == 0;
}

/* "application/json; charset=utf-8" is of the type too. */
static bool is_type(const char *given, const char *type)
{
    size_t len = strlen(type);
    return given != NULL && strncmp(given, type, len) == 0 &&
           (given[len] == '\0' || given[len] == ';');
}

static void run_route(struct site *s, const struct route *route, const struct ask *a,
                      struct match *m, struct answer *r)
{
    if (!route->is_open && s->config->token[0] != '\0' &&
        !is_token(a->authorization, s->config->token))
        answer_fault(r, 401, "needs the server's token: \"Authorization: Bearer TOKEN\"");
    else if (route->body_type != NULL && !is_type(a->type, route->body_type))
        answer_fault(r, 415, "the body must be %s; uploads come in parts, not as forms",
                     route->body_type);
    else
        route->run(s, a, m->part, r);
}

void dispatch(struct site *s, const struct ask *a, struct answer *r)
{
    struct match m = {0};
    const char *allow = NULL;
    if (strlen(a->path) >= PATH_CHARS_MAX) {
        answer_fault(r, 414, "the path has more than %d characters", PATH_CHARS_MAX - 1);
        return;
    }
    for (const struct route *route = api_routes; route->method != NULL; route++) {
        if (!matches(route->path, a->path, &m))
            continue;
        if (strcmp(route->method, a->method) == 0) {
            run_route(s, route, a, &m, r);
            return;
        }
        allow = route->method;
    }
    if (allow == NULL)
        answer_fault(r, 404, "there is nothing at this path");
    else
        answer_fault(r, 405, "the method is not one of this path's");
    r->allow = allow;
}
