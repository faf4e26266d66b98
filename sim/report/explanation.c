/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/explanation.h"

#include <stdlib.h>

#include "sim/base/json.h"
#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "sim/report/table.h"

static struct batch_item *make_items(const struct explained_batch *b, int ranks)
{
    struct batch_item *item = xcalloc((size_t)b->requests, sizeof *item);
    for (int64_t i = 0; i < b->requests; i++)
        item[i] = (struct batch_item){b->ctx_tokens, (int32_t)b->q, (int32_t)(i % ranks)};
    return item;
}

static void explain_layout(struct explained_layout *out, const struct cost *cost, int layout,
                           const struct explained_batch *b)
{
    const struct layout *l = cost_layout(cost, layout);
    const struct capacity *cap = cost_capacity(cost, layout);
    int page_tokens = (int)b->page_tokens, requests = (int)b->requests;
    int64_t held = l->kv_owned ? (b->requests + l->ranks - 1) / l->ranks : b->requests;
    double pages = (double)capacity_pages_for(l, b->ctx_tokens, page_tokens);
    out->name = l->name;
    out->weights_bytes = cap->common_bytes + cap->weights_bytes;
    out->kv_bytes = (double)held * (pages * cap->page_bytes + cap->state_bytes);
    out->max_context_tokens = capacity_max_context(cap, l, requests, page_tokens);
    out->feasible = b->ctx_tokens <= out->max_context_tokens;
}

static void explain_switches(struct explanation *e, const struct cost *cost)
{
    int64_t tokens[RANKS_MAX] = {0};
    for (int64_t i = 0; i < e->batch.requests; i++)
        tokens[i % cost_ranks(cost)] += e->batch.ctx_tokens - e->batch.q;
    for (int from = 0; from < e->n; from++) {
        for (int to = 0; to < e->n; to++) {
            struct explained_switch *s = &e->change[from][to];
            if (from == to)
                continue;
            const struct manifest *mf = cost_manifest(cost, from, to);
            s->weights = mf->weights.primitive;
            s->kv = mf->kv.primitive;
            transition_cost(cost, from, to, tokens, &e->layout[to].cost, &s->transition);
        }
    }
}

void explanation_make(struct explanation *e, const struct cost *cost,
                      const struct explained_batch *batch)
{
    struct batch_item *item = make_items(batch, cost_ranks(cost));
    int n = (int)batch->requests;
    struct batch b = {.n_decode = batch->decode && batch->q == 1 ? n : 0, .n = n, .item = item};
    *e = (struct explanation){.batch = *batch, .n = cost_n_layouts(cost)};
    for (int l = 0; l < e->n; l++) {
        explain_layout(&e->layout[l], cost, l, batch);
        cost_step(cost, l, &b, &e->layout[l].cost);
    }
    explain_switches(e, cost);
    free(item);
}

static int64_t to_ns(int64_t ps)
{
    return (ps + PS_PER_NS / 2) / PS_PER_NS;
}

static void set_ns(json_t *obj, const char *key, int64_t ps)
{
    json_object_set_new(obj, key, json_integer(to_ns(ps)));
}

static json_t *layout_json(const struct explained_layout *l)
{
    json_t *obj = json_object(), *stages = json_object();
    json_object_set_new(obj, "weights_bytes", json_num(l->weights_bytes));
    json_object_set_new(obj, "kv_bytes", json_num(l->kv_bytes));
    json_object_set_new(obj, "feasible", json_boolean(l->feasible));
    json_object_set_new(obj, "max_context_tokens", json_integer(l->max_context_tokens));
    set_ns(obj, "step_ns", l->cost.step.a_ps);
    json_object_set_new(obj, "stages", stages);
    set_ns(stages, "proj_ns", l->cost.proj.a_ps);
    set_ns(stages, "attn_ns", l->cost.attn.a_ps);
    set_ns(stages, "exchange_ns", l->cost.exchange.a_ps);
    set_ns(stages, "ffn_ns", l->cost.ffn.a_ps);
    return obj;
}

static json_t *switch_json(const struct explanation *e, int from, int to)
{
    const struct explained_switch *s = &e->change[from][to];
    const struct transition *t = &s->transition;
    json_t *obj = json_object();
    json_object_set_new(obj, "from", json_string(e->layout[from].name));
    json_object_set_new(obj, "to", json_string(e->layout[to].name));
    json_object_set_new(obj, "weights", json_string(primitive_names[s->weights]));
    json_object_set_new(obj, "kv", json_string(primitive_names[s->kv]));
    json_object_set_new(obj, "weights_recv_bytes_per_rank_layer",
                        json_num(t->weights_recv_bytes_per_layer));
    json_object_set_new(obj, "kv_recv_bytes_per_rank_layer", json_num(t->kv_recv_bytes_per_layer));
    set_ns(obj, "exposed_ns", t->exposed_ps);
    set_ns(obj, "blocking_ns", t->blocking_ps);
    return obj;
}

