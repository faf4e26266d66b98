/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/moves.h"

#include <assert.h>

#include "kernels/kv_pages.h"
#include "replay/share.h"
#include "replay/store.h"

enum { BF16_BYTES = 2, CLASSES_MAX = RANKS_MAX };

_Static_assert((int)KV_BLOCK_TOKENS == (int)STORE_BLOCK_TOKENS, "one kind of block");

static int64_t head_row_bytes(const struct slice *s)
{
    return (int64_t)slice_kv_width(s) / s->model.kv_heads * BF16_BYTES;
}

struct kv_shard kv_shard_of(const struct slice *s, const struct layout *l, int rank, int owner)
{
    struct share sh = share_of(s, l, SHARE_STORE, rank);
    struct kv_shard k = {
        .holds = !l->kv_owned || owner == rank,
        .first_head = sh.first_head,
        .heads = sh.end_head - sh.first_head,
        .shard = rank % l->kv_pos_shards,
        .shards = l->kv_pos_shards,
    };
    k.row_bytes = k.heads * head_row_bytes(s);
    return k;
}

/* Sent to others so far, by rank, to share the work out. */
struct load {
    int64_t sent_bytes[RANKS_MAX];
};

static int least_busy(const struct load *load, const bool *holds, int ranks)
{
    int best = -1;
    for (int r = 0; r < ranks; r++)
        if (holds[r] && (best < 0 || load->sent_bytes[r] < load->sent_bytes[best]))
            best = r;
    assert(best >= 0);
    return best;
}

/* One request's KV under way. */
struct kv_move {
    const struct slice *slice;
    const struct layout *pair;
    const struct move_request *request;
    struct kv_shard from[RANKS_MAX], to[RANKS_MAX];
    int classes; /* blocks with the same number mod this have the same holders */
};

static int least_common_multiple(int a, int b)
{
    int m = a;
    while (m % b != 0)
        m += a;
    return m;
}

static bool holds(const struct kv_shard *k, int class, int head)
{
    return k->holds && class % k->shards == k->shard && head >= k->first_head &&
           head < k->first_head + k->heads;
}

/* Byte of a block's first row, at a head, from the start of the region. */
static int64_t place(const struct kv_move *m, const struct kv_shard *k, int64_t pages,
                     int64_t block, int head)
{
    int64_t slot = kv_pages_slot(block * KV_BLOCK_TOKENS, k->shards);
    return pages + slot * k->row_bytes + (head - k->first_head) * head_row_bytes(m->slice);
}

/* KV heads that travel together between two ranks. */
struct stretch {
    int sender, receiver;
    int head, end_head;
};

/* Blocks first, first + classes, ... (count of them), `rows` of each. */
static struct link_box box_of(const struct kv_move *m, const struct stretch *s, int64_t first,
                              int64_t count, int rows)
{
    const struct kv_shard *f = &m->from[s->sender], *t = &m->to[s->receiver];
    int64_t tokens = (int64_t)m->classes * KV_BLOCK_TOKENS;
    return (struct link_box){
        .blocks = count,
        .rows = rows,
        .bytes = (s->end_head - s->head) * head_row_bytes(m->slice),
        .from = place(m, f, m->request->from[s->sender], first, s->head),
        .from_block = tokens / f->shards * f->row_bytes,
        .from_row = f->row_bytes,
        .to = place(m, t, m->request->to[s->receiver], first, s->head),
        .to_block = tokens / t->shards * t->row_bytes,
        .to_row = t->row_bytes,
    };
}

/* The rank itself where it may, else the least busy holder; -1: nothing to do. */
static int sender_to(const struct kv_move *m, const struct load *load, int receiver, int class,
                     int head)
{
    bool held[RANKS_MAX] = {false};
    if (!holds(&m->to[receiver], class, head))
        return -1;
    for (int r = 0; r < m->pair[0].ranks; r++)
        held[r] = holds(&m->from[r], class, head);
    if (held[receiver])
        return layout_cuts_kv_alike(&m->pair[0], &m->pair[1]) ? -1 : receiver;
    return least_busy(load, held, m->pair[0].ranks);
}

