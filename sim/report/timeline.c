/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/timeline.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "sim/base/mem.h"

enum { PID_REQUESTS = 1, PID_GROUPS, ARGS_BYTES = 512 };

enum { COUNT_QUEUE, COUNT_BATCH, COUNT_KV };

static const struct {
    const char *name, *series[2];
} counters[TIMELINE_COUNTERS] = {
    [COUNT_QUEUE] = {"queue", {"requests", NULL}},
    [COUNT_BATCH] = {"batch", {"decode", "prefill"}},
    [COUNT_KV] = {"KV of the fullest rank", {"pages", NULL}},
};

int timeline_check(const struct timeline_options *o, bool is_one_run, struct err *err)
{
    if (o->path == NULL && (o->from_ps > 0 || o->to_ps > 0))
        return err_set(err, "--timeline-from, --timeline-to: need --timeline");
    if (o->to_ps > 0 && o->to_ps <= o->from_ps)
        return err_set(err, "--timeline-to: must be later than --timeline-from");
    if (o->path != NULL && !is_one_run)
        return err_set(err, "--timeline: a timeline is of one run; give exactly one --policy, and "
                            "not best-fixed");
    return 0;
}

static bool is_shown(const struct timeline *t, int64_t start_ps, int64_t end_ps)
{
    return end_ps >= t->options->from_ps &&
           (t->options->to_ps == 0 || start_ps <= t->options->to_ps);
}

static void begin_group(struct timeline *t, int i, int64_t replicas)
{
    char name[64];
    bool decodes = i < replicas;
    snprintf(name, sizeof name, "%s %d", decodes ? "replica" : "prefill replica",
             decodes ? i : i - (int)replicas);
    memset(t->group[i].counted, -1, sizeof t->group[i].counted);
    timeline_group_begin(&t->group[i].tracks, &t->events, PID_GROUPS + i, name);
}

static int open_events(struct timeline *t, const char *path, const struct timeline_about *about,
                       struct err *err)
{
    json_t *object = json_pack("{s:s, s:s, s:s, s:s}", "wavetank", about->version, "model",
                               about->model, "cluster", about->cluster, "policy", about->policy);
    char *text = json_dumps(object, JSON_COMPACT);
    int rc = trace_events_open(&t->events, path, text, err);
    free(text);
    json_decref(object);
    return rc;
}

int timeline_open(struct timeline *t, const struct timeline_options *o,
                  const struct timeline_about *about, const struct engine_config *config,
                  const struct layout *layouts, struct err *err)
{
    *t = (struct timeline){.options = o, .layout = layouts};
    if (o->path == NULL)
        return 0;
    if (open_events(t, o->path, about, err) < 0)
        return -1;
    t->n_groups = (int)(config->replicas + config->prefill_replicas);
    t->group = xcalloc((size_t)t->n_groups, sizeof *t->group);
    trace_events_process(&t->events, PID_REQUESTS, "requests");
    for (int i = 0; i < t->n_groups; i++)
        begin_group(t, i, config->replicas);
    return 0;
}

/* Nothing is written where nothing has changed. */
static void count(struct timeline *t, int group, int counter, int64_t at_ps, const int64_t value[2])
{
    int64_t *last = t->group[group].counted[counter];
    const char *const *series = counters[counter].series;
    char args[ARGS_BYTES];
    if (memcmp(last, value, sizeof t->group[group].counted[counter]) == 0)
        return;
    if (series[1] == NULL)
        snprintf(args, sizeof args, "{\"%s\":%lld}", series[0], (long long)value[0]);
    else
        snprintf(args, sizeof args, "{\"%s\":%lld,\"%s\":%lld}", series[0], (long long)value[0],
                 series[1], (long long)value[1]);
    trace_events_counter(&t->events, PID_GROUPS + group, counters[counter].name, at_ps, args);
    memcpy(last, value, sizeof t->group[group].counted[counter]);
}

/* From at_ps on the group does nothing. */
static void count_idle(struct timeline *t, int group, int64_t at_ps)
{
    for (int i = 0; i < TIMELINE_COUNTERS; i++)
        count(t, group, i, at_ps, (const int64_t[2]){0, 0});
}

static void count_span(struct timeline *t, const struct span_record *r)
{
    const struct timeline_group *g = &t->group[r->group].tracks;
    const struct batch *b = r->batch;
    int64_t at_ps = r->start_ps;
    if (g->ran && g->end_ps < at_ps)
        count_idle(t, r->group, g->end_ps);
    count(t, r->group, COUNT_QUEUE, at_ps, (const int64_t[2]){r->n_waiting, 0});
    count(t, r->group, COUNT_BATCH, at_ps, (const int64_t[2]){b->n_decode, b->n - b->n_decode});
    count(t, r->group, COUNT_KV, at_ps, (const int64_t[2]){r->kv_pages, 0});
}

