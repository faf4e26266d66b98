/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/serve/api.h"

#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>

#include "sim/base/mem.h"
#include "sim/serve/answers.h"
#include "sim/serve/folder.h"
#include "sim/serve/order.h"
#include "sim/web/asset.h"

static const char json_body[] = "application/json";

enum { LIST_MAX = 50, OPEN_UPLOADS_MAX = 16, COMPARE_MAX = 8 };

/* The job that the path names; false when it has been answered that there is none. */
static bool find_job(struct site *s, enum job_kind kind, const char *id, struct job *j,
                     struct answer *r)
{
    struct err err = ERR_NONE;
    int found = id_is(id) ? jobs_get(s->jobs, kind, id, j, &err) : 0;
    if (found == 0)
        answer_fault(r, 404, kind == JOB_RUN ? "there is no such run" : "there is no such trace");
    else if (found < 0)
        answer_err(r, &err);
    return found > 0;
}

static void answer_job(struct site *s, const struct job *j, int status, struct answer *r)
{
    answer_json(r, status, queue_job_json(s->queue, j));
}

static void answer_job_now(struct site *s, const struct job *j, int status, struct answer *r)
{
    struct job now;
    if (!find_job(s, (enum job_kind)j->kind, j->id, &now, r))
        return;
    answer_job(s, &now, status, r);
    job_release(&now);
}

static void get_page(struct site *s, const struct ask *a, char *const *part, struct answer *r)
{
    (void)s, (void)a, (void)part;
    answer_asset(r, "index.html");
}

static void get_asset(struct site *s, const struct ask *a, char *const *part, struct answer *r)
{
    (void)s, (void)a;
    answer_asset(r, part[0]);
}

static void get_openapi(struct site *s, const struct ask *a, char *const *part, struct answer *r)
{
    (void)s, (void)a, (void)part;
    answer_asset(r, "openapi.json");
}

static void get_health(struct site *s, const struct ask *a, char *const *part, struct answer *r)
{
    (void)s, (void)a, (void)part;
    answer_text(r, "ok\n");
}

static void get_metrics(struct site *s, const struct ask *a, char *const *part, struct answer *r)
{
    (void)a, (void)part;
    queue_count(s->queue, s->metrics);
    r->status = 200;
    r->type = "text/plain; version=0.0.4; charset=utf-8";
    metrics_print(s->metrics, r->body);
}

static void get_about(struct site *s, const struct ask *a, char *const *part, struct answer *r)
{
    (void)a, (void)part;
    json_t *licences = json_array(), *options = json_array();
    for (int i = 0; order_scenario_keys[i] != NULL; i++)
        json_array_append_new(options, json_string(order_scenario_keys[i]));
    for (const struct asset *at = assets; at->name != NULL; at++)
        if (strstr(at->name, ".txt") != NULL)
            json_array_append_new(licences, json_string(at->name));
    answer_json(r, 200,
                json_pack("{s:b, s:b, s:I, s:i, s:i, s:o, s:o}", "charts",
                          asset_find("echarts.min.js") != NULL, "needs_token",
                          s->config->token[0] != 0, "upload_mib", (json_int_t)s->config->upload_mib,
                          "part_bytes", SERVE_PART_BYTES, "list_max", LIST_MAX, "licences",
                          licences, "options", options));
}

static void get_choices(struct site *s, const struct ask *a, char *const *part, struct answer *r)
{
    (void)a, (void)part;
    r->status = 200;
    r->type = "application/json";
    evbuffer_add(r->body, s->choices->text, strlen(s->choices->text));
}

/* Without what changes while a job does not. */
static char *list_text(struct site *s, enum job_kind kind, const char *before, struct err *err)
{
    struct job job[LIST_MAX];
    int n = jobs_list(s->jobs, kind, before, job, LIST_MAX, err);
    if (n < 0)
        return NULL;
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        json_t *o = queue_job_json(s->queue, &job[i]);
        json_object_del(o, "progress");
        if (job[i].state == JOB_OPEN)
            json_object_del(o, "bytes");
        json_array_append_new(list, o);
        job_release(&job[i]);
    }
    json_t *all = json_pack("{s:o}", kind == JOB_RUN ? "runs" : "traces", list);
    char *text = json_dumps(all, JSON_COMPACT);
    json_decref(all);
    return text;
}

