/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cmd/lineup.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"

static const char best_fixed[] = "best-fixed";

/* A run whose policy looks ahead forks all policies beside it. */
static int check_forks(const struct lineup *l, const struct policy *p, struct err *err)
{
    bool forks = p->kind == &policy_oracle || l->prefill_kind == &policy_oracle;
    bool external =
        p->kind->is_external || (l->prefill_kind != NULL && l->prefill_kind->is_external);
    return forks && external
               ? err_set(err, "--policy, --prefill-policy: an oracle copies the policies of a run, "
                              "and cannot copy one from a file; give both another")
               : 0;
}

/* The index of the policy's run, new or there already; -1 on error. */
static int add_run(struct lineup *l, const char *text, struct err *err)
{
    struct policy p;
    if (policy_new(&p, text, l->setup->layout, l->setup->n_layouts, err) < 0)
        return -1;
    if (check_forks(l, &p, err) < 0) {
        policy_release(&p);
        return -1;
    }
    bool fixed = p.kind == &policy_fixed;
    struct run run = {.policy = xstrdup(fixed ? p.name : text),
                      .fixed_layout = fixed ? p.start : -1,
                      .looks_ahead = p.kind == &policy_oracle};
    policy_release(&p);
    for (int i = 0; i < l->n_runs; i++) {
        if (strcmp(l->run[i].policy, run.policy) == 0) {
            free(run.policy);
            return i;
        }
    }
    l->run = xgrow(l->run, &l->cap_runs, (size_t)l->n_runs + 1, sizeof *l->run);
    l->run[l->n_runs] = run;
    return l->n_runs++;
}

static int add_fixed_runs(struct lineup *l, struct err *err)
{
    for (int i = 0; i < l->setup->n_layouts; i++)
        if (add_run(l, l->setup->layout[i].name, err) < 0)
            return -1;
    return 0;
}

static int add_entry(struct lineup *l, const char *text, struct err *err)
{
    struct entry e = {.run = -1, .in_hindsight = strcmp(text, best_fixed) == 0};
    if (e.in_hindsight && add_fixed_runs(l, err) < 0)
        return -1;
    if (!e.in_hindsight && (e.run = add_run(l, text, err)) < 0)
        return -1;
    e.name = xstrdup(e.in_hindsight ? text : l->run[e.run].policy);
    l->entry = xgrow(l->entry, &l->cap, (size_t)l->n + 1, sizeof *l->entry);
    l->entry[l->n++] = e;
    for (int i = 0; i + 1 < l->n; i++)
        if (strcmp(l->entry[i].name, e.name) == 0)
            return err_set(err, "--policy: \"%s\" is named twice: drop one", text);
    return 0;
}

static int check_prefill_policy(struct lineup *l, struct err *err)
{
    struct policy p;
    if (l->prefill_policy == NULL)
        return 0;
    if (policy_new(&p, l->prefill_policy, l->setup->layout, l->setup->n_layouts, err) < 0)
        return -1;
    l->prefill_kind = p.kind;
    policy_release(&p);
    return 0;
}

int lineup_init(struct lineup *l, const struct setup *setup, const struct opt_list *policies,
                const char *prefill_policy, struct err *err)
{
    *l = (struct lineup){.setup = setup, .prefill_policy = prefill_policy};
    if (check_prefill_policy(l, err) < 0)
        return -1;
    for (int i = 0; i < policies->n; i++)
        if (add_entry(l, policies->item[i], err) < 0)
            return -1;
    if (policies->n > 0)
        return 0;
    for (int i = 0; i < setup->n_layouts; i++)
        if (add_entry(l, setup->layout[i].name, err) < 0)
            return -1;
    return add_entry(l, "splash", err) < 0 || add_entry(l, best_fixed, err) < 0 ? -1 : 0;
}

void lineup_release(struct lineup *l)
{
    for (int i = 0; i < l->n_runs; i++) {
        free(l->run[i].policy);
        if (l->run[i].done)
            run_result_release(&l->run[i].result);
    }
    for (int i = 0; i < l->n; i++)
        free(l->entry[i].name);
    free(l->run);
    free(l->entry);
    *l = (struct lineup){0};
}

static int best_fixed_run(const struct lineup *l)
{
    int best = -1;
    for (int i = 0; i < l->n_runs; i++)
        if (l->run[i].fixed_layout >= 0 &&
            (best < 0 || summary_is_better(&l->run[i].result, &l->run[best].result)))
            best = i;
    return best;
}

static void choose_in_hindsight(const struct lineup *l, struct entry *e)
{
    e->run = best_fixed_run(l);
    int layout = l->run[e->run].fixed_layout;
    free(e->name);
    e->name = xasprintf("%s:%s", best_fixed, l->setup->layout[layout].name);
}

int lineup_run_one(const struct setup *setup, const char *policy, const char *prefill_policy,
                   struct engine_input input, struct run_result *out, struct err *err)
{
    int64_t replicas = input.config->replicas, made = 0;
    int64_t groups = replicas + input.config->prefill_replicas;
    int rc = 0;
    prefill_policy = prefill_policy != NULL ? prefill_policy : policy;
    input.cost = setup->cost;
    input.policy = xcalloc((size_t)groups, sizeof *input.policy);
    for (; rc == 0 && made < groups; made += rc == 0)
        rc = policy_new(&input.policy[made], made < replicas ? policy : prefill_policy,
                        setup->layout, setup->n_layouts, err);
    if (rc == 0)
        rc = engine_run(&input, out, err);
    while (made > 0)
        policy_release(&input.policy[--made]);
    free(input.policy);
    return rc;
}

static int run_one(const struct lineup *l, struct run *run, struct engine_input input,
                   struct err *err)
{
    struct progress progress;
    input.progress = &progress;
    progress_begin(&progress, run->policy, input.n_requests);
    int rc = lineup_run_one(l->setup, run->policy, l->prefill_policy, input, &run->result, err);
    progress_end(&progress);
    run->done = rc == 0;
    return rc;
}

int lineup_run(struct lineup *l, const struct engine_input *input, struct err *err)
{
    for (int i = 0; i < l->n_runs; i++) {
        l->running = i;
        if (run_one(l, &l->run[i], *input, err) < 0)
            return -1;
    }
    for (int i = 0; i < l->n; i++)
        if (l->entry[i].in_hindsight)
            choose_in_hindsight(l, &l->entry[i]);
    return 0;
}

void lineup_rows(const struct lineup *l, struct summary_row *row)
{
    for (int i = 0; i < l->n; i++) {
        const struct entry *e = &l->entry[i];
        row[i] = (struct summary_row){
            .policy = e->name,
            .fixed_layout = l->run[e->run].fixed_layout,
            .in_hindsight = e->in_hindsight,
            .looks_ahead = l->run[e->run].looks_ahead,
            .result = &l->run[e->run].result,
        };
    }
}
