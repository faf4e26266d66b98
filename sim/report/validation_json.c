/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/validation_json.h"

#include <math.h>

#include "sim/base/json.h"
#include "sim/report/doubts.h"

/* What has no value is null. */
static void set(json_t *o, const char *key, double x)
{
    json_object_set_new(o, key, isnan(x) ? json_null() : json_num(x));
}

static void set_int(json_t *o, const char *key, int64_t x)
{
    json_object_set_new(o, key, json_integer(x));
}

static void set_ns(json_t *o, const char *key, double ns)
{
    json_object_set_new(o, key, isnan(ns) ? json_null() : json_integer(llround(ns)));
}

/* Paths and names may be anything that a file system takes. */
static void set_text(json_t *o, const char *key, const char *text)
{
    json_t *value = json_string(text);
    json_object_set_new(o, key, value != NULL ? value : json_string("(not UTF-8)"));
}

static void set_errors(json_t *o, const struct error_summary *e)
{
    set(o, "error_p50", e->p50);
    set(o, "error_p95", e->p95);
    set(o, "error_mean", e->mean);
}

static json_t *summary_json(const struct error_summary *e)
{
    json_t *o = json_object();
    set_int(o, "steps", e->n);
    set_errors(o, e);
    return o;
}

static json_t *layouts_json(const struct joined *j, const struct step_errors *e)
{
    json_t *o = json_object();
    for (int l = 0; l < j->n_layouts; l++)
        if (e->layout[l].n > 0)
            json_object_set_new(o, j->layout[l], summary_json(&e->layout[l]));
    return o;
}

static json_t *stages_json(const struct step_errors *e)
{
    json_t *o = json_object();
    for (int p = 0; p < PART_COUNT; p++) {
        json_t *part = json_object();
        set(part, "share_frac", e->part[p].share_frac);
        set_errors(part, &e->part[p].error);
        set(part, "step_error_part", e->part[p].blame);
        json_object_set_new(o, step_part_names[p], part);
    }
    return o;
}

static json_t *step_json(const struct joined *j, const struct joined_step *s)
{
    json_t *o = json_object();
    struct step_shape shape = joined_shape(s->at);
    set_int(o, "step", s->at->step);
    set_text(o, "layout", j->layout[s->layout]);
    set_int(o, "requests", shape.requests);
    set_int(o, "rows", shape.rows);
    set_int(o, "prefill_rows", shape.prefill_rows);
    set_int(o, "ctx_mean", shape.mean_ctx_tokens);
    set_int(o, "ctx_max", shape.max_ctx_tokens);
    set_int(o, "predicted_ns", s->pred->step_ns);
    set_int(o, "measured_ns", s->meas->step_ns);
    set(o, "error", s->error);
    return o;
}

static json_t *worst_json(const struct joined *j, const struct step_errors *e)
{
    json_t *list = json_array();
    for (int i = 0; i < e->n_worst; i++)
        json_array_append_new(list, step_json(j, &j->step[e->worst[i]]));
    return list;
}

