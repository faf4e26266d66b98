/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/cuda/cache.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kv_pages.h"
#include "kernels/values.h"
#include "replay/values.h"
#include "sim/base/ints.h"
#include "sim/base/mem.h"

static int64_t whole_width(const struct slice *s)
{
    return slice_kv_width(s);
}

static int64_t pages_bytes(const struct kv_shard *k, int64_t tokens)
{
    int64_t slots = kv_pages_shard_tokens(tokens, k->shard, k->shards);
    int64_t pages = (slots + KV_PAGE_TOKENS - 1) / KV_PAGE_TOKENS;
    return k->holds ? pages * KV_PAGE_TOKENS * k->row_bytes : 0;
}

/* What a plan asks of the cache. */
struct life {
    int64_t req, tokens_max;
    int first, last; /* steps */
};

struct lives {
    struct life *life;
    size_t n, cap;
};

static struct life *life_of(struct lives *all, int64_t req, int step)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->life[i].req == req)
            return &all->life[i];
    all->life = xgrow(all->life, &all->cap, all->n + 1, sizeof *all->life);
    all->life[all->n] = (struct life){.req = req, .first = step};
    return &all->life[all->n++];
}

static struct lives lives_of(const struct plan *p)
{
    struct lives all = {0};
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->step[i].n_rows; k++) {
            struct life *l = life_of(&all, p->step[i].row[k].req, i);
            l->last = i;
            l->tokens_max = max_i64(l->tokens_max, p->step[i].row[k].ctx_tokens);
        }
    return all;
}

static const struct plan_row *row_of(const struct plan *p, const struct life *l)
{
    for (int k = 0;; k++)
        if (p->step[l->first].row[k].req == l->req)
            return &p->step[l->first].row[k];
}

/* Of the fullest rank, with what it held under `before` still there when that stays in place. */
static int64_t need_bytes(const struct driver_job *job, const struct lives *all, int step,
                          const struct layout pair[2])
{
    int64_t most = 0;
    for (int r = 0; r < pair[0].ranks; r++) {
        int64_t sum = 0;
        for (size_t i = 0; i < all->n; i++) {
            const struct life *l = &all->life[i];
            if (step < l->first || step > l->last)
                continue;
            int owner = row_of(&job->plan, l)->owner;
            struct kv_shard a = kv_shard_of(&job->slice, &pair[0], r, owner);
            struct kv_shard b = kv_shard_of(&job->slice, &pair[1], r, owner);
            sum += max_i64(pages_bytes(&a, l->tokens_max), pages_bytes(&b, l->tokens_max));
        }
        most = max_i64(most, sum);
    }
    return most;
}

/* Extents leave holes: an eighth more. All layouts' pages divide a region. */
static int64_t region_bytes(const struct driver_job *job, const struct lives *all)
{
    const struct plan *p = &job->plan;
    int64_t most = 0, unit = KV_PAGE_TOKENS * whole_width(&job->slice) * 2;
    for (int i = 0; i < p->n; i++) {
        const char *from = p->step[i].from[0] != '\0' ? p->step[i].from : p->step[i].layout;
        struct layout pair[2] = {driver_layout(job, from), driver_layout(job, p->step[i].layout)};
        const char *last = i > 0 ? p->step[i - 1].layout : from;
        struct layout before[2] = {driver_layout(job, last), pair[0]};
        most = max_i64(most, need_bytes(job, all, i, pair));
        most = max_i64(most, need_bytes(job, all, i, before));
    }
    return (most + most / 8) / unit * unit + 2 * unit;
}

static int count_live(const struct plan *p, const struct lives *all)
{
    int most = 0;
    for (int step = 0; step < p->n; step++) {
        int n = 0;
        for (size_t i = 0; i < all->n; i++)
            n += step >= all->life[i].first && step <= all->life[i].last;
        most = n > most ? n : most;
    }
    return most;
}

