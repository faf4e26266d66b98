/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/study/joined.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"

const char *const step_part_names[PART_COUNT] = {
    [PART_PROJ] = "proj", [PART_ATTN] = "attn", [PART_EXCHANGE] = "exchange",
    [PART_FFN] = "ffn",   [PART_REST] = "rest",
};

static const char advice[] = "MEASURED must be what a replay of PLAN wrote";

/* What a join compares, and the names of both files. */
struct pair {
    const char *plan_path, *measured_path;
};

static int fail_word(const struct pair *p, const char *place, const char *measured,
                     const char *plan, struct err *err)
{
    return err_set(err, "%s: %s is \"%s\", but \"%s\" in %s; %s", p->measured_path, place, measured,
                   plan, p->plan_path, advice);
}

static int fail_number(const struct pair *p, const char *place, int64_t measured, int64_t plan,
                       struct err *err)
{
    return err_set(err, "%s: %s is %lld, but %lld in %s; %s", p->measured_path, place,
                   (long long)measured, (long long)plan, p->plan_path, advice);
}

static int check_headers(const struct pair *p, const struct plan_header *plan,
                         const struct plan_header *measured, struct err *err)
{
    if (strcmp(measured->model, plan->model) != 0)
        return fail_word(p, "model", measured->model, plan->model, err);
    if (strcmp(measured->cluster, plan->cluster) != 0)
        return fail_word(p, "cluster", measured->cluster, plan->cluster, err);
    if (measured->ranks != plan->ranks)
        return fail_number(p, "ranks", measured->ranks, plan->ranks, err);
    if (measured->layers != plan->layers)
        return fail_number(p, "layers", measured->layers, plan->layers, err);
    return 0;
}

static int check_row(const struct pair *p, int64_t step, int row, const struct plan_row *measured,
                     const struct plan_row *plan, struct err *err)
{
    const struct {
        const char *key;
        int64_t measured, plan;
    } fields[] = {
        {"req", measured->req, plan->req},
        {"owner", measured->owner, plan->owner},
        {"ctx", measured->ctx_tokens, plan->ctx_tokens},
        {"q", measured->q, plan->q},
    };
    char place[96];
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (fields[i].measured == fields[i].plan)
            continue;
        snprintf(place, sizeof place, "step %lld: rows[%d].%s", (long long)step, row,
                 fields[i].key);
        return fail_number(p, place, fields[i].measured, fields[i].plan, err);
    }
    return 0;
}

static int check_rows(const struct pair *p, const struct plan_step *measured,
                      const struct plan_step *plan, struct err *err)
{
    char place[64];
    snprintf(place, sizeof place, "step %lld: number of rows", (long long)plan->step);
    if (measured->n_rows != plan->n_rows)
        return fail_number(p, place, measured->n_rows, plan->n_rows, err);
    for (int i = 0; i < plan->n_rows; i++)
        if (check_row(p, plan->step, i, &measured->row[i], &plan->row[i], err) < 0)
            return -1;
    return 0;
}

static int check_same(const struct pair *p, const struct plan_step *measured,
                      const struct plan_step *plan, struct err *err)
{
    const struct {
        const char *key, *measured, *plan;
    } words[] = {
        {"layout", measured->layout, plan->layout},
        {"from", measured->from, plan->from},
        {"mechanism", measured->mechanism, plan->mechanism},
    };
    char place[64];
    if (measured->step != plan->step)
        return err_set(err, "%s: step %lld comes where %s has step %lld; %s", p->measured_path,
                       (long long)measured->step, p->plan_path, (long long)plan->step, advice);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(words[i].measured, words[i].plan) == 0)
            continue;
        snprintf(place, sizeof place, "step %lld: %s", (long long)plan->step, words[i].key);
        return fail_word(p, place, words[i].measured, words[i].plan, err);
    }
    return check_rows(p, measured, plan, err);
}

static int check_line(const struct pair *p, const struct plan_step *measured,
                      const struct plan_step *plan, struct err *err)
{
    if (!measured->is_measured)
        return err_set(err, "%s: step %lld has no \"meas\"; %s (PLAN comes first)",
                       p->measured_path, (long long)measured->step, advice);
    if (check_same(p, measured, plan, err) < 0)
        return -1;
    if (measured->meas_p50.step_ns == 0)
        return err_set(err, "%s: step %lld: .meas.p50.step_ns is 0: no step takes no time",
                       p->measured_path, (long long)measured->step);
    return 0;
}

