/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/collective.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "hw/catalog.h"
#include "hw/interp.h"
#include "sim/base/file.h"
#include "sim/base/mem.h"
#include "sim/base/units.h"

const char *const collective_names[COLL_COUNT] = {
    [COLL_ALL_REDUCE] = "all_reduce",
    [COLL_ALL_GATHER] = "all_gather",
    [COLL_REDUCE_SCATTER] = "reduce_scatter",
    [COLL_ALL_TO_ALL] = "all_to_all",
};

enum column { COL_OP, COL_RANKS, COL_BYTES, COL_US, COL_COUNT };

static const char *const column_names[COL_COUNT] = {"op", "ranks", "bytes", "us"};

enum { FIELDS_MAX = 16, RANKS_MAX = 4096 };

struct row {
    int op, ranks;
    double bytes, us;
    long line;
};

struct reader {
    struct lines in;
    bool has_header;
    int field[COL_COUNT]; /* where each column is */
    struct row *row;
    size_t n, cap;
};

/* Split at commas in place. */
static int split(char *line, char *field[FIELDS_MAX])
{
    int n = 0;
    while (line != NULL && n < FIELDS_MAX) {
        field[n++] = line;
        line = strchr(line, ',');
        if (line != NULL)
            *line++ = '\0';
    }
    return n;
}

static int find_name(const char *word, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(word, names[i]) == 0)
            return i;
    return -1;
}

static int read_header(struct reader *r, char *const *field, int n, struct err *err)
{
    for (int c = 0; c < COL_COUNT; c++) {
        r->field[c] = find_name(column_names[c], (const char *const *)field, n);
        if (r->field[c] < 0)
            return err_at(err, r->in.path, r->in.number,
                          "the header must name the columns op, ranks, bytes and us; \"%s\" is "
                          "missing",
                          column_names[c]);
    }
    r->has_header = true;
    return 0;
}

static int read_row(struct reader *r, char *const *field, int n, struct err *err)
{
    struct row row = {.line = r->in.number};
    struct err inner = ERR_NONE;
    int64_t ranks;
    for (int c = 0; c < COL_COUNT; c++)
        if (r->field[c] >= n)
            return err_at(err, r->in.path, row.line, "%s is missing: the row has %d fields",
                          column_names[c], n);
    row.op = find_name(field[r->field[COL_OP]], collective_names, COLL_COUNT);
    if (row.op < 0)
        return err_at(err, r->in.path, row.line,
                      "op must be all_reduce, all_gather, reduce_scatter or all_to_all, got \"%s\"",
                      field[r->field[COL_OP]]);
    if (units_parse_i64(field[r->field[COL_RANKS]], "ranks", 2, RANKS_MAX, &ranks, &inner) < 0 ||
        units_parse_f64(field[r->field[COL_BYTES]], "bytes", 1, 1e15, &row.bytes, &inner) < 0 ||
        units_parse_f64(field[r->field[COL_US]], "us", 1e-3, 1e12, &row.us, &inner) < 0)
        return err_at(err, r->in.path, row.line, "%s", inner.text);
    row.ranks = (int)ranks;
    r->row = xgrow(r->row, &r->cap, r->n + 1, sizeof *r->row);
    r->row[r->n++] = row;
    return 0;
}

static int read_rows(struct reader *r, struct err *err)
{
    char *field[FIELDS_MAX];
    int got;
    while ((got = lines_next(&r->in, err)) > 0) {
        if (r->in.line[0] == '\0' || r->in.line[0] == '#')
            continue;
        int n = split(r->in.line, field);
        if ((r->has_header ? read_row : read_header)(r, field, n, err) < 0)
            return -1;
    }
    return got;
}

static int compare_curve(const struct row *a, const struct row *b)
{
    return a->op != b->op ? a->op - b->op : a->ranks - b->ranks;
}

