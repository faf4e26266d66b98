/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/pools.h"

#include "sim/base/json.h"
#include "sim/base/units.h"
#include "sim/report/table.h"

static const char *const pool_names[POOL_COUNT] = {
    [POOL_DECODE] = "decode", [POOL_PREFILL] = "prefill"};

bool pools_are_two(const struct run_result *r)
{
    return r->pool[POOL_PREFILL].replicas > 0;
}

static double ratio(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static double busy_frac(const struct run_result *r, const struct pool_result *p)
{
    return ratio(p->busy_ps, r->makespan_ps) / (double)p->replicas;
}

static json_t *pool_json(const struct run_result *r, const struct pool_result *p,
                         const struct layout *layouts, int n_layouts)
{
    json_t *o = json_object(), *shares = json_object();
    for (int l = 0; l < n_layouts; l++)
        json_object_set_new(shares, layouts[l].name, json_num(ratio(p->layout_ps[l], p->busy_ps)));
    json_object_set_new(o, "replicas", json_integer(p->replicas));
    json_object_set_new(o, "busy_frac", json_num(busy_frac(r, p)));
    json_object_set_new(o, "switches", json_integer(p->switches));
    json_object_set_new(o, "switch_exposed_s", json_num(ps_to_s(p->switch_exposed_ps)));
    json_object_set_new(o, "layout_time_frac", shares);
    return o;
}

static json_t *link_json(const struct run_result *r)
{
    const struct link_result *link = &r->link;
    json_t *o = json_object(), *wait = json_object();
    json_object_set_new(wait, "p50", json_num(ps_to_s(hist_quantile(&link->wait_ps, 0.5))));
    json_object_set_new(wait, "p95", json_num(ps_to_s(hist_quantile(&link->wait_ps, 0.95))));
    json_object_set_new(o, "transfers", json_integer(link->transfers));
    json_object_set_new(o, "bytes", json_integer(link->bytes));
    json_object_set_new(o, "busy_frac", json_num(ratio(link->busiest_ps, r->makespan_ps)));
    json_object_set_new(o, "wait_s", wait);
    return o;
}

void pools_add_json(json_t *run, const struct run_result *r, const struct layout *layouts,
                    int n_layouts)
{
    json_t *pools = json_object();
    for (int k = POOL_COUNT - 1; k >= 0; k--)
        json_object_set_new(pools, pool_names[k], pool_json(r, &r->pool[k], layouts, n_layouts));
    json_object_set_new(run, "pools", pools);
    json_object_set_new(run, "kv_link", link_json(r));
}

static void add_pool(struct table *t, const struct run_result *r, const struct pool_result *p)
{
    char switches[32];
    table_add(t, "%.0f%%", 100 * busy_frac(r, p));
    table_add(t, "%s", units_count(p->switches, switches, sizeof switches));
}

static void add_link(struct table *t, const struct run_result *r)
{
    static const double q[] = {0.5, 0.95};
    char wait[32];
    table_add(t, "%.0f%%", 100 * ratio(r->link.busiest_ps, r->makespan_ps));
    for (int i = 0; i < 2; i++) {
        double wait_ms = (double)hist_quantile(&r->link.wait_ps, q[i]) / (double)PS_PER_MS;
        table_add(t, "%s", table_number(wait_ms, wait, sizeof wait));
    }
}

void pools_print(const struct summary *s, FILE *out)
{
    static const char *const head[2][8] = {
        {"", "prefill", "", "decode", "", "KV link", "wait ms", ""},
        {"policy", "busy", "switches", "busy", "switches", "busy", "p50", "p95"},
    };
    struct table t;
    table_init(&t, "lrrrrrrr");
    for (int i = 0; i < 16; i++)
        table_add(&t, "%s", head[i / 8][i % 8]);
    for (int i = 0; i < s->n; i++) {
        const struct run_result *r = s->row[i].result;
        table_add(&t, "%s", s->row[i].policy);
        add_pool(&t, r, &r->pool[POOL_PREFILL]);
        add_pool(&t, r, &r->pool[POOL_DECODE]);
        add_link(&t, r);
    }
    fputc('\n', out);
    table_print(&t, out);
    table_release(&t);
}

/* Both pools were in one and the same layout throughout. */
static bool is_uniform(const struct run_result *r, int n_layouts)
{
    int used = 0;
    for (int l = 0; l < n_layouts; l++)
        used += r->layout_ps[l] > 0;
    return used < 2;
}

static void print_shares(const struct pool_result *p, const struct layout *layouts, int n_layouts,
                         FILE *out)
{
    const char *sep = " ";
    for (int l = 0; l < n_layouts; l++) {
        if (p->layout_ps[l] == 0)
            continue;
        fprintf(out, "%s%.0f%% %s", sep, 100 * ratio(p->layout_ps[l], p->busy_ps), layouts[l].name);
        sep = ", ";
    }
}

void pools_print_layouts(const char *policy, const struct run_result *r,
                         const struct layout *layouts, int n_layouts, FILE *out)
{
    if (is_uniform(r, n_layouts))
        return;
    fprintf(out, "%s: prefill in", policy);
    print_shares(&r->pool[POOL_PREFILL], layouts, n_layouts, out);
    fputs("; decode in", out);
    print_shares(&r->pool[POOL_DECODE], layouts, n_layouts, out);
    fputc('\n', out);
}
