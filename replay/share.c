/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/share.h"

#include "replay/store.h"

enum share_rule share_home(const struct layout *l)
{
    return l->kv_owned ? SHARE_OWNED : SHARE_TURN;
}

/* The heads of a part that a rank holds are contiguous. */
static void take_held_heads(struct share *sh, const struct slice *s, const struct layout *l,
                            enum store_part part, int n)
{
    for (int head = 0; head < n; head++) {
        struct store_cell c = {.part = part, .head = head, .owner = sh->rank};
        if (!store_holds(s, &c, l, sh->rank))
            continue;
        if (sh->end_head == 0)
            sh->first_head = head;
        sh->end_head = head + 1;
    }
}

/* Attention works on what is stored, whatever layer and position: the head axis alone counts. */
static struct layout head_axis_of(const struct layout *l)
{
    struct layout heads = *l;
    heads.kv_pos_shards = heads.kv_layer_shards = 1;
    return heads;
}

static enum share_rule project_rule(const struct layout *l)
{
    return l->kv_owned && l->in_shards == 1 ? SHARE_OWNED : SHARE_ALL;
}

/* A rank that fetches whole contexts needs no partial results, so the rows are split instead. */
static enum share_rule attend_rule(const struct layout *l)
{
    if (l->kv_owned)
        return SHARE_OWNED;
    return l->kv_layer_shards > 1 ? SHARE_TURN : SHARE_ALL;
}

struct share share_of(const struct slice *s, const struct layout *l, enum share_stage stage,
                      int rank)
{
    const struct model *m = &s->model;
    struct layout stored = head_axis_of(l);
    struct share sh = {.rank = rank, .ranks = l->ranks};
    switch (stage) {
    case SHARE_PROJECT:
        sh.rule = project_rule(l);
        take_held_heads(&sh, s, l, STORE_IN, m->heads);
        break;
    case SHARE_KV:
        sh.rule = project_rule(l);
        if (m->attention == ATTN_MLA)
            sh.end_head = 1;
        else
            take_held_heads(&sh, s, l, STORE_KV_IN, m->kv_heads);
        break;
    case SHARE_STORE:
        sh.rule = l->kv_owned ? SHARE_OWNED : SHARE_ALL;
        take_held_heads(&sh, s, &stored, STORE_KV, m->kv_heads);
        break;
    case SHARE_ATTEND: {
        int each = m->heads / l->attn_head_shards, shard = rank * l->attn_head_shards / l->ranks;
        sh.rule = attend_rule(l);
        sh.first_head = shard * each;
        sh.end_head = sh.first_head + each;
        break;
    }
    case SHARE_OUT:
        sh.rule = l->out_shards > 1 ? SHARE_ALL : share_home(l);
        take_held_heads(&sh, s, l, STORE_OUT, m->heads);
        break;
    }
    return sh;
}

bool share_repeats_neighbour(const struct slice *s, const struct layout *l, enum share_stage stage,
                             int rank)
{
    if (stage != SHARE_KV || rank == 0)
        return false;
    struct share a = share_of(s, l, stage, rank - 1), b = share_of(s, l, stage, rank);
    return a.rule == SHARE_ALL && a.first_head == b.first_head;
}

bool share_has_row(const struct share *s, const struct share_rows *rows, int i)
{
    switch (s->rule) {
    case SHARE_OWNED: return rows->row[i].owner == s->rank;
    case SHARE_TURN: return i % s->ranks == s->rank;
    case SHARE_ALL: break;
    }
    return true;
}

bool share_stays(const struct slice *s, const struct layout *l, enum share_stage from,
                 enum share_stage to)
{
    for (int r = 0; r < l->ranks; r++) {
        struct share a = share_of(s, l, from, r), b = share_of(s, l, to, r);
        bool rows = a.rule == SHARE_ALL || a.rule == b.rule;
        if (!rows || b.first_head < a.first_head || b.end_head > a.end_head)
            return false;
    }
    return true;
}
