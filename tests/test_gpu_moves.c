/* SPDX-License-Identifier: Apache-2.0
 *
 * Switches without a GPU: every rank's memory is an array of tagged words, boxes are copied between
 * them, and what is then there must be what the ownership algebra gives each rank, at the places of
 * kernels/kv_pages.h, and nothing else. A word is written once at most.
 */
#include "replay/moves.h"

#include <math.h>

#include "kernels/kv_pages.h"
#include "replay/store.h"
#include "sim/base/ints.h"
#include "sim/base/rng.h"
#include "sim/layout/manifest.h"
#include "tests/fake_group.h"

#include <criterion/criterion.h>

enum { REQUESTS = 8, ROW_BYTES = FAKE_ROW_BYTES, ROW_WORDS = ROW_BYTES / FAKE_WORD_BYTES };

#define NOWHERE (-((int64_t)1 << 40))

static int64_t received_bytes(const struct boxes *b, int rank)
{
    return fake_count_bytes(b->in, b->n_in, rank);
}

static int64_t sent_bytes(const struct boxes *b, int rank)
{
    return fake_count_bytes(b->out, b->n_out, rank);
}

/* Afterwards everyone has what it should, and got from others only the bytes that it lacked. */
static void check_link(struct fake_link *l, const int64_t *lacked_bytes,
                       const struct layout pair[2])
{
    int64_t astray = fake_link_run(l);
    cr_assert(fake_link_all_agree(l), "%s -> %s", pair[0].name, pair[1].name);
    cr_assert_eq(astray, 0, "%s -> %s: %d words", pair[0].name, pair[1].name, (int)astray);
    for (int r = 0; r < l->ranks; r++) {
        int bytes = (int)received_bytes(&l->boxes[r], r), lacked = (int)lacked_bytes[r];
        cr_assert(fake_memory_equals(&l->after[r], &l->want[r]), "%s -> %s: rank %d", pair[0].name,
                  pair[1].name, r);
        cr_assert_eq(bytes, lacked, "%s -> %s: rank %d receives %d bytes but lacked %d",
                     pair[0].name, pair[1].name, r, bytes, lacked);
    }
}

/* KV of one layer: requests and where their extents begin, before and after. */
struct kv_switch {
    const struct slice *slice;
    struct layout pair[2];
    struct move_request request[REQUESTS];
    int64_t at[2][REQUESTS][FAKE_RANKS_MAX];
    int64_t region_bytes[2][FAKE_RANKS_MAX];
};

/* By the ownership algebra. */
static bool is_held(const struct kv_switch *w, int side, int rank, int i, int64_t block, int head)
{
    struct store_cell c = {
        .part = STORE_KV, .head = head, .block = block, .owner = w->request[i].owner};
    return store_holds(w->slice, &c, &w->pair[side], rank);
}

static int list_held(const struct kv_switch *w, int side, int rank, int i, int64_t block,
                     int held[])
{
    int n = 0;
    for (int head = 0; head < w->slice->model.kv_heads; head++)
        if (is_held(w, side, rank, i, block, head))
            held[n++] = head;
    return n;
}

static int64_t rows_of(const struct kv_switch *w, int i, int64_t block)
{
    return min_i64(KV_BLOCK_TOKENS, w->request[i].tokens - block * KV_BLOCK_TOKENS);
}

/* Put down what a rank holds of a request: heads side by side at the position's slot. */
static void fill_request(struct fake_memory *m, const struct kv_switch *w, int side, int rank,
                         int i)
{
    int held[FAKE_RANKS_MAX];
    for (int64_t block = 0; rows_of(w, i, block) > 0; block++) {
        int n = list_held(w, side, rank, i, block, held);
        for (int64_t k = 0; k < rows_of(w, i, block) * n * ROW_WORDS; k++) {
            int64_t position = block * KV_BLOCK_TOKENS + k / (n * ROW_WORDS);
            int64_t slot = kv_pages_slot(position, w->pair[side].kv_pos_shards);
            int64_t in_row = k % (n * ROW_WORDS), head = held[in_row / ROW_WORDS];
            int64_t at = w->at[side][i][rank] / FAKE_WORD_BYTES + slot * n * ROW_WORDS + in_row;
            m->word[at] = (uint64_t)(((i * 1000 + position) * FAKE_RANKS_MAX + head) * ROW_WORDS +
                                     in_row % ROW_WORDS);
        }
    }
}

static void fill_region(struct fake_memory *m, const struct kv_switch *w, int side, int rank)
{
    for (int i = 0; i < REQUESTS; i++)
        fill_request(m, w, side, rank, i);
}

