/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups of ranks without GPUs, for the tests of what travels as boxes: every rank's memory is an
 * array of words, nothing but FAKE_POISON at first. Boxes read what was there before any travelled
 * and may write only where nothing is yet, so that no word is written twice.
 */
#ifndef TESTS_FAKE_GROUP_H
#define TESTS_FAKE_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay/box.h"
#include "replay/slice.h"
#include "sim/base/mem.h"
#include "sim/layout/layout.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

enum { FAKE_RANKS_MAX = 8, FAKE_LAYERS = 4, FAKE_WORD_BYTES = 8, FAKE_ROW_BYTES = 16 };
#define FAKE_POISON UINT64_MAX

/* More ranks than KV heads, as many, fewer; 6 ranks have shards that do not divide each other. */
static const struct fake_group {
    const char *model;
    int heads, kv_heads, ranks;
} fake_groups[] = {
    {"tiny-mla", 8, 1, 1}, {"tiny-mla", 8, 1, 2}, {"tiny-mla", 8, 1, 4}, {"tiny-mla", 8, 1, 8},
    {"tiny-gqa", 8, 2, 1}, {"tiny-gqa", 8, 2, 2}, {"tiny-gqa", 8, 2, 4}, {"tiny-gqa", 8, 2, 8},
    {"tiny-gqa", 8, 4, 8}, {"tiny-gqa", 8, 8, 4}, {"tiny-gqa", 8, 8, 8}, {"tiny-gqa", 12, 6, 6},
};
enum { MLA_ON_2 = 1, GQA_ON_2 = 5, GQA_ON_4 = 6, GQA_ON_8 = 7 }; /* 2 KV heads */

