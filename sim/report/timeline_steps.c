/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/timeline_steps.h"

#include <assert.h>

#include "sim/base/ints.h"
#include "sim/base/units.h"

enum { TRACK_STEPS, TRACK_SWITCHES, TRACK_PARTS, N_TRACKS = TRACK_PARTS + PART_COUNT };

static const char *const track_names[N_TRACKS] = {
    [TRACK_STEPS] = "steps",
    [TRACK_SWITCHES] = "switches",
    [TRACK_PARTS + PART_PROJ] = "projections",
    [TRACK_PARTS + PART_ATTN] = "attention",
    [TRACK_PARTS + PART_EXCHANGE] = "exchange",
    [TRACK_PARTS + PART_FFN] = "FFN",
    [TRACK_PARTS + PART_REST] = "rest",
};

static struct track track_of(const struct timeline_group *g, int track)
{
    return (struct track){g->pid, 10 * g->pid + track};
}

void timeline_group_begin(struct timeline_group *g, struct trace_events *out, int pid,
                          const char *name)
{
    *g = (struct timeline_group){.out = out, .pid = pid};
    trace_events_process(out, pid, name);
    for (int i = 0; i < N_TRACKS; i++)
        trace_events_thread(out, track_of(g, i), track_names[i]);
}

static void draw_switch(const struct timeline_group *g, const struct timeline_span *s)
{
    char name[2 * PLAN_NAME_MAX + 8], args[256];
    struct track at = track_of(g, TRACK_SWITCHES);
    snprintf(name, sizeof name, "%s to %s", s->from, s->layout);
    snprintf(args, sizeof args,
             "{\"from\":\"%s\",\"to\":\"%s\",\"mechanism\":\"%s\",\"exposed_ps\":%lld}", s->from,
             s->layout, s->mechanism, (long long)s->exposed_ps);
    trace_events_instant(g->out, at, name, s->start_ps, args);
    if (s->exposed_ps > 0)
        trace_events_slice(g->out, at, "exposed", s->start_ps,
                           min_i64(s->start_ps + s->exposed_ps, s->end_ps), NULL);
    /* From the last nanosecond of the step before: at its end it is open no longer. */
    if (g->ran)
        trace_events_flow(g->out, track_of(g, TRACK_STEPS), "switch",
                          max_i64(g->end_ps - PS_PER_NS, g->start_ps), s->start_ps);
}

/* Measured parts may add up to more than the step, being each the slowest rank's. */
static void draw_parts(const struct timeline_group *g, const struct timeline_span *s)
{
    int64_t at_ps = min_i64(s->start_ps + s->exposed_ps, s->end_ps);
    for (int i = 0; i < PART_COUNT; i++) {
        int64_t end_ps = min_i64(at_ps + s->part_ps[i], s->end_ps);
        if (end_ps <= at_ps)
            continue;
        trace_events_slice(g->out, track_of(g, TRACK_PARTS + i), track_names[TRACK_PARTS + i],
                           at_ps, end_ps, NULL);
        at_ps = end_ps;
    }
}

void timeline_group_draw(struct timeline_group *g, const struct timeline_span *s)
{
    assert(s->start_ps <= s->end_ps && (!g->ran || s->start_ps >= g->end_ps));
    trace_events_slice(g->out, track_of(g, TRACK_STEPS), s->layout, s->start_ps, s->end_ps,
                       s->args);
    draw_parts(g, s);
    if (s->from != NULL)
        draw_switch(g, s);
    g->ran = true;
    g->start_ps = s->start_ps;
    g->end_ps = s->end_ps;
}
