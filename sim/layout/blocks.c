/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/layout/blocks.h"

#include <assert.h>

static int gcd(int a, int b)
{
    return b == 0 ? a : gcd(b, a % b);
}

/* Refine an axis so that it can be cut `shards` ways. */
static void refine(int *classes, int shards)
{
    *classes = *classes / gcd(*classes, shards) * shards;
    assert(*classes >= 1 && *classes <= RANKS_MAX);
}

struct block_grid block_grid_for_kv(const struct layout *layouts, int n)
{
    struct block_grid g = {{1, 1, 1}};
    for (int i = 0; i < n; i++) {
        refine(&g.classes[AXIS_HEAD], layouts[i].kv_head_shards);
        refine(&g.classes[AXIS_POSITION], layouts[i].kv_pos_shards);
        refine(&g.classes[AXIS_LAYER], layouts[i].kv_layer_shards);
    }
    return g;
}

struct block_grid block_grid_for_weights(const struct layout *layouts, int n)
{
    struct block_grid g = {{1, 1, 1}};
    for (int i = 0; i < n; i++) {
        refine(&g.classes[AXIS_HEAD], layouts[i].in_shards);
        refine(&g.classes[AXIS_HEAD], layouts[i].kv_in_shards);
        refine(&g.classes[AXIS_HEAD], layouts[i].out_shards);
    }
    return g;
}

struct block_grid block_grid_for_state(const struct layout *layouts, int n)
{
    struct block_grid g = {{1, 1, 1}};
    for (int i = 0; i < n; i++)
        refine(&g.classes[AXIS_HEAD], layouts[i].ranks);
    return g;
}

static void put(struct axis_set *s, int c)
{
    s->bits[c / 64] |= 1ULL << (c % 64);
}

static struct axis_set contiguous(int classes, int shards, int shard)
{
    struct axis_set s = {0};
    int each = classes / shards;
    for (int c = shard * each; c < (shard + 1) * each; c++)
        put(&s, c);
    return s;
}

static struct axis_set round_robin(int classes, int shards, int shard)
{
    struct axis_set s = {0};
    for (int c = shard; c < classes; c += shards)
        put(&s, c);
    return s;
}

/* Neighbours share a shard when there are more ranks than shards. */
static struct axis_set share_of_rank(const struct layout *l, int classes, int shards, int rank)
{
    return contiguous(classes, shards, rank * shards / l->ranks);
}

static struct blocks by_head(const struct layout *l, const struct block_grid *g, int shards,
                             int rank)
{
    return (struct blocks){{
        [AXIS_HEAD] = share_of_rank(l, g->classes[AXIS_HEAD], shards, rank),
        [AXIS_POSITION] = contiguous(g->classes[AXIS_POSITION], 1, 0),
        [AXIS_LAYER] = contiguous(g->classes[AXIS_LAYER], 1, 0),
    }};
}

struct blocks blocks_of_kv(const struct layout *l, const struct block_grid *g, int rank, int owner)
{
    if (l->kv_owned && rank != owner)
        return (struct blocks){0};
    return (struct blocks){{
        [AXIS_HEAD] = share_of_rank(l, g->classes[AXIS_HEAD], l->kv_head_shards, rank),
        [AXIS_POSITION] =
            round_robin(g->classes[AXIS_POSITION], l->kv_pos_shards, rank % l->kv_pos_shards),
        [AXIS_LAYER] = share_of_rank(l, g->classes[AXIS_LAYER], l->kv_layer_shards, rank),
    }};
}

struct blocks blocks_of_state(const struct layout *l, const struct block_grid *g, int rank,
                              int owner)
{
    if (l->kv_owned && rank != owner)
        return (struct blocks){0};
    return by_head(l, g, l->kv_owned ? 1 : l->ranks, rank);
}

struct blocks blocks_of_in_weights(const struct layout *l, const struct block_grid *g, int rank)
{
    return by_head(l, g, l->in_shards, rank);
}

struct blocks blocks_of_kv_weights(const struct layout *l, const struct block_grid *g, int rank)
{
    return by_head(l, g, l->kv_in_shards, rank);
}

struct blocks blocks_of_out_weights(const struct layout *l, const struct block_grid *g, int rank)
{
    return by_head(l, g, l->out_shards, rank);
}

struct blocks blocks_and(const struct blocks *a, const struct blocks *b)
{
    struct blocks both;
    for (int x = 0; x < AXIS_COUNT; x++) {
        for (int w = 0; w < RANKS_MAX / 64; w++)
            both.axis[x].bits[w] = a->axis[x].bits[w] & b->axis[x].bits[w];
    }
    return both;
}

static int count(const struct axis_set *s)
{
    int n = 0;
    for (int w = 0; w < RANKS_MAX / 64; w++)
        n += __builtin_popcountll(s->bits[w]);
    return n;
}

static int volume(const struct blocks *b)
{
    return count(&b->axis[AXIS_HEAD]) * count(&b->axis[AXIS_POSITION]) *
           count(&b->axis[AXIS_LAYER]);
}

bool blocks_equal(const struct blocks *a, const struct blocks *b)
{
    struct blocks both = blocks_and(a, b);
    return volume(a) == volume(&both) && volume(b) == volume(&both);
}

static double frac_of(int blocks, const struct block_grid *g)
{
    const int *n = g->classes;
    return (double)blocks / (n[AXIS_HEAD] * n[AXIS_POSITION] * n[AXIS_LAYER]);
}

double blocks_frac(const struct blocks *b, const struct block_grid *g)
{
    return frac_of(volume(b), g);
}

double blocks_missing_frac(const struct blocks *b, const struct blocks *a,
                           const struct block_grid *g)
{
    struct blocks both = blocks_and(a, b);
    return frac_of(volume(b) - volume(&both), g);
}