static void move_class(struct boxes *b, struct load *load, const struct kv_move *m, int rank,
                       int receiver, int class)
{
    int64_t whole = m->request->tokens / KV_BLOCK_TOKENS;
    int64_t count = class < whole ? (whole - class - 1) / m->classes + 1 : 0;
    bool is_last = whole % m->classes == class;
    int tail = is_last ? (int)(m->request->tokens % KV_BLOCK_TOKENS) : 0;
    int kv_heads = m->slice->model.kv_heads;
    struct stretch s = {.receiver = receiver};
    for (; s.head < kv_heads; s.head = s.end_head) {
        s.sender = sender_to(m, load, receiver, class, s.head);
        for (s.end_head = s.head + 1; s.end_head < kv_heads; s.end_head++)
            if (sender_to(m, load, receiver, class, s.end_head) != s.sender)
                break;
        if (s.sender < 0)
            continue;
        boxes_add(b, rank, s.sender, receiver, box_of(m, &s, class, count, KV_BLOCK_TOKENS));
        boxes_add(b, rank, s.sender, receiver, box_of(m, &s, whole, 1, tail));
        if (s.sender != receiver)
            load->sent_bytes[s.sender] +=
                (count * KV_BLOCK_TOKENS + tail) * (s.end_head - s.head) * head_row_bytes(m->slice);
    }
}

void moves_kv(struct boxes *b, const struct slice *s, const struct layout pair[2], int rank,
              const struct move_request *request, int n)
{
    struct load load = {0};
    for (int i = 0; i < n; i++) {
        struct kv_move m = {s, pair, &request[i], {{0}}, {{0}}, 0};
        m.classes = least_common_multiple(pair[0].kv_pos_shards, pair[1].kv_pos_shards);
        assert(m.classes <= CLASSES_MAX);
        for (int r = 0; r < pair[0].ranks; r++) {
            m.from[r] = kv_shard_of(s, &pair[0], r, request[i].owner);
            m.to[r] = kv_shard_of(s, &pair[1], r, request[i].owner);
        }
        for (int receiver = 0; receiver < pair[0].ranks; receiver++)
            for (int class = 0; class < m.classes; class ++)
                move_class(b, &load, &m, rank, receiver, class);
    }
}

static int weight_sender(const struct slice *s, const struct layout pair[2],
                         const struct load *load, struct store_cell c, int receiver)
{
    bool held[RANKS_MAX] = {false};
    for (int r = 0; r < pair[0].ranks; r++)
        held[r] = store_holds(s, &c, &pair[0], r);
    if (held[receiver] || !store_holds(s, &c, &pair[1], receiver))
        return -1;
    return least_busy(load, held, pair[0].ranks);
}

void moves_weights(struct boxes *b, const struct slice *s, const struct layout pair[2], int rank,
                   const struct move_matrix *m)
{
    struct load load = {0};
    struct store_heads heads = store_heads_of(&s->model, m->which);
    struct store_cell c = {.part = heads.part, .layer = m->layer};
    for (int receiver = 0; receiver < pair[0].ranks; receiver++)
        for (int head = 0, end; head < heads.n; head = end) {
            c.head = head;
            int sender = weight_sender(s, pair, &load, c, receiver);
            for (end = head + 1; end < heads.n; end++) {
                c.head = end;
                if (weight_sender(s, pair, &load, c, receiver) != sender)
                    break;
            }
            if (sender < 0)
                continue;
            int64_t first = m->at + head * m->head_bytes, bytes = (end - head) * m->head_bytes;
            boxes_add(b, rank, sender, receiver,
                      (struct link_box){0, 1, 1, bytes, first, bytes, bytes, first, bytes, bytes});
            load.sent_bytes[sender] += bytes;
        }
}
