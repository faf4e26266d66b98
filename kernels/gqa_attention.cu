/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention_merge.cuh"
#include "kernels/kv_pages.h"
#include "kernels/mbarrier.cuh"
#include "kernels/mma.cuh"
#include "kernels/tensor_map.cuh"

/* A block of the grid does one part of the plan for one KV head. One warp fetches that head's share
 * of page after page into a ring of buffers; eight others compute. Each of them takes 16 of the
 * tile's pairs (query row, head). Where that leaves warps over, those with the same pairs divide
 * the slots among them: by turns of pages, and within a page. Each keeps its own running softmax,
 * and they merge when the item ends, while the next one's pages are on their way. */
enum {
    DIM = 128,
    WARPS = 8,
    WARP_PAIRS = 16,
    TILE_PAIRS = WARPS * WARP_PAIRS,
    THREADS = (WARPS + 1) * 32,
    STAGES = 6,
    COLUMNS = 64,                              /* 128 bytes, the width of the swizzle */
    HALF_BYTES = KV_PAGE_TOKENS * COLUMNS * 2, /* a page's keys, or values, are two halves */
    PAGE_BYTES = 4 * HALF_BYTES
};

/* Of a warp's pairs, by tensor-core fragments: a thread has pairs lane / 4 and lane / 4 + 8, of
 * every 8 columns two. In units of log2; `sum` is the thread's own until the item ends. */
struct running {
    float out[DIM / 8][4];
    float max[2], sum[2];
};

enum { RUNNING_FLOATS = DIM / 8 * 4 + 4 };

struct shared {
    unsigned char page[STAGES][PAGE_BYTES];
    float spare[WARPS / 2][RUNNING_FLOATS][32]; /* results on their way from warp to warp */
    uint64_t full[STAGES], empty[STAGES];
};

struct gqa {
    struct attention a;
    struct attention_plan plan;
    struct attention_partials partials;
};

/* Only the computing warps. */
static __device__ void warps_meet(void)
{
    asm volatile("bar.sync 1, %0;" ::"n"(WARPS * 32) : "memory");
}

/* The KV head's share of a page, its rows moved down by `down`: what would be from before the page
 * is out of the map's bounds and comes as zeros. */
static __device__ void fetch_page(void *to, uint64_t *full, const CUtensorMap *map, int page,
                                  int kv_head, int down)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(shared_address(to)),
                 "l"(map), "r"(0), "r"(-down), "r"(4 * kv_head), "r"(page),
                 "r"(shared_address(full))
                 : "memory");
}

static __device__ float exp2_fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Exponents relative to a maximum that is not finite would be NaN; 0 serves, they are -infinity. */
static __device__ float finite(float max)
{
    return max == -INFINITY ? 0 : max;
}

/* s = query key^T; keys: where the first of the TOKENS starts. ldmatrix takes 16 tokens by 16
 * columns; the swizzle has put 16-byte piece c of a row at c ^ (row % 8). */
template <int TOKENS>
static __device__ void score(float (&s)[TOKENS / 8][4], const uint32_t (&query)[DIM / 16][4],
                             uint32_t keys)
{
    const int lane = threadIdx.x % 32, row = lane % 8, matrix = lane / 8;
    const uint32_t start = keys + (matrix / 2 * 8 + row) * 128, piece = (matrix % 2) ^ row;
#pragma unroll
    for (int k = 0; k < DIM / 16; k++)
#pragma unroll
        for (int t = 0; t < TOKENS / 16; t++) {
            uint32_t key[4];
            mma_load(key, start + k / 4 * HALF_BYTES + t * 16 * 128 + (piece ^ k % 4 * 2) * 16);
            mma_16x8(s[2 * t], query[k], key[0], key[1]);
            mma_16x8(s[2 * t + 1], query[k], key[2], key[3]);
        }
}

