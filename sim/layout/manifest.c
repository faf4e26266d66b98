/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/layout/manifest.h"

#include <assert.h>

#include "sim/base/mem.h"
#include "sim/layout/blocks.h"

const char *const primitive_names[PRIM_COUNT] = {
    [PRIM_KEEP] = "keep",
    [PRIM_DISCARD] = "discard",
    [PRIM_ALL_GATHER] = "all-gather",
    [PRIM_ALL_TO_ALL] = "all-to-all",
};

/* Who holds one state before and after. */
struct sides {
    int ranks;
    struct block_grid grid;
    struct blocks from[RANKS_MAX], to[RANKS_MAX];
};

static enum primitive later_of(enum primitive a, enum primitive b)
{
    return a > b ? a : b;
}

static double larger_of(double a, double b)
{
    return a > b ? a : b;
}

static double missing_frac(const struct sides *s, int rank)
{
    return blocks_missing_frac(&s->to[rank], &s->from[rank], &s->grid);
}

/* How many ranks hold each block: the same for all of them, so that shares add up to it. */
static int copies(const struct sides *s, const struct blocks *held)
{
    double sum = 0;
    for (int r = 0; r < s->ranks; r++)
        sum += blocks_frac(&held[r], &s->grid);
    return (int)(sum + 0.5);
}

static enum primitive primitive_of(const struct sides *s)
{
    bool same = true, enough = true;
    for (int r = 0; r < s->ranks; r++) {
        same = same && blocks_equal(&s->from[r], &s->to[r]);
        enough = enough && missing_frac(s, r) == 0;
    }
    if (enough)
        return same ? PRIM_KEEP : PRIM_DISCARD;
    return copies(s, s->to) > 1 ? PRIM_ALL_GATHER : PRIM_ALL_TO_ALL;
}

static double repack_frac(const struct sides *s, int rank)
{
    return missing_frac(s, rank) > 0 ? blocks_frac(&s->to[rank], &s->grid) : 0;
}

typedef struct blocks (*weights_fn)(const struct layout *l, const struct block_grid *g, int rank);

static struct sides weights_sides(const struct layout pair[2], weights_fn blocks_of)
{
    struct sides s = {.ranks = pair[0].ranks, .grid = block_grid_for_weights(pair, 2)};
    for (int r = 0; r < s.ranks; r++) {
        s.from[r] = blocks_of(&pair[0], &s.grid, r);
        s.to[r] = blocks_of(&pair[1], &s.grid, r);
    }
    return s;
}

static struct weights_move layer_move(const struct layout pair[2], const struct projection_bytes *p)
{
    const struct {
        weights_fn blocks_of;
        double bytes;
    } matrix[] = {
        {blocks_of_in_weights, p->in_bytes - p->kv_in_bytes},
        {blocks_of_kv_weights, p->kv_in_bytes},
        {blocks_of_out_weights, p->out_bytes},
    };
    struct weights_move mv = {0};
    double recv[RANKS_MAX] = {0}, repack[RANKS_MAX] = {0};
    for (int i = 0; i < 3; i++) {
        if (matrix[i].bytes == 0)
            continue;
        struct sides s = weights_sides(pair, matrix[i].blocks_of);
        mv.primitive = later_of(mv.primitive, primitive_of(&s));
        for (int r = 0; r < s.ranks; r++) {
            recv[r] += matrix[i].bytes * missing_frac(&s, r);
            repack[r] += matrix[i].bytes * repack_frac(&s, r);
        }
    }
    for (int r = 0; r < pair[0].ranks; r++) {
        mv.recv_bytes = larger_of(mv.recv_bytes, recv[r]);
        mv.repack_bytes = larger_of(mv.repack_bytes, repack[r]);
    }
    mv.layers_frac = mv.recv_bytes > 0;
    return mv;
}

/* Layers fall into three runs: cached under both layouts, under one, under none. */
static struct weights_move weights_move(const struct layout *from, const struct layout *to,
                                        const struct projection_bytes *p)
{
    double a = from->full_weights_frac, b = to->full_weights_frac;
    const double edge[] = {0, a < b ? a : b, a < b ? b : a, 1};
    struct weights_move all = {0};
    for (int i = 0; i < 3; i++) {
        double end = edge[i + 1], width = end - edge[i];
        if (width <= 0)
            continue;
        const struct layout pair[2] = {end <= a ? layout_of_cached(from) : *from,
                                       end <= b ? layout_of_cached(to) : *to};
        struct weights_move run = layer_move(pair, p);
        all.primitive = later_of(all.primitive, run.primitive);
        all.layers_frac += width * run.layers_frac;
        all.recv_bytes = larger_of(all.recv_bytes, run.recv_bytes);
        all.repack_bytes = larger_of(all.repack_bytes, run.repack_bytes);
    }
    return all;
}

