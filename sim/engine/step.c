/* SPDX-License-Identifier: Apache-2.0
 *
 * The step boundary: price the layouts, ask the policy, switch, and plan the next run of steps.
 */
#include <assert.h>

#include "sim/base/ints.h"
#include "sim/engine/simulation.h"

/* What a decision looks at; lives during one boundary. */
struct choice {
    struct group *group;
    struct candidate candidate[LAYOUT_MAX];
    struct weighed why; /* of the switch that is made */
};

static enum verdict verdict_of(const struct group *g, int layout)
{
    if (g->kv.pool[layout].pages == 0)
        return FITS_NEVER;
    return kv_fits(&g->kv, layout) ? FITS : FITS_NOT;
}

static void price_one(struct choice *c, int layout)
{
    struct group *g = c->group;
    struct batch batch = group_batch(g);
    struct candidate *to = &c->candidate[layout];
    to->verdict = verdict_of(g, layout);
    cost_step(g->engine->cost, layout, &batch, &to->cost);
    to->score = to->cost.step;
}

/* Candidates may cut chunks of different size: compare their time for the same number of rows. */
static void scale_scores(struct choice *c, int n)
{
    int64_t most = 0;
    for (int l = 0; l < n; l++)
        most = c->candidate[l].cost.rows > most ? c->candidate[l].cost.rows : most;
    for (int l = 0; l < n; l++) {
        const struct step_cost *cost = &c->candidate[l].cost;
        if (cost->rows != most)
            c->candidate[l].score =
                seg_const((int64_t)((__int128)cost->step.a_ps * most / cost->rows));
    }
}

static void price_all(struct choice *c)
{
    struct group *g = c->group;
    int n = g->kv.n_layouts;
    for (int owned = 0; owned <= 1; owned++) {
        bool built = false;
        for (int l = 0; l < n; l++) {
            if (g->kv.pool[l].owned != owned)
                continue;
            if (!built)
                group_build(g, owned);
            built = true;
            price_one(c, l);
        }
    }
    if (g->n_prefill > 0)
        scale_scores(c, n);
}

static void price_current(struct choice *c)
{
    struct group *g = c->group;
    group_build(g, g->kv.pool[g->layout].owned);
    price_one(c, g->layout);
}

static int64_t switch_charge(const struct choice *c, int from, int to, bool drained)
{
    const struct group *g = c->group;
    int64_t tokens[RANKS_MAX] = {0};
    struct transition t;
    if (!drained)
        group_live_tokens(g, tokens);
    if (g->prefix.block_tokens > 0)
        prefix_add_tokens(&g->prefix, to, tokens);
    transition_cost(g->engine->cost, from, to, tokens, &c->candidate[to].cost, &t);
    return transition_charge_ps(g->engine->cost, to, &t, g->policy->common.mechanism);
}

static bool drains(const struct group *g)
{
    int mechanism = g->policy->common.mechanism;
    return mechanism == MECH_DRAIN || mechanism == MECH_RESTART;
}

static int64_t view_switch_cost(const struct policy_view *view, int to)
{
    const struct choice *c = view->context;
    return switch_charge(c, view->current, to, drains(c->group));
}

static void view_foresee(const struct policy_view *view, int64_t last_arrival_ps,
                         struct outlook *out)
{
    const struct choice *c = view->context;
    struct engine *e = c->group->engine;
    e->out->forks++;
    simulation_foresee(e->simulation, c->group->id, last_arrival_ps, out);
}

static struct policy_load load_of(const struct group *g)
{
    return (struct policy_load){
        .decoding = (int64_t)g->n_decode,
        .prefilling = (int64_t)g->n_prefill,
        .waiting = (int64_t)g->waiting.n,
        .waiting_tokens = g->queued_tokens,
    };
}

static struct policy_request view_request(const struct policy_view *view, int64_t i)
{
    const struct choice *c = view->context;
    const struct group *g = c->group;
    if (i < (int64_t)g->n_decode)
        return (struct policy_request){
            .ctx_tokens = g->item[i].ctx_tokens,
            .output_tokens = g->decode_end[i] - g->decode_steps,
            .owner = g->item[i].owner,
        };
    uint32_t req = g->prefill[i - (int64_t)g->n_decode];
    const struct flight *f = &g->engine->flight[req];
    return (struct policy_request){
        .ctx_tokens = f->kv_tokens,
        .prompt_tokens = f->prefill_tokens - f->kv_tokens,
        .output_tokens = group_output_goal(g, req) - f->made_tokens,
        .owner = f->held.owner,
    };
}

static void note_refusal(struct group *g, const struct choice *c, const struct decision *d)
{
    bool refused = d->wanted != d->layout && c->candidate[d->wanted].verdict == FITS_NOT;
    int wanted = refused ? d->wanted : -1;
    if (wanted != g->wanted && refused)
        g->engine->out->switches_refused++;
    g->wanted = wanted;
    g->admission_held = refused && g->policy->common.on_full == ON_FULL_HOLD;
}

