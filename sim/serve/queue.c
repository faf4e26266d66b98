/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/serve/queue.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "sim/base/mem.h"
#include "sim/serve/folder.h"
#include "sim/serve/order.h"
#include "sim/serve/worker.h"

/* A worker that neither computes nor ends is stopped after so many times its processor time. */
enum { WALL_FACTOR = 10, LINE_BYTES_MAX_KEPT = 4096 };

struct slot {
    struct queue *owner;
    bool busy, was_cancelled, was_late;
    struct worker worker;
    struct job job;
    struct command command;
    struct event *readable, *late;
    struct evbuffer *lines;
    int64_t done, total; /* of the policy that it runs now; total 0: it has not said */
    char label[128];
};

struct queue {
    struct queue_parts parts;
    struct event *child;
    struct slot slot[SERVE_WORKERS_MAX];
};

/* -1: no worker has it. */
static int find_slot(const struct queue *q, const char *id)
{
    for (int i = 0; i < q->parts.config->workers; i++)
        if (q->slot[i].busy && strcmp(q->slot[i].job.id, id) == 0)
            return i;
    return -1;
}

static json_t *progress_json(const struct slot *s)
{
    return json_pack("{s:s, s:I, s:I}", "policy", s->label, "done", (json_int_t)s->done, "total",
                     (json_int_t)s->total);
}

static json_t *files_json(const struct job *j, const json_t *order)
{
    json_t *list = json_array();
    for (const struct run_file *f = run_files; f->name != NULL; f++) {
        if (!run_file_is_wanted(f, order))
            continue;
        char *href = xasprintf("/api/runs/%s/files/%s", j->id, f->name);
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s}", "name", f->name, "what", f->what, "href", href));
        free(href);
    }
    return list;
}

static void set_time(json_t *o, const char *key, int64_t s)
{
    json_object_set_new(o, key, s > 0 ? json_integer((json_int_t)s) : json_null());
}

json_t *queue_job_json(const struct queue *q, const struct job *j)
{
    int at = find_slot(q, j->id);
    json_t *o = json_object(), *name = json_string(j->name), *order = json_loads(j->order, 0, NULL);
    json_object_set_new(o, "id", json_string(j->id));
    json_object_set_new(o, "state", json_string(job_state_names[j->state]));
    json_object_set_new(o, "name", name != NULL ? name : json_string(""));
    json_object_set_new(o, "order", order != NULL ? order : json_null());
    json_object_set_new(o, "message", j->message ? json_string(j->message) : json_null());
    set_time(o, "created_s", j->created_s);
    set_time(o, "started_s", j->started_s);
    set_time(o, "ended_s", j->ended_s);
    if (at >= 0 && q->slot[at].total > 0)
        json_object_set_new(o, "progress", progress_json(&q->slot[at]));
    if (j->kind == JOB_RUN && j->state == JOB_DONE)
        json_object_set_new(o, "files", files_json(j, order));
    if (j->kind == JOB_TRACE)
        json_object_set_new(
            o, "bytes",
            json_integer((json_int_t)folder_trace_bytes(q->parts.config->folder, j->id)));
    return o;
}

/* To the store and to watchers. A store that fails is told on stderr: the job itself went on. */
static int move_job(struct queue *q, const struct job *j, enum job_state state, const char *message)
{
    struct err err = ERR_NONE;
    struct job now = {0};
    if (jobs_move(q->parts.jobs, j->id, state, message, &err) < 0 ||
        jobs_get(q->parts.jobs, (enum job_kind)j->kind, j->id, &now, &err) < 0)
        err_report(&err, "wavetank serve");
    if (now.name == NULL)
        return -1;
    json_t *json = queue_job_json(q, &now);
    events_publish(q->parts.events, j->id, "state", json);
    json_decref(json);
    job_release(&now);
    if (job_has_ended(state)) {
        q->parts.metrics->ended[state]++;
        events_end(q->parts.events, j->id);
    }
    return 0;
}

/* "DONE TOTAL LABEL" */
static void take_line(struct slot *s, const char *line)
{
    long long done, total;
    int at = 0;
    if (sscanf(line, "%lld %lld %n", &done, &total, &at) != 2 || at == 0)
        return;
    s->done = done;
    s->total = total;
    snprintf(s->label, sizeof s->label, "%s", line + at);
}

static void on_readable(evutil_socket_t fd, short what, void *slot)
{
    (void)what;
    struct slot *s = slot;
    bool any = false;
    int n = evbuffer_read(s->lines, fd, LINE_BYTES_MAX_KEPT);
    for (char *line; (line = evbuffer_readln(s->lines, NULL, EVBUFFER_EOL_LF)) != NULL;
         any = true) {
        take_line(s, line);
        free(line);
    }
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) ||
        evbuffer_get_length(s->lines) > LINE_BYTES_MAX_KEPT)
        event_del(s->readable);
    if (!any)
        return;
    json_t *json = progress_json(s);
    events_publish(s->owner->parts.events, s->job.id, "progress", json);
    json_decref(json);
}

static void on_late(evutil_socket_t fd, short what, void *slot)
{
    (void)fd, (void)what;
    struct slot *s = slot;
    s->was_late = true;
    worker_kill(&s->worker);
}

static void clear(struct slot *s)
{
    struct queue *owner = s->owner;
    if (s->readable != NULL)
        event_free(s->readable);
    if (s->late != NULL)
        event_free(s->late);
    if (s->lines != NULL)
        evbuffer_free(s->lines);
    if (s->worker.pid > 0)
        close(s->worker.progress_fd);
    command_release(&s->command);
    job_release(&s->job);
    *s = (struct slot){.owner = owner};
}