int cache_init(struct cache *c, const struct driver_job *job, const struct layout *l, int rank,
               struct err *err)
{
    struct lives all = lives_of(&job->plan);
    int64_t tokens = 0;
    for (size_t i = 0; i < all.n; i++)
        tokens = max_i64(tokens, all.life[i].tokens_max);
    *c = (struct cache){
        .slice = &job->slice,
        .rank = rank,
        .ranks = l->ranks,
        .layout = *l,
        .requests_max = count_live(&job->plan, &all),
        .table_pages = (tokens + KV_PAGE_TOKENS - 1) / KV_PAGE_TOKENS,
        .region_bytes = region_bytes(job, &all),
        .spare = job->slice.layers,
    };
    free(all.life);
    c->request = xcalloc((size_t)c->requests_max, sizeof *c->request);
    for (int i = 0; i < c->requests_max; i++)
        c->request[i].req = -1;
    c->region = xcalloc((size_t)c->slice->layers, sizeof *c->region);
    for (int i = 0; i < c->slice->layers; i++)
        c->region[i] = i;
    size_t n = (size_t)c->slice->layers * (size_t)c->requests_max * (size_t)c->table_pages;
    return gpu_try(cudaHostAlloc((void **)&c->table_host, n * sizeof(int32_t), 0), "page tables",
                   err);
}

void cache_release(struct cache *c)
{
    free(c->request);
    free(c->region);
    cudaFreeHost(c->table_host);
    *c = (struct cache){0};
}

static size_t table_numbers(const struct cache *c)
{
    return (size_t)c->slice->layers * (size_t)c->requests_max * (size_t)c->table_pages;
}

void cache_place(struct cache *c, struct gpu_arena *a)
{
    c->pool = gpu_take(a, (size_t)(c->slice->layers + 1) * (size_t)c->region_bytes);
    c->table = gpu_take(a, table_numbers(c) * sizeof(int32_t));
    c->sum = gpu_take(a, sizeof *c->sum);
}

int cache_find(const struct cache *c, int64_t req)
{
    for (int i = 0; i < c->requests_max; i++)
        if (c->request[i].req == req)
            return i;
    return -1;
}

char *cache_region(const struct cache *c, int region)
{
    return c->pool + (int64_t)region * c->region_bytes;
}

const int32_t *cache_table(const struct cache *c, int layer)
{
    return c->table + (int64_t)layer * c->requests_max * c->table_pages;
}

/* First fit among the extents that other requests have on that rank, now or (in `before`) still. */
static int64_t find_room(const struct cache *c, const struct cache_request *before, int rank,
                         int64_t bytes)
{
    int64_t at = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < 2 * c->requests_max; i++) {
            const struct cache_request *q =
                i < c->requests_max ? &c->request[i]
                                    : (before == NULL ? NULL : &before[i - c->requests_max]);
            if (q == NULL || q->req < 0 || q->pages_bytes[rank] == 0 ||
                at + bytes <= q->pages[rank] || at >= q->pages[rank] + q->pages_bytes[rank])
                continue;
            at = q->pages[rank] + q->pages_bytes[rank];
            moved = true;
        }
    }
    return at + bytes <= c->region_bytes ? at : -1;
}

static int find_extent(struct cache *c, const struct cache_request *before, int index, int rank,
                       struct err *err)
{
    struct cache_request *q = &c->request[index];
    struct kv_shard k = kv_shard_of(c->slice, &c->layout, rank, q->owner);
    int64_t bytes = pages_bytes(&k, q->tokens_max);
    int64_t at = bytes > 0 ? find_room(c, before, rank, bytes) : 0;
    if (at < 0)
        return err_run(err,
                       "request %" PRId64 ": its %" PRId64
                       " bytes of KV a layer find no room in the "
                       "%" PRId64 " of rank %d",
                       q->req, bytes, c->region_bytes, rank);
    q->pages[rank] = at;
    q->pages_bytes[rank] = bytes;
    return 0;
}