/* out += weight value */
template <int TOKENS>
static __device__ void add_values(float (&out)[DIM / 8][4], const float (&weight)[TOKENS / 8][4],
                                  uint32_t values)
{
    const int lane = threadIdx.x % 32, row = lane % 8, matrix = lane / 8;
    const uint32_t start = values + (matrix % 2 * 8 + row) * 128, piece = matrix / 2 ^ row;
#pragma unroll
    for (int t = 0; t < TOKENS / 16; t++) {
        const float(&w)[4] = weight[2 * t], (&x)[4] = weight[2 * t + 1];
        const uint32_t a[4] = {mma_pair(w[0], w[1]), mma_pair(w[2], w[3]), mma_pair(x[0], x[1]),
                               mma_pair(x[2], x[3])};
#pragma unroll
        for (int d = 0; d < DIM / 16; d++) {
            uint32_t value[4];
            mma_load_transposed(value, start + d / 4 * HALF_BYTES + t * 16 * 128 +
                                           (piece ^ d % 4 * 2) * 16);
            mma_16x8(out[2 * d], a, value[0], value[1]);
            mma_16x8(out[2 * d + 1], a, value[2], value[3]);
        }
    }
}

/* Of TOKENS tokens, the thread's two pairs see [low, high). */
struct sight {
    int low, high[2];
};

template <int TOKENS>
static __device__ void hide_unseen(float (&s)[TOKENS / 8][4], struct sight sight)
{
#pragma unroll
    for (int t = 0; t < TOKENS / 8; t++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int token = 8 * t + threadIdx.x % 4 * 2 + i % 2;
            if (token < sight.low || token >= sight.high[i / 2])
                s[t][i] = -INFINITY;
        }
}

/* Scores become weights relative to the new maximum, and what there is follows it. */
template <int TOKENS> static __device__ void weigh(struct running *r, float (&s)[TOKENS / 8][4])
{
#pragma unroll
    for (int pair = 0; pair < 2; pair++) {
        float max = r->max[pair], sum = 0;
#pragma unroll
        for (int t = 0; t < TOKENS / 8; t++)
            max = fmaxf(max, fmaxf(s[t][2 * pair], s[t][2 * pair + 1]));
        max = fmaxf(max, __shfl_xor_sync(~0u, max, 1));
        max = fmaxf(max, __shfl_xor_sync(~0u, max, 2));
        const float keep = exp2_fast(r->max[pair] - finite(max));
#pragma unroll
        for (int t = 0; t < TOKENS / 8; t++)
#pragma unroll
            for (int i = 2 * pair; i < 2 * pair + 2; i++) {
                s[t][i] = exp2_fast(s[t][i] - finite(max));
                sum += s[t][i];
            }
        r->max[pair] = max;
        r->sum[pair] = r->sum[pair] * keep + sum;
#pragma unroll
        for (int d = 0; d < DIM / 8; d++) {
            r->out[d][2 * pair] *= keep;
            r->out[d][2 * pair + 1] *= keep;
        }
    }
}

template <int TOKENS>
static __device__ void attend(struct running *r, const uint32_t (&query)[DIM / 16][4],
                              uint32_t tokens, struct sight sight, float scale_log2)
{
    float s[TOKENS / 8][4] = {};
    score<TOKENS>(s, query, tokens);
#pragma unroll
    for (int t = 0; t < TOKENS / 8; t++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            s[t][i] *= scale_log2;
    const int high = min(sight.high[0], sight.high[1]);
    if (sight.low > 0 || __any_sync(~0u, high < TOKENS))
        hide_unseen<TOKENS>(s, sight);
    weigh<TOKENS>(r, s);
    add_values<TOKENS>(r->out, s, tokens + 2 * HALF_BYTES);
}

static __device__ void put(float (*spare)[32], const struct running *r)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < DIM / 2; i++)
        spare[i][lane] = r->out[i / 4][i % 4];
#pragma unroll
    for (int pair = 0; pair < 2; pair++) {
        spare[DIM / 2 + pair][lane] = r->max[pair];
        spare[DIM / 2 + 2 + pair][lane] = r->sum[pair];
    }
}

