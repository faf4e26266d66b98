/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/tune/study.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "sim/base/progress.h"

struct study_job study_job(const struct study *s, int64_t job)
{
    return (struct study_job){
        .setting = job / s->draws.n % s->n,
        .draw = (int)(job % s->draws.n),
        .rung = (int)(job / s->draws.n / s->n),
    };
}

int study_cut(const struct study *s, int rung)
{
    int cut = 1;
    for (int r = rung + 1; r < s->rungs; r++)
        cut *= STUDY_KEEP;
    return cut;
}

static int64_t kept(int64_t n)
{
    return (n + STUDY_KEEP - 1) / STUDY_KEEP;
}

int64_t study_runs(const struct study *s)
{
    int64_t runs = 0, settings = s->n;
    for (int r = 0; r < s->rungs; r++, settings = kept(settings))
        runs += settings * s->draws.n;
    return runs;
}

/* What is between the study and the team. */
struct flow {
    struct study *study;
    struct run_store *store;
    study_label_fn *label;
    void *context;
    struct progress progress;
    int rung;
    int64_t next, end; /* jobs of the rung */
};

static struct metrics *place_of(struct study *s, int64_t job)
{
    struct study_job j = study_job(s, job);
    return &s->rung[j.rung].run[j.setting * s->draws.n + j.draw];
}

static void count(struct flow *f)
{
    progress_update(&f->progress, f->study->made + f->study->found);
}

/* 1 when the store has the run, which is then taken from there. */
static int find_run(struct flow *f, int64_t job, struct err *err)
{
    struct run_row row;
    if (f->store == NULL)
        return 0;
    if (f->label(f->context, job, &row, err) < 0)
        return -1;
    int found = run_store_find(f->store, row.key, place_of(f->study, job), err);
    if (found == 1) {
        f->study->found++;
        count(f);
    }
    return found;
}

static int next_job(void *context, int64_t *job, struct err *err)
{
    struct flow *f = context;
    while (f->next < f->end) {
        int64_t at = f->next++;
        if (!f->study->rung[f->rung].in[study_job(f->study, at).setting])
            continue;
        int found = find_run(f, at, err);
        if (found < 0)
            return -1;
        if (found == 0) {
            *job = at;
            return 1;
        }
    }
    return 0;
}

static int job_done(void *context, int64_t job, const struct outcome *out, struct err *err)
{
    struct flow *f = context;
    struct run_row row;
    *place_of(f->study, job) = out->metrics;
    if (f->store != NULL) {
        if (f->label(f->context, job, &row, err) < 0)
            return -1;
        row.metrics = out->metrics;
        row.wall_ns = out->wall_ns;
        if (run_store_add(f->store, &row, err) < 0)
            return -1;
    }
    f->study->made++;
    f->study->wall_ns += out->wall_ns;
    count(f);
    return 0;
}

/* The best third goes on. */
static void choose(struct study *s, int rung)
{
    struct scores scores;
    int64_t *order;
    study_scores(s, rung, &scores);
    int64_t n = scores_order(&scores, &order);
    for (int64_t i = 0; i < kept(n); i++)
        s->rung[rung + 1].in[order[i]] = true;
    free(order);
    scores_release(&scores);
}

static void start(struct study *s)
{
    for (int r = 0; r < s->rungs; r++) {
        s->rung[r].in = xcalloc((size_t)s->n, sizeof *s->rung[r].in);
        s->rung[r].run = xcalloc((size_t)s->n * (size_t)s->draws.n, sizeof *s->rung[r].run);
    }
    memset(s->rung[0].in, true, (size_t)s->n * sizeof *s->rung[0].in);
}

int study_run(struct study *s, struct team *team, struct run_store *store, study_label_fn *label,
              void *context, struct err *err)
{
    struct flow f = {.study = s, .store = store, .label = label, .context = context};
    struct team_flow flow = {.next = next_job, .done = job_done, .context = &f};
    int64_t jobs = s->n * s->draws.n;
    int rc = 0;
    start(s);
    progress_begin(&f.progress, "runs", study_runs(s));
    for (; rc == 0 && f.rung < s->rungs; f.rung++) {
        f.next = f.rung * jobs;
        f.end = f.next + jobs;
        rc = team_lead(team, &flow, err);
        if (rc == 0 && f.rung + 1 < s->rungs)
            choose(s, f.rung);
    }
    progress_end(&f.progress);
    return rc;
}

void study_release(struct study *s)
{
    for (int r = 0; r < s->rungs; r++) {
        free(s->rung[r].in);
        free(s->rung[r].run);
    }
}

void study_scores(const struct study *s, int rung, struct scores *scores)
{
    scores_make(scores, s->objective, &s->draws, s->rung[rung].run, s->rung[rung].in, s->n);
}

int64_t study_find(const struct study *s, int64_t point)
{
    int64_t low = 0, high = s->n;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (s->point[middle] < point)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->n && s->point[low] == point ? low : -1;
}