/* Sums over all n steps; what they leave is the rest. */
static void part_times(const struct span_record *r, int64_t part_ps[PART_COUNT])
{
    const struct step_cost *c = &r->cost;
    const struct seg *const stage[PART_REST] = {
        [PART_PROJ] = &c->proj,
        [PART_ATTN] = &c->attn,
        [PART_EXCHANGE] = &c->exchange,
        [PART_FFN] = &c->ffn,
    };
    int64_t rest_ps = r->end_ps - r->start_ps - r->exposed_ps;
    for (int i = 0; i < PART_REST; i++) {
        part_ps[i] = seg_sum(*stage[i], r->n);
        rest_ps -= part_ps[i];
    }
    part_ps[PART_REST] = rest_ps;
}

static void span_args(const struct span_record *r, char args[ARGS_BYTES])
{
    int64_t ctx_tokens = 0, prefill_rows = 0;
    for (int i = 0; i < r->batch->n; i++) {
        ctx_tokens += r->batch->item[i].ctx_tokens;
        prefill_rows += i >= r->batch->n_decode ? r->batch->item[i].q : 0;
    }
    snprintf(args, ARGS_BYTES,
             "{\"step\":%lld,\"steps\":%lld,\"decode\":%d,\"prefill\":%d,\"prefill_rows\":%lld,"
             "\"ctx_tokens\":%lld}",
             (long long)r->index, (long long)r->n, r->batch->n_decode,
             r->batch->n - r->batch->n_decode, (long long)prefill_rows, (long long)ctx_tokens);
}

void timeline_span(void *timeline, const struct span_record *r)
{
    struct timeline *t = timeline;
    char args[ARGS_BYTES];
    if (!is_shown(t, r->start_ps, r->end_ps))
        return;
    struct timeline_span span = {
        .layout = t->layout[r->layout].name,
        .from = r->from >= 0 ? t->layout[r->from].name : NULL,
        .mechanism = mechanism_names[r->mechanism],
        .start_ps = r->start_ps,
        .end_ps = r->end_ps,
        .exposed_ps = r->exposed_ps,
        .args = args,
    };
    part_times(r, span.part_ps);
    span_args(r, args);
    count_span(t, r);
    timeline_group_draw(&t->group[r->group].tracks, &span);
}

static void draw_phase(struct timeline *t, int64_t request, const char *name, int64_t start_ps,
                       int64_t end_ps)
{
    if (end_ps <= start_ps)
        return;
    trace_events_begin(&t->events, PID_REQUESTS, name, request, start_ps, NULL);
    trace_events_end(&t->events, PID_REQUESTS, name, request, end_ps);
}

/* It begins to decode where its first token was made; its KV may have to follow. */
static void draw_decode(struct timeline *t, int64_t request, const struct request_result *r)
{
    static const char name[] = "decode";
    if (r->finish_ps <= r->first_token_ps)
        return;
    trace_events_begin(&t->events, PID_REQUESTS, name, request, r->first_token_ps, NULL);
    if (r->transfer_end_ps <= r->finish_ps)
        draw_phase(t, request, "KV transfer", r->transfer_start_ps, r->transfer_end_ps);
    trace_events_end(&t->events, PID_REQUESTS, name, request, r->finish_ps);
}

static void draw_request(struct timeline *t, int64_t request, const struct engine_request *asked,
                         const struct request_result *r)
{
    static const char name[] = "request";
    char args[ARGS_BYTES];
    snprintf(args, sizeof args,
             "{\"request\":%lld,\"state\":\"%s\",\"reason\":\"%s\",\"input_tokens\":%lld,"
             "\"output_tokens\":%lld,\"cached_tokens\":%lld,\"preemptions\":%d}",
             (long long)request, request_state_names[r->state], end_reason_names[r->reason],
             (long long)asked->input_tokens, (long long)asked->output_tokens,
             (long long)r->cached_tokens, r->preemptions);
    trace_events_begin(&t->events, PID_REQUESTS, name, request, r->arrival_ps, args);
    if (r->state != REQ_REJECTED && r->reason != CANCEL_SESSION) {
        draw_phase(t, request, "queue", r->arrival_ps, r->admitted_ps);
        draw_phase(t, request, "prefill", r->admitted_ps, r->first_token_ps);
        draw_decode(t, request, r);
    }
    trace_events_end(&t->events, PID_REQUESTS, name, request, r->finish_ps);
}

int timeline_close(struct timeline *t, const struct engine_request *request,
                   const struct run_result *result, struct err *err)
{
    if (t->n_groups == 0)
        return 0;
    for (int i = 0; i < t->n_groups; i++)
        if (t->group[i].tracks.ran && t->options->to_ps == 0)
            count_idle(t, i, t->group[i].tracks.end_ps);
    for (int64_t i = 0; i < result->requests; i++) {
        const struct request_result *r = &result->request[i];
        if (is_shown(t, r->arrival_ps, r->finish_ps))
            draw_request(t, i, &request[i], r);
    }
    int rc = trace_events_commit(&t->events, err);
    timeline_abort(t);
    return rc;
}

void timeline_abort(struct timeline *t)
{
    trace_events_abort(&t->events);
    free(t->group);
    *t = (struct timeline){0};
}