static json_t *windows_json(const struct joined *j, const struct schedule_errors *e)
{
    json_t *list = json_array();
    for (int i = 0; i < e->n_windows; i++) {
        const struct window *w = &e->window[i];
        json_t *o = json_object();
        set_int(o, "first_step", j->step[w->first].at->step);
        set_int(o, "steps", w->n);
        set_text(o, "layout", j->layout[j->step[w->first].layout]);
        set_ns(o, "predicted_ns", w->pred_ns);
        set_ns(o, "measured_ns", w->meas_ns);
        set(o, "error", w->error);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *group_json(const struct joined *j, const struct order_group *g)
{
    json_t *o = json_object(), *layouts = json_object();
    set_int(o, "first_step", j->step[g->first].at->step);
    set_int(o, "last_step", j->step[g->end - 1].at->step);
    for (int i = 0; i < g->n; i++) {
        json_t *member = json_object();
        set_int(member, "predicted_ns", g->member[i].pred_ns);
        set_int(member, "measured_ns", g->member[i].meas_ns);
        json_object_set_new(layouts, j->layout[g->member[i].layout], member);
    }
    json_object_set_new(o, "layouts", layouts);
    set_text(o, "predicted_fastest", j->layout[g->member[g->pick].layout]);
    set_text(o, "measured_fastest", j->layout[g->member[g->fastest].layout]);
    set_text(o, "verdict", order_verdict_names[g->verdict]);
    set(o, "kendall_tau", g->tau);
    set(o, "regret_frac", g->regret);
    return o;
}

static json_t *order_json(const struct joined *j, const struct layout_order *order)
{
    json_t *o = json_object(), *groups = json_array();
    for (int v = 0; v < ORDER_VERDICT_COUNT; v++)
        set_int(o, order_verdict_names[v], order->verdicts[v]);
    for (int i = 0; i < order->n; i++)
        json_array_append_new(groups, group_json(j, &order->group[i]));
    json_object_set_new(o, "groups", groups);
    return o;
}

static json_t *parts_json(const struct switch_parts *p)
{
    json_t *o = json_object();
    set_ns(o, "waits_ns", p->waits_ns);
    set_ns(o, "first_ns", p->first_ns);
    set_ns(o, "later_ns", p->later_ns);
    set_ns(o, "slowed_ns", p->slowed_ns);
    return o;
}

static json_t *way_json(const struct joined *j, const struct switch_direction *d, enum mechanism m)
{
    json_t *o = json_object();
    const struct switch_way *w = &d->way[m];
    bool overlaps = m == MECH_OVERLAPPED;
    set_text(o, "from", j->layout[d->from]);
    set_text(o, "to", j->layout[d->to]);
    set_text(o, "mechanism", mechanism_names[m]);
    set_int(o, "count", w->n);
    set_int(o, "ready_count", d->n_ready);
    set_int(o, "matched", w->n_matched);
    set_ns(o, "ready_p50_ns", d->ready_ns);
    set_ns(o, "step_p50_ns", w->step_ns);
    set_ns(o, "measured_p50_ns", w->dt_ns);
    set_ns(o, "measured_p95_ns", w->dt_p95_ns);
    set_ns(o, "predicted_ns", w->pred_ns);
    set(o, "error", w->error);
    set_ns(o, "noise_ns", d->noise_ns);
    json_object_set_new(o, "resolved", json_boolean(w->resolved));
    set(o, "hidden_frac", overlaps ? d->hidden_frac : NAN);
    set(o, "predicted_hidden_frac", overlaps ? d->pred_hidden_frac : NAN);
    set(o, "hidden_frac_max", overlaps ? switch_trials_hidden_max(j->layers) : NAN);
    json_object_set_new(o, "measured_parts", parts_json(&w->measured));
    json_object_set_new(o, "predicted_parts", parts_json(&w->predicted));
    return o;
}

static json_t *switches_json(const struct validation *v)
{
    json_t *list = json_array();
    for (int i = 0; i < v->trials.n; i++)
        for (int m = 0; m < MECH_COUNT; m++)
            if (v->trials.direction[i].way[m].n > 0)
                json_array_append_new(list, way_json(&v->joined, &v->trials.direction[i], m));
    return list;
}

static json_t *first_run_json(const struct first_run *f)
{
    json_t *o = json_object();
    set_int(o, "steps", f->n);
    set(o, "p50", f->p50);
    set(o, "p95", f->p95);
    return o;
}

static json_t *first_runs_json(const struct first_runs *f)
{
    json_t *o = json_object();
    json_object_set_new(o, "after_switch", first_run_json(&f->after_switch));
    json_object_set_new(o, "others", first_run_json(&f->others));
    return o;
}

static json_t *noise_json(const struct switch_trials *t)
{
    json_t *o = json_object();
    set_ns(o, "p50_ns", t->noise_p50_ns);
    set_ns(o, "p95_ns", t->noise_p95_ns);
    return o;
}

static json_t *hopb_json(const struct joined *j, const struct hopb_trials *h)
{
    json_t *list = json_array();
    for (int i = 0; i < h->n; i++) {
        const struct hopb_trial *t = &h->trial[i];
        const struct plan_step *at = j->step[t->step].at;
        struct step_shape shape = joined_shape(at);
        json_t *o = json_object();
        set_int(o, "first_step", at->step);
        set_text(o, "layout", j->layout[t->layout]);
        set_int(o, "requests", shape.requests);
        set_int(o, "ctx_mean", shape.mean_ctx_tokens);
        set_int(o, "sub_batches", t->sub_batches);
        set_int(o, "predicted_ns", t->pred_ns);
        set_int(o, "measured_ns", t->meas_ns);
        set(o, "predicted_gain", t->pred_gain);
        set(o, "measured_gain", t->gain);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *doubts_json(const struct validation *v)
{
    struct doubts d;
    json_t *list = json_array();
    doubts_init(&d, v);
    for (int i = 0; i < d.n; i++)
        json_array_append_new(list, json_string(d.sentence[i]));
    doubts_release(&d);
    return list;
}

static json_t *kinds_json(const struct validation *v)
{
    json_t *o = json_object();
    json_object_set_new(o, "no_switch", summary_json(&v->steady.all));
    json_object_set_new(o, "target_ready", summary_json(&v->ready.all));
    return o;
}

static json_t *profile_json(const struct validation_about *a)
{
    if (a->profile == NULL)
        return json_null();
    json_t *o = json_object();
    set_text(o, "name", a->profile);
    set_text(o, "kind", a->profile_kind);
    json_object_set_new(o, "predicts_plan", json_boolean(a->profile_predicts));
    return o;
}

static json_t *origin_json(const struct plan_origin *origin)
{
    const struct {
        const char *key, *text;
    } texts[] = {
        {"device", origin->device},
        {"date", origin->date},
        {"transport", origin->transport},
        {"command", origin->command},
    };
    json_t *o = json_object();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].text[0] != '\0')
            set_text(o, texts[i].key, texts[i].text);
    if (origin->repeats > 0)
        set_int(o, "repeats", origin->repeats);
    return o;
}

/* What the numbers are of. */
static void set_about(json_t *o, const struct validation_about *a)
{
    set_text(o, "wavetank", a->version);
    set_text(o, "plan", a->plan_path);
    set_text(o, "measured", a->measured_path);
    set_text(o, "model", a->plan->model);
    set_text(o, "cluster", a->plan->cluster);
    set_int(o, "ranks", a->plan->ranks);
    set_int(o, "layers", a->plan->layers);
    json_object_set_new(o, "profile", profile_json(a));
    json_object_set_new(o, "origin", origin_json(&a->measured->origin));
}

json_t *validation_json(const struct validation *v, const struct validation_about *about)
{
    const struct step_errors *e = v->main;
    json_t *o = json_object();
    set_int(o, "steps", v->joined.n);
    set(o, "step_error_p50", e->all.p50);
    set(o, "step_error_p95", e->all.p95);
    set(o, "schedule_error", v->schedule.error);
    set(o, "layout_agreement", v->order.agreement);
    json_object_set_new(o, "stages", stages_json(e));
    json_object_set_new(o, "switches", switches_json(v));
    set(o, "check_max_error", v->joined.check_max_error);
    set_int(o, "unmatched", v->joined.unmatched);
    set_text(o, "step_error_over", e == &v->ready ? "target_ready" : "no_switch");
    set(o, "step_error_mean", e->all.mean);
    json_object_set_new(o, "step_kinds", kinds_json(v));
    json_object_set_new(o, "layouts", layouts_json(&v->joined, e));
    json_object_set_new(o, "worst_steps", worst_json(&v->joined, e));
    set(o, "window_error_p50", v->schedule.windows.p50);
    set(o, "window_error_p95", v->schedule.windows.p95);
    json_object_set_new(o, "windows", windows_json(&v->joined, &v->schedule));
    set(o, "kendall_tau", v->order.tau);
    set(o, "regret_frac", v->order.regret);
    json_object_set_new(o, "layout_order", order_json(&v->joined, &v->order));
    json_object_set_new(o, "hopb", hopb_json(&v->joined, &v->hopb));
    json_object_set_new(o, "noise", noise_json(&v->trials));
    json_object_set_new(o, "first_run", first_runs_json(&v->first_runs));
    json_object_set_new(o, "doubts", doubts_json(v));
    set_about(o, about);
    return o;
}
