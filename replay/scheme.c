/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/scheme.h"

#include "sim/base/ints.h"

bool scheme_can_run(const struct layout *l)
{
    return l->kv_layer_shards == 1;
}

static struct scheme_range rows_by(const struct scheme *s, enum share_rule rule, int rank)
{
    const struct scheme_rows *rows = &s->rows;
    int64_t first = 0, end = rows->n;
    if (rule == SHARE_OWNED) {
        first = rows->first[rank];
        end = rows->first[rank + 1];
    } else if (rule == SHARE_TURN) {
        first = rows->n * rank / s->layout.ranks;
        end = rows->n * (rank + 1) / s->layout.ranks;
    }
    return (struct scheme_range){.first_row = first, .rows = end - first};
}

struct scheme_range scheme_range_of(const struct scheme *s, enum share_stage stage, int rank)
{
    struct share sh = share_of(s->slice, &s->layout, stage, rank);
    struct scheme_range r = rows_by(s, sh.rule, rank);
    r.first_head = sh.first_head;
    r.heads = sh.end_head - sh.first_head;
    return r;
}

struct scheme_range scheme_home(const struct scheme *s, int rank)
{
    return rows_by(s, s->layout.rows_owned ? SHARE_OWNED : SHARE_ALL, rank);
}

void scheme_init(struct scheme *s, const struct slice *slice, const struct layout *l,
                 const struct scheme_rows *rows, int rank)
{
    *s = (struct scheme){.slice = slice, .layout = *l, .rows = *rows, .rank = rank};
    for (int stage = 0; stage < SCHEME_STAGES; stage++)
        s->at[stage] = scheme_range_of(s, (enum share_stage)stage, rank);
    s->partials = l->kv_pos_shards;
}

/* Where a (row, head) of a range lies, in units of one head of a row. */
static int64_t index_of(const struct scheme_range *r, int64_t row, int head)
{
    return (row - r->first_row) * r->heads + head - r->first_head;
}

static struct scheme_range meet(const struct scheme_range *a, const struct scheme_range *b)
{
    int64_t first = max_i64(a->first_row, b->first_row);
    int64_t end = min_i64(a->first_row + a->rows, b->first_row + b->rows);
    int head = a->first_head > b->first_head ? a->first_head : b->first_head;
    int64_t end_head = min_i64(a->first_head + a->heads, b->first_head + b->heads);
    return (struct scheme_range){first, end - first, head, (int)end_head - head};
}

void scheme_between(struct boxes *b, const struct scheme *s, const struct scheme_arrays *a,
                    int64_t first_row, int64_t end_row)
{
    int ranks = s->layout.ranks;
    bool parts = a->from == SHARE_ATTEND && s->partials > 1;
    struct scheme_range asked = {first_row, end_row - first_row, 0, s->slice->model.heads};
    for (int i = 0; i < ranks * ranks; i++) {
        int sender = i / ranks, receiver = i % ranks;
        struct scheme_range f = scheme_range_of(s, a->from, sender);
        struct scheme_range t = scheme_range_of(s, a->to, receiver);
        struct scheme_range both = meet(&f, &t), box = meet(&both, &asked);
        if (box.rows <= 0 || box.heads <= 0 ||
            share_repeats_neighbour(s->slice, &s->layout, a->from, sender))
            continue;
        int64_t part = parts ? sender % s->partials * t.rows * t.heads : 0;
        boxes_add(
            b, s->rank, sender, receiver,
            (struct link_box){
                .blocks = 1,
                .rows = box.rows,
                .bytes = box.heads * a->bytes,
                .from = a->from_at + index_of(&f, box.first_row, box.first_head) * a->bytes,
                .from_row = f.heads * a->bytes,
                .to = a->to_at + (part + index_of(&t, box.first_row, box.first_head)) * a->bytes,
                .to_row = t.heads * a->bytes,
            });
    }
}

void scheme_gather(struct boxes *b, const struct scheme *s, enum share_rule homes, int64_t bytes,
                   int64_t at)
{
    for (int sender = 0; sender < s->layout.ranks; sender++) {
        struct scheme_range home = rows_by(s, homes, sender);
        int64_t first = at + home.first_row * bytes, all = home.rows * bytes;
        for (int receiver = 0; receiver < s->layout.ranks; receiver++)
            if (receiver != sender)
                boxes_add(b, s->rank, sender, receiver,
                          (struct link_box){0, 1, 1, all, first, all, all, first, all, all});
    }
}

void scheme_scatter(struct boxes *b, const struct scheme *s, int64_t bytes, int64_t from_at,
                    int64_t to_at)
{
    for (int receiver = 0; receiver < s->layout.ranks; receiver++) {
        struct scheme_range own = rows_by(s, SHARE_OWNED, receiver);
        int64_t all = own.rows * bytes, from = from_at + own.first_row * bytes;
        for (int sender = 0; sender < s->layout.ranks; sender++)
            boxes_add(
                b, s->rank, sender, receiver,
                (struct link_box){0, 1, 1, all, from, all, all, to_at + sender * all, all, all});
    }
}