static int64_t held_bytes(const struct kv_switch *w, int side, int rank, int i)
{
    int held[FAKE_RANKS_MAX];
    int64_t rows = 0;
    for (int64_t block = 0; rows_of(w, i, block) > 0; block++)
        rows += list_held(w, side, rank, i, block, held) * rows_of(w, i, block);
    return rows * ROW_BYTES;
}

static int64_t lacked_bytes(const struct kv_switch *w, int rank)
{
    int64_t rows = 0;
    for (int i = 0; i < REQUESTS; i++)
        for (int64_t block = 0; rows_of(w, i, block) > 0; block++)
            for (int head = 0; head < w->slice->model.kv_heads; head++)
                if (is_held(w, 1, rank, i, block, head) && !is_held(w, 0, rank, i, block, head))
                    rows += rows_of(w, i, block);
    return rows * ROW_BYTES;
}

/* Extents with chance gaps; in place, what stays keeps its own, in the one region there is. */
static void place_requests(struct kv_switch *w, int rank, struct rng *rng)
{
    bool in_place = layout_cuts_kv_alike(&w->pair[0], &w->pair[1]);
    int64_t end[2] = {0, 0};
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < REQUESTS; i++) {
            int64_t bytes = held_bytes(w, side, rank, i), *at = &w->at[side][i][rank];
            int64_t *region_end = &end[in_place ? 0 : side];
            *at = NOWHERE;
            if (side == 1 && in_place && bytes > 0)
                *at = w->at[0][i][rank];
            if (bytes == 0 || *at != NOWHERE)
                continue;
            *at = *region_end + rng_range(rng, 0, 3) * FAKE_WORD_BYTES;
            *region_end = *at + bytes;
        }
    w->region_bytes[0][rank] = end[0];
    w->region_bytes[1][rank] = end[in_place ? 0 : 1];
}

/* Edges of blocks, a few hundred tokens, whatever; the first ranks own most, some own none. */
static void draw_requests(struct kv_switch *w, struct rng *rng)
{
    static const int64_t tokens[REQUESTS] = {0, 1, 15, 16, 17};
    for (int i = 0; i < REQUESTS; i++) {
        int owner = (int)(rng_range(rng, 0, 1) * rng_range(rng, 0, w->pair[0].ranks - 1));
        int64_t some = i == REQUESTS - 1 ? rng_range(rng, 18, 100) : rng_range(rng, 100, 500);
        w->request[i] =
            (struct move_request){owner, i < 5 ? tokens[i] : some, w->at[0][i], w->at[1][i]};
    }
    for (int r = 0; r < w->pair[0].ranks; r++)
        place_requests(w, r, rng);
}

static void check_kv_switch(struct kv_switch *w, struct rng *rng)
{
    struct fake_link l = {.ranks = w->pair[0].ranks};
    int64_t lacked[FAKE_RANKS_MAX];
    draw_requests(w, rng);
    for (int r = 0; r < l.ranks; r++) {
        moves_kv(&l.boxes[r], w->slice, w->pair, r, w->request, REQUESTS);
        l.before[r] = fake_memory_new(w->region_bytes[0][r] / FAKE_WORD_BYTES);
        fill_region(&l.before[r], w, 0, r);
        l.after[r] = layout_cuts_kv_alike(&w->pair[0], &w->pair[1])
                         ? fake_memory_copy(&l.before[r])
                         : fake_memory_new(w->region_bytes[1][r] / FAKE_WORD_BYTES);
        l.want[r] = fake_memory_copy(&l.after[r]);
        fill_region(&l.want[r], w, 1, r);
        lacked[r] = lacked_bytes(w, r);
    }
    check_link(&l, lacked, w->pair);
    fake_link_release(&l);
}

ParameterizedTestParameters(moves, a_switched_region_is_one_made_under_the_new_layout)
{
    return fake_group_params();
}

ParameterizedTest(size_t *i, moves, a_switched_region_is_one_made_under_the_new_layout,
                  .timeout = 60)
{
    struct slice s = fake_slice(*i);
    struct layout list[LAYOUT_MAX];
    struct rng rng;
    int n = fake_layouts(list, &s, fake_groups[*i].ranks);
    rng_init(&rng, *i);
    for (int k = 0; k < n * n; k++) {
        struct kv_switch w = {.slice = &s, .pair = {list[k / n], list[k % n]}};
        check_kv_switch(&w, &rng);
    }
}

enum { BY_HEAD = 4 };
static const enum matrix by_head[BY_HEAD] = {MAT_Q_B, MAT_K_B, MAT_V_B, MAT_O};

