/* SPDX-License-Identifier: Apache-2.0
 *
 * The host backend against the plain reference: every layout and every switch on 1 to 8 forked
 * ranks, whose stores hold NaN wherever a layout gives them nothing.
 */
#include "replay/host.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "replay/reference.h"
#include "sim/base/mem.h"
#include "sim/base/rng.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

enum { STEPS = 21, SHORT_STEPS = 12, LIVE_MAX = 6, SWITCH_LAYOUTS = 5 };

/* The models' shapes, narrowed so that many ranks fit into seconds. Neither the FFN nor the experts
 * divide evenly. */
static struct slice load_slice(const char *name)
{
    struct err err = ERR_NONE;
    struct slice s = {.layers = 4, .seed = 7};
    int rc = model_load(&s.model, name, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    s.model.hidden = 48;
    s.model.dense_inter = 50;
    if (s.model.attention == ATTN_MLA) {
        s.model.q_lora = 24;
        s.model.kv_lora = 20;
        s.model.rope_dim = 6;
        s.model.v_dim = 10;
        s.model.nope_dim = 12;
    } else {
        s.model.nope_dim = s.model.v_dim = 12;
    }
    if (s.model.moe.experts > 0) {
        s.model.moe.experts = 6;
        s.model.moe.inter = 18;
    }
    return s;
}

struct script_step {
    struct plan_row row[LIVE_MAX];
    int n_rows;
    int64_t forget; /* before the step; -1 for none */
    int n;          /* query positions */
    double *out;    /* [n][hidden], the reference's */
};

struct script {
    struct slice slice;
    struct script_step step[STEPS];
};

/* Requests come with or without history, decode, prefill, pause and go. Owners are any numbers. */
static void draw_step(struct script_step *st, struct plan_row live[LIVE_MAX], int64_t *next_req,
                      struct rng *rng)
{
    st->forget = -1;
    int leaver = (int)rng_range(rng, 0, 2 * LIVE_MAX);
    if (leaver < LIVE_MAX && live[leaver].req >= 0) {
        st->forget = live[leaver].req;
        live[leaver].req = -1;
    }
    for (int i = 0; i < LIVE_MAX; i++) {
        struct plan_row *q = &live[i];
        if (q->req < 0 && rng_range(rng, 0, 1) == 0)
            *q = (struct plan_row){(*next_req)++, (int)rng_range(rng, 0, 999),
                                   rng_range(rng, 0, 2) * rng_range(rng, 0, 40), 0};
        if (q->req < 0 || rng_range(rng, 0, 4) == 0)
            continue;
        q->q = rng_range(rng, 0, 3) > 0 ? 1 : rng_range(rng, 2, 19);
        q->ctx_tokens += q->q;
        st->row[st->n_rows++] = *q;
        st->n += (int)q->q;
    }
}

static void run_reference(struct reference *ref, const struct script *s, struct script_step *st)
{
    struct reference_row *row = xcalloc((size_t)st->n + 1, sizeof *row);
    int n = 0;
    for (int i = 0; i < st->n_rows; i++) {
        for (int64_t k = 0; k < st->row[i].q; k++)
            row[n++] =
                (struct reference_row){st->row[i].req, st->row[i].ctx_tokens - st->row[i].q + k};
    }
    st->out = xcalloc((size_t)n * (size_t)s->slice.model.hidden + 1, sizeof *st->out);
    reference_step(ref, row, n, st->out, NULL);
    free(row);
}

static struct script *script_new(const char *model, uint64_t seed)
{
    struct script *s = xcalloc(1, sizeof *s);
    s->slice = load_slice(model);
    struct reference *ref = reference_new(&s->slice);
    struct plan_row live[LIVE_MAX];
    struct rng rng;
    rng_init(&rng, seed);
    int64_t next_req = 0;
    for (int i = 0; i < LIVE_MAX; i++)
        live[i] = (struct plan_row){.req = -1};
    for (int i = 0; i < STEPS; i++) {
        draw_step(&s->step[i], live, &next_req, &rng);
        run_reference(ref, s, &s->step[i]);
    }
    reference_free(ref);
    return s;
}

static void script_free(struct script *s)
{
    for (int i = 0; i < STEPS; i++)
        free(s->step[i].out);
    free(s);
}

/* Fork `ranks` processes; each returns 0 when all is right. One rank runs in place, for the leak
 * check. */
typedef int (*body_fn)(struct comm *c, const void *arg);

static void run_ranks(int ranks, body_fn body, const void *arg)
{
    struct err err = ERR_NONE;
    int fd[8 * 8];
    pid_t pid[8];
    int rc = comm_make_pairs(ranks, fd, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    for (int r = 0; r < ranks; r++) {
        struct comm c;
        pid[r] = ranks == 1 ? 0 : fork();
        if (pid[r] != 0)
            continue;
        comm_adopt(&c, r, ranks, fd);
        int result = body(&c, arg);
        comm_release(&c);
        if (ranks > 1)
            _exit(result != 0);
        cr_assert_eq(result, 0);
        return;
    }
    comm_close_pairs(ranks, fd);
    int failed = 0;
    for (int r = 0; r < ranks; r++) {
        int status;
        waitpid(pid[r], &status, 0);
        failed += status != 0;
    }
    cr_assert_eq(failed, 0, "%d of %d ranks failed", failed, ranks);
}

/* Half of the requests belong to rank 0, and small steps leave ranks without rows. */
static int owner_of(int draw, int ranks)
{
    return draw % 2 == 0 ? 0 : draw / 2 % ranks;
}

static int run_step(struct host *h, const struct script_step *st, int ranks, double *out,
                    struct err *err)
{
    struct plan_row row[LIVE_MAX];
    for (int i = 0; i < st->n_rows; i++) {
        row[i] = st->row[i];
        row[i].owner = owner_of(row[i].owner, ranks);
    }
    if (st->forget >= 0)
        host_forget(h, st->forget);
    return host_step(h, row, st->n_rows, out, err);
}

static double largest(const double *x, int n)
{
    double max = 0;
    for (int i = 0; i < n; i++)
        max = fmax(max, fabs(x[i]));
    return max;
}

/* Rows that live with their owner are right there and nowhere else. */
static int check_rows(const struct script_step *st, const struct layout *l, int rank, int hidden,
                      const double *out)
{
    const double *want = st->out;
    for (int i = 0; i < st->n_rows; i++) {
        bool here = !l->rows_owned || owner_of(st->row[i].owner, l->ranks) == rank;
        for (int64_t k = 0; k < st->row[i].q; k++, want += hidden, out += hidden) {
            double allowed = 1e-9 * largest(want, hidden);
            for (int j = 0; j < hidden; j++) {
                bool right = here ? fabs(out[j] - want[j]) <= allowed : isnan(out[j]);
                if (!right) {
                    fprintf(stderr, "%s, rank %d of %d: row of request %" PRId64 ": %g, not %g\n",
                            l->name, rank, l->ranks, st->row[i].req, out[j], want[j]);
                    return -1;
                }
            }
        }
    }
    return 0;
}

/* Nothing is left lying about: what is not held is NaN. */
static int check_poison(const struct store *s, const struct layout *l)
{
    struct store_cells cells = {0};
    int left = 0;
    for (int layer = 0; layer < s->slice->layers; layer++)
        store_list_kv(s, layer, &cells);
    for (size_t k = 0; k < cells.n; k++) {
        const struct store_cell *c = &cells.cell[k];
        left += isnan(c->at[0]) == store_holds(s->slice, c, l, s->rank);
    }
    if (left > 0)
        fprintf(stderr, "%s, rank %d: %d cells are held or lost wrongly\n", l->name, s->rank, left);
    free(cells.cell);
    return left == 0 ? 0 : -1;
}

static int step_and_check(struct host *h, const struct script *s, int i, const struct layout *l,
                          int rank)
{
    struct err err = ERR_NONE;
    const struct script_step *st = &s->step[i];
    double *out = xcalloc((size_t)st->n * (size_t)s->slice.model.hidden + 1, sizeof *out);
    int rc = run_step(h, st, l->ranks, out, &err);
    if (rc < 0)
        fprintf(stderr, "%s, step %d: %s\n", l->name, i, err.text);
    else if (check_rows(st, l, rank, s->slice.model.hidden, out) < 0 ||
             check_poison(host_store(h), l) < 0)
        rc = -1;
    free(out);
    return rc;
}

static struct layout parse(const char *text, const struct model *m, int ranks)
{
    struct err err = ERR_NONE;
    struct layout l;
    if (layout_parse(&l, text, m, ranks, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    return l;
}

static struct layout parse_helix(const struct model *m, int ranks, int tpa)
{
    char text[40];
    snprintf(text, sizeof text, "helix:kvp=%d,tpa=%d", ranks / tpa, tpa);
    return parse(text, m, ranks);
}

static int widest_tpa(const struct model *m, int ranks)
{
    return m->kv_heads < ranks ? m->kv_heads : ranks;
}

static int all_layouts(struct layout list[LAYOUT_MAX], const struct model *m, int ranks)
{
    static const char *const names[] = {
        "tp",
        "cp",
        "cp:storage=layer",
        "dp",
        "dop",
        "dop:cache=0.5",
        "dop:rows=owned",
        "dop:cache=0.5,rows=owned",
    };
    int n = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        list[n++] = parse(names[i], m, ranks);
    for (int tpa = 1; tpa <= widest_tpa(m, ranks); tpa *= 2)
        list[n++] = parse_helix(m, ranks, tpa);
    if (ranks > 1) {
        char text[40];
        snprintf(text, sizeof text, "helix:kvp=%d,tpa=1,hopb=4", ranks);
        list[n++] = parse(text, m, ranks);
    }
    return n;
}

static int each_layout(struct comm *c, const void *arg)
{
    const struct script *s = arg;
    struct layout list[LAYOUT_MAX];
    int n = all_layouts(list, &s->slice.model, c->ranks), rc = 0;
    for (int k = 0; k < n && rc == 0; k++) {
        struct host *h = host_new(&s->slice, &list[k], c);
        for (int i = 0; i < SHORT_STEPS && rc == 0; i++)
            rc = step_and_check(h, s, i, &list[k], c->rank);
        host_free(h);
    }
    return rc;
}

static const struct run {
    const char *model;
    int ranks;
} runs[] = {
    {"tiny-mla", 1}, {"tiny-mla", 2}, {"tiny-mla", 4}, {"tiny-mla", 8},
    {"tiny-gqa", 1}, {"tiny-gqa", 2}, {"tiny-gqa", 4}, {"tiny-gqa", 8},
    {"tiny-moe", 1}, {"tiny-moe", 2}, {"tiny-moe", 4}, {"tiny-moe", 8},
};
static size_t run_index[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

ParameterizedTestParameters(host, every_layout_gives_the_reference_output)
{
    return cr_make_param_array(size_t, run_index, sizeof run_index / sizeof run_index[0]);
}

ParameterizedTest(size_t *i, host, every_layout_gives_the_reference_output, .timeout = 60)
{
    struct script *s = script_new(runs[*i].model, 3 + *i);
    run_ranks(runs[*i].ranks, each_layout, s);
    script_free(s);
}

/* All 20 directed pairs in one walk: from k to k + 1, 5 times, then from k to k + 2... (5 is
 * prime).
 */
static int each_switch(struct comm *c, const void *arg)
{
    const struct script *s = arg;
    const struct model *m = &s->slice.model;
    const struct layout list[SWITCH_LAYOUTS] = {parse("tp", m, c->ranks), parse("cp", m, c->ranks),
                                                parse("dp", m, c->ranks), parse("dop", m, c->ranks),
                                                parse_helix(m, c->ranks, widest_tpa(m, c->ranks))};
    int at = 0;
    struct host *h = host_new(&s->slice, &list[at], c);
    int rc = step_and_check(h, s, 0, &list[at], c->rank);
    for (int i = 1; i < STEPS && rc == 0; i++) {
        struct err err = ERR_NONE;
        int to = (at + (i - 1) / SWITCH_LAYOUTS + 1) % SWITCH_LAYOUTS;
        rc = host_switch(h, &list[to], &err);
        at = to;
        if (rc == 0)
            rc = step_and_check(h, s, i, &list[at], c->rank);
    }
    host_free(h);
    return rc;
}

ParameterizedTestParameters(host, every_switch_keeps_every_request)
{
    return cr_make_param_array(size_t, run_index, sizeof run_index / sizeof run_index[0]);
}

ParameterizedTest(size_t *i, host, every_switch_keeps_every_request, .timeout = 60)
{
    struct script *s = script_new(runs[*i].model, 30 + *i);
    run_ranks(runs[*i].ranks, each_switch, s);
    script_free(s);
}

/* Every step is run once more under the next layout: what it ran before gives way to the same. */
static int each_step_again(struct comm *c, const void *arg)
{
    const struct script *s = arg;
    struct layout list[LAYOUT_MAX];
    int n = all_layouts(list, &s->slice.model, c->ranks), at = 0;
    struct host *h = host_new(&s->slice, &list[at], c);
    int rc = 0;
    for (int i = 0; i < SHORT_STEPS && rc == 0; i++) {
        struct err err = ERR_NONE;
        rc = step_and_check(h, s, i, &list[at], c->rank);
        at = (at + 1) % n;
        if (rc == 0)
            rc = host_switch(h, &list[at], &err);
        if (rc == 0)
            rc = step_and_check(h, s, i, &list[at], c->rank);
    }
    host_free(h);
    return rc;
}

Test(host, rows_that_run_again_after_a_switch_give_the_same_output, .timeout = 60)
{
    static const char *const models[] = {"tiny-mla", "tiny-gqa"};
    for (int i = 0; i < 2; i++) {
        struct script *s = script_new(models[i], 70);
        run_ranks(4, each_step_again, s);
        script_free(s);
    }
}

/* Variants too: partly cached projections, KV by layer. */
static int each_variant_switch(struct comm *c, const void *arg)
{
    const struct script *s = arg;
    struct layout list[LAYOUT_MAX];
    int n = all_layouts(list, &s->slice.model, c->ranks), at = 0;
    struct host *h = host_new(&s->slice, &list[at], c);
    int rc = step_and_check(h, s, 0, &list[at], c->rank);
    for (int i = 1; i < STEPS && rc == 0; i++) {
        struct err err = ERR_NONE;
        int to = (at + 1 + i / n) % n;
        rc = host_switch(h, &list[to], &err);
        at = to;
        if (rc == 0)
            rc = step_and_check(h, s, i, &list[at], c->rank);
    }
    host_free(h);
    return rc;
}

Test(host, switches_between_variants_keep_every_request, .timeout = 60)
{
    static const char *const models[] = {"tiny-mla", "tiny-gqa"};
    for (int i = 0; i < 2; i++) {
        struct script *s = script_new(models[i], 60);
        run_ranks(4, each_variant_switch, s);
        script_free(s);
    }
}

/* A number that a rank should hold but does not spoils what comes out. */
static int spoilt(struct comm *c, const void *arg)
{
    const struct slice *s = arg;
    struct err err = ERR_NONE;
    struct layout l = parse("cp", &s->model, c->ranks);
    struct host *h = host_new(s, &l, c);
    struct plan_row first = {0, 0, 20, 20}, second = {0, 0, 21, 1};
    double out[20 * 64];
    int rc = host_step(h, &first, 1, out, &err);
    bool was_right = !isnan(out[0]);
    if (c->rank == 1) /* the second block of 16 positions is here, the first is not */
        host_store(h)->request[0].kv[0][17 * slice_kv_width(s)] = NAN;
    rc += host_step(h, &second, 1, out, &err);
    host_free(h);
    return rc == 0 && was_right && isnan(out[0]) ? 0 : 1;
}

Test(host, what_is_not_held_spoils_the_output)
{
    struct slice s = load_slice("tiny-mla");
    run_ranks(2, spoilt, &s);
}

Test(host, a_context_that_does_not_continue_is_refused)
{
    struct err err = ERR_NONE;
    struct slice s = load_slice("tiny-gqa");
    struct layout l = parse("tp", &s.model, 1);
    struct comm c = {.ranks = 1};
    int fd[1] = {-1};
    comm_adopt(&c, 0, 1, fd);
    struct host *h = host_new(&s, &l, &c);
    double out[4 * 64];
    struct plan_row first = {5, 0, 3, 3}, back = {5, 0, 2, 1}, jump = {5, 0, 9, 1};
    struct plan_row stolen = {5, 1, 3, 3};
    cr_assert_eq(host_step(h, &first, 1, out, &err), 0);
    cr_assert_eq(host_step(h, &first, 1, out, &err), 0);
    cr_assert_eq(host_step(h, &stolen, 1, out, &err), -1);
    cr_assert(strstr(err.text, "request 5: owner 1, but rank 0 owned it before") != NULL);
    err = ERR_NONE;
    cr_assert_eq(host_step(h, &back, 1, out, &err), -1);
    cr_assert(strstr(err.text, "request 5: rows from position 1 on, but 3 tokens ran") != NULL);
    err = ERR_NONE;
    cr_assert_eq(host_step(h, &jump, 1, out, &err), -1);
    cr_assert_eq(err.kind, ERR_RUN);
    cr_assert(strstr(err.text, "request 5: rows from position 8 on, but 3 tokens ran") != NULL);
    host_forget(h, 5);
    cr_assert_eq(host_step(h, &jump, 1, out, &err), 0);
    host_free(h);
    comm_release(&c);
}
