/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cmd/plan_recorder.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "sim/base/units.h"

static int parse_range(struct plan_recorder *p, const char *text, struct err *err)
{
    static const char what[] = "--plan-steps";
    const char *colon = strchr(text, ':');
    if (colon == NULL)
        return err_set(err, "%s: must be A:B such as 100:200, got \"%s\"", what, text);
    char *first = xasprintf("%.*s", (int)(colon - text), text);
    int rc = units_parse_i64(first, what, 0, INT64_MAX, &p->first, err);
    if (rc == 0)
        rc = units_parse_i64(colon + 1, what, 0, INT64_MAX, &p->end, err);
    if (rc == 0 && p->end <= p->first)
        rc = err_set(err, "%s: the range is empty, got \"%s\"", what, text);
    free(first);
    return rc;
}

int plan_recorder_init(struct plan_recorder *p, const struct plan_options *o, struct err *err)
{
    *p = (struct plan_recorder){.end = INT64_MAX, .around = o->around_switches};
    if (o->steps != NULL && o->around_switches >= 0)
        return err_set(err, "--plan-steps and --plan-around-switches: give one of them");
    if (o->steps != NULL && parse_range(p, o->steps, err) < 0)
        return -1;
    if (p->around > 0)
        p->recent = xcalloc((size_t)p->around, sizeof *p->recent);
    return 0;
}

void plan_recorder_release(struct plan_recorder *p)
{
    for (int64_t i = 0; i < p->around && p->recent != NULL; i++)
        plan_step_release(&p->recent[i]);
    plan_step_release(&p->current);
    free(p->recent);
    *p = (struct plan_recorder){0};
}

void plan_recorder_begin(struct plan_recorder *p, const struct setup *setup, uint64_t seed,
                         FILE *out)
{
    struct plan_header h = {
        .ranks = setup->cluster.ranks, .layers = setup->model.layers, .seed = seed};
    snprintf(h.model, sizeof h.model, "%s", setup->model.name);
    snprintf(h.cluster, sizeof h.cluster, "%s", setup->cluster.name);
    p->setup = setup;
    p->out = out;
    plan_write_header(out, &h);
}

static int64_t to_ns(int64_t ps)
{
    return (ps + PS_PER_NS / 2) / PS_PER_NS;
}

static void fill_rows(struct plan_step *s, const struct step_record *r)
{
    size_t cap = (size_t)s->cap_rows;
    s->row = xgrow(s->row, &cap, (size_t)r->batch->n, sizeof *s->row);
    s->cap_rows = (int)cap;
    s->n_rows = r->batch->n;
    for (int i = 0; i < s->n_rows; i++) {
        const struct batch_item *item = &r->batch->item[i];
        s->row[i] = (struct plan_row){
            .req = r->req[i], .owner = item->owner, .ctx_tokens = item->ctx_tokens, .q = item->q};
    }
}

static void fill_step(struct plan_step *s, const struct step_record *r, const struct layout *layout)
{
    bool switches = r->from >= 0;
    s->step = r->index;
    s->at_ns = to_ns(r->at_ps);
    snprintf(s->layout, sizeof s->layout, "%s", layout[r->layout].name);
    snprintf(s->from, sizeof s->from, "%s", switches ? layout[r->from].name : "");
    snprintf(s->mechanism, sizeof s->mechanism, "%s",
             switches ? mechanism_names[r->mechanism] : "");
    s->pred = (struct plan_times){
        .step_ns = to_ns(r->step_ps),
        .proj_ns = to_ns(r->cost->proj.a_ps),
        .attn_ns = to_ns(r->cost->attn.a_ps),
        .exchange_ns = to_ns(r->cost->exchange.a_ps),
        .ffn_ns = to_ns(r->cost->ffn.a_ps),
        .switch_exposed_ns = to_ns(r->exposed_ps),
    };
    fill_rows(s, r);
}

static void write_step(struct plan_recorder *p, const struct plan_step *s)
{
    plan_write_step(p->out, s);
    p->written++;
}

static void write_recent(struct plan_recorder *p)
{
    for (; p->n_recent > 0; p->n_recent--)
        write_step(p, &p->recent[(p->next + p->around - p->n_recent) % p->around]);
}

/* Keep the current step, whose place takes the oldest one's buffer. */
static void keep_current(struct plan_recorder *p)
{
    struct plan_step oldest = p->recent[p->next];
    p->recent[p->next] = p->current;
    p->current = oldest;
    p->next = (p->next + 1) % p->around;
    p->n_recent += p->n_recent < p->around;
}

void plan_recorder_step(void *recorder, const struct step_record *r)
{
    struct plan_recorder *p = recorder;
    if (r->index < p->first || r->index >= p->end)
        return;
    fill_step(&p->current, r, p->setup->layout);
    if (p->around >= 0 && r->from >= 0) {
        write_recent(p);
        p->due = p->around + 1;
    }
    if (p->around < 0 || p->due > 0) {
        write_step(p, &p->current);
        p->due -= p->due > 0;
    } else if (p->around > 0) {
        keep_current(p);
    }
}
