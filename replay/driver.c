/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/driver.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "replay/host.h"
#include "replay/reference.h"
#include "replay/stopwatch.h"
#include "sim/base/ints.h"
#include "sim/base/mem.h"

/* A rank keeps whole weight arrays and the reference generates them again and again: hours beyond.
 */
static const double host_params_max = 1 << 24;

/* Double rounding over a few layers stays far below; anything wrong is far above. */
static const double host_error_max = 1e-9;

static double slice_params(const struct slice *s)
{
    const struct model *m = &s->model;
    double sum = 0;
    for (int l = 0; l < s->layers; l++) {
        bool moe = slice_is_moe(s, l);
        double inter =
            moe ? (double)(m->moe.experts + m->moe.shared) * m->moe.inter : m->dense_inter;
        sum += 3.0 * m->hidden * inter;
        for (int mat = MAT_Q_A; mat <= MAT_O; mat++)
            sum +=
                (double)slice_rows(s, l, (enum matrix)mat) * slice_columns(s, l, (enum matrix)mat);
    }
    return sum;
}

static int check_model(const char *path, const struct slice *s, struct err *err)
{
    if (s->model.indexer.heads > 0 || s->model.linear.layers > 0)
        return err_at(err, path, 1,
                      "model %s has %s attention, which the host backend does not run; "
                      "try tiny-mla, tiny-gqa or tiny-moe",
                      s->model.name, s->model.indexer.heads > 0 ? "sparse" : "linear");
    if (slice_params(s) > host_params_max)
        return err_at(err, path, 1,
                      "%d layers of %s are too large for the host backend (at most "
                      "16M parameters); try fewer --layers or a tiny model",
                      s->layers, s->model.name);
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
    struct driver_job made = {0};
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
    if (check_model(path, &made.slice, err) < 0 || check_layouts(path, &made, err) < 0)
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

/* One rank at work. */
struct run {
    const struct driver_job *job;
    struct comm *comm;
    struct host *host;
    struct reference *reference; /* rank 0 alone */
    struct layout layout;
    struct stopwatch watch;
};

static struct layout parsed(const struct driver_job *job, const char *name)
{
    struct layout l;
    struct err err = ERR_NONE;
    int rc = layout_parse(&l, name, &job->slice.model, job->plan.header.ranks, &err);
    assert(rc == 0);
    return l;
}

/* A request that the selection of steps cut through, or that was preempted, begins anew: what it
 * had before is history. */
static void forget_broken(struct run *r, const struct plan_step *s)
{
    const struct store *store = host_store(r->host);
    for (int i = 0; i < s->n_rows; i++) {
        int at = store_find(store, s->row[i].req);
        const struct store_request *q = at >= 0 ? &store->request[at] : NULL;
        if (q == NULL ||
            (q->tokens == s->row[i].ctx_tokens - s->row[i].q && q->owner == s->row[i].owner))
            continue;
        host_forget(r->host, s->row[i].req);
        if (r->reference != NULL)
            reference_forget(r->reference, s->row[i].req);
    }
}

static bool is_needed(const struct plan *p, int from, int64_t req)
{
    for (int i = from; i < p->n; i++)
        for (int k = 0; k < p->step[i].n_rows; k++)
            if (p->step[i].row[k].req == req)
                return true;
    return false;
}

/* Drop requests that no later step names. */
static void forget_finished(struct run *r, int index)
{
    const struct plan_step *s = &r->job->plan.step[index];
    for (int i = 0; i < s->n_rows; i++) {
        if (is_needed(&r->job->plan, index + 1, s->row[i].req))
            continue;
        host_forget(r->host, s->row[i].req);
        if (r->reference != NULL)
            reference_forget(r->reference, s->row[i].req);
    }
}

static int count_rows(const struct plan_step *s)
{
    int64_t n = 0;
    for (int i = 0; i < s->n_rows; i++)
        n += s->row[i].q;
    return (int)n;
}

static void reference_out(struct run *r, const struct plan_step *s, int n, double *out)
{
    struct reference_row *row = xcalloc((size_t)n, sizeof *row);
    int at = 0;
    for (int i = 0; i < s->n_rows; i++)
        for (int64_t k = s->row[i].q; k > 0; k--)
            row[at++] = (struct reference_row){s->row[i].req, s->row[i].ctx_tokens - k};
    reference_step(r->reference, row, n, out, NULL);
    free(row);
}

/* Rows that live elsewhere count as zero, so that the ranks' sum is one copy of each row where rows
 * are owned and T copies elsewhere. A NaN anywhere stays one. */
static void drop_rows_of_others(const struct run *r, const struct plan_step *s, double *x)
{
    int hidden = r->job->slice.model.hidden;
    int64_t at = 0;
    for (int i = 0; i < s->n_rows; i++) {
        int64_t n = s->row[i].q * hidden;
        for (int64_t j = at; s->row[i].owner != r->comm->rank && j < at + n; j++)
            x[j] = 0;
        at += n;
    }
}

/* NaN compares as infinitely wrong. */
static double largest_error(const double *x, const double *expected, int64_t n, int copies)
{
    double error = 0, largest = 0;
    for (int64_t i = 0; i < n; i++) {
        double e = fabs(x[i] / copies - expected[i]);
        error = e > error || isnan(e) ? (isnan(e) ? INFINITY : e) : error;
        largest = fabs(expected[i]) > largest ? fabs(expected[i]) : largest;
    }
    return largest > 0 ? error / largest : error;
}

static int check(struct run *r, const struct plan_step *s, int n, double *out, double *error,
                 struct err *err)
{
    int hidden = r->job->slice.model.hidden;
    size_t size = (size_t)n * (size_t)hidden;
    if (r->layout.rows_owned)
        drop_rows_of_others(r, s, out);
    if (comm_all_reduce(r->comm, out, size, err) < 0)
        return -1;
    *error = 0;
    if (r->reference == NULL)
        return 0;
    double *expected = xcalloc(size, sizeof *expected);
    reference_out(r, s, n, expected);
    *error = largest_error(out, expected, (int64_t)size, r->layout.rows_owned ? 1 : r->comm->ranks);
    free(expected);
    if (*error < host_error_max)
        return 0;
    return err_run(err, "outputs differ from the reference by %.3g of the largest value", *error);
}

/* All of a switch is switch time, its exchanges too. */
static int enter_layout(struct run *r, const char *name, struct err *err)
{
    struct layout to = parsed(r->job, name);
    if (strcmp(to.name, r->layout.name) == 0)
        return 0;
    stopwatch_enter(&r->watch, ON_SWITCH);
    r->comm->watch = NULL;
    int rc = host_switch(r->host, &to, err);
    r->comm->watch = &r->watch;
    stopwatch_enter(&r->watch, ON_OTHER);
    r->layout = to;
    return rc;
}

static struct plan_times times_of(const struct stopwatch *w)
{
    struct plan_times t = {
        .proj_ns = w->ns[ON_PROJ],
        .attn_ns = w->ns[ON_ATTN],
        .exchange_ns = w->ns[ON_EXCHANGE],
        .ffn_ns = w->ns[ON_FFN],
        .switch_exposed_ns = w->ns[ON_SWITCH],
    };
    for (int i = 0; i < ON_COUNT; i++)
        t.step_ns += w->ns[i];
    return t;
}

static int run_step(struct run *r, int index, struct driver_result *result, struct err *err)
{
    const struct plan_step *s = &r->job->plan.step[index];
    int n = count_rows(s);
    double *out = xcalloc((size_t)n * (size_t)r->job->slice.model.hidden, sizeof *out);
    /* Steps that the plan left out may have switched: catch up before the clock starts. */
    int rc = enter_layout(r, s->from[0] != '\0' ? s->from : s->layout, err);
    forget_broken(r, s);
    if (rc == 0)
        rc = comm_barrier(r->comm, err);
    stopwatch_start(&r->watch);
    if (rc == 0)
        rc = enter_layout(r, s->layout, err);
    if (rc == 0)
        rc = host_step(r->host, s->row, s->n_rows, out, err);
    stopwatch_enter(&r->watch, ON_OTHER);
    result->times = times_of(&r->watch);
    if (rc == 0)
        rc = check(r, s, n, out, &result->check_error, err);
    forget_finished(r, index);
    free(out);
    return rc;
}

/* The layout before the first step: where its switch comes from, or its own. */
static const char *first_layout(const struct plan *p)
{
    return p->step[0].from[0] != '\0' ? p->step[0].from : p->step[0].layout;
}

int driver_run_rank(const struct driver_job *job, struct comm *comm, driver_deliver_fn *deliver,
                    void *context, struct err *err)
{
    struct run r = {.job = job, .comm = comm, .layout = parsed(job, first_layout(&job->plan))};
    int rc = 0;
    r.host = host_new(&job->slice, &r.layout, comm);
    r.reference = comm->rank == 0 ? reference_new(&job->slice) : NULL;
    comm->watch = &r.watch;
    for (int i = 0; rc == 0 && i < job->plan.n; i++) {
        struct driver_result result = {0};
        rc = run_step(&r, i, &result, err);
        if (rc == 0)
            rc = deliver(context, i, &result, err);
    }
    comm->watch = NULL;
    host_free(r.host);
    reference_free(r.reference);
    return rc;
}

void driver_join(struct plan_step *s, const struct driver_result *r, int ranks)
{
    struct plan_times slowest = {0};
    double error = 0;
    for (int i = 0; i < ranks; i++) {
        const struct plan_times *t = &r[i].times;
        slowest.step_ns = max_i64(slowest.step_ns, t->step_ns);
        slowest.proj_ns = max_i64(slowest.proj_ns, t->proj_ns);
        slowest.attn_ns = max_i64(slowest.attn_ns, t->attn_ns);
        slowest.exchange_ns = max_i64(slowest.exchange_ns, t->exchange_ns);
        slowest.ffn_ns = max_i64(slowest.ffn_ns, t->ffn_ns);
        slowest.switch_exposed_ns = max_i64(slowest.switch_exposed_ns, t->switch_exposed_ns);
        error = r[i].check_error > error ? r[i].check_error : error;
    }
    s->is_measured = true;
    s->meas_p50 = s->meas_p95 = slowest; /* the host backend runs each step once */
    s->check_error = error;
}
