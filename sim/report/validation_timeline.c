/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/validation_timeline.h"

#include <stdlib.h>

#include "sim/base/ints.h"
#include "sim/base/units.h"
#include "sim/report/timeline_steps.h"

enum { PID_SIMULATED = 1, PID_MEASURED, ARGS_BYTES = 256 };

/* The parts of a step besides what a switch added to it; none where no stage was measured. */
static void part_times(const struct plan_times *t, int64_t part_ps[PART_COUNT])
{
    int64_t stages_ns = 0;
    joined_parts(t, part_ps);
    part_ps[PART_REST] -= t->switch_exposed_ns;
    for (int i = 0; i < PART_COUNT; i++) {
        stages_ns += i != PART_REST ? part_ps[i] : 0;
        part_ps[i] *= PS_PER_NS;
    }
    if (stages_ns == 0)
        part_ps[PART_REST] = 0;
}

static void draw(struct timeline_group *g, const struct joined *j, const struct joined_step *s,
                 const struct plan_times *times, int64_t at_ps, const char *args)
{
    struct timeline_span span = {
        .layout = j->layout[s->layout],
        .from = s->from >= 0 ? j->layout[s->from] : NULL,
        .mechanism = mechanism_names[s->mechanism],
        .start_ps = at_ps,
        .end_ps = at_ps + times->step_ns * PS_PER_NS,
        .exposed_ps = times->switch_exposed_ns * PS_PER_NS,
        .args = args,
    };
    part_times(times, span.part_ps);
    timeline_group_draw(g, &span);
}

static void step_args(const struct joined_step *s, char args[ARGS_BYTES])
{
    struct step_shape shape = joined_shape(s->at);
    snprintf(args, ARGS_BYTES,
             "{\"step\":%lld,\"requests\":%d,\"rows\":%lld,\"prefill_rows\":%lld,"
             "\"ctx_tokens_mean\":%lld,\"predicted_ns\":%lld,\"measured_ns\":%lld}",
             (long long)s->at->step, shape.requests, (long long)shape.rows,
             (long long)shape.prefill_rows, (long long)shape.mean_ctx_tokens,
             (long long)s->pred->step_ns, (long long)s->meas->step_ns);
}

static void draw_all(const struct joined *j, struct trace_events *events)
{
    struct timeline_group simulated, measured;
    int64_t at_ps = 0;
    timeline_group_begin(&simulated, events, PID_SIMULATED, "simulated");
    timeline_group_begin(&measured, events, PID_MEASURED, "measured");
    for (int i = 0; i < j->n; i++) {
        const struct joined_step *s = &j->step[i];
        char args[ARGS_BYTES];
        step_args(s, args);
        draw(&simulated, j, s, s->pred, at_ps, args);
        draw(&measured, j, s, s->meas, at_ps, args);
        snprintf(args, sizeof args, "{\"percent\":%.3f}", 100 * s->error);
        trace_events_counter(events, PID_SIMULATED, "step error", at_ps, args);
        at_ps += max_i64(s->pred->step_ns, s->meas->step_ns) * PS_PER_NS;
    }
}

int validation_timeline(const struct validation *v, const struct validation_about *about,
                        const char *path, struct err *err)
{
    struct trace_events events;
    json_t *object = json_pack("{s:s, s:s, s:s}", "wavetank", about->version, "model",
                               about->plan->model, "cluster", about->plan->cluster);
    char *text = json_dumps(object, JSON_COMPACT);
    int rc = trace_events_open(&events, path, text, err);
    free(text);
    json_decref(object);
    if (rc < 0)
        return -1;
    draw_all(&v->joined, &events);
    return trace_events_commit(&events, err);
}
