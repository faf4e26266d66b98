/* SPDX-License-Identifier: Apache-2.0
 *
 * The routes: every method and path that the server answers, and what it answers. Knows nothing of
 * sockets, so that tests and the fuzzer call it as the server does. docs/openapi.json describes it.
 */
#ifndef SIM_SERVE_API_H
#define SIM_SERVE_API_H

#include <stdbool.h>
#include <stddef.h>

#include "sim/serve/queue.h"

struct evbuffer;

struct ask {
    const char *method, *path; /* as sent, without the query */
    const char *ids, *before;  /* ?ids=, ?before=, decoded; NULL */
    const char *type;          /* Content-Type; NULL */
    const char *authorization; /* NULL */
    const void *body;
    size_t len;
};

struct answer {
    int status;
    const char *type;      /* Content-Type */
    const char *name;      /* of a file to be saved; NULL */
    const char *allow;     /* with 405 */
    struct evbuffer *body; /* the caller's, empty at first */
    char watch[ID_SIZE];   /* not empty: the answer is the stream of this job's events */
};

struct site {
    const struct serve_config *config;
    const struct choices *choices;
    struct jobs *jobs;
    struct queue *queue;
    struct metrics *metrics;
    struct listing {
        char *text; /* NULL: none yet */
        int64_t changes;
    } listing[JOB_KIND_COUNT]; /* answers that are good until a job changes; site_release() */
};
void site_release(struct site *s);

struct route {
    const char *method, *path; /* "{id}" stands for one segment, "{name}" too */
    bool is_open;              /* without the token: pages, and what only an id leads to */
    const char *body_type;     /* Content-Type that it must have; NULL: no body */
    /* `part`: what stands for {id} and {name}, in order. */
    void (*run)(struct site *s, const struct ask *a, char *const *part, struct answer *r);
};
extern const struct route api_routes[]; /* ends with a NULL method */

#endif
