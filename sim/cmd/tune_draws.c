/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cmd/tune_draws.h"

#include <stdlib.h>
#include <string.h>

#include "hw/catalog.h"
#include "sim/base/ints.h"
#include "sim/base/mem.h"
#include "workloads/workload.h"

static const char gen[] = "gen:";

/* "WORKLOAD" or "WORKLOAD:PRESET". */
static int generate(struct trace *t, const char *text, const struct draw_options *o, uint64_t seed,
                    struct err *err)
{
    struct catalog_doc doc;
    char name[CATALOG_NAME_SIZE];
    struct workload_ask ask = {
        .count = o->count, .block_tokens = o->reading.block_tokens, .seed = seed};
    size_t len = strcspn(text, ":");
    char *kind = xasprintf("%.*s", (int)len, text);
    const struct workload *w = workload_find(kind, err);
    free(kind);
    if (w == NULL ||
        catalog_open(&doc, "presets", text[len] == ':' ? text + len + 1 : w->preset, name, err) < 0)
        return -1;
    int rc = workload_make(t, w, name, &doc.root, &ask, err);
    catalog_close(&doc);
    return rc;
}

static int load(struct draw *d, const struct draw_options *o, FILE *notes, struct err *err)
{
    struct trace_reading reading = o->reading;
    reading.seed = d->seed;
    bool drawn = strncmp(d->name, gen, strlen(gen)) == 0;
    int rc = drawn ? generate(&d->loaded, d->name + strlen(gen), o, (uint64_t)d->seed, err)
                   : trace_load(&d->loaded, d->name, &reading, err);
    if (rc < 0)
        return -1;
    if (notes != NULL)
        trace_warn(&d->loaded, notes);
    if (trace_select(&d->loaded, &o->select, (uint64_t)d->seed, err) < 0)
        return -1;
    d->request = load_requests(&d->loaded);
    return 0;
}

static void release(struct draw *d)
{
    trace_release(&d->loaded);
    free(d->request);
}

static bool same(const struct draw *a, const struct draw *b)
{
    return draw_digest(a, 1).state == draw_digest(b, 1).state;
}

/* One trace with every seed; the second tells whether the others are worth it. */
static int load_seeds(struct draws *d, const struct draw_options *o, const char *name, FILE *notes,
                      struct err *err)
{
    struct draw *first = &d->draw[d->n];
    for (int64_t i = 0; i < o->seeds; i++) {
        struct draw *draw = &d->draw[d->n];
        *draw = (struct draw){.name = name, .trace = d->traces, .seed = o->reading.seed + i};
        d->trace[d->n++] = d->traces;
        if (load(draw, o, i == 0 ? notes : NULL, err) < 0)
            return -1;
        if (i == 1 && same(first, draw)) {
            release(draw);
            d->n--;
            d->seedless++;
            break;
        }
    }
    d->traces++;
    return 0;
}

static int check(int n, char **path, struct err *err)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(path[i], "-") == 0)
            return err_set(err, "tune: a trace is read more than once; give a file, not \"-\"");
        for (int k = 0; k < i; k++)
            if (strcmp(path[i], path[k]) == 0)
                return err_set(err, "%s: named twice: drop one, or ask for more --seeds", path[i]);
    }
    return 0;
}

int draws_load(struct draws *d, const struct draw_options *o, int n, char **path, FILE *notes,
               struct err *err)
{
    *d = (struct draws){.n = 0};
    if (check(n, path, err) < 0)
        return -1;
    d->draw = xcalloc((size_t)(n * o->seeds), sizeof *d->draw);
    d->trace = xcalloc((size_t)(n * o->seeds), sizeof *d->trace);
    for (int i = 0; i < n; i++)
        if (load_seeds(d, o, path[i], notes, err) < 0)
            return -1;
    return 0;
}

void draws_release(struct draws *d)
{
    for (int i = 0; i < d->n; i++)
        release(&d->draw[i]);
    free(d->draw);
    free(d->trace);
    *d = (struct draws){0};
}

int64_t draw_requests(const struct draw *d, int cut)
{
    return ceil_div_i64((int64_t)d->loaded.n, cut);
}

static void add_request(struct digest *g, const struct trace *t, size_t at)
{
    const struct trace_request *r = &t->request[at];
    digest_u64(g, (uint64_t)r->arrival_ps);
    digest_u64(g, (uint64_t)r->delay_ps);
    digest_u64(g, (uint64_t)r->input_tokens);
    digest_u64(g, (uint64_t)r->output_tokens);
    digest_u64(g, (uint64_t)(int64_t)r->session);
    digest_u64(g, r->n_hashes);
    digest_u64(g, r->n_after);
    for (uint32_t i = 0; i < r->n_hashes; i++)
        digest_u64(g, t->hash[r->hash_at + i]);
    for (uint32_t i = 0; i < r->n_after && !trace_waits_alike(t, at); i++)
        digest_u64(g, t->after[r->after_at + i]);
}

struct digest draw_digest(const struct draw *d, int cut)
{
    const struct trace *t = &d->loaded;
    int64_t n = draw_requests(d, cut);
    struct digest g;
    digest_init(&g);
    digest_u64(&g, (uint64_t)t->block_tokens);
    for (int64_t i = 0; i < n; i++)
        add_request(&g, t, (size_t)i);
    return g;
}
