/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "sim/study/fit.h"

enum { NUMBER_BYTES = 32 };

/* Lines under way. */
struct text {
    char **line;
    size_t n, cap;
};

static void add_line(struct text *t, char *line)
{
    t->line = xgrow(t->line, &t->cap, t->n + 1, sizeof *t->line);
    t->line[t->n++] = line;
}

/* "line" becomes "line, word", or the word alone. */
static void append(char **line, const char *word)
{
    char *longer = *line != NULL ? xasprintf("%s, %s", *line, word) : xasprintf("%s", word);
    free(*line);
    *line = longer;
}

static void append_owned(char **line, char *word)
{
    append(line, word);
    free(word);
}

static char *describe_file(const struct fit_source *s)
{
    const struct plan_origin *o = &s->header.origin;
    const char *slash = strrchr(s->path, '/');
    char *line = xasprintf("%s: %s on %d ranks", slash != NULL ? slash + 1 : s->path,
                           s->header.model, s->header.ranks);
    if (o->device[0] != '\0')
        append(&line, o->device);
    if (o->date[0] != '\0')
        append(&line, o->date);
    if (o->transport[0] != '\0')
        append_owned(&line, xasprintf("transport %s", o->transport));
    append_owned(&line,
                 xasprintf("%d steps measured (%d without a switch)", s->steps, s->without_switch));
    if (o->repeats > 1)
        append_owned(&line, xasprintf("median of %d repeats", o->repeats));
    if (o->command[0] != '\0')
        append_owned(&line, xasprintf("command: %s", o->command));
    return line;
}

struct range {
    int64_t low, high;
};

static void widen(struct range *r, int64_t x)
{
    if (r->high == 0 || x < r->low)
        r->low = x;
    if (x > r->high)
        r->high = x;
}

struct grid {
    struct range requests, rows, ctx_tokens, chunk_tokens;
    bool has_layout[LAYOUT_MAX];
};

static struct grid grid_of(const struct fit_data *d)
{
    struct grid g = {0};
    for (size_t i = 0; i < d->n; i++) {
        const struct fit_step *s = &d->step[i];
        int64_t rows = 0;
        if (s->from >= 0)
            continue;
        for (int k = 0; k < s->batch.n; k++) {
            rows += s->item[k].q;
            widen(&g.ctx_tokens, s->item[k].ctx_tokens);
            if (k >= s->batch.n_decode)
                widen(&g.chunk_tokens, s->item[k].q);
        }
        widen(&g.rows, rows);
        widen(&g.requests, s->batch.n);
        g.has_layout[s->layout] = true;
    }
    return g;
}

static char *describe_range(const struct range *r, const char *what)
{
    char low[NUMBER_BYTES], high[NUMBER_BYTES];
    return xasprintf("%s %s to %s", what, units_count(r->low, low, sizeof low),
                     units_count(r->high, high, sizeof high));
}

static char *describe_grid(const struct fit_data *d)
{
    struct grid g = grid_of(d);
    char *layouts = NULL;
    for (int l = 0; l < d->n_layouts; l++)
        if (g.has_layout[l])
            append(&layouts, d->layout[l].name);
    char *line = xasprintf("steps fitted to: %s", layouts);
    free(layouts);
    append_owned(&line, describe_range(&g.requests, "requests"));
    append_owned(&line, describe_range(&g.rows, "query rows"));
    append_owned(&line, describe_range(&g.ctx_tokens, "contexts"));
    if (g.chunk_tokens.high > 0)
        append_owned(&line, describe_range(&g.chunk_tokens, "chunks"));
    append(&line, "whatever is beyond is extrapolated");
    return line;
}

/* A collective measured by itself is not the base's, whatever the steps say of it. */
static bool is_measured(const struct fit_data *d, const struct fit_param *q)
{
    return q->stage == FIT_EXCHANGE &&
           collective_has(&d->collectives, (enum collective)q->which, d->cluster->ranks);
}

static char *describe_state(const struct fit *f, const struct fit_data *d, enum fit_state state,
                            char *line)
{
    bool any = false;
    for (int i = 0; i < f->n_params; i++) {
        if (f->param[i].state != state || (state == FIT_KEPT && is_measured(d, &f->param[i])))
            continue;
        append(&line, f->param[i].name);
        any = true;
    }
    if (any)
        return line;
    free(line);
    return NULL;
}

char **fit_sources(const struct fit *f, const struct fit_data *d, const struct profile *base,
                   int *n)
{
    struct text t = {0};
    for (size_t i = 0; i < d->n_sources; i++)
        add_line(&t, describe_file(&d->source[i]));
    if (d->collectives_said != NULL)
        add_line(&t, xasprintf("%s; what a step adds to their latencies is fitted to exchanges",
                               d->collectives_said));
    add_line(&t, describe_grid(d));
    char *bounded = describe_state(f, d, FIT_BOUNDED, xstrdup("only bounded by the data"));
    if (bounded != NULL)
        add_line(&t, bounded);
    add_line(&t, xstrdup("attention.mla_prefill, positions, row_tokens: by convention, as "
                         "wavetank-replay does attention"));
    if (f->profile.step_launch_us == 0)
        add_line(&t, xstrdup("step_launch_us 0: steps of one number of layers do not tell it from "
                             "layer_launch_us, and a replay does nothing once a step"));
    char *kept =
        xasprintf("assumed: as in %s: head, overlap_frac, attn_prefill.hbm_frac", base->name);
    char *all = describe_state(f, d, FIT_KEPT, xstrdup(kept));
    add_line(&t, all != NULL ? all : xstrdup(kept));
    free(kept);
    *n = (int)t.n;
    return t.line;
}