static int64_t head_words(const struct slice *s, enum matrix m)
{
    int64_t across = m == MAT_O ? slice_rows(s, 0, m) : slice_columns(s, 0, m);
    return store_heads_of(&s->model, m).width * across * 2 / FAKE_WORD_BYTES;
}

/* First word of a matrix among those of a layer, with gaps; of BY_HEAD: where they end. */
static int64_t matrix_at(const struct slice *s, int number)
{
    int64_t at = 0;
    for (int k = 0; k < number; k++)
        at += store_heads_of(&s->model, by_head[k]).n * head_words(s, by_head[k]) + 3;
    return at;
}

/* Put down the heads that a rank holds. */
static void fill_weights(struct fake_memory *m, const struct slice *s, const struct layout *l,
                         int rank, int layer)
{
    for (int k = 0; k < BY_HEAD; k++) {
        struct store_heads heads = store_heads_of(&s->model, by_head[k]);
        int64_t first = matrix_at(s, k), each = head_words(s, by_head[k]);
        for (int head = 0; head < heads.n; head++) {
            struct store_cell c = {.part = heads.part, .layer = layer, .head = head};
            int64_t end = store_holds(s, &c, l, rank) ? (head + 1) * each : 0;
            for (int64_t i = head * each; i < end; i++)
                m->word[first + i] = (uint64_t)(first + i);
        }
    }
}

static int64_t count_words(const struct fake_memory *m)
{
    int64_t n = 0;
    for (int64_t i = 0; i < m->n; i++)
        n += m->word[i] != FAKE_POISON;
    return n;
}

static void list_weights(struct boxes *b, const struct slice *s, const struct layout pair[2],
                         int rank, int layer)
{
    for (int k = 0; k < BY_HEAD; k++) {
        struct move_matrix m = {layer, by_head[k], head_words(s, by_head[k]) * FAKE_WORD_BYTES,
                                matrix_at(s, k) * FAKE_WORD_BYTES};
        moves_weights(b, s, pair, rank, &m);
    }
}

/* One layer. Adds to what each rank has received. */
static void check_weights_switch(const struct slice *s, const struct layout pair[2], int layer,
                                 int64_t *sum_bytes)
{
    struct fake_link l = {.ranks = pair[0].ranks};
    int64_t lacked[FAKE_RANKS_MAX];
    for (int r = 0; r < l.ranks; r++) {
        list_weights(&l.boxes[r], s, pair, r, layer);
        l.before[r] = fake_memory_new(matrix_at(s, BY_HEAD));
        fill_weights(&l.before[r], s, &pair[0], r, layer);
        l.after[r] = fake_memory_copy(&l.before[r]);
        l.want[r] = fake_memory_copy(&l.before[r]);
        fill_weights(&l.want[r], s, &pair[1], r, layer);
        lacked[r] = (count_words(&l.want[r]) - count_words(&l.before[r])) * FAKE_WORD_BYTES;
        sum_bytes[r] += lacked[r];
    }
    check_link(&l, lacked, pair);
    fake_link_release(&l);
}

ParameterizedTestParameters(moves, a_layer_gets_the_heads_that_it_lacks)
{
    return fake_group_params();
}

ParameterizedTest(size_t *i, moves, a_layer_gets_the_heads_that_it_lacks, .timeout = 60)
{
    struct slice s = fake_slice(*i);
    struct layout list[LAYOUT_MAX];
    int n = fake_layouts(list, &s, fake_groups[*i].ranks);
    for (int k = 0; k < n * n; k++) {
        const struct layout *from = &list[k / n], *to = &list[k % n];
        int64_t sum_bytes[FAKE_RANKS_MAX] = {0}, busiest = 0;
        for (int layer = 0; layer < FAKE_LAYERS; layer++) {
            const struct layout pair[2] = {store_layer_layout(&s, from, layer),
                                           store_layer_layout(&s, to, layer)};
            check_weights_switch(&s, pair, layer, sum_bytes);
        }
        for (int r = 0; r < from->ranks; r++)
            busiest = max_i64(busiest, sum_bytes[r]);
        struct manifest *mf = manifest_new(from, to, &s.model);
        double want = mf->weights.recv_bytes * mf->weights.layers_frac * FAKE_LAYERS;
        cr_assert_eq(busiest, llround(want), "%s -> %s: %d bytes, not %g", from->name, to->name,
                     (int)busiest, want);
        free(mf);
    }
}

static const int64_t nowhere[FAKE_RANKS_MAX];

