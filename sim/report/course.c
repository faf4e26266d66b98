/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/course.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"
#include "sim/base/units.h"

static const int64_t first_bin_ps = PS_PER_MS;

struct course *course_new(int n_groups)
{
    struct course *c = xcalloc(1, sizeof *c);
    c->bin_ps = first_bin_ps;
    c->n_groups = n_groups;
    c->wanted = xcalloc((size_t)n_groups, sizeof *c->wanted);
    for (int i = 0; i < n_groups; i++)
        c->wanted[i] = -1;
    return c;
}

void course_free(struct course *c)
{
    if (c != NULL)
        free(c->wanted);
    free(c);
}

double course_lead(const struct weighed *w)
{
    if (w->forced || w->stay_ps <= 0 || w->go_ps <= 0)
        return NAN;
    return 1 - (double)w->go_ps / (double)w->stay_ps;
}

static void merge_range(struct course_range *to, const struct course_range *from)
{
    to->area_ps += from->area_ps;
    to->min = fmin(to->min, from->min);
    to->max = fmax(to->max, from->max);
}

/* What memory forbids costs nothing: then the greater lead stands out. */
static bool stands_out(const struct course_event *a, const struct course_event *b)
{
    if (b->n == 0 || a->exposed_ps != b->exposed_ps)
        return b->n == 0 || a->exposed_ps > b->exposed_ps;
    double lead = course_lead(&a->why), other = course_lead(&b->why);
    return !isnan(lead) && (isnan(other) || lead > other);
}

static void merge_event(struct course_event *to, const struct course_event *from)
{
    int64_t n = to->n + from->n;
    if (from->n > 0 && stands_out(from, to))
        *to = *from;
    to->n = n;
}

static void merge_bin(struct course_bin *to, const struct course_bin *from)
{
    if (to->busy_ps == 0 && from->busy_ps > 0)
        memcpy(to->range, from->range, sizeof to->range);
    else if (from->busy_ps > 0)
        for (int i = 0; i < COURSE_QUANTITIES; i++)
            merge_range(&to->range[i], &from->range[i]);
    to->busy_ps += from->busy_ps;
    to->exposed_ps += from->exposed_ps;
    for (int l = 0; l < LAYOUT_MAX; l++)
        to->layout_ps[l] += from->layout_ps[l];
    merge_event(&to->switched, &from->switched);
    merge_event(&to->refused, &from->refused);
}

static void halve(struct course *c)
{
    for (int i = 0; i < COURSE_BINS / 2; i++) {
        struct course_bin both = c->bin[(size_t)2 * i];
        merge_bin(&both, &c->bin[2 * i + 1]);
        c->bin[i] = both;
    }
    memset(c->bin + COURSE_BINS / 2, 0, sizeof c->bin / 2);
    c->bin_ps *= 2;
    c->n_bins = (c->n_bins + 1) / 2;
}

static struct course_bin *bin_at(struct course *c, int64_t at_ps)
{
    while (at_ps / c->bin_ps >= COURSE_BINS)
        halve(c);
    int i = (int)(at_ps / c->bin_ps);
    c->n_bins = i >= c->n_bins ? i + 1 : c->n_bins;
    return &c->bin[i];
}

/* What a span's steps have in common, and their contexts, which grow by a constant a step. */
struct load {
    double value[COURSE_QUANTITIES];
    double ctx_growth; /* from the first step to the last */
};

static struct load load_of(const struct span_record *r)
{
    const struct batch *b = r->batch;
    struct load l = {0};
    l.value[COURSE_QUEUE] = (double)r->n_waiting;
    l.value[COURSE_DECODE] = b->n_decode;
    l.value[COURSE_PREFILL] = b->n - b->n_decode;
    for (int i = 0; i < b->n; i++)
        l.value[COURSE_CTX_TOKENS] += (double)b->item[i].ctx_tokens;
    l.value[COURSE_KV_FRAC] =
        r->kv_capacity_pages > 0 ? (double)r->kv_pages / (double)r->kv_capacity_pages : 0;
    l.ctx_growth = (double)(r->n - 1) * b->n_decode;
    return l;
}

/* A part of a span, from one share of its time to another. */
static void add_part(struct course_bin *bin, const struct load *l, int64_t part_ps, double from,
                     double to)
{
    for (int i = 0; i < COURSE_QUANTITIES; i++) {
        double growth = i == COURSE_CTX_TOKENS ? l->ctx_growth : 0;
        double low = l->value[i] + growth * from, high = l->value[i] + growth * to;
        struct course_range part = {(low + high) / 2 * (double)part_ps, low, high};
        if (bin->busy_ps == 0)
            bin->range[i] = part;
        else
            merge_range(&bin->range[i], &part);
    }
    bin->busy_ps += part_ps;
}

static void add_time(struct course *c, const struct span_record *r)
{
    struct load l = load_of(r);
    double whole_ps = (double)(r->end_ps - r->start_ps);
    bin_at(c, r->end_ps - 1); /* wide enough for all of it */
    for (int64_t at_ps = r->start_ps, end_ps; at_ps < r->end_ps; at_ps = end_ps) {
        struct course_bin *bin = bin_at(c, at_ps);
        end_ps = min_i64((at_ps / c->bin_ps + 1) * c->bin_ps, r->end_ps);
        add_part(bin, &l, end_ps - at_ps, (double)(at_ps - r->start_ps) / whole_ps,
                 (double)(end_ps - r->start_ps) / whole_ps);
        bin->layout_ps[r->layout] += end_ps - at_ps;
    }
}

static void add_switch(struct course *c, const struct span_record *r)
{
    struct course_direction *d = &c->direction[r->from][r->layout];
    struct course_event e = {1,       r->start_ps, r->exposed_ps, r->group,
                             r->from, r->layout,   r->switch_why};
    struct course_bin *bin = bin_at(c, r->start_ps);
    double lead = course_lead(&r->switch_why);
    merge_event(&bin->switched, &e);
    bin->exposed_ps += r->exposed_ps;
    d->n++;
    d->forced += r->switch_why.forced;
    d->exposed_ps += r->exposed_ps;
    d->most_exposed_ps = r->exposed_ps > d->most_exposed_ps ? r->exposed_ps : d->most_exposed_ps;
    if (isnan(lead))
        return;
    d->lead_min = d->weighed > 0 ? fmin(d->lead_min, lead) : lead;
    d->lead_max = d->weighed > 0 ? fmax(d->lead_max, lead) : lead;
    d->lead_sum += lead;
    d->weighed++;
}

static void add_refusal(struct course *c, const struct span_record *r)
{
    int from = r->from >= 0 ? r->from : r->layout;
    struct course_direction *d = &c->direction[from][r->wanted];
    struct course_event e = {1, r->start_ps, 0, r->group, from, r->wanted, r->wanted_why};
    double lead = course_lead(&r->wanted_why);
    merge_event(&bin_at(c, r->start_ps)->refused, &e);
    d->refused++;
    d->refused_lead_max = isnan(lead) ? d->refused_lead_max : fmax(d->refused_lead_max, lead);
}

void course_span(struct course *c, const struct span_record *r)
{
    add_time(c, r);
    if (r->from >= 0)
        add_switch(c, r);
    if (r->wanted >= 0 && r->wanted != c->wanted[r->group])
        add_refusal(c, r);
    c->wanted[r->group] = r->wanted;
}