static void answer_list(struct answer *r, const char *text, const struct err *err)
{
    if (text == NULL) {
        answer_err(r, err);
        return;
    }
    r->status = 200;
    r->type = json_body;
    evbuffer_add(r->body, text, strlen(text));
}

static void list_older(struct site *s, enum job_kind kind, const char *before, struct answer *r)
{
    struct err err = ERR_NONE;
    char *text = list_text(s, kind, before, &err);
    answer_list(r, text, &err);
    free(text);
}

/* Many ask for the newest, and these change only when a job does. */
static void list_newest(struct site *s, enum job_kind kind, struct answer *r)
{
    struct err err = ERR_NONE;
    struct listing *l = &s->listing[kind];
    if (l->text == NULL || l->changes != jobs_changes(s->jobs)) {
        free(l->text);
        l->text = list_text(s, kind, NULL, &err);
        l->changes = jobs_changes(s->jobs);
    }
    answer_list(r, l->text, &err);
}

static void list_jobs(struct site *s, enum job_kind kind, const struct ask *a, struct answer *r)
{
    if (a->before != NULL)
        list_older(s, kind, a->before, r);
    else
        list_newest(s, kind, r);
}

void site_release(struct site *s)
{
    for (int i = 0; i < JOB_KIND_COUNT; i++) {
        free(s->listing[i].text);
        s->listing[i].text = NULL;
    }
}

static void list_runs(struct site *s, const struct ask *a, char *const *part, struct answer *r)
{
    (void)part;
    list_jobs(s, JOB_RUN, a, r);
}

static void list_traces(struct site *s, const struct ask *a, char *const *part, struct answer *r)
{
    (void)part;
    list_jobs(s, JOB_TRACE, a, r);
}

/* A new reference, or NULL when it has been answered what is wrong. */
static json_t *read_body(const struct ask *a, struct answer *r)
{
    json_error_t where;
    json_t *body = json_loadb(a->body, a->len, JSON_REJECT_DUPLICATES, &where);
    if (body == NULL)
        answer_fault(r, 400, "the body is no JSON: line %d: %s", where.line, where.text);
    return body;
}

static bool has_room(struct site *s, struct answer *r)
{
    if (!queue_is_full(s->queue))
        return true;
    answer_fault(r, 429, "%lld jobs wait already; try again later", (long long)s->config->queue);
    return false;
}

static void add_job(struct site *s, struct job *j, int status, struct answer *r)
{
    struct err err = ERR_NONE;
    if (id_make(j->id, &err) < 0 || queue_add(s->queue, j, &err) < 0)
        answer_err(r, &err);
    else
        answer_job_now(s, j, status, r);
}

static void post_run(struct site *s, const struct ask *a, char *const *part, struct answer *r)
{
    (void)part;
    struct err err = ERR_NONE;
    struct job j = {.kind = JOB_RUN, .state = JOB_QUEUED};
    json_t *body = has_room(s, r) ? read_body(a, r) : NULL;
    if (body == NULL)
        return;
    if (order_read_run(&j, body, s->choices, s->jobs, &err) < 0)
        answer_err(r, &err);
    else
        add_job(s, &j, 202, r);
    job_release(&j);
    json_decref(body);
}

static void post_trace(struct site *s, const struct ask *a, char *const *part, struct answer *r)
{
    (void)part;
    struct err err = ERR_NONE;
    struct job j = {.kind = JOB_TRACE, .state = JOB_QUEUED};
    json_t *body = has_room(s, r) ? read_body(a, r) : NULL;
    if (body == NULL)
        return;
    bool is_upload = json_object_get(body, "preset") == NULL;
    if (is_upload)
        j.state = JOB_OPEN;
    if (is_upload && jobs_count(s->jobs, JOB_TRACE, JOB_OPEN) >= OPEN_UPLOADS_MAX)
        answer_fault(r, 429, "%d uploads are open already; finish or delete one", OPEN_UPLOADS_MAX);
    else if (order_read_trace(&j, body, s->choices, &err) < 0)
        answer_err(r, &err);
    else
        add_job(s, &j, is_upload ? 201 : 202, r);
    job_release(&j);
    json_decref(body);
}