static __device__ void merge(struct running *r, const float (*spare)[32])
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int pair = 0; pair < 2; pair++) {
        const float other = spare[DIM / 2 + pair][lane], max = fmaxf(r->max[pair], other);
        const float keep = exp2_fast(r->max[pair] - finite(max));
        const float add = exp2_fast(other - finite(max));
        r->max[pair] = max;
        r->sum[pair] = keep * r->sum[pair] + add * spare[DIM / 2 + 2 + pair][lane];
#pragma unroll
        for (int d = 0; d < DIM / 8; d++)
#pragma unroll
            for (int i = 2 * pair; i < 2 * pair + 2; i++)
                r->out[d][i] = keep * r->out[d][i] + add * spare[4 * d + i][lane];
    }
}

/* Of an item, what a warp has to do with. */
struct task {
    struct attention_item item;
    int kv_head, group;
    int first_pair;    /* of the tile's rows * group pairs, or beyond them */
    int slice, slices; /* of the slots, among warps with the same pairs */
};

/* The thread's upper or lower pair: its query row in the item, or beyond; its head. */
static __device__ int pair_row(const struct task *t, int lower)
{
    return (t->first_pair + threadIdx.x % 32 / 4 + 8 * lower) / t->group;
}

static __device__ int pair_head(const struct task *t, int lower)
{
    return t->kv_head * t->group + (t->first_pair + threadIdx.x % 32 / 4 + 8 * lower) % t->group;
}

static __device__ void load_query(uint32_t (&query)[DIM / 16][4], const struct attention *a,
                                  const struct task *t)
{
#pragma unroll
    for (int lower = 0; lower < 2; lower++) {
        const int row = pair_row(t, lower);
        const int64_t pair = (int64_t)(t->item.first_row + row) * a->heads + pair_head(t, lower);
        const uint32_t *from = reinterpret_cast<const uint32_t *>(a->query + pair * DIM);
#pragma unroll
        for (int k = 0; k < DIM / 16; k++)
#pragma unroll
            for (int right = 0; right < 2; right++)
                query[k][2 * right + lower] =
                    row < t->item.rows ? from[8 * k + 4 * right + threadIdx.x % 4] : 0;
    }
}

/* How many slots the pair sees; pairs that are not there ask for no mask. */
static __device__ int pair_slots(const struct attention *a, const struct task *t, int lower)
{
    const int row = pair_row(t, lower);
    return row < t->item.rows ? (int)a->row_slots[t->item.first_row + row] : INT32_MAX / 2;
}

static __device__ void store(const struct gqa *g, const struct task *t, const struct running *r)
{
    const struct attention *a = &g->a;
#pragma unroll
    for (int lower = 0; lower < 2; lower++) {
        const int row = pair_row(t, lower), head = pair_head(t, lower);
        if (row >= t->item.rows)
            continue;
        const bool whole = t->item.partial < 0;
        const int64_t pair = whole ? (int64_t)(t->item.first_row + row) * a->heads + head
                                   : attention_partials_pair(a, t->item.partial, row, head);
        const float inverse = r->sum[lower] > 0 ? 1 / r->sum[lower] : 0;
#pragma unroll
        for (int d = 0; d < DIM / 8; d++) {
            const int64_t column = pair * DIM + 8 * d + threadIdx.x % 4 * 2;
            const float x = r->out[d][2 * lower] * inverse, y = r->out[d][2 * lower + 1] * inverse;
            if (whole)
                *reinterpret_cast<uint32_t *>(a->out + column) = mma_pair(x, y);
            else
                *reinterpret_cast<float2 *>(g->partials.out + column) = make_float2(x, y);
        }
        if (threadIdx.x % 4 == 0)
            (whole ? a->lse_base_e : g->partials.lse_base_e)[pair] =
                (r->max[lower] + log2f(r->sum[lower])) * (float)M_LN2;
    }
}

/* All warps come here for every item; those of slice 0 are left with the result. */
static __device__ void merge_slices(struct shared *s, struct running *r, const struct task *t)
{
    const int tiles = WARPS / t->slices;
#pragma unroll
    for (int pair = 0; pair < 2; pair++) {
        r->sum[pair] += __shfl_xor_sync(~0u, r->sum[pair], 1);
        r->sum[pair] += __shfl_xor_sync(~0u, r->sum[pair], 2);
    }
    for (int half = t->slices / 2; half > 0; half /= 2) {
        float(*spare)[32] = s->spare[t->slice % half * tiles + t->first_pair / WARP_PAIRS];
        if (t->slice >= half && t->slice < 2 * half)
            put(spare, r);
        warps_meet();
        if (t->slice < half)
            merge(r, spare);
        warps_meet();
    }
}