static void write_table(const struct cache *c, int index)
{
    const struct cache_request *q = &c->request[index];
    struct kv_shard k = kv_shard_of(c->slice, &c->layout, c->rank, q->owner);
    int64_t page_bytes = KV_PAGE_TOKENS * k.row_bytes;
    for (int layer = 0; layer < c->slice->layers; layer++) {
        int32_t *to = c->table_host + ((int64_t)layer * c->requests_max + index) * c->table_pages;
        int64_t first = (c->region[layer] * c->region_bytes + q->pages[c->rank]) / page_bytes;
        int64_t n = q->pages_bytes[c->rank] / page_bytes;
        for (int64_t i = 0; i < c->table_pages; i++)
            to[i] = i < n ? (int32_t)(first + i) : -1;
    }
}

int cache_upload(const struct cache *c, cudaStream_t stream, struct err *err)
{
    return gpu_try(cudaMemcpyAsync(c->table, c->table_host, table_numbers(c) * sizeof(int32_t),
                                   cudaMemcpyHostToDevice, stream),
                   "page tables", err);
}

static struct values_kv rows_of(const struct cache *c, int index, int layer,
                                const struct kv_shard *k)
{
    const struct cache_request *q = &c->request[index];
    int64_t head_numbers = whole_width(c->slice) / c->slice->model.kv_heads;
    return (struct values_kv){
        .key = {c->slice->seed, VALUE_HISTORY, 1},
        .pages = (uint16_t *)c->pool,
        .table = cache_table(c, layer) + index * c->table_pages,
        .req = q->req,
        .layer = layer,
        .tokens = q->tokens,
        .first_d = k->first_head * head_numbers,
        .width = (int)(k->heads * head_numbers),
        .shard = k->shard,
        .shards = k->shards,
    };
}

static int fill_history(const struct cache *c, int index, struct err *err)
{
    struct kv_shard k = kv_shard_of(c->slice, &c->layout, c->rank, c->request[index].owner);
    for (int layer = 0; k.holds && layer < c->slice->layers; layer++) {
        struct values_kv rows = rows_of(c, index, layer, &k);
        if (gpu_try(values_fill_kv(&rows, 0), "making history", err) < 0)
            return -1;
    }
    return gpu_try(cudaStreamSynchronize(0), "making history", err);
}

int cache_add(struct cache *c, int64_t req, int owner, int64_t history_tokens, int64_t tokens_max,
              struct err *err)
{
    int index = cache_find(c, -1);
    assert(index >= 0);
    struct cache_request *q = &c->request[index];
    *q = (struct cache_request){
        .req = req, .owner = owner, .tokens = history_tokens, .tokens_max = tokens_max};
    for (int r = 0; r < c->ranks; r++)
        if (find_extent(c, NULL, index, r, err) < 0)
            return -1;
    write_table(c, index);
    if (cache_upload(c, 0, err) < 0 || fill_history(c, index, err) < 0)
        return -1;
    return index;
}

void cache_remove(struct cache *c, int index)
{
    c->request[index].req = -1;
}

/* The region that one layer leaves is the next one's. */
static void rotate_regions(struct cache *c)
{
    int free_region = c->spare;
    for (int layer = 0; layer < c->slice->layers; layer++) {
        int left = c->region[layer];
        c->region[layer] = free_region;
        free_region = left;
    }
    c->spare = free_region;
}

/* Extents under the new layout: what stays in place keeps its own. */
static int find_extents(struct cache *c, const struct cache_request *before, bool in_place,
                        struct err *err)
{
    for (int i = 0; i < c->requests_max; i++)
        for (int r = 0; r < c->ranks; r++) {
            c->request[i].pages_bytes[r] = 0;
            if (c->request[i].req < 0)
                continue;
            struct kv_shard k = kv_shard_of(c->slice, &c->layout, r, c->request[i].owner);
            if (in_place && k.holds && before[i].pages_bytes[r] > 0)
                c->request[i].pages_bytes[r] = before[i].pages_bytes[r];
        }
    for (int i = 0; i < c->requests_max; i++)
        for (int r = 0; r < c->ranks; r++)
            if (c->request[i].req >= 0 && c->request[i].pages_bytes[r] == 0 &&
                find_extent(c, in_place ? before : NULL, i, r, err) < 0)
                return -1;
    return 0;
}