static bool is_sane(const struct group *g, const struct choice *c, const struct decision *d)
{
    int n = g->kv.n_layouts;
    return d->layout >= 0 && d->layout < n && d->wanted >= 0 && d->wanted < n && d->hold >= 1 &&
           c->candidate[d->layout].verdict == FITS;
}

static struct decision ask(struct group *g, struct choice *c, int64_t now_ps)
{
    struct decision stay = {.layout = g->layout, .wanted = g->layout, .hold = SEG_FOREVER};
    if (!g->policy->may_switch || g->pending >= 0) {
        price_current(c);
        return stay;
    }
    price_all(c);
    struct policy_view view = {
        .now_ps = now_ps,
        .step = g->engine->out->steps,
        .current = g->layout,
        .n = g->kv.n_layouts,
        .candidate = c->candidate,
        .steps_left = g->remaining_tokens / group_running(g),
        .switch_cost_ps = view_switch_cost,
        .foresee = g->engine->simulation != NULL ? view_foresee : NULL,
        .load = load_of(g),
        .request = view_request,
        .context = c,
    };
    struct decision d = g->policy->kind->decide(g->policy->state, &view);
    if (d.fault != NULL) {
        err_run(g->engine->err, "policy %s: %s (step %lld)", g->policy->name, d.fault,
                (long long)view.step);
        return stay;
    }
    if (!is_sane(g, c, &d)) {
        err_run(g->engine->err, "policy %s chose a layout that does not fit (step %lld)",
                g->policy->name, (long long)g->engine->out->steps);
        return stay;
    }
    note_refusal(g, c, &d);
    g->admit_most = d.admit_most;
    return d;
}

static void enter_layout(struct group *g, int to, int64_t now_ps)
{
    int from = g->layout;
    g->layout = to;
    g->result->switches++;
    if (g->policy->kind->switched != NULL)
        g->policy->kind->switched(g->policy->state, from, to, now_ps);
}

/* The batch is finished: a drained switch happens now and is charged to the step that comes. */
static void finish_drain(struct group *g, int64_t now_ps)
{
    if (g->pending < 0 || group_running(g) > 0 || g->n_moving > 0)
        return;
    assert(kv_busiest(&g->kv, g->layout) == 0);
    g->owed_from = g->owed_from >= 0 ? g->owed_from : g->layout;
    enter_layout(g, g->pending, now_ps);
    g->pending = -1;
    if (g->policy->common.mechanism == MECH_RESTART && g->prefix.block_tokens > 0)
        prefix_clear(&g->prefix);
}

static struct weighed weigh(const struct choice *c, int from, int to)
{
    return (struct weighed){
        .stay_ps = c->candidate[from].score.a_ps,
        .go_ps = c->candidate[to].score.a_ps,
        .forced = c->candidate[from].verdict != FITS,
    };
}

/* Carry out the decision. Returns the layout switched from, or -1, and the exposed time. */
static int carry_out(struct group *g, struct choice *c, const struct decision *d, int64_t now_ps,
                     int64_t *exposed_ps)
{
    int from = g->owed_from;
    g->owed_from = -1;
    c->why = g->drained_why;
    *exposed_ps = 0;
    if (from >= 0)
        *exposed_ps = switch_charge(c, from, g->layout, true);
    if (d->layout == g->layout)
        return from;
    if (drains(g) && c->candidate[g->layout].verdict == FITS) {
        g->pending = d->layout;
        g->drained_why = weigh(c, g->layout, d->layout);
        return from;
    }
    from = g->layout;
    c->why = weigh(c, from, d->layout);
    *exposed_ps += switch_charge(c, from, d->layout, false);
    enter_layout(g, d->layout, now_ps);
    return from;
}

static int64_t steps_to_completion(const struct group *g)
{
    int64_t first = SEG_FOREVER;
    for (size_t i = 0; i < g->n_decode; i++)
        first = min_i64(first, g->decode_end[i]);
    return first == SEG_FOREVER ? first : first - g->decode_steps;
}

/* Steps until something other than growing contexts can matter. */
static int64_t plan_length(const struct group *g, const struct seg *step, int64_t hold)
{
    const struct engine_config *config = g->engine->config;
    if (config->exact || g->n_prefill > 0)
        return 1;
    int64_t n = min_i64(min_i64(step->n, hold), steps_to_completion(g));
    if (config->admission == ADMIT_ON_DEMAND)
        n = min_i64(n, kv_safe_steps(&g->kv, g->n_of_owner, (int)group_running(g)));
    return n > 1 ? n : 1;
}

