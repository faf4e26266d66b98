/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/base/units.h"
#include "sim/cost/transition.h"
#include "sim/study/fit_internal.h"

enum { PAGE_TOKENS = 64 }; /* memory plays no part */

void trial_init(struct trial *t, const struct fit_data *d, const struct profile *p)
{
    t->data = d;
    t->profile = *p;
    t->profile.collectives = collective_copy(&p->collectives);
    t->cost = cost_new(d->model, d->cluster, &t->profile, d->layout, d->n_layouts, PAGE_TOKENS);
}

void trial_release(struct trial *t)
{
    cost_free(t->cost);
    profile_release(&t->profile);
}

static void set_latency(struct collective_curve *c, double factor)
{
    double more_us = (factor - 1) * c->latency_us;
    for (int i = 0; i < c->n; i++)
        c->point[i].us += more_us;
    c->latency_us += more_us;
}

static void set_bandwidth(struct collective_curve *c, double factor)
{
    for (int i = 0; i < c->n; i++)
        c->point[i].us = c->latency_us + (c->point[i].us - c->latency_us) / factor;
}

/* Every rank count alike: what was measured over some says most about the others, too. */
static void set_collective(struct collective_table *t, const struct fit_param *q)
{
    for (int i = 0; i < t->n[q->which]; i++) {
        struct collective_curve *c = &t->curve[q->which][i];
        (q->target == FIT_LATENCY ? set_latency : set_bandwidth)(c, q->value / q->base);
    }
}

static void set_flop(struct efficiency *e, double size, double frac)
{
    for (int i = 0; i < e->n; i++)
        if (e->size[i] == size)
            e->frac[i] = frac;
}

static void set_param(struct profile *p, const struct fit_param *q)
{
    struct stage_profile *stage = &p->stage[q->which];
    switch (q->target) {
    case FIT_LAUNCH: stage->launch_us = q->value; break;
    case FIT_HBM:
        stage->hbm_frac = (struct efficiency){.n = 1, .size = {1}, .frac = {q->value}};
        break;
    case FIT_FLOP: set_flop(&stage->flop_frac, q->size, q->value); break;
    case FIT_MERGE: p->attention.merge_us = q->value; break;
    case FIT_COMBINE: p->attention.combine_us = q->value; break;
    case FIT_SPILL: p->attention.spill_frac = q->value; break;
    case FIT_IMBALANCE: p->expert_imbalance = q->value; break;
    case FIT_LATENCY:
    case FIT_BANDWIDTH: set_collective(&p->collectives, q); break;
    case FIT_LAYER_LAUNCH: p->layer_launch_us = q->value; break;
    case FIT_STEP_LAUNCH: p->step_launch_us = q->value; break;
    case FIT_REPACK: p->transfer.repack_hbm_frac = q->value; break;
    case FIT_WEIGHTS_FACTOR: p->transfer.weights_factor = q->value; break;
    case FIT_KV_FACTOR: p->transfer.kv_factor = q->value; break;
    case FIT_REGROUP: p->transfer.regroup_hbm_frac = q->value; break;
    case FIT_BESIDE: p->transfer.beside_frac = q->value; break;
    case FIT_LINK_INTERFERENCE: p->transfer.link_interference = q->value; break;
    case FIT_REGROUP_INTERFERENCE: p->transfer.regroup_interference = q->value; break;
    }
}

/* Numbers only: both tables have the same points. */
static void reset_collectives(struct collective_table *to, const struct collective_table *from)
{
    for (int op = 0; op < COLL_COUNT; op++)
        for (int i = 0; i < to->n[op]; i++) {
            struct collective_curve *c = &to->curve[op][i];
            c->latency_us = from->curve[op][i].latency_us;
            for (int k = 0; k < c->n; k++)
                c->point[k] = from->curve[op][i].point[k];
        }
}