static void watch(struct slot *s)
{
    const struct queue_parts *p = &s->owner->parts;
    struct timeval late = {.tv_sec = p->config->worker_s * WALL_FACTOR};
    s->lines = evbuffer_new();
    s->readable = event_new(p->base, s->worker.progress_fd, EV_READ | EV_PERSIST, on_readable, s);
    s->late = event_new(p->base, -1, 0, on_late, s);
    event_add(s->readable, NULL);
    event_add(s->late, &late);
}

/* The job of the slot, which it owns from now on. -1 when the store cannot be told. */
static int start(struct slot *s, struct job j)
{
    struct err err = ERR_NONE;
    const struct serve_config *config = s->owner->parts.config;
    s->busy = true;
    s->job = j;
    if (order_prepare(&s->command, &j, config, s->owner->parts.choices, &err) < 0)
        goto fail;
    struct worker_ask ask = {.argv = s->command.arg,
                             .folder = s->command.folder,
                             .out = s->command.out,
                             .log = s->command.log,
                             .memory_bytes = config->worker_mib << 20,
                             .cpu_s = config->worker_s};
    if (worker_start(&s->worker, &ask, &err) < 0)
        goto fail;
    watch(s);
    return move_job(s->owner, &s->job, JOB_RUNNING, NULL);
fail:
    s->busy = false;
    int rc = move_job(s->owner, &s->job, JOB_FAILED, err.text);
    clear(s);
    return rc;
}

static void fill(struct queue *q)
{
    for (int64_t i = 0; i < q->parts.config->workers; i++) {
        struct err err = ERR_NONE;
        struct job j;
        int found = 1;
        while (!q->slot[i].busy && (found = jobs_next(q->parts.jobs, &j, &err)) > 0)
            if (start(&q->slot[i], j) < 0)
                return;
        if (found < 0)
            err_report(&err, "wavetank serve");
        if (found <= 0)
            return;
    }
}

static void finish(struct slot *s, int status)
{
    char *fault = worker_fault(status, s->command.log);
    struct job j = s->job;
    enum job_state state = fault == NULL ? JOB_DONE : s->was_cancelled ? JOB_CANCELLED : JOB_FAILED;
    const char *message = state != JOB_FAILED ? NULL
                          : s->was_late       ? "took longer than the server allows (--worker-s)"
                                              : fault;
    s->busy = false; /* before anybody is told: a job that has ended has no progress */
    move_job(s->owner, &j, state, message);
    free(fault);
    clear(s);
}

static void on_child(evutil_socket_t fd, short what, void *queue)
{
    (void)fd, (void)what;
    struct queue *q = queue;
    int status;
    for (int64_t i = 0; i < q->parts.config->workers; i++) {
        struct slot *s = &q->slot[i];
        if (s->busy && waitpid(s->worker.pid, &status, WNOHANG) == s->worker.pid)
            finish(s, status);
    }
    fill(q);
}

struct queue *queue_new(const struct queue_parts *parts, struct err *err)
{
    struct queue *q = xcalloc(1, sizeof *q);
    q->parts = *parts;
    for (int i = 0; i < SERVE_WORKERS_MAX; i++)
        q->slot[i].owner = q;
    q->child = evsignal_new(parts->base, SIGCHLD, on_child, q);
    if (q->child == NULL || event_add(q->child, NULL) < 0) {
        err_run(err, "cannot wait for workers: %s", strerror(errno));
        free(q);
        return NULL;
    }
    worker_prepare();
    fill(q);
    return q;
}

void queue_free(struct queue *q)
{
    if (q == NULL)
        return;
    for (int i = 0; i < SERVE_WORKERS_MAX; i++) {
        struct slot *s = &q->slot[i];
        if (!s->busy)
            continue;
        worker_kill(&s->worker);
        waitpid(s->worker.pid, NULL, 0);
        s->busy = false;
        move_job(q, &s->job, JOB_INTERRUPTED, "the server was stopped while it ran");
        clear(s);
    }
    event_free(q->child);
    free(q);
}

static int64_t waiting(const struct queue *q)
{
    return jobs_count(q->parts.jobs, JOB_RUN, JOB_QUEUED) +
           jobs_count(q->parts.jobs, JOB_TRACE, JOB_QUEUED);
}

bool queue_is_full(const struct queue *q)
{
    return waiting(q) >= q->parts.config->queue;
}

int queue_add(struct queue *q, const struct job *j, struct err *err)
{
    if (jobs_add(q->parts.jobs, j, err) < 0)
        return -1;
    fill(q);
    return 0;
}

int queue_check(struct queue *q, const struct job *j, struct err *err)
{
    if (jobs_move(q->parts.jobs, j->id, JOB_QUEUED, NULL, err) < 0)
        return -1;
    fill(q);
    return 0;
}

void queue_cancel(struct queue *q, const struct job *j)
{
    int at = find_slot(q, j->id);
    if (at < 0) {
        move_job(q, j, JOB_CANCELLED, NULL);
        return;
    }
    q->slot[at].was_cancelled = true;
    worker_kill(&q->slot[at].worker);
}

void queue_count(const struct queue *q, struct metrics *m)
{
    m->workers = 0;
    for (int i = 0; i < SERVE_WORKERS_MAX; i++)
        m->workers += q->slot[i].busy;
    m->queued = waiting(q);
    m->watchers = events_watchers(q->parts.events);
}
