/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cmd/tune_runs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "sim/cmd/lineup.h"
#include "sim/report/result_json.h"
#include "sim/tune/policy_text.h"

const struct opt tune_run_options[] = {
    SETUP_MACHINE_OPTS(offsetof(struct run_settings, setup)),
    SETUP_LAYOUTS_OPT(offsetof(struct run_settings, setup)),
    RUN_OPTS(0),
    ENGINE_OPTS(offsetof(struct run_settings, engine)),
    {0},
};

static bool is_option(const char *name)
{
    for (const struct opt *o = tune_run_options; o->name != NULL; o++) {
        const char *a = o->name, *b = name;
        while (*a != '\0' && (*a == *b || (*a == '-' && *b == '_')))
            a++, b++;
        if (*a == '\0' && *b == '\0')
            return true;
    }
    return false;
}

/* The axes that are options go there, the others to the policy. */
static int set_axes(struct run_setting *r, const struct tune_runs *t, int64_t point,
                    struct err *err)
{
    const struct grid *g = t->study->grid;
    char *added[GRID_AXES_MAX];
    int n = 0, rc = 0;
    for (int a = 0; rc == 0 && a < g->n; a++) {
        const char *name = g->axis[a].name, *value = grid_value(g, point, a);
        if (is_option(name))
            rc = opt_set(tune_run_options, &r->s, name, value, err);
        else
            added[n++] = xasprintf("%s=%s", name, value);
    }
    if (rc == 0)
        r->policy = policy_text(r->s.policy, (const char *const *)added, n);
    while (n > 0)
        free(added[--n]);
    return rc;
}

int run_setting_make(struct run_setting *r, const struct tune_runs *t, int64_t setting,
                     struct err *err)
{
    *r = (struct run_setting){.s = *t->base};
    if (set_axes(r, t, t->study->point[setting], err) < 0)
        return -1;
    if ((r->s.slo == NULL || load_slo(&r->s.engine, r->s.slo, err) == 0) &&
        engine_config_check(&r->s.engine, err) == 0)
        return 0;
    run_setting_release(r);
    return -1;
}

void run_setting_release(struct run_setting *r)
{
    free(r->policy);
    r->policy = NULL;
}

char *run_setting_options(const struct tune_runs *t, int64_t setting)
{
    const struct grid *g = t->study->grid;
    char *text = xstrdup("");
    for (int a = 0; a < g->n; a++) {
        const char *name = g->axis[a].name;
        if (!is_option(name) || strcmp(name, "policy") == 0)
            continue;
        char *longer =
            xasprintf("%s --%s=%s", text, name, grid_value(g, t->study->point[setting], a));
        free(text);
        text = longer;
    }
    return text;
}

struct worker {
    const struct tune_runs *runs;
    struct setup setup;
    char *loaded; /* what `setup` was loaded by, or NULL */
};

/* What a setup depends on, in one text; to be freed. */
static char *setup_names(const struct run_settings *s)
{
    return xasprintf("%s\n%s\n%s\n%s\n%lld", s->setup.model, s->setup.cluster,
                     s->setup.profile != NULL ? s->setup.profile : "", s->setup.layouts,
                     (long long)s->engine.page_tokens);
}

void *tune_worker_new(const void *context)
{
    struct worker *w = xcalloc(1, sizeof *w);
    w->runs = context;
    return w;
}

static void unload(struct worker *w)
{
    setup_release(&w->setup);
    free(w->loaded);
    w->loaded = NULL;
}

void tune_worker_free(void *worker)
{
    unload(worker);
    free(worker);
}

/* Settings mostly differ in what needs no other machine. */
static int load(struct worker *w, const struct run_settings *s, struct err *err)
{
    char *names = setup_names(s);
    if (w->loaded != NULL && strcmp(w->loaded, names) == 0) {
        free(names);
        return 0;
    }
    unload(w);
    if (setup_load(&w->setup, &s->setup, s->engine.page_tokens, err) < 0) {
        free(names);
        return -1;
    }
    w->loaded = names;
    return 0;
}

