/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/driver.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"

static int check_model(const char *path, const struct slice *s, struct err *err)
{
    if (s->model.indexer.heads > 0 || s->model.linear.layers > 0)
        return err_at(err, path, 1,
                      "model %s has %s attention, which replay does not run; "
                      "try deepseek-r1, tiny-mla, tiny-gqa or tiny-moe",
                      s->model.name, s->model.indexer.heads > 0 ? "sparse" : "linear");
    return 0;
}

static int check_layouts(const char *path, const struct driver_job *job, struct err *err)
{
    const struct plan *p = &job->plan;
    for (int i = 0; i < p->n; i++) {
        const struct plan_step *s = &p->step[i];
        struct err why = ERR_NONE;
        struct layout l;
        if (layout_parse(&l, s->layout, &job->slice.model, p->header.ranks, &why) < 0 ||
            (s->from[0] != '\0' &&
             layout_parse(&l, s->from, &job->slice.model, p->header.ranks, &why) < 0))
            return err_at(err, path, 0, "step %lld: %s", (long long)s->step, why.text);
    }
    return 0;
}

int driver_load(struct driver_job *job, const char *path, int layers, struct err *err)
{
    struct driver_job made = {.backend = job->backend, .options = job->options};
    if (plan_load(&made.plan, path, err) < 0)
        return -1;
    const struct plan_header *h = &made.plan.header;
    made.slice.seed = h->seed;
    if (made.plan.n == 0) {
        err_at(err, path, 0, "the plan has no steps");
        goto fail;
    }
    if (model_load(&made.slice.model, h->model, err) < 0)
        goto fail;
    made.slice.layers = layers > 0 ? layers : h->layers;
    if (made.slice.layers > made.slice.model.layers) {
        err_set(err, "--layers: %s has %d", h->model, made.slice.model.layers);
        goto fail;
    }
    if (check_model(path, &made.slice, err) < 0 || check_layouts(path, &made, err) < 0 ||
        made.backend->check(&made, path, err) < 0)
        goto fail;
    *job = made;
    return 0;
fail:
    plan_release(&made.plan);
    return -1;
}

void driver_release(struct driver_job *job)
{
    plan_release(&job->plan);
}

struct layout driver_layout(const struct driver_job *job, const char *name)
{
    struct layout l;
    struct err err = ERR_NONE;
    int rc = layout_parse(&l, name, &job->slice.model, job->plan.header.ranks, &err);
    assert(rc == 0);
    return l;
}

bool driver_needs(const struct driver_job *job, int index, int64_t req)
{
    const struct plan *p = &job->plan;
    for (int i = index; i < p->n; i++)
        for (int k = 0; k < p->step[i].n_rows; k++)
            if (p->step[i].row[k].req == req)
                return true;
    return false;
}

int64_t driver_count_rows(const struct plan_step *s)
{
    int64_t n = 0;
    for (int i = 0; i < s->n_rows; i++)
        n += s->row[i].q;
    return n;
}

/* One rank at work. */
struct run {
    const struct driver_job *job;
    struct comm *comm;
    void *self; /* the backend's */
};

/* A request that the selection of steps cut through, or that was preempted, begins anew: what it
 * had before is history. */
static void forget_broken(struct run *r, const struct plan_step *s)
{
    for (int i = 0; i < s->n_rows; i++)
        if (!r->job->backend->continues(r->self, &s->row[i]))
            r->job->backend->forget(r->self, s->row[i].req);
}

/* Drop requests that no later step names. */
static void forget_finished(struct run *r, int index)
{
    const struct plan_step *s = &r->job->plan.step[index];
    for (int i = 0; i < s->n_rows; i++)
        if (!driver_needs(r->job, index + 1, s->row[i].req))
            r->job->backend->forget(r->self, s->row[i].req);
}

static int run_step(struct run *r, int index, struct driver_result *result, struct err *err)
{
    const struct backend *b = r->job->backend;
    const struct plan_step *s = &r->job->plan.step[index];
    struct layout to = driver_layout(r->job, s->layout);
    struct layout before = driver_layout(r->job, s->from[0] != '\0' ? s->from : s->layout);
    /* Steps that the plan left out may have switched: catch up before the clock starts. */
    if (b->enter(r->self, &before, err) < 0)
        return -1;
    forget_broken(r, s);
    if (comm_barrier(r->comm, err) < 0 || b->step(r->self, s, &to, &result->times, err) < 0 ||
        (!r->job->options.unchecked && b->compare(r->self, &result->check_error, err) < 0))
        return -1;
    forget_finished(r, index);
    return 0;
}

/* The layout before the first step: where its switch comes from, or its own. */
static const char *first_layout(const struct plan *p)
{
    return p->step[0].from[0] != '\0' ? p->step[0].from : p->step[0].layout;
}

int driver_run_rank(const struct driver_job *job, struct comm *comm, int local_rank,
                    driver_deliver_fn *deliver, void *context, struct err *err)
{
    struct run r = {.job = job, .comm = comm};
    struct layout first = driver_layout(job, first_layout(&job->plan));
    int rc = job->backend->open(&r.self, job, &first, comm, local_rank, err);
    for (int i = 0; rc == 0 && i < job->plan.n; i++) {
        struct driver_result result = {0};
        rc = run_step(&r, i, &result, err);
        if (rc == 0)
            rc = deliver(context, i, &result, err);
    }
    if (r.self != NULL)
        job->backend->close(r.self);
    return rc;
}

/* Waiting for a busier rank shows as that rank's own stage; what is left of an exchange is the time
 * of the rank that waits least. */
static void keep_slowest(struct plan_times *slowest, const struct plan_times *t)
{
    slowest->step_ns = max_i64(slowest->step_ns, t->step_ns);
    slowest->proj_ns = max_i64(slowest->proj_ns, t->proj_ns);
    slowest->attn_ns = max_i64(slowest->attn_ns, t->attn_ns);
    slowest->exchange_ns = min_i64(slowest->exchange_ns, t->exchange_ns);
    slowest->ffn_ns = max_i64(slowest->ffn_ns, t->ffn_ns);
    slowest->switch_exposed_ns = max_i64(slowest->switch_exposed_ns, t->switch_exposed_ns);
    slowest->switch_first_ns = max_i64(slowest->switch_first_ns, t->switch_first_ns);
}

void driver_join(struct plan_step *s, const struct driver_result *r, int ranks)
{
    s->is_measured = true;
    s->meas_p50 = r[0].times.p50;
    s->meas_p95 = r[0].times.p95;
    s->meas_first_ns = r[0].times.first_ns;
    s->check_error = r[0].check_error;
    for (int i = 1; i < ranks; i++) {
        keep_slowest(&s->meas_p50, &r[i].times.p50);
        keep_slowest(&s->meas_p95, &r[i].times.p95);
        s->meas_first_ns = max_i64(s->meas_first_ns, r[i].times.first_ns);
        s->check_error = r[i].check_error > s->check_error ? r[i].check_error : s->check_error;
    }
}
