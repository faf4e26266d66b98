/* SPDX-License-Identifier: Apache-2.0
 *
 * A step's exchanges without GPUs: rows are tagged with who did them, boxes are copied between the
 * ranks' arenas, and every rank must then have each row and head that it needs once, at its place,
 * from a rank that did it, and nothing else.
 */
#include "replay/scheme.h"

#include "sim/base/rng.h"
#include "tests/fake_group.h"

#include <criterion/criterion.h>

enum {
    BATCHES = 6,
    PARTS = 4,
    ROWS_MAX = 24,
    HEADS_MAX = 12,
    WIDTH_WORDS = 2,
    WIDTH_BYTES = WIDTH_WORDS * FAKE_WORD_BYTES,
    FROM_WORD = 5, /* where arrays begin in the arena */
    TO_WORD = FROM_WORD + ROWS_MAX * HEADS_MAX * WIDTH_WORDS + 3,
};

/* Owners mean nothing to some layouts, but are there all the same. */
struct batch {
    const struct slice *slice;
    struct layout layout;
    struct scheme_rows rows;
    int owner[ROWS_MAX];
};

/* None, fewer than ranks, many; some owners have none. */
static struct batch batch_new(const struct slice *s, const struct layout *l, struct rng *rng)
{
    struct batch b = {.slice = s, .layout = *l};
    int n = 0, most = (int)rng_range(rng, 0, ROWS_MAX);
    for (int r = 0; r < l->ranks; r++) {
        b.rows.first[r] = n;
        int64_t some = rng_range(rng, 0, 1) * rng_range(rng, 0, most - n);
        for (int64_t i = 0; i < some; i++)
            b.owner[n++] = r;
    }
    b.rows.n = b.rows.first[l->ranks] = n;
    return b;
}

static bool has_row(const struct batch *b, enum share_rule rule, int rank, int64_t row)
{
    int64_t ranks = b->layout.ranks, n = b->rows.n;
    switch (rule) {
    case SHARE_OWNED: return b->owner[row] == rank;
    case SHARE_TURN: return row >= n * rank / ranks && row < n * (rank + 1) / ranks;
    case SHARE_ALL: break;
    }
    return true;
}

static bool has(const struct batch *b, enum share_stage stage, int rank, int64_t row, int head)
{
    struct share sh = share_of(b->slice, &b->layout, stage, rank);
    return has_row(b, sh.rule, rank, row) && head >= sh.first_head && head < sh.end_head;
}

struct place {
    int64_t row;
    int head;
};

/* What a rank has at a stage, in the order in which it lies there; how many. */
static int list_places(const struct batch *b, enum share_stage stage, int rank,
                       struct place place[ROWS_MAX * HEADS_MAX])
{
    struct share sh = share_of(b->slice, &b->layout, stage, rank);
    int n = 0;
    for (int64_t row = 0; row < b->rows.n; row++)
        for (int head = sh.first_head; head < sh.end_head; head++)
            if (has_row(b, sh.rule, rank, row))
                place[n++] = (struct place){row, head};
    return n;
}

/* All words of what a rank did. */
static void put(uint64_t *at, int rank, int64_t row, int head)
{
    for (int w = 0; w < WIDTH_WORDS; w++)
        at[w] = (uint64_t)(((row * HEADS_MAX + head) * FAKE_RANKS_MAX + rank) * WIDTH_WORDS + w);
}

/* The rank that did it, -1 when it is not what was put there, whole; afterwards nothing is. */
static int take(uint64_t *at, int64_t row, int head)
{
    uint64_t want[WIDTH_WORDS];
    int64_t rank = (int64_t)(*at / WIDTH_WORDS % FAKE_RANKS_MAX);
    put(want, (int)rank, row, head);
    bool right = memcmp(at, want, sizeof want) == 0;
    memset(at, 0xff, sizeof want);
    return right ? (int)rank : -1;
}

/* Two stages, and how many results of each row and head meet at the second. */
struct passage {
    enum share_stage from, to;
    int slots;
};

static void start(struct fake_link *l, const struct batch *b, const struct passage *p)
{
    struct place place[ROWS_MAX * HEADS_MAX];
    *l = (struct fake_link){.ranks = b->layout.ranks};
    for (int r = 0; r < l->ranks; r++) {
        int64_t room = (int64_t)list_places(b, p->to, r, place) * p->slots * WIDTH_WORDS;
        l->before[r] = fake_memory_new(TO_WORD + room);
        int n = list_places(b, p->from, r, place);
        for (int i = 0; i < n; i++)
            put(l->before[r].word + FROM_WORD + i * WIDTH_WORDS, r, place[i].row, place[i].head);
        l->after[r] = fake_memory_copy(&l->before[r]);
    }
}