int cache_switch_begin(struct cache *c, const struct layout *to, struct cache_switch *sw,
                       struct err *err)
{
    const struct layout pair[2] = {c->layout, *to};
    size_t layers = (size_t)c->slice->layers, n = 0;
    *sw = (struct cache_switch){
        .region_before = xcalloc(layers, sizeof *sw->region_before),
        .before = xcalloc((size_t)c->requests_max, sizeof *sw->before),
    };
    memcpy(sw->region_before, c->region, layers * sizeof *c->region);
    memcpy(sw->before, c->request, (size_t)c->requests_max * sizeof *c->request);
    c->layout = *to;
    bool stays = layout_cuts_kv_alike(&pair[0], &pair[1]);
    if (!stays)
        rotate_regions(c);
    if (find_extents(c, sw->before, stays, err) < 0)
        return -1;
    struct move_request *moved = xcalloc((size_t)c->requests_max, sizeof *moved);
    for (int i = 0; i < c->requests_max; i++) {
        if (c->request[i].req < 0)
            continue;
        moved[n++] = (struct move_request){c->request[i].owner, c->request[i].tokens,
                                           sw->before[i].pages, c->request[i].pages};
        write_table(c, i);
    }
    moves_kv(&sw->boxes, c->slice, pair, c->rank, moved, (int)n);
    free(moved);
    return 0;
}

void cache_switch_end(struct cache_switch *sw)
{
    boxes_release(&sw->boxes);
    free(sw->region_before);
    free(sw->before);
    *sw = (struct cache_switch){0};
}

int cache_copies(const struct cache *c)
{
    const struct layout *l = &c->layout;
    int distinct = l->kv_head_shards * l->kv_pos_shards;
    return l->kv_owned ? 1 : c->ranks / distinct;
}

int cache_checksum(const struct cache *c, uint64_t *sum, struct err *err)
{
    if (gpu_try(cudaMemset(c->sum, 0, sizeof *c->sum), "checksum", err) < 0)
        return -1;
    for (int i = 0; i < c->requests_max; i++) {
        if (c->request[i].req < 0)
            continue;
        struct kv_shard k = kv_shard_of(c->slice, &c->layout, c->rank, c->request[i].owner);
        for (int layer = 0; k.holds && layer < c->slice->layers; layer++) {
            struct values_kv rows = rows_of(c, i, layer, &k);
            if (gpu_try(values_checksum_kv(&rows, c->sum, 0), "checksum", err) < 0)
                return -1;
        }
    }
    return gpu_try(cudaMemcpy(sum, c->sum, sizeof *sum, cudaMemcpyDeviceToHost), "checksum", err);
}

static int by_place(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (x[0] > y[0]) - (x[0] < y[0]);
}

static int poison_between(const struct cache *c, int64_t first, int64_t end, cudaStream_t stream,
                          struct err *err)
{
    for (int layer = 0; end > first && layer < c->slice->layers; layer++)
        if (gpu_try(cudaMemsetAsync(cache_region(c, c->region[layer]) + first, 0xff,
                                    (size_t)(end - first), stream),
                    "poison", err) < 0)
            return -1;
    return 0;
}

int cache_poison_free(const struct cache *c, cudaStream_t stream, struct err *err)
{
    int64_t(*extent)[2] = xcalloc((size_t)c->requests_max, sizeof *extent);
    size_t n = 0;
    for (int i = 0; i < c->requests_max; i++)
        if (c->request[i].req >= 0 && c->request[i].pages_bytes[c->rank] > 0) {
            extent[n][0] = c->request[i].pages[c->rank];
            extent[n++][1] = c->request[i].pages_bytes[c->rank];
        }
    qsort(extent, n, sizeof *extent, by_place);
    int64_t at = 0;
    int rc =
        gpu_try(cudaMemsetAsync(cache_region(c, c->spare), 0xff, (size_t)c->region_bytes, stream),
                "poison", err);
    for (size_t i = 0; rc == 0 && i <= n; i++) {
        rc = poison_between(c, at, i < n ? extent[i][0] : c->region_bytes, stream, err);
        at = i < n ? extent[i][0] + extent[i][1] : at;
    }
    free(extent);
    return rc;
}