json_t *explanation_json(const struct explanation *e)
{
    json_t *obj = json_object(), *layouts = json_object(), *switches = json_array();
    for (int l = 0; l < e->n; l++)
        json_object_set_new(layouts, e->layout[l].name, layout_json(&e->layout[l]));
    for (int from = 0; from < e->n; from++)
        for (int to = 0; to < e->n; to++)
            if (from != to)
                json_array_append_new(switches, switch_json(e, from, to));
    json_object_set_new(obj, "layouts", layouts);
    json_object_set_new(obj, "switches", switches);
    return obj;
}

static void add_number(struct table *t, double x)
{
    char buf[32];
    table_add(t, "%s", table_number(x, buf, sizeof buf));
}

static void add_ms(struct table *t, int64_t ps)
{
    add_number(t, (double)ps / (double)PS_PER_MS);
}

static void print_batch(const struct explained_batch *b, FILE *out)
{
    char requests[32], context[32], rows[32];
    fprintf(out, "batch    %s: %s request%s of %s tokens, %s query row%s each\n",
            b->decode ? "decode" : "prefill", units_count(b->requests, requests, sizeof requests),
            b->requests == 1 ? "" : "s", units_count(b->ctx_tokens, context, sizeof context),
            units_count(b->q, rows, sizeof rows), b->q == 1 ? "" : "s");
}

static void print_layouts(const struct explanation *e, FILE *out)
{
    static const char *const head[] = {
        "",       "weights", "KV",  "",     "longest", "step", "proj", "attn", "exchange", "ffn",
        "layout", "GiB",     "GiB", "fits", "context", "ms",   "ms",   "ms",   "ms",       "ms",
    };
    char count[32];
    struct table t;
    table_init(&t, "lrrlrrrrrr");
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        table_add(&t, "%s", head[i]);
    for (int i = 0; i < e->n; i++) {
        const struct explained_layout *l = &e->layout[i];
        table_add(&t, "%s", l->name);
        add_number(&t, l->weights_bytes / GIB);
        add_number(&t, l->kv_bytes / GIB);
        table_add(&t, l->feasible ? "yes" : "no");
        table_add(&t, "%s", units_count(l->max_context_tokens, count, sizeof count));
        add_ms(&t, l->cost.step.a_ps);
        add_ms(&t, l->cost.proj.a_ps);
        add_ms(&t, l->cost.attn.a_ps);
        add_ms(&t, l->cost.exchange.a_ps);
        add_ms(&t, l->cost.ffn.a_ps);
    }
    table_print(&t, out);
    table_release(&t);
}

static void print_fastest(const struct explanation *e, FILE *out)
{
    const struct explained_layout *best = NULL;
    char time[32];
    for (int i = 0; i < e->n; i++) {
        const struct explained_layout *l = &e->layout[i];
        if (l->feasible && (best == NULL || l->cost.step.a_ps < best->cost.step.a_ps))
            best = l;
    }
    if (best != NULL)
        fprintf(out, "The fastest layout that fits is %s: %s a step.\n", best->name,
                units_time(best->cost.step.a_ps, time, sizeof time));
    else
        fputs("The batch fits under none of these layouts.\n", out);
}

static void print_switches(const struct explanation *e, FILE *out)
{
    static const char *const head[] = {
        "", "", "", "", "overlapped", "blocking", "from", "to", "weights", "KV", "ms", "ms",
    };
    struct table t;
    table_init(&t, "llllrr");
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        table_add(&t, "%s", head[i]);
    for (int from = 0; from < e->n; from++) {
        for (int to = 0; to < e->n; to++) {
            const struct explained_switch *s = &e->change[from][to];
            if (from == to)
                continue;
            table_add(&t, "%s", e->layout[from].name);
            table_add(&t, "%s", e->layout[to].name);
            table_add(&t, "%s", primitive_names[s->weights]);
            table_add(&t, "%s", primitive_names[s->kv]);
            add_ms(&t, s->transition.exposed_ps);
            add_ms(&t, s->transition.blocking_ps);
        }
    }
    table_print(&t, out);
    table_release(&t);
}

void explanation_print(const struct explanation *e, FILE *out)
{
    print_batch(&e->batch, out);
    fputc('\n', out);
    print_layouts(e, out);
    fputs("\nMemory is of the busiest rank. A step also has embedding, LM head and launches.\n",
          out);
    print_fastest(e, out);
    if (e->n < 2)
        return;
    fputs("\nWhat a switch does to weights and KV, and what it adds to the next step when the\n"
          "transfer overlaps computation and when it blocks:\n\n",
          out);
    print_switches(e, out);
}