/* The rows cut into so many parts, some of them empty, each exchanged on its own. */
static void add_boxes(struct fake_link *l, const struct batch *b, const struct passage *p,
                      const int64_t *end_row, int parts)
{
    for (int r = 0; r < l->ranks; r++) {
        struct scheme s;
        const struct scheme_arrays arrays = {
            p->from, p->to, WIDTH_BYTES, FROM_WORD * FAKE_WORD_BYTES, TO_WORD * FAKE_WORD_BYTES};
        scheme_init(&s, b->slice, &b->layout, &b->rows, r);
        for (int i = 0; i < parts; i++)
            scheme_between(&l->boxes[r], &s, &arrays, i > 0 ? end_row[i - 1] : 0, end_row[i]);
    }
}

/* How many of its places a rank has not got as it should; takes what it got. */
static int take_all(struct fake_memory *m, const struct batch *b, const struct passage *p, int rank)
{
    struct place place[ROWS_MAX * HEADS_MAX];
    int n = list_places(b, p->to, rank, place), wrong = 0;
    for (int i = 0; i < n * p->slots; i++) {
        struct place at = place[i % n];
        int by = take(m->word + TO_WORD + i * WIDTH_WORDS, at.row, at.head);
        wrong += by < 0 || !has(b, p->from, by, at.row, at.head) || by % p->slots != i / n;
    }
    return wrong;
}

static void check_passage(const struct batch *b, const struct passage *p, const int64_t *end_row,
                          int parts)
{
    struct fake_link l;
    start(&l, b, p);
    add_boxes(&l, b, p, end_row, parts);
    int astray = (int)fake_link_run(&l);
    cr_assert(fake_link_all_agree(&l), "%s, stage %d", b->layout.name, p->from);
    cr_assert_eq(astray, 0, "%s, stage %d: %d words", b->layout.name, p->from, astray);
    for (int r = 0; r < l.ranks; r++) {
        int wrong = take_all(&l.after[r], b, p, r);
        cr_assert_eq(wrong, 0, "%s, stage %d, rank %d: %d of %d rows in %d parts", b->layout.name,
                     p->from, r, wrong, (int)b->rows.n, parts);
        cr_assert(fake_memory_equals(&l.after[r], &l.before[r]), "%s, stage %d, rank %d",
                  b->layout.name, p->from, r);
    }
    fake_link_release(&l);
}

/* Without an exchange a rank has done itself what it needs. */
static void check_stay(const struct batch *b, const struct passage *p)
{
    struct place place[ROWS_MAX * HEADS_MAX];
    for (int r = 0; r < b->layout.ranks; r++) {
        int n = list_places(b, p->to, r, place), lacking = 0;
        for (int i = 0; i < n; i++)
            lacking += !has(b, p->from, r, place[i].row, place[i].head);
        cr_assert_eq(lacking, 0, "%s, stage %d, rank %d", b->layout.name, p->from, r);
    }
}

static void check_passages(const struct batch *b, struct rng *rng)
{
    const struct passage passages[] = {
        {SHARE_PROJECT, SHARE_ATTEND, 1},
        {SHARE_KV, SHARE_STORE, 1},
        {SHARE_ATTEND, SHARE_OUT, b->layout.kv_pos_shards},
    };
    int64_t end_row[PARTS] = {0};
    for (int i = 0; i < PARTS; i++)
        end_row[i] =
            i == PARTS - 1 ? b->rows.n : rng_range(rng, i > 0 ? end_row[i - 1] : 0, b->rows.n);
    for (int i = 0; i < 3; i++) {
        const struct passage *p = &passages[i];
        if (p->slots == 1 && share_stays(b->slice, &b->layout, p->from, p->to)) {
            check_stay(b, p);
            continue;
        }
        check_passage(b, p, &b->rows.n, 1);
        check_passage(b, p, end_row, PARTS);
    }
}

ParameterizedTestParameters(scheme, every_rank_gets_what_its_next_stage_needs)
{
    return fake_group_params();
}