static int check(const struct pair *p, const struct plan *plan, const struct plan *measured,
                 struct err *err)
{
    if (check_headers(p, &plan->header, &measured->header, err) < 0)
        return -1;
    if (measured->n == 0)
        return err_set(err, "%s: no step was measured", p->measured_path);
    for (int i = 0; i < plan->n && i < measured->n; i++)
        if (check_line(p, &measured->step[i], &plan->step[i], err) < 0)
            return -1;
    if (measured->n > plan->n)
        return err_set(err, "%s: step %lld is not in %s, which ends before it; %s",
                       p->measured_path, (long long)measured->step[plan->n].step, p->plan_path,
                       advice);
    return 0;
}

static int layout_index(struct joined *j, const char *name)
{
    for (int i = 0; i < j->n_layouts; i++)
        if (strcmp(j->layout[i], name) == 0)
            return i;
    size_t cap = (size_t)j->n_layouts;
    j->layout = xgrow(j->layout, &cap, cap + 1, sizeof *j->layout);
    j->layout[j->n_layouts] = name;
    return j->n_layouts++;
}

static enum mechanism find_mechanism(const char *name)
{
    int m = 0;
    while (m < MECH_COUNT - 1 && strcmp(mechanism_names[m], name) != 0)
        m++;
    return m;
}

static struct joined_step join_line(struct joined *j, const struct plan_step *plan,
                                    const struct plan_step *measured)
{
    struct joined_step s = {.at = plan,
                            .pred = &plan->pred,
                            .meas = &measured->meas_p50,
                            .first_ns = measured->meas_first_ns,
                            .from = -1};
    if (plan->from[0] != '\0') {
        s.from = layout_index(j, plan->from);
        s.mechanism = find_mechanism(plan->mechanism);
        s.kind = s.mechanism == MECH_FREE ? STEP_READY : STEP_SWITCH;
    }
    s.layout = layout_index(j, plan->layout);
    s.error = (double)s.pred->step_ns / (double)s.meas->step_ns - 1;
    return s;
}

int joined_init(struct joined *j, const struct plan *plan, const char *plan_path,
                const struct plan *measured, const char *measured_path, struct err *err)
{
    struct pair pair = {plan_path, measured_path};
    if (check(&pair, plan, measured, err) < 0)
        return -1;
    *j = (struct joined){
        .n = measured->n, .layers = plan->header.layers, .unmatched = plan->n - measured->n};
    j->step = xcalloc((size_t)j->n, sizeof *j->step);
    for (int i = 0; i < j->n; i++) {
        double error = measured->step[i].check_error;
        j->step[i] = join_line(j, &plan->step[i], &measured->step[i]);
        j->check_max_error = error > j->check_max_error ? error : j->check_max_error;
    }
    return 0;
}

void joined_release(struct joined *j)
{
    free(j->step);
    free(j->layout);
    *j = (struct joined){0};
}

void joined_parts(const struct plan_times *t, int64_t part_ns[PART_COUNT])
{
    part_ns[PART_PROJ] = t->proj_ns;
    part_ns[PART_ATTN] = t->attn_ns;
    part_ns[PART_EXCHANGE] = t->exchange_ns;
    part_ns[PART_FFN] = t->ffn_ns;
    part_ns[PART_REST] = t->step_ns - t->proj_ns - t->attn_ns - t->exchange_ns - t->ffn_ns;
}

struct step_shape joined_shape(const struct plan_step *s)
{
    struct step_shape shape = {.requests = s->n_rows};
    for (int i = 0; i < s->n_rows; i++) {
        const struct plan_row *r = &s->row[i];
        shape.rows += r->q;
        shape.prefill_rows += r->q > 1 ? r->q : 0;
        shape.mean_ctx_tokens += r->ctx_tokens;
        shape.max_ctx_tokens = max_i64(shape.max_ctx_tokens, r->ctx_tokens);
    }
    shape.mean_ctx_tokens /= s->n_rows;
    return shape;
}

/* A comparison of five layouts, two steps each, takes less, and so few never matter. */
static const int64_t few_tokens = 16;

bool joined_same_batch(const struct plan_step *a, const struct plan_step *b, double context_frac)
{
    int64_t apart = 0, total = 0;
    if (a->n_rows != b->n_rows)
        return false;
    for (int i = 0; i < a->n_rows; i++) {
        const struct plan_row *x = &a->row[i], *y = &b->row[i];
        if (x->req != y->req || x->owner != y->owner || x->q != y->q)
            return false;
        apart += llabs(x->ctx_tokens - y->ctx_tokens);
        total += y->ctx_tokens;
    }
    return apart <= (int64_t)a->n_rows * few_tokens ||
           (double)apart <= context_frac * (double)total;
}

bool joined_is_settled(const struct joined *j, int i)
{
    const struct joined_step *s = &j->step[i];
    return i > 0 && s->kind == STEP_STEADY && s[-1].kind != STEP_STEADY &&
           s->layout == s[-1].layout;
}