static void get_run(struct site *s, const struct ask *a, char *const *part, struct answer *r)
{
    (void)a;
    struct job j;
    if (!find_job(s, JOB_RUN, part[0], &j, r))
        return;
    answer_job(s, &j, 200, r);
    job_release(&j);
}

static void get_trace(struct site *s, const struct ask *a, char *const *part, struct answer *r)
{
    (void)a;
    struct job j;
    if (!find_job(s, JOB_TRACE, part[0], &j, r))
        return;
    answer_job(s, &j, 200, r);
    job_release(&j);
}

static void delete_job(struct site *s, enum job_kind kind, const char *id, struct answer *r)
{
    struct err err = ERR_NONE;
    struct job j;
    if (!find_job(s, kind, id, &j, r))
        return;
    if (!job_has_ended((enum job_state)j.state) && j.state != JOB_OPEN)
        answer_fault(r, 409, "it has not ended; cancel it first");
    else if (jobs_remove(s->jobs, j.id, &err) < 0)
        answer_err(r, &err);
    else
        r->status = 204;
    if (r->status == 204)
        folder_remove(s->config->folder, &j);
    job_release(&j);
}

static void delete_run(struct site *s, const struct ask *a, char *const *part, struct answer *r)
{
    (void)a;
    delete_job(s, JOB_RUN, part[0], r);
}

static void delete_trace(struct site *s, const struct ask *a, char *const *part, struct answer *r)
{
    (void)a;
    delete_job(s, JOB_TRACE, part[0], r);
}

static void cancel_run(struct site *s, const struct ask *a, char *const *part, struct answer *r)
{
    (void)a;
    struct job j;
    if (!find_job(s, JOB_RUN, part[0], &j, r))
        return;
    if (job_has_ended((enum job_state)j.state)) {
        answer_fault(r, 409, "it has ended: %s", job_state_names[j.state]);
    } else {
        queue_cancel(s->queue, &j);
        answer_job_now(s, &j, 202, r);
    }
    job_release(&j);
}

static void watch_run(struct site *s, const struct ask *a, char *const *part, struct answer *r)
{
    (void)a;
    struct job j;
    if (!find_job(s, JOB_RUN, part[0], &j, r))
        return;
    json_t *json = queue_job_json(s->queue, &j);
    char *text = json_dumps(json, JSON_COMPACT);
    evbuffer_add_printf(r->body, "event: state\ndata: %s\n\n", text);
    r->status = 200;
    r->type = "text/event-stream";
    if (!job_has_ended((enum job_state)j.state))
        memcpy(r->watch, j.id, sizeof r->watch);
    free(text);
    json_decref(json);
    job_release(&j);
}

static void get_file(struct site *s, const struct ask *a, char *const *part, struct answer *r)
{
    (void)a;
    struct job j;
    const struct run_file *f = run_file_find(part[1]);
    if (!find_job(s, JOB_RUN, part[0], &j, r))
        return;
    json_t *order = json_loads(j.order, 0, NULL);
    if (f == NULL || j.state != JOB_DONE) {
        answer_fault(r, 404, f == NULL ? "a run has no such file" : "the run has no files (yet)");
    } else if (!run_file_is_wanted(f, order)) {
        answer_fault(r, 404, "that run was not asked for it: order one with \"%s\": true", f->key);
    } else {
        char *path = folder_run(s->config->folder, j.id, f->name);
        answer_file(r, path, f);
        free(path);
    }
    json_decref(order);
    job_release(&j);
}

/* One run of a comparison: the job, and its result where it has one. */
static json_t *run_with_result(struct site *s, const struct job *j)
{
    json_t *o = queue_job_json(s->queue, j);
    if (j->state != JOB_DONE)
        return o;
    char *path = folder_run(s->config->folder, j->id, "result.json");
    json_t *result = json_load_file(path, 0, NULL);
    json_object_set_new(o, "result", result != NULL ? result : json_null());
    free(path);
    return o;
}

static bool add_compared(struct site *s, json_t *list, const char *id, struct answer *r)
{
    struct job j;
    if (!find_job(s, JOB_RUN, id, &j, r))
        return false;
    json_array_append_new(list, run_with_result(s, &j));
    job_release(&j);
    return true;
}