void trial_set(struct trial *t, const struct profile *start, const struct fit_param *param, int n)
{
    struct collective_table own = t->profile.collectives;
    t->profile = *start;
    t->profile.collectives = own;
    reset_collectives(&t->profile.collectives, &start->collectives);
    /* A collective's latency comes before its bandwidth in the list, as it must be set. */
    for (int i = 0; i < n; i++)
        if (param[i].state != FIT_KEPT)
            set_param(&t->profile, &param[i]);
    cost_set_profile(t->cost, &t->profile);
}

static struct transition switch_of(const struct trial *t, const struct fit_step *s,
                                   const struct step_cost *cost)
{
    int64_t tokens[RANKS_MAX] = {0};
    struct transition move;
    for (int i = 0; i < s->batch.n; i++)
        tokens[s->item[i].owner] += s->item[i].ctx_tokens - s->item[i].q;
    transition_cost(t->cost, s->from, s->layout, tokens, cost, &move);
    return move;
}

double trial_predict_s(const struct trial *t, int stage, const struct fit_step *s)
{
    struct step_cost c;
    cost_step(t->cost, s->layout, &s->batch, &c);
    switch (stage) {
    case FIT_PROJ: return ps_to_s(c.proj.a_ps);
    case FIT_ATTN_DECODE:
    case FIT_ATTN_PREFILL: return ps_to_s(c.attn.a_ps);
    case FIT_FFN: return ps_to_s(c.ffn.a_ps);
    case FIT_EXCHANGE: return ps_to_s(c.exchange.a_ps);
    case FIT_REST:
        return ps_to_s(c.step.a_ps - c.proj.a_ps - c.attn.a_ps - c.exchange.a_ps - c.ffn.a_ps);
    case FIT_TRANSFER: return ps_to_s(switch_of(t, s, &c).blocking_ps);
    case FIT_OVERLAP: return ps_to_s(switch_of(t, s, &c).exposed_ps);
    default: return ps_to_s(c.step.a_ps);
    }
}

int64_t fit_measured_ns(int stage, const struct fit_step *s)
{
    const struct plan_times *m = &s->meas;
    switch (stage) {
    case FIT_PROJ: return m->proj_ns;
    case FIT_ATTN_DECODE:
    case FIT_ATTN_PREFILL: return m->attn_ns;
    case FIT_FFN: return m->ffn_ns;
    case FIT_EXCHANGE: return m->exchange_ns;
    case FIT_REST: return m->step_ns - m->proj_ns - m->attn_ns - m->exchange_ns - m->ffn_ns;
    case FIT_TRANSFER: return m->switch_exposed_ns;
    case FIT_OVERLAP: return s->added_ns;
    default: return m->step_ns;
    }
}

double fit_error(const struct trial *t, int stage, const struct fit_step *s)
{
    int64_t ns = fit_measured_ns(stage, s);
    double scale_s = 1e-9 * (double)(stage == FIT_REST ? s->meas.step_ns : ns);
    return (trial_predict_s(t, stage, s) - 1e-9 * (double)ns) / scale_s;
}

bool fit_observes(const struct trial *t, int stage, const struct fit_step *s)
{
    bool decodes_only = s->batch.n == s->batch.n_decode;
    if ((s->from < 0) != (stage != FIT_TRANSFER && stage != FIT_OVERLAP))
        return false;
    switch (stage) {
    case FIT_ATTN_DECODE: return decodes_only && s->meas.attn_ns > 0;
    case FIT_ATTN_PREFILL: return !decodes_only && s->meas.attn_ns > 0;
    case FIT_REST: return s->meas.step_ns > 0;
    case FIT_TRANSFER:
        return s->blocks && s->meas.switch_exposed_ns > 0 && trial_predict_s(t, stage, s) > 0;
    case FIT_OVERLAP: return s->added_ns > 0 && trial_predict_s(t, stage, s) > 0;
    default: return fit_measured_ns(stage, s) > 0;
    }
}