/* The slot of a buffer's first row. Where the item ends within a page, the page's rows are moved to
 * the end of the buffer: ahead of them are zeros, and nothing that the item may not see comes in.
 */
static __device__ int page_start(const struct attention_item *item, int first_slot)
{
    return min(first_slot, item->end_slot - KV_PAGE_TOKENS);
}

template <int TOKENS>
static __device__ void do_item(struct shared *s, const struct gqa *g, const struct task *t,
                               struct mbarrier_turn *ring)
{
    const int in_page = KV_PAGE_TOKENS / TOKENS, turns = t->slices / in_page;
    const int first_token = t->slice % in_page * TOKENS;
    const float scale_log2 = g->a.scale * (float)M_LOG2E;
    const int slots[2] = {pair_slots(&g->a, t, 0), pair_slots(&g->a, t, 1)};
    uint32_t query[DIM / 16][4];
    struct running r = {{}, {-INFINITY, -INFINITY}, {}};
    load_query(query, &g->a, t);
    int turn = t->slice / in_page;
    for (int first = t->item.first_slot; first < t->item.end_slot; first += KV_PAGE_TOKENS) {
        mbarrier_wait(&s->full[ring->stage], ring->parity);
        if (turn == 0) {
            const int start = page_start(&t->item, first) + first_token;
            const struct sight sight = {first - start, {slots[0] - start, slots[1] - start}};
            attend<TOKENS>(&r, query, shared_address(s->page[ring->stage]) + first_token * 128,
                           sight, scale_log2);
        }
        turn = turn == 0 ? turns - 1 : turn - 1;
        mbarrier_arrive_warp(&s->empty[ring->stage]);
        mbarrier_advance(ring, STAGES);
    }
    merge_slices(s, &r, t);
    if (t->slice == 0)
        store(g, t, &r);
}

static __device__ void compute(struct shared *s, const struct gqa *g)
{
    const int warp = threadIdx.x / 32, group = g->a.heads / g->a.kv_heads;
    struct mbarrier_turn ring = {};
    for (int i = g->plan.part_first[blockIdx.y]; i < g->plan.part_first[blockIdx.y + 1]; i++) {
        const struct attention_item item = g->plan.item[i];
        int tiles = 1; /* of WARP_PAIRS */
        while (tiles * WARP_PAIRS < item.rows * group)
            tiles *= 2;
        const struct task t = {item,         (int)blockIdx.x, group, warp % tiles * WARP_PAIRS,
                               warp / tiles, WARPS / tiles};
        if (tiles == 1)
            do_item<16>(s, g, &t, &ring);
        else if (tiles == 2)
            do_item<32>(s, g, &t, &ring);
        else
            do_item<64>(s, g, &t, &ring);
    }
}

static __device__ void fetch(struct shared *s, const struct gqa *g, const CUtensorMap *map)
{
    struct mbarrier_turn ring = {};
    for (int i = g->plan.part_first[blockIdx.y]; i < g->plan.part_first[blockIdx.y + 1]; i++) {
        const struct attention_item item = g->plan.item[i];
        const int32_t *table = g->a.table + item.request * g->a.table_pages;
        for (int first = item.first_slot; first < item.end_slot; first += KV_PAGE_TOKENS) {
            const int page = table[first / KV_PAGE_TOKENS];
            mbarrier_wait(&s->empty[ring.stage], ring.parity ^ 1);
            mbarrier_arrive_expect(&s->full[ring.stage], PAGE_BYTES);
            fetch_page(s->page[ring.stage], &s->full[ring.stage], map, page, blockIdx.x,
                       first - page_start(&item, first));
            mbarrier_advance(&ring, STAGES);
        }
    }
}