typedef struct blocks (*request_fn)(const struct layout *l, const struct block_grid *g, int rank,
                                    int owner);

static void fill_owner(struct request_move *mv, int owner, const struct sides *s, bool regroups)
{
    int holders = copies(s, s->from);
    for (int r = 0; r < s->ranks; r++) {
        mv->recv_frac[owner][r] = missing_frac(s, r);
        mv->repack_frac[owner][r] = repack_frac(s, r);
        if (regroups)
            mv->regroup_frac[owner][r] = blocks_frac(&s->to[r], &s->grid) - missing_frac(s, r);
        for (int sender = 0; sender < s->ranks; sender++) {
            struct blocks useful = blocks_and(&s->to[r], &s->from[sender]);
            mv->send_frac[owner][sender] +=
                blocks_missing_frac(&useful, &s->from[r], &s->grid) / holders;
        }
    }
    mv->primitive = later_of(mv->primitive, primitive_of(s));
}

static void fill_request_move(struct request_move *mv, const struct layout pair[2],
                              struct block_grid grid, request_fn blocks_of)
{
    struct sides s = {.ranks = pair[0].ranks, .grid = grid};
    mv->owner_matters = pair[0].kv_owned || pair[1].kv_owned;
    int owners = mv->owner_matters ? s.ranks : 1;
    bool regroups = !layout_cuts_kv_alike(&pair[0], &pair[1]);
    for (int owner = 0; owner < owners; owner++) {
        for (int r = 0; r < s.ranks; r++) {
            s.from[r] = blocks_of(&pair[0], &grid, r, owner);
            s.to[r] = blocks_of(&pair[1], &grid, r, owner);
        }
        fill_owner(mv, owner, &s, regroups);
    }
}

struct manifest *manifest_new(const struct layout *from, const struct layout *to,
                              const struct model *m)
{
    assert(from->ranks == to->ranks);
    const struct layout pair[2] = {*from, *to};
    const struct layout linear[2] = {layout_of_linear(from), layout_of_linear(to)};
    struct projection_bytes projections = footprint_projections(m);
    struct projection_bytes linear_projections = footprint_linear_projections(m);
    struct manifest *mf = xcalloc(1, sizeof *mf);
    mf->ranks = from->ranks;
    mf->weights = weights_move(&pair[0], &pair[1], &projections);
    fill_request_move(&mf->kv, pair, block_grid_for_kv(pair, 2), blocks_of_kv);
    if (m->linear.layers > 0) {
        mf->linear_weights = weights_move(&linear[0], &linear[1], &linear_projections);
        fill_request_move(&mf->state, pair, block_grid_for_state(pair, 2), blocks_of_state);
    }
    return mf;
}

static struct transfer transfer_of(const struct request_move *mv, int ranks, double unit_bytes,
                                   const int64_t *per_owner)
{
    struct transfer t = {0};
    for (int r = 0; r < ranks; r++) {
        double recv = 0, send = 0, repack = 0, regroup = 0;
        for (int owner = 0; owner < ranks; owner++) {
            int row = mv->owner_matters ? owner : 0;
            double bytes = unit_bytes * (double)per_owner[owner];
            recv += bytes * mv->recv_frac[row][r];
            send += bytes * mv->send_frac[row][r];
            repack += bytes * mv->repack_frac[row][r];
            regroup += bytes * mv->regroup_frac[row][r];
        }
        t.recv_bytes = larger_of(t.recv_bytes, recv);
        t.link_bytes = larger_of(t.link_bytes, larger_of(recv, send));
        t.repack_bytes = larger_of(t.repack_bytes, repack);
        t.regroup_bytes = larger_of(t.regroup_bytes, regroup);
        t.moved_bytes += recv;
    }
    return t;
}

struct transfer manifest_kv_transfer(const struct manifest *mf, const struct model *m,
                                     const int64_t *ctx_tokens)
{
    return transfer_of(&mf->kv, mf->ranks, model_kv_bytes_per_token_layer(m), ctx_tokens);
}

struct transfer manifest_state_transfer(const struct manifest *mf, const struct model *m,
                                        const int64_t *requests)
{
    return transfer_of(&mf->state, mf->ranks, (double)m->linear.state_bytes_per_layer, requests);
}

double manifest_transit_bytes(const struct manifest *mf, const struct model *m,
                              const int64_t *ctx_tokens)
{
    double kv_layer = mf->weights.recv_bytes + manifest_kv_transfer(mf, m, ctx_tokens).recv_bytes;
    return larger_of(kv_layer, mf->linear_weights.recv_bytes);
}

double manifest_peak_bytes(double from_bytes, double to_bytes, double transit_bytes)
{
    return larger_of(from_bytes, to_bytes) + transit_bytes;
}