static void compare(struct site *s, const struct ask *a, char *const *part, struct answer *r)
{
    (void)part;
    char *ids = xstrdup(a->ids != NULL ? a->ids : ""), *rest = ids;
    json_t *list = json_array(), *all = json_object();
    bool good = true;
    for (char *id; good && (id = strtok_r(rest, ",", &rest)) != NULL;) {
        good = json_array_size(list) < COMPARE_MAX;
        if (!good)
            answer_fault(r, 400, "?ids= names more than %d runs", COMPARE_MAX);
        else
            good = add_compared(s, list, id, r);
    }
    if (good && json_array_size(list) == 0) {
        answer_fault(r, 400, "say which runs: ?ids=ID,ID");
        good = false;
    }
    json_object_set_new(all, "runs", list);
    if (good)
        answer_json(r, 200, json_incref(all));
    json_decref(all);
    free(ids);
}

/* An upload that is still open; false when it has been answered that this one is not. */
static bool find_open(struct site *s, const char *id, struct job *j, struct answer *r)
{
    if (!find_job(s, JOB_TRACE, id, j, r))
        return false;
    if (j->state == JOB_OPEN)
        return true;
    answer_fault(r, 409, "that trace takes no more parts: %s", job_state_names[j->state]);
    job_release(j);
    return false;
}

static void put_part(struct site *s, const struct ask *a, char *const *part, struct answer *r)
{
    struct err err = ERR_NONE;
    struct job j;
    char *end;
    long n = strtol(part[1], &end, 10);
    if (part[1][0] < '0' || part[1][0] > '9' || *end != '\0' || n > 1 << 20) {
        answer_fault(r, 400, "parts are numbered 0, 1, 2 ...");
        return;
    }
    if (!find_open(s, part[0], &j, r))
        return;
    if (a->len > SERVE_PART_BYTES)
        answer_fault(r, 413, "a part has at most %d bytes", SERVE_PART_BYTES);
    else if (folder_write_part(s->config, j.id, n, a->body, a->len, &err) < 0)
        answer_err(r, &err);
    else
        answer_job(s, &j, 200, r);
    s->metrics->upload_bytes += r->status == 200 ? (int64_t)a->len : 0;
    job_release(&j);
}

static void check_trace(struct site *s, const struct ask *a, char *const *part, struct answer *r)
{
    (void)a;
    struct err err = ERR_NONE;
    struct job j;
    if (!has_room(s, r) || !find_open(s, part[0], &j, r))
        return;
    if (queue_check(s->queue, &j, &err) < 0)
        answer_err(r, &err);
    else
        answer_job_now(s, &j, 202, r);
    job_release(&j);
}

const struct route api_routes[] = {
    {"GET", "/", true, NULL, get_page},
    {"GET", "/runs/{id}", true, NULL, get_page},
    {"GET", "/compare", true, NULL, get_page},
    {"GET", "/assets/{name}", true, NULL, get_asset},
    {"GET", "/healthz", true, NULL, get_health},
    {"GET", "/metrics", false, NULL, get_metrics},
    {"GET", "/api/openapi.json", true, NULL, get_openapi},
    {"GET", "/api/about", true, NULL, get_about},
    {"GET", "/api/choices", false, NULL, get_choices},
    {"GET", "/api/runs", false, NULL, list_runs},
    {"POST", "/api/runs", false, json_body, post_run},
    {"GET", "/api/runs/{id}", true, NULL, get_run},
    {"DELETE", "/api/runs/{id}", false, NULL, delete_run},
    {"POST", "/api/runs/{id}/cancel", false, json_body, cancel_run},
    {"GET", "/api/runs/{id}/events", true, NULL, watch_run},
    {"GET", "/api/runs/{id}/files/{name}", true, NULL, get_file},
    {"GET", "/api/compare", true, NULL, compare},
    {"GET", "/api/traces", false, NULL, list_traces},
    {"POST", "/api/traces", false, json_body, post_trace},
    {"GET", "/api/traces/{id}", false, NULL, get_trace},
    {"DELETE", "/api/traces/{id}", false, NULL, delete_trace},
    {"PUT", "/api/traces/{id}/parts/{name}", false, "application/octet-stream", put_part},
    {"POST", "/api/traces/{id}/check", false, json_body, check_trace},
    {0},
};