/* Their numbers: parameters may not have pointers. */
static inline struct criterion_test_params fake_group_params(void)
{
    static size_t number[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    return cr_make_param_array(size_t, number, sizeof number / sizeof number[0]);
}

/* Every matrix is small; a KV row of one head has FAKE_ROW_BYTES. */
static inline struct slice fake_slice(size_t group)
{
    struct err err = ERR_NONE;
    struct slice s = {.layers = FAKE_LAYERS, .seed = 7};
    struct model *m = &s.model;
    int rc = model_load(m, fake_groups[group].model, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    m->heads = fake_groups[group].heads;
    m->kv_heads = fake_groups[group].kv_heads;
    m->hidden = m->dense_inter = m->nope_dim = m->v_dim = 4;
    if (m->attention == ATTN_MLA)
        m->q_lora = m->kv_lora = m->rope_dim = 4;
    m->kv.head_bytes = FAKE_ROW_BYTES;
    m->kv.latent_bytes = m->kv.rope_bytes = FAKE_ROW_BYTES / 2;
    return s;
}

static inline struct layout fake_layout(const char *text, const struct slice *s, int ranks)
{
    struct err err = ERR_NONE;
    struct layout l;
    int rc = layout_parse(&l, text, &s->model, ranks, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    return l;
}

/* All that the parser accepts; of helix it refuses more ways by head than there are KV heads. */
static inline int fake_layouts(struct layout list[LAYOUT_MAX], const struct slice *s, int ranks)
{
    static const char *const names[] = {
        "tp", "cp", "dp", "dop", "dop:cache=0.5", "dop:rows=owned", "dop:cache=0.25,rows=owned"};
    struct err err = ERR_NONE;
    char text[40];
    int n = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        list[n++] = fake_layout(names[i], s, ranks);
    for (int tpa = 1; tpa <= ranks; tpa++) {
        snprintf(text, sizeof text, "helix:kvp=%d,tpa=%d", ranks / tpa, tpa);
        if (ranks % tpa == 0 && layout_parse(&list[n], text, &s->model, ranks, &err) == 0)
            n++;
    }
    return n;
}

struct fake_memory {
    uint64_t *word;
    int64_t n;
};

static inline struct fake_memory fake_memory_new(int64_t n)
{
    struct fake_memory m = {xcalloc((size_t)n + 1, sizeof *m.word), n};
    memset(m.word, 0xff, (size_t)n * sizeof *m.word);
    return m;
}

static inline struct fake_memory fake_memory_copy(const struct fake_memory *from)
{
    struct fake_memory m = fake_memory_new(from->n);
    memcpy(m.word, from->word, (size_t)m.n * sizeof *m.word);
    return m;
}

static inline bool fake_memory_equals(const struct fake_memory *a, const struct fake_memory *b)
{
    return a->n == b->n && memcmp(a->word, b->word, (size_t)a->n * sizeof *a->word) == 0;
}

/* What each rank sends and receives, has before, has after, and should have. */
struct fake_link {
    int ranks;
    struct boxes boxes[FAKE_RANKS_MAX];
    struct fake_memory before[FAKE_RANKS_MAX], after[FAKE_RANKS_MAX], want[FAKE_RANKS_MAX];
};

static inline void fake_link_release(struct fake_link *l)
{
    for (int r = 0; r < l->ranks; r++) {
        boxes_release(&l->boxes[r]);
        free(l->before[r].word);
        free(l->after[r].word);
        free(l->want[r].word);
    }
}

/* Carry one box; how many words come from outside, go outside or go where something is. */
static inline int64_t fake_carry(const struct link_box *b, const struct fake_memory *from,
                                 struct fake_memory *to)
{
    int64_t all =
        b->bytes | b->from | b->from_block | b->from_row | b->to | b->to_block | b->to_row;
    int64_t astray = all % FAKE_WORD_BYTES != 0;
    for (int64_t i = 0; i < b->blocks * b->rows; i++) {
        int64_t block = i / b->rows, row = i % b->rows;
        int64_t f = (b->from + block * b->from_block + row * b->from_row) / FAKE_WORD_BYTES;
        int64_t t = (b->to + block * b->to_block + row * b->to_row) / FAKE_WORD_BYTES;
        for (int64_t k = 0; k < b->bytes / FAKE_WORD_BYTES; k++, f++, t++) {
            bool fits = f >= 0 && f < from->n && t >= 0 && t < to->n && to->word[t] == FAKE_POISON;
            astray += !fits;
            if (fits)
                to->word[t] = from->word[f];
        }
    }
    return astray;
}

/* Carry what is on the senders' lists; how many words go astray. */
static inline int64_t fake_link_run(struct fake_link *l)
{
    int64_t astray = 0;
    for (int r = 0; r < l->ranks; r++) {
        const struct boxes *b = &l->boxes[r];
        for (size_t i = 0; i < b->n_out; i++)
            astray += fake_carry(&b->out[i], &l->before[r], &l->after[b->out[i].peer]);
    }
    return astray;
}

/* All but the peer. */
static inline bool same_box(const struct link_box *a, const struct link_box *b)
{
    size_t first = offsetof(struct link_box, blocks);
    return memcmp((const char *)a + first, (const char *)b + first, sizeof *a - first) == 0;
}

/* Distances count only where there is more than one. */
static inline bool is_box(const struct link_box *b, struct link_box want)
{
    if (b->rows == 1) {
        want.from_row = b->from_row;
        want.to_row = b->to_row;
    }
    if (b->blocks == 1) {
        want.from_block = b->from_block;
        want.to_block = b->to_block;
    }
    return b->peer == want.peer && same_box(b, &want);
}

/* What `from` sends to `to` is what `to` expects, in the same order. */
static inline bool fake_link_agrees(const struct fake_link *l, int from, int to)
{
    const struct boxes *s = &l->boxes[from], *r = &l->boxes[to];
    for (size_t i = 0, k = 0;; i++, k++) {
        while (i < s->n_out && s->out[i].peer != to)
            i++;
        while (k < r->n_in && r->in[k].peer != from)
            k++;
        if (i == s->n_out || k == r->n_in)
            return i == s->n_out && k == r->n_in;
        if (!same_box(&s->out[i], &r->in[k]))
            return false;
    }
}

static inline bool fake_link_all_agree(const struct fake_link *l)
{
    bool agree = true;
    for (int from = 0; from < l->ranks; from++)
        for (int to = 0; to < l->ranks; to++)
            agree = agree && fake_link_agrees(l, from, to);
    return agree;
}

/* Of boxes to or from others than the rank whose they are. */
static inline int64_t fake_count_bytes(const struct link_box *b, size_t n, int rank)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += b[i].peer == rank ? 0 : b[i].blocks * b[i].rows * b[i].bytes;
    return sum;
}

#endif
