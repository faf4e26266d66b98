/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "replay/cuda/rank.h"
#include "replay/store.h"
#include "sim/base/mem.h"

struct relocation {
    struct cache_switch cache;
    struct link_exchange *kv;       /* the same in every layer; NULL: none moves */
    struct link_exchange **weights; /* [layers] */
};

/* Whether any rank lacks KV, or has to put its own elsewhere; the same answer on every rank. */
static bool kv_moves(const struct slice *s, const struct layout pair[2])
{
    struct boxes b = {0};
    int64_t nowhere[RANKS_MAX] = {0};
    bool moves = false;
    for (int owner = 0; owner < pair[0].ranks; owner++) {
        struct move_request any = {owner, (int64_t)STORE_BLOCK_TOKENS * RANKS_MAX, nowhere,
                                   nowhere};
        for (int rank = 0; rank < pair[0].ranks; rank++)
            moves_kv(&b, s, pair, rank, &any, 1);
    }
    moves = b.n_in > 0;
    boxes_release(&b);
    return moves;
}

static int make_kv(struct gpu_rank *r, const struct layout pair[2], struct relocation *m,
                   struct err *err)
{
    const struct boxes *b = &m->cache.boxes;
    if (!kv_moves(r->slice, pair))
        return 0;
    m->kv = link_exchange_new(r->link, b->out, (int)b->n_out, b->in, (int)b->n_in, err);
    return m->kv == NULL ? -1 : 0;
}

static void list_weights(const struct gpu_rank *r, const struct layout pair[2], int rank, int layer,
                         struct boxes *b)
{
    for (int m = MAT_Q_B; m <= MAT_O; m++) {
        enum matrix which = (enum matrix)m;
        if (!store_is_by_head(which) || slice_rows(r->slice, layer, which) == 0)
            continue;
        struct move_matrix moved = {layer, which, weights_head_bytes(&r->weights, layer, which),
                                    (const char *)r->weights.layer[layer].at[m] - r->arena.base};
        moves_weights(b, r->slice, pair, rank, &moved);
    }
}

static int make_weights(struct gpu_rank *r, const struct layout pair[2], int layer,
                        struct link_exchange **e, struct err *err)
{
    struct boxes any = {0}, mine = {0};
    for (int rank = 0; rank < r->comm->ranks; rank++)
        list_weights(r, pair, rank, layer, &any);
    list_weights(r, pair, r->comm->rank, layer, &mine);
    int rc = 0;
    if (any.n_in > 0) {
        *e = link_exchange_new(r->link, mine.out, (int)mine.n_out, mine.in, (int)mine.n_in, err);
        rc = *e == NULL ? -1 : 0;
    }
    boxes_release(&any);
    boxes_release(&mine);
    return rc;
}

static void release(struct gpu_rank *r, struct relocation *m)
{
    link_exchange_free(m->kv);
    for (int layer = 0; layer < r->slice->layers; layer++)
        link_exchange_free(m->weights[layer]);
    free(m->weights);
    cache_switch_end(&m->cache);
    free(m);
}

struct relocation *relocation_begin(struct gpu_rank *r, const struct layout *to, struct err *err)
{
    const struct layout pair[2] = {r->layout, *to};
    struct relocation *m = xcalloc(1, sizeof *m);
    m->weights = xcalloc((size_t)r->slice->layers, sizeof(struct link_exchange *));
    int rc = cache_switch_begin(&r->cache, to, &m->cache, err);
    if (rc == 0)
        rc = make_kv(r, pair, m, err);
    for (int layer = 0; rc == 0 && layer < r->slice->layers; layer++) {
        const struct layout here[2] = {store_layer_layout(r->slice, &pair[0], layer),
                                       store_layer_layout(r->slice, &pair[1], layer)};
        rc = make_weights(r, here, layer, &m->weights[layer], err);
        if (rc == 0 && m->weights[layer] != NULL)
            r->switch_bytes_sent += link_exchange_sent_bytes(m->weights[layer]);
        if (rc == 0 && m->kv != NULL)
            r->switch_bytes_sent += link_exchange_sent_bytes(m->kv);
    }
    if (rc == 0)
        rc = cache_upload(&r->cache, r->stream, err);
    if (rc < 0) {
        release(r, m);
        return NULL;
    }
    r->layout = *to;
    return m;
}

bool relocation_moves(const struct gpu_rank *r, const struct relocation *m)
{
    bool moves = m->kv != NULL;
    for (int layer = 0; layer < r->slice->layers; layer++)
        moves |= m->weights[layer] != NULL;
    return moves;
}

int relocation_layer(struct gpu_rank *r, const struct relocation *m, int layer,
                     enum link_channel channel, cudaStream_t stream, struct err *err)
{
    const char *from = cache_region(&r->cache, m->cache.region_before[layer]);
    char *to = cache_region(&r->cache, r->cache.region[layer]);
    if (m->weights[layer] != NULL && link_run(r->link, m->weights[layer], r->arena.base,
                                              r->arena.base, channel, stream, err) < 0)
        return -1;
    return m->kv == NULL ? 0 : link_run(r->link, m->kv, from, to, channel, stream, err);
}

int relocation_end(struct gpu_rank *r, struct relocation *m, struct err *err)
{
    int rc = 0;
    if (!r->job->options.unchecked &&
        (weights_retire(&r->weights, &r->layout, r->stream, err) < 0 ||
         cache_poison_free(&r->cache, r->stream, err) < 0))
        rc = -1;
    /* The boxes lie on the device: nothing may still read them. */
    if (gpu_try(cudaStreamSynchronize(r->stream), "a switch", err) < 0)
        rc = -1;
    release(r, m);
    return rc;
}