ParameterizedTest(size_t *i, scheme, every_rank_gets_what_its_next_stage_needs, .timeout = 60)
{
    struct slice s = fake_slice(*i);
    struct layout list[LAYOUT_MAX];
    struct rng rng;
    int n = fake_layouts(list, &s, fake_groups[*i].ranks);
    rng_init(&rng, *i);
    for (int k = 0; k < n * BATCHES; k++) {
        struct batch b = batch_new(&s, &list[k % n], &rng);
        check_passages(&b, &rng);
        b.layout = layout_of_cached(&b.layout);
        if (list[k % n].full_weights_frac > 0)
            check_passages(&b, &rng);
    }
}

static void check_gather(const struct batch *b, enum share_rule homes)
{
    struct fake_link l = {.ranks = b->layout.ranks};
    for (int r = 0; r < l.ranks; r++) {
        struct scheme s;
        scheme_init(&s, b->slice, &b->layout, &b->rows, r);
        scheme_gather(&l.boxes[r], &s, homes, WIDTH_BYTES, FROM_WORD * FAKE_WORD_BYTES);
        l.before[r] = fake_memory_new(FROM_WORD + b->rows.n * WIDTH_WORDS);
        l.want[r] = fake_memory_copy(&l.before[r]);
        for (int k = 0; k < b->rows.n * l.ranks; k++) {
            int64_t row = k / l.ranks, at = FROM_WORD + row * WIDTH_WORDS;
            int home = k % l.ranks;
            if (!has_row(b, homes, home, row))
                continue;
            put(l.want[r].word + at, home, row, 0);
            if (home == r)
                put(l.before[r].word + at, home, row, 0);
        }
        l.after[r] = fake_memory_copy(&l.before[r]);
    }
    int astray = (int)fake_link_run(&l);
    cr_assert(astray == 0 && fake_link_all_agree(&l), "%d ranks: %d words", l.ranks, astray);
    for (int r = 0; r < l.ranks; r++)
        cr_assert(fake_memory_equals(&l.after[r], &l.want[r]), "rank %d of %d", r, l.ranks);
    fake_link_release(&l);
}

static void check_scatter(const struct batch *b)
{
    struct fake_link l = {.ranks = b->layout.ranks};
    for (int r = 0; r < l.ranks; r++) {
        struct scheme s;
        scheme_init(&s, b->slice, &b->layout, &b->rows, r);
        scheme_scatter(&l.boxes[r], &s, WIDTH_BYTES, FROM_WORD * FAKE_WORD_BYTES,
                       TO_WORD * FAKE_WORD_BYTES);
        int64_t first = b->rows.first[r], own = b->rows.first[r + 1] - first;
        l.before[r] = fake_memory_new(TO_WORD + l.ranks * own * WIDTH_WORDS);
        for (int64_t row = 0; row < b->rows.n; row++)
            put(l.before[r].word + FROM_WORD + row * WIDTH_WORDS, r, row, 0);
        l.after[r] = fake_memory_copy(&l.before[r]);
        l.want[r] = fake_memory_copy(&l.before[r]);
        for (int64_t k = 0; k < l.ranks * own; k++)
            put(l.want[r].word + TO_WORD + k * WIDTH_WORDS, (int)(k / own), first + k % own, 0);
    }
    int astray = (int)fake_link_run(&l);
    cr_assert(astray == 0 && fake_link_all_agree(&l), "%d ranks: %d words", l.ranks, astray);
    for (int r = 0; r < l.ranks; r++)
        cr_assert(fake_memory_equals(&l.after[r], &l.want[r]), "rank %d of %d", r, l.ranks);
    fake_link_release(&l);
}

ParameterizedTestParameters(scheme, rows_reach_every_rank_and_sums_their_owner)
{
    return fake_group_params();
}

ParameterizedTest(size_t *i, scheme, rows_reach_every_rank_and_sums_their_owner, .timeout = 60)
{
    struct slice s = fake_slice(*i);
    struct layout l = fake_layout("dop:rows=owned", &s, fake_groups[*i].ranks);
    struct rng rng;
    rng_init(&rng, *i);
    for (int k = 0; k < 10 * BATCHES; k++) {
        struct batch b = batch_new(&s, &l, &rng);
        check_gather(&b, SHARE_OWNED);
        check_gather(&b, SHARE_TURN);
        check_scatter(&b);
    }
}

/* Rows of owners 0, 2 and 2: ranks 1 and 3 have none. */
static const struct scheme_rows three = {3, {0, 1, 1, 3, 3}};

static struct scheme scheme_on_4(const struct slice *s, const char *layout, int rank)
{
    struct layout l = fake_layout(layout, s, 4);
    struct scheme sc;
    scheme_init(&sc, s, &l, &three, rank);
    return sc;
}