/* Whole blocks of every class, of the first and the last rank: all shares are exact. */
static void check_kv_bytes(const struct slice *s, const struct manifest *mf,
                           const struct layout pair[2])
{
    enum { EVEN = 8, TOKENS = 24 * KV_BLOCK_TOKENS };
    struct move_request request[EVEN];
    int64_t ctx_tokens[FAKE_RANKS_MAX] = {0}, moved = 0, busiest = 0, busiest_link = 0;
    for (int i = 0; i < EVEN; i++) {
        int owner = i < EVEN / 2 ? 0 : pair[0].ranks - 1;
        request[i] = (struct move_request){owner, TOKENS, nowhere, nowhere};
        ctx_tokens[owner] += TOKENS;
    }
    struct transfer want = manifest_kv_transfer(mf, &s->model, ctx_tokens);
    for (int r = 0; r < pair[0].ranks; r++) {
        struct boxes b = {0};
        moves_kv(&b, s, pair, r, request, EVEN);
        int64_t received = received_bytes(&b, r), sent = sent_bytes(&b, r);
        moved += received;
        busiest = max_i64(busiest, received);
        busiest_link = max_i64(busiest_link, max_i64(received, sent));
        boxes_release(&b);
    }
    cr_assert(moved == llround(want.moved_bytes) && busiest == llround(want.recv_bytes) &&
                  busiest_link == llround(want.link_bytes),
              "%s -> %s: KV %d, not %g; busiest %d, not %g; link %d, not %g", pair[0].name,
              pair[1].name, (int)moved, want.moved_bytes, (int)busiest, want.recv_bytes,
              (int)busiest_link, want.link_bytes);
}

ParameterizedTestParameters(moves, kv_takes_the_bytes_of_the_manifest)
{
    return fake_group_params();
}

ParameterizedTest(size_t *i, moves, kv_takes_the_bytes_of_the_manifest, .timeout = 60)
{
    struct slice s = fake_slice(*i);
    struct layout list[LAYOUT_MAX];
    int n = fake_layouts(list, &s, fake_groups[*i].ranks);
    for (int k = 0; k < n * n; k++) {
        const struct layout pair[2] = {list[k / n], list[k % n]};
        struct manifest *mf = manifest_new(&pair[0], &pair[1], &s.model);
        check_kv_bytes(&s, mf, pair);
        free(mf);
    }
}

/* 40 positions are blocks 0 and 1 and half of block 2: the first and the last from rank 0. */
Test(moves, an_owner_gathers_the_blocks_of_a_request)
{
    struct slice s = fake_slice(MLA_ON_2); /* MLA on 2 ranks: 16 bytes a row */
    const struct layout pair[2] = {fake_layout("cp", &s, 2), fake_layout("dp", &s, 2)};
    const int64_t from[2] = {1000, 2000}, to[2] = {4000, NOWHERE};
    const struct move_request request = {0, 40, from, to};
    struct boxes owner = {0}, other = {0};
    moves_kv(&owner, &s, pair, 0, &request, 1);
    moves_kv(&other, &s, pair, 1, &request, 1);
    cr_assert(owner.n_in == 3 && owner.n_out == 2 && other.n_in == 0 && other.n_out == 1);
    cr_assert(is_box(&owner.in[0], (struct link_box){0, 1, 1, 256, 1000, 0, 0, 4000, 0, 0}));
    cr_assert(is_box(&owner.in[1], (struct link_box){0, 1, 1, 128, 1256, 0, 0, 4512, 0, 0}));
    cr_assert(is_box(&owner.in[2], (struct link_box){1, 1, 1, 256, 2000, 0, 0, 4256, 0, 0}));
    cr_assert(is_box(&other.out[0], (struct link_box){0, 1, 1, 256, 2000, 0, 0, 4256, 0, 0}));
    boxes_release(&owner);
    boxes_release(&other);
}

/* 72 positions are blocks 0 to 3 and half of block 4: the even ones for rank 0, the odd for 1. */
Test(moves, heads_meet_in_rows_as_wide_as_both)
{
    struct slice s = fake_slice(GQA_ON_2); /* GQA, 2 KV heads on 2 ranks */
    const struct layout pair[2] = {fake_layout("tp", &s, 2), fake_layout("cp", &s, 2)};
    const int64_t from[2] = {1000, 2000}, to[2] = {4000, 8000};
    const struct move_request request = {0, 72, from, to};
    struct boxes b = {0};
    moves_kv(&b, &s, pair, 1, &request, 1);
    cr_assert(b.n_in == 2 && b.n_out == 3);
    cr_assert(is_box(&b.out[0], (struct link_box){0, 2, 16, 16, 2000, 512, 16, 4016, 512, 32}));
    cr_assert(is_box(&b.out[1], (struct link_box){0, 1, 8, 16, 3024, 0, 16, 5040, 0, 32}));
    cr_assert(is_box(&b.in[0], (struct link_box){0, 2, 16, 16, 1256, 512, 16, 8000, 512, 32}));
    cr_assert(is_box(&b.in[1], (struct link_box){1, 2, 16, 16, 2256, 512, 16, 8016, 512, 32}));
    boxes_release(&b);
}

