/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/tune/ledger.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"

static bool belongs(const struct ledger_entry *e, const struct run_row *row)
{
    return strcmp(e->version, row->version) == 0 && strcmp(e->model, row->model) == 0 &&
           strcmp(e->cluster, row->cluster) == 0 && strcmp(e->profile, row->profile) == 0 &&
           strcmp(e->trace, row->trace) == 0;
}

static struct ledger_entry *entry_of(struct ledger *l, const struct run_row *row)
{
    for (int i = 0; i < l->n; i++)
        if (belongs(&l->entry[i], row))
            return &l->entry[i];
    l->entry = xgrow(l->entry, &l->cap, (size_t)l->n + 1, sizeof *l->entry);
    l->entry[l->n] = (struct ledger_entry){
        .version = xstrdup(row->version),
        .model = xstrdup(row->model),
        .cluster = xstrdup(row->cluster),
        .profile = xstrdup(row->profile),
        .trace = xstrdup(row->trace),
        .first_seed = row->seed,
        .last_seed = row->seed,
    };
    return &l->entry[l->n++];
}

static int take(void *ledger, const struct run_row *row, struct err *err)
{
    struct ledger_entry *e = entry_of(ledger, row);
    (void)err;
    e->runs++;
    e->wall_ns += row->wall_ns;
    e->first_seed = row->seed < e->first_seed ? row->seed : e->first_seed;
    e->last_seed = row->seed > e->last_seed ? row->seed : e->last_seed;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const struct ledger_entry *x = a, *y = b;
    int order = strcmp(x->trace, y->trace);
    order = order != 0 ? order : strcmp(x->model, y->model);
    order = order != 0 ? order : strcmp(x->cluster, y->cluster);
    order = order != 0 ? order : strcmp(x->profile, y->profile);
    return order != 0 ? order : strcmp(x->version, y->version);
}

int ledger_read(struct ledger *l, struct run_store *s, struct err *err)
{
    *l = (struct ledger){0};
    if (run_store_each(s, take, l, err) < 0) {
        ledger_release(l);
        return -1;
    }
    if (l->n > 0)
        qsort(l->entry, (size_t)l->n, sizeof *l->entry, by_name);
    return 0;
}

void ledger_release(struct ledger *l)
{
    for (int i = 0; i < l->n; i++) {
        free(l->entry[i].version);
        free(l->entry[i].model);
        free(l->entry[i].cluster);
        free(l->entry[i].profile);
        free(l->entry[i].trace);
    }
    free(l->entry);
    *l = (struct ledger){0};
}

/* A run by what it is called. */
struct named_run {
    char name[DIGEST_HEX_SIZE];
    struct metrics metrics;
};

struct named_runs {
    struct named_run *run;
    size_t n, cap;
};

static int keep(void *runs, const struct run_row *row, struct err *err)
{
    struct named_runs *all = runs;
    struct digest d;
    (void)err;
    all->run = xgrow(all->run, &all->cap, all->n + 1, sizeof *all->run);
    digest_init(&d);
    digest_text(&d, row->model);
    digest_text(&d, row->cluster);
    digest_text(&d, row->trace);
    digest_text(&d, row->policy);
    digest_text(&d, row->settings);
    digest_u64(&d, (uint64_t)row->seed);
    digest_u64(&d, (uint64_t)row->metrics.value[metric_find("requests")]);
    digest_hex(&d, all->run[all->n].name);
    all->run[all->n++].metrics = row->metrics;
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct named_run *)a)->name, ((const struct named_run *)b)->name);
}

static int read_runs(struct named_runs *runs, struct run_store *s, struct err *err)
{
    *runs = (struct named_runs){0};
    if (run_store_each(s, keep, runs, err) < 0)
        return -1;
    if (runs->n > 0)
        qsort(runs->run, runs->n, sizeof *runs->run, compare_names);
    return 0;
}

static void compare_runs(struct ledger_change *c, const struct metrics *a, const struct metrics *b)
{
    bool equal = true;
    c->both++;
    for (int i = 0; i < METRIC_COUNT; i++) {
        double x = a->value[i], y = b->value[i];
        equal = equal && x == y;
        c->metric[i].changed += x != y;
        if (x == 0)
            continue;
        double change = y / x - 1;
        c->metric[i].compared++;
        c->metric[i].mean_frac += change;
        if (fabs(change) > fabs(c->metric[i].most_frac))
            c->metric[i].most_frac = change;
    }
    c->equal += equal;
}

/* Both in order of names. */
static void merge(struct ledger_change *c, const struct named_runs *a, const struct named_runs *b)
{
    size_t i = 0, k = 0;
    while (i < a->n || k < b->n) {
        int order = i == a->n ? 1 : k == b->n ? -1 : strcmp(a->run[i].name, b->run[k].name);
        if (order == 0)
            compare_runs(c, &a->run[i].metrics, &b->run[k].metrics);
        c->only_a += order < 0;
        c->only_b += order > 0;
        i += order <= 0;
        k += order >= 0;
    }
    for (int m = 0; m < METRIC_COUNT; m++)
        if (c->metric[m].compared > 0)
            c->metric[m].mean_frac /= (double)c->metric[m].compared;
}

int ledger_compare(struct ledger_change *c, struct run_store *a, struct run_store *b,
                   struct err *err)
{
    struct named_runs of_a = {0}, of_b = {0};
    int rc = read_runs(&of_a, a, err);
    if (rc == 0)
        rc = read_runs(&of_b, b, err);
    if (rc == 0) {
        *c = (struct ledger_change){.both = 0};
        merge(c, &of_a, &of_b);
    }
    free(of_a.run);
    free(of_b.run);
    return rc;
}