static void observe(const struct group *g, const struct choice *c, int from)
{
    const struct engine_observer *observer = g->engine->observer;
    if (observer == NULL || observer->step == NULL)
        return;
    struct batch batch = group_batch(g);
    struct step_record record = {
        .index = g->engine->out->steps,
        .at_ps = g->step.start_ps,
        .step_ps = g->step.cost.a_ps + g->step.exposed_ps,
        .exposed_ps = g->step.exposed_ps,
        .group = g->id,
        .layout = g->layout,
        .from = from,
        .mechanism = g->policy->common.mechanism,
        .batch = &batch,
        .req = g->item_req,
        .cost = &c->candidate[g->layout].cost,
    };
    observer->step(observer->context, &record);
}

static void begin_span(struct group *g, const struct choice *c, int from)
{
    const struct engine_observer *observer = g->engine->observer;
    if (observer == NULL || observer->span == NULL)
        return;
    struct weighed none = {0};
    g->step.span = (struct span_record){
        .start_ps = g->step.start_ps,
        .exposed_ps = g->step.exposed_ps,
        .group = g->id,
        .layout = g->layout,
        .from = from,
        .mechanism = g->policy->common.mechanism,
        .switch_why = from >= 0 ? c->why : none,
        .wanted = g->wanted,
        .wanted_why = g->wanted >= 0 ? weigh(c, from >= 0 ? from : g->layout, g->wanted) : none,
        .n_waiting = (int64_t)g->waiting.n,
        .kv_pages = kv_busiest(&g->kv, g->layout),
        .kv_capacity_pages = g->kv.pool[g->layout].pages,
        .cost = c->candidate[g->layout].cost,
    };
}

static void end_span(struct group *g, int64_t now_ps)
{
    const struct engine_observer *observer = g->engine->observer;
    if (observer == NULL || observer->span == NULL)
        return;
    struct batch batch = group_batch(g);
    struct span_record *span = &g->step.span;
    span->index = g->engine->out->steps;
    span->n = g->step.n;
    span->end_ps = now_ps;
    span->batch = &batch;
    observer->span(observer->context, span);
}

static void schedule_end(struct group *g)
{
    const struct step *s = &g->step;
    eventq_push(g->engine->events,
                (struct event){
                    .time_ps = s->start_ps + s->exposed_ps + seg_sum(s->cost, s->n),
                    .kind = EV_STEP_END,
                    .sequence = g->id,
                    .generation = s->generation,
                });
}

void group_decide(struct group *g, int64_t now_ps)
{
    struct choice choice = {.group = g};
    int64_t exposed_ps;
    bool was_held = g->admission_held;
    int64_t could_admit = g->admit_most;
    struct decision d = ask(g, &choice, now_ps);
    int from = carry_out(g, &choice, &d, now_ps, &exposed_ps);
    if (g->policy->may_switch)
        group_build(g, g->kv.pool[g->layout].owned);
    assert(g->engine->err->set || kv_fits(&g->kv, g->layout));
    group_note_peak(g);
    g->result->switch_exposed_ps += exposed_ps;

    struct seg cost = choice.candidate[g->layout].cost.step;
    g->step = (struct step){
        .running = true,
        .start_ps = now_ps,
        .exposed_ps = exposed_ps,
        .cost = cost,
        .n = plan_length(g, &cost, d.layout == g->layout ? d.hold : 1),
        .generation = g->step.generation + 1,
    };
    if (from >= 0 || (was_held && !g->admission_held) || g->admit_most != could_admit)
        g->step.n = 1; /* a price of its own; those that were held come next */
    observe(g, &choice, from);
    begin_span(g, &choice, from);
    schedule_end(g);
}

void group_boundary(struct group *g, int64_t now_ps)
{
    group_clock(g, now_ps);
    group_cancel_due(g);
    group_join(g);
    group_make_room(g);
    finish_drain(g, now_ps);
    group_admit(g);
    if (group_running(g) > 0)
        group_decide(g, now_ps);
}

void group_step_end(struct group *g, int64_t now_ps)
{
    struct run_result *out = g->engine->out;
    int64_t n = g->step.n, elapsed_ps = now_ps - g->step.start_ps;
    group_clock(g, now_ps);
    g->step.running = false;
    end_span(g, now_ps);
    out->steps += n;
    out->events += n;
    g->result->busy_ps += elapsed_ps;
    g->result->layout_ps[g->layout] += elapsed_ps;
    if (g->policy->kind->step_done != NULL)
        g->policy->kind->step_done(g->policy->state, g->layout, n, elapsed_ps, now_ps);
    group_advance(g, n, now_ps);
    group_boundary(g, now_ps);
}

void group_notify(struct group *g, int64_t now_ps, int64_t from_ps)
{
    struct step *s = &g->step;
    if (!s->running)
        group_wake(g, now_ps);
    if (!s->running || s->n == 1)
        return;
    int64_t n = seg_steps_to_reach(s->cost, from_ps - s->start_ps);
    if (n >= s->n)
        return;
    s->n = n;
    s->generation++;
    schedule_end(g);
}