static bool is_range(struct scheme_range r, int64_t first_row, int64_t rows, int first_head,
                     int heads)
{
    return r.first_row == first_row && r.rows == rows && r.first_head == first_head &&
           r.heads == heads;
}

Test(scheme, owners_attend_with_all_heads)
{
    struct slice s = fake_slice(GQA_ON_4);
    struct scheme dop = scheme_on_4(&s, "dop", 2), owned = scheme_on_4(&s, "dop:rows=owned", 2);
    cr_assert(is_range(dop.at[SHARE_PROJECT], 0, 3, 4, 2));
    cr_assert(is_range(dop.at[SHARE_KV], 0, 3, 1, 1));
    cr_assert(is_range(dop.at[SHARE_STORE], 1, 2, 0, 2));
    cr_assert(is_range(dop.at[SHARE_ATTEND], 1, 2, 0, 8));
    cr_assert(is_range(dop.at[SHARE_OUT], 0, 3, 4, 2));
    cr_assert_eq(scheme_range_of(&dop, SHARE_ATTEND, 1).rows, 0);
    cr_assert(scheme_home(&dop, 2).first_row == 0 && scheme_home(&dop, 2).rows == 3);
    cr_assert(scheme_home(&owned, 2).first_row == 1 && scheme_home(&owned, 2).rows == 2);
    cr_assert_eq(dop.partials, 1);
}

Test(scheme, ranks_take_stretches_of_rows_in_turn)
{
    struct slice s = fake_slice(GQA_ON_4);
    struct scheme cp = scheme_on_4(&s, "cp", 0);
    cr_assert(is_range(cp.at[SHARE_ATTEND], 0, 3, 0, 8));
    cr_assert_eq(cp.at[SHARE_OUT].rows, 0); /* three rows for four ranks */
    for (int rank = 1; rank < 4; rank++)
        cr_assert(is_range(scheme_range_of(&cp, SHARE_OUT, rank), rank - 1, 1, 0, 8));
    cr_assert_eq(cp.partials, 4);
}

/* Rank 1 has heads 2 and 3 of all rows: one row for rank 0, two for rank 2. */
Test(scheme, query_heads_go_side_by_side_to_the_owner)
{
    struct slice s = fake_slice(GQA_ON_4);
    struct scheme dop = scheme_on_4(&s, "dop", 1);
    struct boxes b = {0};
    scheme_between(&b, &dop, &(struct scheme_arrays){SHARE_PROJECT, SHARE_ATTEND, 16, 1000, 8000},
                   0, 3);
    cr_assert(b.n_out == 2 && b.n_in == 0);
    cr_assert(is_box(&b.out[0], (struct link_box){0, 1, 1, 32, 1000, 0, 0, 8032, 0, 0}));
    cr_assert(is_box(&b.out[1], (struct link_box){2, 1, 2, 32, 1032, 0, 32, 8032, 0, 128}));
    boxes_release(&b);
}

/* Rank 3 combines row 2, of 128 bytes, from what all ranks made of it. */
Test(scheme, partial_outputs_come_in_the_order_of_their_shards)
{
    struct slice s = fake_slice(GQA_ON_4);
    struct scheme cp = scheme_on_4(&s, "cp", 3);
    const struct scheme_arrays outputs = {SHARE_ATTEND, SHARE_OUT, 16, 1000, 8000};
    struct boxes b = {0}, none = {0};
    scheme_between(&b, &cp, &outputs, 0, 3);
    cr_assert(b.n_out == 3 && b.n_in == 4);
    for (int r = 0; r < 4; r++) {
        struct link_box want = {r, 1, 1, 128, 1256, 0, 0, 8000 + 128 * r, 0, 0};
        cr_assert(is_box(&b.in[r], want), "from rank %d", r);
    }
    scheme_between(&none, &cp, &outputs, 0, 2);
    cr_assert(none.n_out == 2 && none.n_in == 0); /* rows 0 and 1 are of ranks 1 and 2 */
    boxes_release(&b);
    boxes_release(&none);
}

Test(scheme, cannot_run_where_kv_is_stored_by_layer)
{
    struct slice s = fake_slice(GQA_ON_4);
    struct layout by_layer = fake_layout("cp:storage=layer", &s, 4), cp = fake_layout("cp", &s, 4);
    cr_assert_not(scheme_can_run(&by_layer));
    cr_assert(scheme_can_run(&cp));
}
