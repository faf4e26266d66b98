/* SPDX-License-Identifier: Apache-2.0
 *
 * Measured plans, as batches of the cost model beside their times, and measured collectives.
 */
#include <stdlib.h>
#include <string.h>

#include "hw/catalog.h"
#include "sim/base/mem.h"
#include "sim/cost/transition.h"
#include "sim/study/fit.h"

void fit_data_init(struct fit_data *d, const struct model *m, const struct cluster *c)
{
    *d = (struct fit_data){.model = m, .cluster = c};
}

void fit_data_release(struct fit_data *d)
{
    for (size_t i = 0; i < d->n; i++)
        free(d->step[i].item);
    for (size_t i = 0; i < d->n_sources; i++)
        free(d->source[i].path);
    free(d->step);
    free(d->source);
    collective_release(&d->collectives);
    free(d->collectives_said);
    *d = (struct fit_data){0};
}

static int check_header(const struct fit_data *d, const char *path, const struct plan_header *h,
                        struct err *err)
{
    const struct model *m = d->model;
    if (strcmp(h->model, m->name) != 0)
        return err_set(err, "%s: measured with model \"%s\", not \"%s\"; fit one model at a time",
                       path, h->model, m->name);
    if (h->layers != m->layers)
        return err_set(err,
                       "%s: measured with %d layers, %s has %d; fit to a model of as many layers "
                       "as ran",
                       path, h->layers, m->name, m->layers);
    if (h->ranks != d->cluster->ranks)
        return err_set(err, "%s: measured on %d ranks, %s has %d", path, h->ranks, d->cluster->name,
                       d->cluster->ranks);
    return 0;
}

/* Index of a layout, added when it is new. */
static int find_layout(struct fit_data *d, const char *text, struct err *err)
{
    struct layout l;
    if (layout_parse(&l, text, d->model, d->cluster->ranks, err) < 0)
        return -1;
    for (int i = 0; i < d->n_layouts; i++)
        if (strcmp(d->layout[i].name, l.name) == 0)
            return i;
    if (d->n_layouts == LAYOUT_MAX)
        return err_set(err, "more than %d layouts in the plans; fit fewer at a time", LAYOUT_MAX);
    d->layout[d->n_layouts] = l;
    return d->n_layouts++;
}

/* Larger steps than the clock counts are no steps. */
enum { STEP_CTX_TOKENS_MAX = 1 << 24, STEP_ROWS_MAX = 1 << 20 };

static int check_rows(const char *path, const struct plan_step *s, struct err *err)
{
    int64_t rows = 0;
    for (int i = 0; i < s->n_rows; i++) {
        const struct plan_row *r = &s->row[i];
        rows += r->q <= STEP_ROWS_MAX ? r->q : STEP_ROWS_MAX + 1;
        if (r->ctx_tokens > STEP_CTX_TOKENS_MAX || rows > STEP_ROWS_MAX)
            return err_set(err, "%s: step %lld: more than %d query rows, or a context above %d",
                           path, (long long)s->step, STEP_ROWS_MAX, STEP_CTX_TOKENS_MAX);
    }
    return 0;
}

/* Decoding requests first, as a batch wants them. */
static void take_rows(struct fit_step *to, const struct plan_step *s)
{
    to->item = xcalloc((size_t)s->n_rows, sizeof *to->item);
    to->batch = (struct batch){.item = to->item};
    for (int decodes = 1; decodes >= 0; decodes--) {
        for (int i = 0; i < s->n_rows; i++) {
            const struct plan_row *r = &s->row[i];
            if ((r->q == 1) == decodes)
                to->item[to->batch.n++] =
                    (struct batch_item){r->ctx_tokens, (int32_t)r->q, r->owner};
        }
        if (decodes)
            to->batch.n_decode = to->batch.n;
    }
}

static int take_step(struct fit_data *d, const char *path, const struct plan_step *s,
                     struct err *err)
{
    struct fit_step step = {.from = -1, .meas = s->meas_p50};
    if (check_rows(path, s, err) < 0 || (step.layout = find_layout(d, s->layout, err)) < 0 ||
        (s->from[0] != '\0' && (step.from = find_layout(d, s->from, err)) < 0))
        return -1;
    step.blocks = strcmp(s->mechanism, mechanism_names[MECH_BLOCKING]) == 0;
    step.overlaps = strcmp(s->mechanism, mechanism_names[MECH_OVERLAPPED]) == 0;
    step.is_ready = strcmp(s->mechanism, mechanism_names[MECH_FREE]) == 0;
    take_rows(&step, s);
    d->step = xgrow(d->step, &d->cap, d->n + 1, sizeof *d->step);
    d->step[d->n++] = step;
    return 0;
}