static __global__ void __launch_bounds__(THREADS, 1)
    attend_parts(const __grid_constant__ struct gqa g, const __grid_constant__ CUtensorMap map)
{
    extern __shared__ __align__(1024) unsigned char memory[]; /* as the swizzle needs */
    struct shared *s = reinterpret_cast<struct shared *>(memory);
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            mbarrier_init(&s->full[stage], 1);
            mbarrier_init(&s->empty[stage], WARPS);
        }
        mbarrier_init_fence();
    }
    __syncthreads();
    if (threadIdx.x / 32 < WARPS) {
        compute(s, &g);
    } else if (threadIdx.x % 32 == 0) {
        fetch(s, &g, &map);
        cudaTriggerProgrammaticLaunchCompletion(); /* merging may get ready */
    }
}

/* Pages as [page][64 columns of the row][token][column]: a box is the four runs of 64 columns that
 * are a KV head's keys and values, for the tokens of one page. */
static cudaError_t map_pages(CUtensorMap *map, const struct attention *a)
{
    const cuuint64_t row_bytes = (cuuint64_t)a->kv_heads * 2 * DIM * 2;
    const cuuint64_t size[4] = {COLUMNS, KV_PAGE_TOKENS, row_bytes / (2 * COLUMNS), INT32_MAX};
    const cuuint64_t stride_bytes[3] = {row_bytes, 2 * COLUMNS, KV_PAGE_TOKENS * row_bytes};
    const cuuint32_t box[4] = {COLUMNS, KV_PAGE_TOKENS, 4, 1}, step[4] = {1, 1, 1, 1};
    tensor_map_encode_fn encode;
    const cudaError_t e = tensor_map_encode(&encode);
    if (e != cudaSuccess)
        return e;
    const CUresult r =
        encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, const_cast<uint16_t *>(a->pages), size,
               stride_bytes, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
               CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return r == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

static cudaError_t launch(const struct attention *a, cudaStream_t stream)
{
    const struct gqa g = {*a, attention_plan_at(const_cast<void *>(a->plan), &a->bounds),
                          attention_partials_of(a, attention_plan_partials_max(&a->bounds))};
    const dim3 grid(a->kv_heads, a->bounds.parts);
    CUtensorMap map;
    cudaError_t e = map_pages(&map, a);
    if (e == cudaSuccess)
        e = cudaFuncSetAttribute(attend_parts, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 sizeof(struct shared));
    if (e != cudaSuccess)
        return e;
    attend_parts<<<grid, THREADS, sizeof(struct shared), stream>>>(g, map);
    e = cudaGetLastError();
    return e == cudaSuccess ? attention_merge(a, stream) : e;
}

cudaError_t gqa_attention(const struct attention *a, cudaStream_t stream)
{
    if (a->rows < 0 || a->kv_heads < 1 || a->heads < 1 || a->heads % a->kv_heads != 0 ||
        a->key_dim < 1 || a->value_dim != a->key_dim)
        return cudaErrorInvalidValue;
    if (a->rows == 0)
        return cudaSuccess;
    const int group = a->heads / a->kv_heads;
    const uintptr_t bits = (uintptr_t)a->query | (uintptr_t)a->pages | (uintptr_t)a->out;
    if (a->key_dim == DIM && bits % 16 == 0 && a->bounds.tile_rows * group <= TILE_PAIRS)
        return launch(a, stream);
    return plain_attention(a, 2 * a->key_dim, a->key_dim, stream);
}

cudaError_t gqa_attention_bounds(int heads, int kv_heads, int reserved_sms, int rows_max,
                                 struct attention_bounds *bounds)
{
    int device, sms;
    if (kv_heads < 1 || heads < 1 || heads % kv_heads != 0 || reserved_sms < 0 || rows_max < 0)
        return cudaErrorInvalidValue;
    cudaError_t e = cudaGetDevice(&device);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    if (e != cudaSuccess)
        return e;
    const int tile_rows = TILE_PAIRS / (heads / kv_heads), parts = (sms - reserved_sms) / kv_heads;
    *bounds = {rows_max, tile_rows > 1 ? tile_rows : 1, parts > 1 ? parts : 1};
    return cudaSuccess;
}
