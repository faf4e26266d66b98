/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "replay/driver.h"
#include "replay/host.h"
#include "replay/reference.h"
#include "replay/stopwatch.h"
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

static int host_check(const struct driver_job *job, const char *path, struct err *err)
{
    if (slice_params(&job->slice) > host_params_max)
        return err_at(err, path, 1,
                      "%d layers of %s are too large for the host backend (at most "
                      "16M parameters); try fewer --layers or a tiny model",
                      job->slice.layers, job->slice.model.name);
    return 0;
}

struct host_run {
    const struct slice *slice;
    struct comm *comm;
    struct host *host;
    struct reference *reference; /* rank 0 alone */
    struct layout layout;
    struct stopwatch watch;
    const struct plan_step *step; /* the last one */
    double *out;                  /* its hidden rows */
};

static void host_close(void *self)
{
    struct host_run *r = self;
    r->comm->watch = NULL;
    host_free(r->host);
    reference_free(r->reference);
    free(r->out);
    free(r);
}

static int host_open(void **self, const struct driver_job *job, const struct layout *l,
                     struct comm *comm, int local_rank, struct err *err)
{
    struct host_run *r = xcalloc(1, sizeof *r);
    (void)local_rank;
    (void)err;
    r->slice = &job->slice;
    r->comm = comm;
    r->layout = *l;
    r->host = host_new(&job->slice, l, comm);
    r->reference = comm->rank == 0 ? reference_new(&job->slice) : NULL;
    comm->watch = &r->watch;
    *self = r;
    return 0;
}

static bool host_continues(void *self, const struct plan_row *row)
{
    const struct store *store = host_store(((struct host_run *)self)->host);
    int at = store_find(store, row->req);
    if (at < 0)
        return true;
    const struct store_request *q = &store->request[at];
    return q->owner == row->owner &&
           (q->tokens == row->ctx_tokens - row->q || q->tokens == row->ctx_tokens);
}

static void forget(void *self, int64_t req)
{
    struct host_run *r = self;
    host_forget(r->host, req);
    if (r->reference != NULL)
        reference_forget(r->reference, req);
}

/* All of a switch is switch time, its exchanges too. */
static int host_enter(void *self, const struct layout *to, struct err *err)
{
    struct host_run *r = self;
    if (strcmp(to->name, r->layout.name) == 0)
        return 0;
    stopwatch_enter(&r->watch, ON_SWITCH);
    r->comm->watch = NULL;
    int rc = host_switch(r->host, to, err);
    r->comm->watch = &r->watch;
    stopwatch_enter(&r->watch, ON_OTHER);
    r->layout = *to;
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

static int step(void *self, const struct plan_step *s, const struct layout *to,
                struct backend_times *times, struct err *err)
{
    struct host_run *r = self;
    size_t n = (size_t)driver_count_rows(s) * (size_t)r->slice->model.hidden;
    free(r->out);
    r->out = xcalloc(n, sizeof *r->out);
    r->step = s;
    stopwatch_start(&r->watch);
    if (host_enter(r, to, err) < 0 || host_step(r->host, s->row, s->n_rows, r->out, err) < 0)
        return -1;
    stopwatch_enter(&r->watch, ON_OTHER);
    times->p50 = times->p95 = times_of(&r->watch); /* it runs once */
    return 0;
}

static void reference_out(const struct host_run *r, int n, double *out)
{
    const struct plan_step *s = r->step;
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
static void drop_rows_of_others(const struct host_run *r)
{
    const struct plan_step *s = r->step;
    int hidden = r->slice->model.hidden;
    int64_t at = 0;
    for (int i = 0; i < s->n_rows; i++) {
        int64_t n = s->row[i].q * hidden;
        for (int64_t j = at; s->row[i].owner != r->comm->rank && j < at + n; j++)
            r->out[j] = 0;
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

/* Relative to the largest output. */
static int compare(void *self, double *error, struct err *err)
{
    struct host_run *r = self;
    int n = (int)driver_count_rows(r->step);
    size_t size = (size_t)n * (size_t)r->slice->model.hidden;
    if (r->layout.rows_owned)
        drop_rows_of_others(r);
    if (comm_all_reduce(r->comm, r->out, size, err) < 0)
        return -1;
    *error = 0;
    if (r->reference == NULL)
        return 0;
    double *expected = xcalloc(size, sizeof *expected);
    reference_out(r, n, expected);
    *error =
        largest_error(r->out, expected, (int64_t)size, r->layout.rows_owned ? 1 : r->comm->ranks);
    free(expected);
    if (*error < host_error_max)
        return 0;
    return err_run(err, "outputs differ from the reference by %.3g of the largest value", *error);
}

const struct backend backend_host = {
    .name = "host",
    .check = host_check,
    .open = host_open,
    .close = host_close,
    .continues = host_continues,
    .forget = forget,
    .enter = host_enter,
    .step = step,
    .compare = compare,
};