static int take_plan(struct fit_data *d, const char *path, const struct plan *p, struct err *err)
{
    struct fit_source source = {.header = p->header};
    if (check_header(d, path, &p->header, err) < 0)
        return -1;
    for (int i = 0; i < p->n; i++) {
        const struct plan_step *s = &p->step[i];
        if (!s->is_measured) {
            source.unmeasured++;
            continue;
        }
        if (take_step(d, path, s, err) < 0)
            return -1;
        source.steps++;
        source.without_switch += s->from[0] == '\0';
    }
    if (source.steps == 0)
        return err_set(err, "%s: no step is measured; run it with wavetank-replay -o first", path);
    source.path = xstrdup(path);
    d->source = xgrow(d->source, &d->cap_sources, d->n_sources + 1, sizeof *d->source);
    d->source[d->n_sources++] = source;
    return 0;
}

int fit_data_load(struct fit_data *d, const char *path, struct err *err)
{
    struct plan p;
    if (plan_load(&p, path, err) < 0)
        return -1;
    int rc = take_plan(d, path, &p, err);
    plan_release(&p);
    return rc;
}

/* The file's name and its own word for what it is: the first line, where that is a comment. */
static char *describe_table(const char *path, int ranks, struct err *err)
{
    struct lines l;
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    if (lines_open(&l, path, err) < 0)
        return NULL;
    char *said = NULL;
    int got = lines_next(&l, err);
    if (got > 0 && l.line[0] == '#')
        said = xasprintf("%s: %s", name, l.line + 1 + strspn(l.line + 1, " "));
    else if (got >= 0)
        said = xasprintf("%s: collectives over %d ranks", name, ranks);
    lines_close(&l);
    return said;
}

static bool has_any(const struct collective_table *t, int ranks)
{
    for (int op = 0; op < COLL_COUNT; op++)
        if (collective_has(t, (enum collective)op, ranks))
            return true;
    return false;
}

int fit_data_load_collectives(struct fit_data *d, const char *name_or_path, struct err *err)
{
    char path[4096];
    struct collective_table t;
    int ranks = d->cluster->ranks;
    if (catalog_path("nccl", name_or_path, path, sizeof path, err) < 0 ||
        collective_load(&t, path, err) < 0)
        return -1;
    char *said = NULL;
    if (!has_any(&t, ranks))
        err_set(
            err,
            "%s: no times over %d ranks, which %s has; measure them (wavetank-replay collectives)",
            path, ranks, d->cluster->name);
    else
        said = describe_table(path, ranks, err);
    if (said == NULL) {
        collective_release(&t);
        return -1;
    }
    d->collectives = t;
    d->collectives_said = said;
    return 0;
}

/* The same requests as far as a step's time is concerned: contexts within 5%. */
static bool same_batch(const struct fit_step *a, const struct fit_step *b)
{
    if (a->layout != b->layout || a->batch.n != b->batch.n)
        return false;
    for (int i = 0; i < a->batch.n; i++) {
        const struct batch_item *x = &a->item[i], *y = &b->item[i];
        if (x->q != y->q || x->owner != y->owner ||
            llabs(x->ctx_tokens - y->ctx_tokens) * 20 > y->ctx_tokens)
            return false;
    }
    return true;
}

static int by_size(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

void fit_data_compare(struct fit_data *d)
{
    int64_t *ready_ns = xcalloc(d->n + 1, sizeof *ready_ns);
    for (size_t i = 0; i < d->n; i++) {
        struct fit_step *s = &d->step[i];
        size_t n = 0;
        for (size_t k = 0; s->overlaps && k < d->n; k++)
            if (d->step[k].is_ready && same_batch(&d->step[k], s))
                ready_ns[n++] = d->step[k].meas.step_ns;
        qsort(ready_ns, n, sizeof *ready_ns, by_size);
        s->added_ns = n > 0 ? s->meas.step_ns - ready_ns[n / 2] : 0;
    }
    free(ready_ns);
}