Test(moves, pages_stay_where_both_layouts_cut_alike)
{
    struct slice s = fake_slice(GQA_ON_8); /* GQA, 2 KV heads on 8 ranks */
    static const char *const names[] = {"dp",
                                        "dop",
                                        "cp",
                                        "helix:kvp=8,tpa=1",
                                        "tp",
                                        "helix:kvp=4,tpa=2",
                                        "helix:kvp=4,tpa=2,hopb=4"};
    static const int cut[] = {0, 0, 1, 1, 2, 3, 3};
    for (int i = 0; i < 7 * 7; i++) {
        const struct layout pair[2] = {fake_layout(names[i / 7], &s, 8),
                                       fake_layout(names[i % 7], &s, 8)};
        cr_assert_eq(layout_cuts_kv_alike(&pair[0], &pair[1]), cut[i / 7] == cut[i % 7], "%s -> %s",
                     names[i / 7], names[i % 7]);
    }
}

Test(moves, other_sub_batches_move_nothing)
{
    struct slice s = fake_slice(GQA_ON_8);
    const struct layout pair[2] = {fake_layout("helix:kvp=4,tpa=2", &s, 8),
                                   fake_layout("helix:kvp=4,tpa=2,hopb=4", &s, 8)};
    const int64_t at[8] = {0};
    const struct move_request request = {3, 1000, at, at};
    struct boxes b = {0};
    for (int r = 0; r < 8; r++) {
        moves_kv(&b, &s, pair, r, &request, 1);
        for (int m = MAT_Q_B; m <= MAT_O; m++) {
            const struct move_matrix moved = {0, (enum matrix)m, 16, 0};
            if (store_is_by_head(moved.which) && slice_rows(&s, 0, moved.which) > 0)
                moves_weights(&b, &s, pair, r, &moved);
        }
    }
    cr_assert_eq(b.n_in + b.n_out, 0);
    boxes_release(&b);
}

Test(moves, a_shard_has_heads_and_positions)
{
    struct slice s = fake_slice(GQA_ON_8); /* GQA, 2 KV heads on 8 ranks */
    struct layout helix = fake_layout("helix:kvp=4,tpa=2", &s, 8), dop = fake_layout("dop", &s, 8);
    struct kv_shard k = kv_shard_of(&s, &helix, 6, 0);
    cr_assert(k.holds && k.first_head == 1 && k.heads == 1 && k.shard == 2 && k.shards == 4);
    cr_assert_eq(k.row_bytes, 16);
    k = kv_shard_of(&s, &dop, 6, 6);
    cr_assert(k.holds && k.first_head == 0 && k.heads == 2 && k.shard == 0 && k.shards == 1);
    cr_assert_eq(k.row_bytes, 32);
    cr_assert_not(kv_shard_of(&s, &dop, 6, 5).holds);
}

/* Bytes that each of 4 ranks sends of these requests, of which each rank has one KV head of two. */
static void check_sent(const char *to, const struct move_request *request, int n,
                       const int64_t want[4])
{
    struct slice s = fake_slice(GQA_ON_4);
    const struct layout pair[2] = {fake_layout("tp", &s, 4), fake_layout(to, &s, 4)};
    for (int r = 0; r < 4; r++) {
        struct boxes b = {0};
        moves_kv(&b, &s, pair, r, request, n);
        cr_assert_eq(sent_bytes(&b, r), want[r], "tp -> %s: rank %d sends %d bytes", to, r,
                     (int)sent_bytes(&b, r));
        boxes_release(&b);
    }
}

/* What a rank copies for itself keeps no one else waiting; nor does a class without a position. */
Test(moves, holders_share_the_sending)
{
    struct move_request owned[8], brief[8];
    for (int i = 0; i < 8; i++) {
        owned[i] = (struct move_request){i < 4 ? 0 : 3, 64, nowhere, nowhere};
        brief[i] = (struct move_request){0, 15, nowhere, nowhere};
    }
    /* rank 0 lacks head 1 of its four requests, rank 3 head 0: each holder sends two */
    check_sent("dp", owned, 8, (const int64_t[4]){2048, 2048, 2048, 2048});
    /* rank 0 alone has positions below 16: head 1 of eight requests */
    check_sent("cp", brief, 8, (const int64_t[4]){0, 0, 960, 960});
}
