/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/study/trial_steps.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "sim/engine/kv.h"

void trial_steps_init(struct trial_steps *t, const struct trial_setting *setting)
{
    const struct model *m = cost_model(setting->cost);
    *t = (struct trial_steps){.setting = setting, .layout = -1};
    struct plan_header *h = &t->plan.header;
    snprintf(h->model, sizeof h->model, "%s", m->name);
    snprintf(h->cluster, sizeof h->cluster, "%s", setting->cluster);
    h->ranks = cost_ranks(setting->cost);
    h->layers = m->layers;
    h->seed = setting->seed;
}

void trial_steps_release(struct trial_steps *t)
{
    plan_release(&t->plan);
    free(t->row);
    free(t->item);
    *t = (struct trial_steps){0};
}

struct plan trial_steps_take(struct trial_steps *t)
{
    struct plan taken = t->plan;
    t->plan = (struct plan){0};
    trial_steps_release(t);
    return taken;
}

void trial_steps_clear(struct trial_steps *t)
{
    t->n_rows = 0;
}

void trial_steps_add(struct trial_steps *t, int64_t req, int owner, int64_t ctx_tokens, int64_t q)
{
    t->row = xgrow(t->row, &t->cap_rows, (size_t)t->n_rows + 1, sizeof *t->row);
    t->row[t->n_rows++] = (struct plan_row){req, owner, ctx_tokens, q};
}

bool trial_steps_fit(const struct trial_steps *t, int layout)
{
    struct kv kv;
    kv_init(&kv, t->setting->cost, TRIAL_PAGE_TOKENS);
    for (int i = 0; i < t->n_rows; i++)
        kv_add(&kv, t->row[i].owner, t->row[i].ctx_tokens);
    return kv_fits(&kv, layout);
}

/* The cost model wants decode first. */
static struct batch batch_of(struct trial_steps *t)
{
    struct batch b = {0};
    t->item = xgrow(t->item, &t->cap_items, (size_t)t->n_rows, sizeof *t->item);
    for (int prefill = 0; prefill <= 1; prefill++) {
        for (int i = 0; i < t->n_rows; i++) {
            const struct plan_row *row = &t->row[i];
            if ((row->q > 1) == prefill)
                t->item[b.n++] = (struct batch_item){row->ctx_tokens, (int32_t)row->q, row->owner};
        }
        if (!prefill)
            b.n_decode = b.n;
    }
    b.item = t->item;
    return b;
}

static int64_t to_ns(int64_t ps)
{
    return (ps + PS_PER_NS / 2) / PS_PER_NS;
}

static struct plan_times predict(const struct step_cost *cost)
{
    return (struct plan_times){
        .step_ns = to_ns(cost->step.a_ps),
        .proj_ns = to_ns(cost->proj.a_ps),
        .attn_ns = to_ns(cost->attn.a_ps),
        .exchange_ns = to_ns(cost->exchange.a_ps),
        .ffn_ns = to_ns(cost->ffn.a_ps),
    };
}

static void add_switch(const struct trial_steps *t, int to, enum mechanism mechanism,
                       const struct step_cost *cost, struct plan_times *pred)
{
    const struct cost *c = t->setting->cost;
    int64_t ctx_tokens[RANKS_MAX] = {0};
    struct transition transition;
    for (int i = 0; i < t->n_rows; i++)
        ctx_tokens[t->row[i].owner] += t->row[i].ctx_tokens - t->row[i].q;
    transition_cost(c, t->layout, to, ctx_tokens, cost, &transition);
    int64_t exposed_ps = transition_charge_ps(c, to, &transition, mechanism);
    pred->step_ns = to_ns(cost->step.a_ps + exposed_ps);
    pred->switch_exposed_ns = to_ns(exposed_ps);
    if (mechanism == MECH_OVERLAPPED || mechanism == MECH_BLOCKING)
        pred->switch_first_ns = to_ns(transition.first_ps);
}

static void append(struct trial_steps *t, struct plan_step *s)
{
    struct plan *p = &t->plan;
    s->step = p->n;
    s->at_ns = t->at_ns;
    s->row = xcalloc((size_t)t->n_rows, sizeof *s->row);
    memcpy(s->row, t->row, (size_t)t->n_rows * sizeof *s->row);
    s->n_rows = s->cap_rows = t->n_rows;
    p->step = xgrow(p->step, &t->cap_steps, (size_t)p->n + 1, sizeof *p->step);
    p->cap = (int)t->cap_steps;
    p->step[p->n++] = *s;
    t->at_ns += s->pred.step_ns;
}

void trial_steps_run(struct trial_steps *t, int layout, enum mechanism mechanism)
{
    const struct cost *c = t->setting->cost;
    bool switches = t->layout >= 0 && t->layout != layout;
    struct batch batch = batch_of(t);
    struct step_cost cost;
    struct plan_step s = {0};
    cost_step(c, layout, &batch, &cost);
    s.pred = predict(&cost);
    snprintf(s.layout, sizeof s.layout, "%s", cost_layout(c, layout)->name);
    if (switches) {
        add_switch(t, layout, mechanism, &cost, &s.pred);
        snprintf(s.from, sizeof s.from, "%s", cost_layout(c, t->layout)->name);
        snprintf(s.mechanism, sizeof s.mechanism, "%s", mechanism_names[mechanism]);
    }
    append(t, &s);
    t->layout = layout;
}

int trial_steps_run_each(struct trial_steps *t)
{
    int n = cost_n_layouts(t->setting->cost), first = t->layout < 0 ? 0 : t->layout, left_out = 0;
    for (int i = 0; i < n; i++) {
        int layout = (first + i) % n;
        if (!trial_steps_fit(t, layout)) {
            left_out++;
            continue;
        }
        if (t->layout >= 0 && t->layout != layout)
            trial_steps_run(t, layout, MECH_FREE);
        trial_steps_run(t, layout, MECH_FREE);
    }
    return left_out;
}