static int compare_rows(const void *x, const void *y)
{
    const struct row *a = x, *b = y;
    int order = compare_curve(a, b);
    return order != 0 ? order : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static int check_curve(const struct row *row, size_t n, const char *path, struct err *err)
{
    for (size_t i = 1; i < n; i++)
        if (row[i].bytes == row[i - 1].bytes)
            return err_at(err, path, row[i].line > row[i - 1].line ? row[i].line : row[i - 1].line,
                          "this size of %s over %d ranks is given twice; remove one",
                          collective_names[row[i].op], row[i].ranks);
    if (n < 2)
        return err_at(err, path, row[0].line, "%s over %d ranks has one size, needs at least two",
                      collective_names[row[0].op], row[0].ranks);
    if (row[n - 1].us < row[n - 2].us)
        return err_at(err, path, row[n - 1].line,
                      "the largest size of %s over %d ranks must not be faster than the one "
                      "before: larger ones are extrapolated from the two",
                      collective_names[row[n - 1].op], row[n - 1].ranks);
    return 0;
}

static void set_latency(struct collective_curve *c)
{
    c->latency_us = c->point[0].us;
    for (int i = 1; i < c->n; i++)
        if (c->point[i].us < c->latency_us)
            c->latency_us = c->point[i].us;
}

static struct collective_curve curve_of(const struct row *row, size_t n)
{
    struct collective_curve c = {.ranks = row[0].ranks, .n = (int)n};
    c.point = xcalloc(n, sizeof *c.point);
    for (size_t i = 0; i < n; i++)
        c.point[i] = (struct collective_point){row[i].bytes, row[i].us};
    set_latency(&c);
    return c;
}

/* Rows, sorted, to curves. What was built so far stays in *t on failure. */
static int build(struct collective_table *t, const struct row *row, size_t n, const char *path,
                 struct err *err)
{
    size_t cap[COLL_COUNT] = {0};
    for (size_t at = 0, end; at < n; at = end) {
        int op = row[at].op;
        for (end = at + 1; end < n && compare_curve(&row[at], &row[end]) == 0;)
            end++;
        if (check_curve(row + at, end - at, path, err) < 0)
            return -1;
        t->curve[op] = xgrow(t->curve[op], &cap[op], (size_t)t->n[op] + 1, sizeof *t->curve[op]);
        t->curve[op][t->n[op]++] = curve_of(row + at, end - at);
    }
    for (int op = 0; op < COLL_COUNT; op++)
        if (t->n[op] == 0)
            return err_set(err, "%s: has no rows of %s; every operation is needed", path,
                           collective_names[op]);
    return 0;
}

int collective_load(struct collective_table *t, const char *name_or_path, struct err *err)
{
    char path[4096];
    struct reader r = {0};
    struct collective_table built = {0};
    int status = -1;
    if (catalog_path("nccl", name_or_path, path, sizeof path, err) < 0 ||
        lines_open(&r.in, path, err) < 0)
        return -1;
    if (read_rows(&r, err) < 0)
        goto out;
    if (r.n > 0)
        qsort(r.row, r.n, sizeof *r.row, compare_rows);
    if (build(&built, r.row, r.n, path, err) < 0)
        goto out;
    *t = built;
    built = (struct collective_table){0};
    status = 0;
out:
    collective_release(&built);
    free(r.row);
    lines_close(&r.in);
    return status;
}

void collective_release(struct collective_table *t)
{
    for (int op = 0; op < COLL_COUNT; op++) {
        for (int i = 0; i < t->n[op]; i++)
            free(t->curve[op][i].point);
        free(t->curve[op]);
    }
    *t = (struct collective_table){0};
}

static struct collective_curve copy_curve(const struct collective_curve *from)
{
    struct collective_curve c = *from;
    c.point = xcalloc((size_t)c.n, sizeof *c.point);
    memcpy(c.point, from->point, (size_t)c.n * sizeof *c.point);
    return c;
}

/* Returns how many. */
static int copy_curves(const struct collective_table *t, int op, struct collective_curve *out)
{
    for (int i = 0; i < t->n[op]; i++)
        out[i] = copy_curve(&t->curve[op][i]);
    return t->n[op];
}

struct collective_table collective_copy(const struct collective_table *t)
{
    struct collective_table copy = {0};
    for (int op = 0; op < COLL_COUNT; op++) {
        copy.curve[op] = xcalloc((size_t)t->n[op], sizeof *copy.curve[op]);
        copy.n[op] = copy_curves(t, op, copy.curve[op]);
    }
    return copy;
}

void collective_write(const struct collective_table *t, FILE *out)
{
    fputs("op,ranks,bytes,us\n", out);
    for (int op = 0; op < COLL_COUNT; op++)
        for (int i = 0; i < t->n[op]; i++) {
            const struct collective_curve *c = &t->curve[op][i];
            for (int k = 0; k < c->n; k++)
                fprintf(out, "%s,%d,%.17g,%.9g\n", collective_names[op], c->ranks,
                        c->point[k].bytes, c->point[k].us);
        }
}

/* Time of one curve; 0 bytes stand for its latency. */
static double curve_us(const struct collective_curve *c, double bytes)
{
    const struct collective_point *p = c->point;
    if (bytes <= 0)
        return c->latency_us;
    if (bytes <= p[0].bytes)
        return p[0].us;
    int lo = 0, hi = c->n - 1;
    while (hi - lo > 1) {
        int mid = lo + (hi - lo) / 2;
        if (p[mid].bytes <= bytes)
            lo = mid;
        else
            hi = mid;
    }
    return interp_linear(bytes, p[lo].bytes, p[lo].us, p[hi].bytes, p[hi].us);
}

/* More ranks than measured: each byte crosses the wire (n-1)/n times (all-reduce: twice that, the
 * same ratio), and the latency grows with the depth of a tree. */
static double beyond_us(const struct collective_curve *c, int ranks, double bytes)
{
    double wire = (1 - 1.0 / ranks) / (1 - 1.0 / c->ranks);
    double depth = interp_log2(ranks) / interp_log2(c->ranks);
    return c->latency_us * depth + (curve_us(c, bytes) - c->latency_us) * wire;
}

static double table_us(const struct collective_table *t, enum collective op, int ranks,
                       double bytes)
{
    const struct collective_curve *c = t->curve[op];
    int n = t->n[op], i = 0;
    assert(n > 0);
    while (i < n && c[i].ranks < ranks)
        i++;
    if (i == n)
        return beyond_us(&c[n - 1], ranks, bytes);
    double us = curve_us(&c[i], bytes);
    if (i == 0 || c[i].ranks == ranks)
        return us;
    return interp_linear(interp_log2(ranks), interp_log2(c[i - 1].ranks),
                         curve_us(&c[i - 1], bytes), interp_log2(c[i].ranks), us);
}

double collective_s(const struct collective_table *t, enum collective op, int ranks, double bytes)
{
    return ranks <= 1 || bytes <= 0 ? 0 : table_us(t, op, ranks, bytes) / 1e6;
}

double collective_latency_s(const struct collective_table *t, enum collective op, int ranks)
{
    return ranks <= 1 ? 0 : table_us(t, op, ranks, 0) / 1e6;
}

bool collective_has(const struct collective_table *t, enum collective op, int ranks)
{
    for (int i = 0; i < t->n[op]; i++)
        if (t->curve[op][i].ranks == ranks)
            return true;
    return false;
}

/* One operation under way from base to measured. */
struct rebase {
    const struct collective_table *base, *measured;
    enum collective op;
    int ranks;
};

static struct collective_curve scaled_curve(const struct rebase *r,
                                            const struct collective_curve *from)
{
    struct collective_curve c = copy_curve(from);
    for (int i = 0; i < c.n; i++)
        c.point[i].us *= table_us(r->measured, r->op, r->ranks, c.point[i].bytes) /
                         table_us(r->base, r->op, r->ranks, c.point[i].bytes);
    set_latency(&c);
    return c;
}

/* Both lists ascend, and so does what they make. Returns how many. */
static int merge_curves(const struct rebase *r, struct collective_curve *out)
{
    const struct collective_curve *b = r->base->curve[r->op], *m = r->measured->curve[r->op];
    int n_b = r->base->n[r->op], n_m = r->measured->n[r->op], n = 0;
    for (int i = 0, k = 0; i < n_b || k < n_m;) {
        if (k == n_m || (i < n_b && b[i].ranks < m[k].ranks)) {
            out[n++] = scaled_curve(r, &b[i++]);
        } else {
            i += i < n_b && b[i].ranks == m[k].ranks;
            out[n++] = copy_curve(&m[k++]);
        }
    }
    return n;
}

struct collective_table collective_rebase(const struct collective_table *base,
                                          const struct collective_table *measured, int ranks)
{
    struct collective_table made = {0};
    for (int op = 0; op < COLL_COUNT; op++) {
        const struct rebase r = {base, measured, (enum collective)op, ranks};
        size_t most = (size_t)base->n[op] + (size_t)measured->n[op];
        made.curve[op] = xcalloc(most, sizeof *made.curve[op]);
        made.n[op] = collective_has(measured, r.op, ranks) ? merge_curves(&r, made.curve[op])
                                                           : copy_curves(base, op, made.curve[op]);
    }
    return made;
}
