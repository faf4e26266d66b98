/* SPDX-License-Identifier: Apache-2.0
 *
 * After a switch a store must equal, bit by bit and NaN by NaN, one made under the new layout.
 */
#include "replay/move.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/layout/manifest.h"

#include <criterion/criterion.h>

enum { RANKS_MOST = 8 };

typedef int (*body_fn)(struct comm *c, const struct slice *s);

/* Fork the ranks; each body returns 0 when all is right. */
static void run_ranks(int ranks, body_fn body, const struct slice *s)
{
    struct err err = ERR_NONE;
    int fd[RANKS_MOST * RANKS_MOST], failed = 0;
    pid_t pid[RANKS_MOST];
    int rc = comm_make_pairs(ranks, fd, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    for (int r = 0; r < ranks; r++) {
        pid[r] = fork();
        if (pid[r] == 0) {
            struct comm c;
            comm_adopt(&c, r, ranks, fd);
            _exit(body(&c, s) != 0);
        }
    }
    comm_close_pairs(ranks, fd);
    for (int r = 0; r < ranks; r++) {
        int status;
        waitpid(pid[r], &status, 0);
        failed += status != 0;
    }
    cr_assert_eq(failed, 0, "%d of %d ranks failed", failed, ranks);
}

static struct slice load_slice(const char *name)
{
    struct err err = ERR_NONE;
    struct slice s = {.layers = 4, .seed = 7};
    int rc = model_load(&s.model, name, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    s.model.hidden = 16; /* small matrices: it is placement that is tested */
    s.model.dense_inter = s.model.nope_dim = s.model.v_dim = 8;
    if (s.model.attention == ATTN_MLA)
        s.model.q_lora = s.model.kv_lora = s.model.rope_dim = 8;
    return s;
}

static int layouts_of(struct layout list[LAYOUT_MAX], const struct model *m, int ranks)
{
    struct err err = ERR_NONE;
    char text[200];
    int tpa = m->kv_heads < ranks ? m->kv_heads : ranks;
    snprintf(text, sizeof text,
             "tp,cp,cp:storage=layer,dp,dop,dop:cache=0.5,dop:cache=0.25,helix:kvp=%d,tpa=%d",
             ranks / tpa, tpa);
    if (ranks / tpa > 1)
        snprintf(text + strlen(text), sizeof text - strlen(text), ",helix:kvp=%d,tpa=%d,hopb=4",
                 ranks / tpa, tpa);
    int n = layout_parse_list(list, text, m, ranks, &err);
    if (n < 0)
        fprintf(stderr, "%s\n", err.text);
    return n;
}

struct held_request {
    int owner;
    int64_t tokens;
};

static void fill(struct store *st, const struct slice *s, const struct layout *l, int rank,
                 const struct held_request *q, int n)
{
    store_init(st, s, l, rank);
    for (int i = 0; i < n; i++)
        store_add(st, l, 100 + i, q[i].owner, q[i].tokens);
}

static int count_differences(const struct store *a, const struct store *b)
{
    struct store_cells in_a = {0}, in_b = {0};
    int n = 0;
    for (int layer = 0; layer < a->slice->layers; layer++) {
        store_list_weights(a, layer, &in_a);
        store_list_weights(b, layer, &in_b);
        store_list_kv(a, layer, &in_a);
        store_list_kv(b, layer, &in_b);
    }
    for (size_t k = 0; k < in_a.n; k++) {
        const struct store_cell *x = &in_a.cell[k], *y = &in_b.cell[k];
        for (int64_t i = 0; i < x->rows; i++)
            n += memcmp(x->at + i * x->stride, y->at + i * y->stride,
                        (size_t)x->columns * sizeof(double)) != 0;
    }
    n += in_a.n != in_b.n;
    free(in_a.cell);
    free(in_b.cell);
    return n;
}

/* Uneven owners, contexts that end within a block or have fewer blocks than ranks. */
static int each_pair(struct comm *c, const struct slice *s)
{
    const struct held_request q[] = {{0, 37}, {0, 150}, {c->ranks - 1, 5}, {c->ranks / 2, 64}};
    struct layout list[LAYOUT_MAX];
    int n = layouts_of(list, &s->model, c->ranks), wrong = n < 0;
    for (int i = 0; i < n * n && wrong == 0; i++) {
        const struct layout *from = &list[i / n], *to = &list[i % n];
        struct err err = ERR_NONE;
        struct store moved, made;
        fill(&moved, s, from, c->rank, q, 4);
        fill(&made, s, to, c->rank, q, 4);
        wrong = move_switch(&moved, c, from, to, &err) < 0 ? 1 : count_differences(&moved, &made);
        if (wrong != 0)
            fprintf(stderr, "%s -> %s, rank %d: %d rows differ %s\n", from->name, to->name, c->rank,
                    wrong, err.text);
        store_release(&moved);
        store_release(&made);
    }
    return wrong;
}

Test(move, a_switched_store_is_one_made_under_the_new_layout, .timeout = 60)
{
    static const char *const models[] = {"tiny-mla", "tiny-gqa"};
    for (int i = 0; i < 2; i++) {
        struct slice s = load_slice(models[i]);
        for (int ranks = 1; ranks <= 8; ranks *= 2)
            run_ranks(ranks, each_pair, &s);
    }
}

/* Contexts of whole blocks of every class of 4 ranks, so that the shares are exact. */
static const struct held_request even[] = {{0, 128}, {2, 64}, {0, 192}};
enum { EVEN_COUNT = 3 };

/* Bytes that this rank receives in a switch with the first n of them. */
static int64_t switch_bytes(struct comm *c, const struct slice *s, const struct layout pair[2],
                            int n)
{
    struct err err = ERR_NONE;
    struct store st;
    fill(&st, s, &pair[0], c->rank, even, n);
    comm_reset_counts(c);
    int rc = move_switch(&st, c, &pair[0], &pair[1], &err);
    store_release(&st);
    return rc == 0 ? c->received_bytes : -1;
}

static double kv_bytes_to(const struct manifest *mf, const struct slice *s, int rank)
{
    double bytes = 0;
    for (int i = 0; i < EVEN_COUNT; i++) {
        int owner = mf->kv.owner_matters ? even[i].owner : 0;
        bytes += (double)even[i].tokens * mf->kv.recv_frac[owner][rank];
    }
    return bytes * slice_kv_width(s) * s->layers * (double)sizeof(double);
}

static int check_bytes(struct comm *c, const struct slice *s, const struct layout pair[2])
{
    struct err err = ERR_NONE;
    struct model m = s->model;
    m.attention_weights.bytes_per_param = sizeof(double);
    struct manifest *mf = manifest_new(&pair[0], &pair[1], &m);
    int64_t weights[4], busiest = 0;
    const size_t each[4] = {8, 8, 8, 8};
    weights[c->rank] = switch_bytes(c, s, pair, 0);
    int64_t kv = switch_bytes(c, s, pair, EVEN_COUNT) - weights[c->rank];
    int rc = comm_all_gather(c, weights, each, &err);
    for (int r = 0; r < 4; r++)
        busiest = weights[r] > busiest ? weights[r] : busiest;
    double want_kv = kv_bytes_to(mf, s, c->rank);
    double want_weights = mf->weights.recv_bytes * mf->weights.layers_frac * s->layers;
    if (fabs((double)kv - want_kv) > 0.5 || fabs((double)busiest - want_weights) > 0.5) {
        fprintf(stderr, "%s -> %s, rank %d: KV %" PRId64 ", not %g; weights %" PRId64 ", not %g\n",
                pair[0].name, pair[1].name, c->rank, kv, want_kv, busiest, want_weights);
        rc = -1;
    }
    free(mf);
    return rc;
}

static int each_pair_bytes(struct comm *c, const struct slice *s)
{
    struct layout list[LAYOUT_MAX];
    int n = layouts_of(list, &s->model, c->ranks), wrong = n < 0;
    for (int i = 0; i < n * n; i++) {
        const struct layout pair[2] = {list[i / n], list[i % n]};
        wrong += check_bytes(c, s, pair) != 0;
    }
    return wrong;
}

Test(move, a_switch_receives_the_bytes_of_its_manifest, .timeout = 60)
{
    static const char *const models[] = {"tiny-mla", "tiny-gqa"};
    for (int i = 0; i < 2; i++) {
        struct slice s = load_slice(models[i]);
        run_ranks(4, each_pair_bytes, &s);
    }
}

/* tp -> cp: each KV head has two holders, who send half of it each. */
static int even_senders(struct comm *c, const struct slice *s)
{
    struct err err = ERR_NONE;
    struct layout list[LAYOUT_MAX];
    struct store st;
    if (layouts_of(list, &s->model, 4) < 0)
        return 1;
    const struct layout pair[2] = {list[0], list[1]};
    struct store_cells cells = {0};
    fill(&st, s, &pair[0], c->rank, even, 1);
    store_list_kv(&st, 0, &cells);
    int rc = move_fetch(&st, c, &cells, pair, &err);
    /* 128 positions of 2 * 2 * 8 numbers; every rank lacks one head of its quarter: 1/8 of them */
    int64_t lacks = 128 * 32 / 8 * (int64_t)sizeof(double);
    if (c->received_bytes != lacks || c->sent_bytes != lacks)
        rc = -1;
    store_release(&st);
    free(cells.cell);
    return rc;
}

Test(move, holders_share_the_sending, .timeout = 20)
{
    struct slice s = load_slice("tiny-gqa");
    run_ranks(4, even_senders, &s);
}