static void read_metrics(struct metrics *m, const struct worker *w, const struct run_result *r)
{
    json_t *result = result_json("", r, w->setup.layout, w->setup.n_layouts);
    for (int i = 0; i < METRIC_COUNT; i++) {
        const struct metric *metric = &metric_table[i];
        json_t *at = metric->object != NULL ? json_object_get(result, metric->object) : result;
        json_t *value = json_object_get(at, metric->key);
        assert(json_is_number(value));
        m->value[i] = json_number_value(value);
    }
    json_decref(result);
}

static int run(struct worker *w, const struct study_job *job, const struct run_setting *r,
               struct outcome *out)
{
    const struct draw *d = &w->runs->draws->draw[job->draw];
    struct engine_input input = load_input(&d->loaded, d->request);
    struct run_result result;
    input.n_requests = draw_requests(d, study_cut(w->runs->study, job->rung));
    input.config = &r->s.engine;
    if (load(w, &r->s, &out->err) < 0 ||
        load_check(&d->loaded, &r->s.engine, &w->setup.model, &out->err) < 0 ||
        lineup_run_one(&w->setup, r->policy, r->s.prefill_policy, input, &result, &out->err) < 0)
        return -1;
    read_metrics(&out->metrics, w, &result);
    out->wall_ns = result.wall_ns;
    run_result_release(&result);
    return 0;
}

void tune_worker_run(void *worker, int64_t job, struct outcome *out)
{
    struct worker *w = worker;
    struct study_job j = study_job(w->runs->study, job);
    struct run_setting r;
    if (run_setting_make(&r, w->runs, j.setting, &out->err) < 0)
        return;
    run(w, &j, &r, out);
    run_setting_release(&r);
}

/* Whether a run could be made of it. */
static int check_setting(struct worker *w, int64_t setting, struct err *err)
{
    struct run_setting r;
    struct policy p;
    if (run_setting_make(&r, w->runs, setting, err) < 0)
        return -1;
    int rc = load(w, &r.s, err);
    if (rc == 0 && strcmp(r.policy, "best-fixed") == 0)
        rc = err_set(err, "--policy: best-fixed is a choice among runs; name a policy");
    if (rc == 0 && r.s.prefill_policy != NULL && r.s.engine.prefill_replicas == 0)
        rc = err_set(err, "--prefill-policy: needs --prefill-replicas");
    for (int i = 0; rc == 0 && i < w->runs->draws->n; i++)
        rc = load_check(&w->runs->draws->draw[i].loaded, &r.s.engine, &w->setup.model, err);
    if (rc == 0 && (rc = policy_new(&p, r.policy, w->setup.layout, w->setup.n_layouts, err)) == 0)
        policy_release(&p);
    if (rc == 0 && r.s.prefill_policy != NULL &&
        (rc = policy_new(&p, r.s.prefill_policy, w->setup.layout, w->setup.n_layouts, err)) == 0)
        policy_release(&p);
    run_setting_release(&r);
    return rc;
}

/* Every value once at least, in the first setting that has it. */
int tune_runs_check(const struct tune_runs *t, struct err *err)
{
    const struct grid *g = t->study->grid;
    struct worker *w = tune_worker_new(t);
    bool *seen = xcalloc(GRID_AXES_MAX * (size_t)AXIS_VALUES_MAX, sizeof *seen);
    int rc = 0;
    for (int64_t i = 0; rc == 0 && i < t->study->n; i++) {
        bool news = false;
        for (int a = 0; a < g->n; a++) {
            bool *at = &seen[a * AXIS_VALUES_MAX + grid_at(g, t->study->point[i], a)];
            news = news || !*at;
            *at = true;
        }
        if (news || g->n == 0)
            rc = check_setting(w, i, err);
    }
    free(seen);
    tune_worker_free(w);
    return rc;
}
