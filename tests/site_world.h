/* SPDX-License-Identifier: Apache-2.0
 *
 * A site without sockets or workers, in a folder of its own: jobs are taken in and wait for ever.
 */
#ifndef TESTS_SITE_WORLD_H
#define TESTS_SITE_WORLD_H

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "sim/serve/dispatch.h"
#include "sim/serve/folder.h"

struct site_world {
    char data[64];
    struct serve_config config;
    struct choices choices;
    struct metrics metrics;
    struct event_base *base;
    struct events *events;
    struct site site;
    struct answer last; /* of site_world_ask(); its text: */
    char text[1 << 16];
};

static void site_world_open(struct site_world *w)
{
    struct err err = ERR_NONE;
    if (w->data[0] == '\0') {
        strcpy(w->data, "/tmp/test_serve_XXXXXX");
        char *made = mkdtemp(w->data);
        assert(made != NULL);
    }
    w->config = (struct serve_config){
        .host = "127.0.0.1", .data = w->data, .queue = 3, .upload_mib = 2, .worker_s = 1};
    int rc = folder_open(&w->config, &err);
    rc = rc == 0 ? choices_load(&w->choices, &err) : rc;
    char *path = folder_jobs(w->config.folder);
    w->site = (struct site){.config = &w->config,
                            .choices = &w->choices,
                            .jobs = rc == 0 ? jobs_open(path, &err) : NULL,
                            .metrics = &w->metrics};
    free(path);
    assert(w->site.jobs != NULL);
    w->base = event_base_new();
    w->events = events_new(w->base);
    struct queue_parts parts = {w->base,     w->site.jobs, w->events,
                                &w->metrics, &w->config,   &w->choices};
    w->site.queue = queue_new(&parts, &err);
    assert(w->site.queue != NULL);
}

static void site_world_close(struct site_world *w)
{
    site_release(&w->site);
    queue_free(w->site.queue);
    events_free(w->events);
    event_base_free(w->base);
    jobs_close(w->site.jobs);
    choices_release(&w->choices);
}

/* The status; the text is in w->text. */
static int site_world_ask(struct site_world *w, const struct ask *a)
{
    w->last = (struct answer){.body = evbuffer_new()};
    dispatch(&w->site, a, &w->last);
    size_t len = evbuffer_get_length(w->last.body);
    len = len < sizeof w->text ? len : sizeof w->text - 1;
    evbuffer_remove(w->last.body, w->text, len);
    w->text[len] = '\0';
    evbuffer_free(w->last.body);
    return w->last.status;
}

#endif
