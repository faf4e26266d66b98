/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/host.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "replay/exchange.h"
#include "replay/host_pass.h"
#include "replay/move.h"
#include "replay/values.h"
#include "sim/base/mem.h"

struct host {
    struct store store;
    struct comm *comm;
    struct layout layout;
};

struct host *host_new(const struct slice *s, const struct layout *l, struct comm *c)
{
    assert(s->model.indexer.heads == 0 && s->model.linear.layers == 0);
    assert(l->ranks == c->ranks);
    struct host *h = xcalloc(1, sizeof *h);
    h->comm = c;
    h->layout = *l;
    store_init(&h->store, s, l, c->rank);
    return h;
}

void host_free(struct host *h)
{
    if (h == NULL)
        return;
    store_release(&h->store);
    free(h);
}

const struct store *host_store(const struct host *h)
{
    return &h->store;
}

void host_forget(struct host *h, int64_t req)
{
    int index = store_find(&h->store, req);
    if (index >= 0)
        store_remove(&h->store, index);
}

int host_switch(struct host *h, const struct layout *to, struct err *err)
{
    if (move_switch(&h->store, h->comm, &h->layout, to, err) < 0)
        return -1;
    h->layout = *to;
    return 0;
}

double *host_poison(size_t n)
{
    double *x = xcalloc(n + 1, sizeof *x); /* a step may leave a rank without rows */
    for (size_t i = 0; i < n; i++)
        x[i] = NAN;
    return x;
}

double host_dot(const double *a, const double *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

void host_add(double *y, double scale, const double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += scale * x[i];
}

void host_multiply(double *y, const double *w, const double *x, int rows, int columns)
{
    for (int i = 0; i < rows; i++)
        y[i] = host_dot(w + (int64_t)i * columns, x, columns);
}

/* Let the store hold the rows' contexts. */
static int admit(struct host *h, const struct plan_row *row, struct err *err)
{
    int64_t before = row->ctx_tokens - row->q;
    int index = store_find(&h->store, row->req);
    if (index < 0)
        index = store_add(&h->store, &h->layout, row->req, row->owner, before);
    const struct store_request *q = &h->store.request[index];
    if (q->tokens != before && q->tokens != row->ctx_tokens)
        return err_run(err,
                       "request %" PRId64 ": rows from position %" PRId64 " on, but %" PRId64
                       " tokens ran before: forget it first if it starts again",
                       row->req, before, q->tokens);
    if (q->owner != row->owner)
        return err_run(err, "request %" PRId64 ": owner %d, but rank %d owned it before", row->req,
                       row->owner, q->owner);
    store_extend(&h->store, index, row->ctx_tokens);
    return 0;
}

static int admit_rows(struct host *h, const struct plan_row *row, int n_rows,
                      struct share_rows *rows, struct err *err)
{
    size_t cap = 0;
    for (int i = 0; i < n_rows; i++) {
        if (admit(h, &row[i], err) < 0)
            return -1;
        for (int64_t k = 0; k < row[i].q; k++) {
            rows->row = xgrow(rows->row, &cap, (size_t)rows->n + 1, sizeof *rows->row);
            rows->row[rows->n++] = (struct share_row){
                .request = store_find(&h->store, row[i].req),
                .owner = row[i].owner,
                .position = row[i].ctx_tokens - row[i].q + k,
            };
        }
    }
    return 0;
}

/* Hidden rows that live with their owner are forgotten elsewhere. */
static void leave_to_owners(const struct host_pass *p, double *x)
{
    struct share mine = {share_home(&p->layout), p->comm->rank, p->comm->ranks, 0, 0};
    int hidden = p->store->slice->model.hidden;
    for (int i = 0; p->layout.rows_owned && i < p->rows.n; i++) {
        if (share_has_row(&mine, &p->rows, i))
            continue;
        for (int j = 0; j < hidden; j++)
            x[(int64_t)i * hidden + j] = NAN;
    }
}

static void load_hidden(const struct host_pass *p, double *x)
{
    const struct slice *s = p->store->slice;
    for (int i = 0; i < p->rows.n; i++) {
        const struct share_row *row = &p->rows.row[i];
        int64_t req = p->store->request[row->request].req;
        for (int j = 0; j < s->model.hidden; j++)
            x[(int64_t)i * s->model.hidden + j] =
                value_at(s->seed, VALUE_HIDDEN, req, row->position, 0, j);
    }
    leave_to_owners(p, x);
}

static void norm_rows(double *y, const double *x, int rows, int width)
{
    for (int64_t i = 0; i < rows; i++) {
        double mean = host_dot(x + i * width, x + i * width, width) / width;
        for (int64_t j = i * width; j < (i + 1) * width; j++)
            y[j] = x[j] / sqrt(mean + 1e-6);
    }
}

static int gather(const struct host_pass *p, double *x, struct err *err)
{
    return exchange_gather_rows(&p->rows, share_home(&p->layout), x, p->store->slice->model.hidden,
                                p->comm, err);
}

/* x += attention(norm(x)), afterwards on every rank. */
static int add_attention(const struct host_pass *p, double *x, double *y, double *normed,
                         struct err *err)
{
    const struct layout *l = &p->layout;
    const struct slice *s = p->store->slice;
    size_t n = (size_t)p->rows.n * (size_t)s->model.hidden;
    bool all_rows = share_of(s, l, SHARE_PROJECT, p->comm->rank).rule == SHARE_ALL;
    norm_rows(normed, x, p->rows.n, s->model.hidden);
    if (l->rows_owned && all_rows && gather(p, normed, err) < 0)
        return -1;
    if (host_attention(p, normed, y, err) < 0)
        return -1;
    if (l->out_shards > 1 && comm_all_reduce(p->comm, y, n, err) < 0)
        return -1;
    host_add(x, 1, y, (int64_t)n);
    return l->rows_owned || l->out_shards == 1 ? gather(p, x, err) : 0;
}

/* x += FFN(norm(x)), afterwards where hidden rows live. */
static int add_ffn(const struct host_pass *p, double *x, double *y, double *normed, struct err *err)
{
    int hidden = p->store->slice->model.hidden;
    size_t n = (size_t)p->rows.n * (size_t)hidden;
    norm_rows(normed, x, p->rows.n, hidden);
    stopwatch_enter(p->comm->watch, ON_FFN);
    host_ffn(p, normed, y);
    stopwatch_enter(p->comm->watch, ON_OTHER);
    if (comm_all_reduce(p->comm, y, n, err) < 0)
        return -1;
    host_add(x, 1, y, (int64_t)n);
    leave_to_owners(p, x);
    return 0;
}

int host_step(struct host *h, const struct plan_row *row, int n_rows, double *out, struct err *err)
{
    const struct slice *s = h->store.slice;
    struct host_pass p = {.store = &h->store, .comm = h->comm, .layout = h->layout};
    int result = admit_rows(h, row, n_rows, &p.rows, err);
    size_t n = (size_t)p.rows.n * (size_t)s->model.hidden;
    double *x = host_poison(n), *y = host_poison(n), *normed = host_poison(n);
    if (result == 0)
        load_hidden(&p, x);
    for (p.layer = 0; result == 0 && p.layer < s->layers; p.layer++) {
        p.layout = store_layer_layout(s, &h->layout, p.layer);
        result = add_attention(&p, x, y, normed, err);
        if (result == 0)
            result = add_ffn(&p, x, y, normed, err);
    }
    if (result == 0)
        memcpy(out, x, n * sizeof *x);
    free(p.rows.row);
    free(x);
    free(y);
    free(normed);
    return result;
}
