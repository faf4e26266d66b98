/* SPDX-License-Identifier: Apache-2.0
 *
 * MLA attention, absorbed, on tensor cores. A block takes tiles of 64 (row, head) pairs through
 * 64 KV rows at a time; its four warpgroups hand each other what they made through shared memory:
 *
 *     load     queries, KV rows      one thread, tensor copies in boxes of 64 columns
 *     score    S = Q K^T, P = exp2   starts on a box as it arrives; keeps maximum and sum
 *     value    O += P V              two warpgroups, half of the columns of O each
 *
 * V is the first 512 columns of K. Their turns are kept by barriers alone, so that scores of the
 * next rows overlap with values of these, and loads with both.
 */
#include "kernels/attention_merge.cuh"
#include "kernels/kv_pages.h"
#include "kernels/tensor_map.cuh"
#include "kernels/wgmma.cuh"

#include <cuda_bf16.h>

enum {
    KEY_DIM = 576,
    VALUE_DIM = 512,
    PAIRS = 64, /* (row, head) pairs of a tile */
    TOKENS = ATTENTION_BLOCK_TOKENS,
    BOX = WGMMA_BOX_COLUMNS,
    BOX_BYTES = 64 * BOX * 2,
    KEY_BOXES = KEY_DIM / BOX,
    VALUE_BOXES = VALUE_DIM / BOX,
    HALF_BOXES = VALUE_BOXES / 2,
    /* A warpgroup's half of O in products as wide as the 128 registers that a thread starts with
     * let the compiler have them. */
    PARTS = 2,
    PART_BOXES = HALF_BOXES / PARTS,
    PART_SUMS = PART_BOXES * BOX / 2, /* per thread */
    STAGES = 2,
    WARPGROUP = 128,
    THREADS = 4 * WARPGROUP,
    /* Registers per thread once the warpgroups part; 4 * 128 are there. */
    LOAD_REGISTERS = 32,
    SCORE_REGISTERS = 112,
    VALUE_REGISTERS = 184
};
static_assert((int)TOKENS == (int)KV_PAGE_TOKENS, "a block of slots is a page");
static_assert(LOAD_REGISTERS + SCORE_REGISTERS + 2 * VALUE_REGISTERS <= 512, "registers of an SM");

struct mla {
    CUtensorMap queries, pages; /* [row, head][KEY_DIM], [page, token][KEY_DIM] */
    struct attention a;
    struct attention_plan plan;
    struct attention_partials partials;
};

/* Who frees a stage of KV: each value warpgroup its half of the value, the score warpgroup what is
 * key only. */
enum { FREE_LOW, FREE_HIGH, FREE_KEY, FREE_COUNT };

struct alignas(1024) tiles {
    char query[KEY_BOXES][BOX_BYTES];
    char kv[STAGES][KEY_BOXES][BOX_BYTES];
    char weights[BOX_BYTES];
    float factor[PAIRS]; /* for what is summed so far */
    uint64_t query_full, query_free;
    uint64_t kv_full[STAGES][KEY_BOXES], kv_free[STAGES][FREE_COUNT];
    uint64_t weights_full, weights_free;
};

enum { SHARED_BYTES = sizeof(struct tiles) + 1024 /* to align it */ };

/* The item's (row, head) pairs that this block has, and where their results go. */
struct pairs {
    int64_t first; /* in the final or the partial result */
    int n;
};

static __device__ struct pairs pairs_of(const struct mla *m, const struct attention_item *item)
{
    const struct attention *a = &m->a;
    const int skip = blockIdx.x * PAIRS;
    const int64_t first = item->partial < 0 ? (int64_t)item->first_row * a->heads
                                            : attention_partials_pair(a, item->partial, 0, 0);
    return {first + skip, min(item->rows * a->heads - skip, (int)PAIRS)};
}

static __device__ int blocks_of(const struct attention_item *item)
{
    return (item->end_slot - item->first_slot + TOKENS - 1) / TOKENS;
}

static __device__ void load_query(const struct mla *m, struct tiles *t,
                                  const struct attention_item *item)
{
    const int first = item->first_row * m->a.heads + blockIdx.x * PAIRS;
    mbarrier_arrive_expect(&t->query_full, KEY_BOXES * BOX_BYTES);
    for (int box = 0; box < KEY_BOXES; box++)
        tensor_copy(t->query[box], &m->queries, box * BOX, first, &t->query_full);
}

static __device__ void load_page(const struct mla *m, struct tiles *t,
                                 const struct mbarrier_turn *turn, int page)
{
    for (int box = 0; box < KEY_BOXES; box++) {
        if (box % HALF_BOXES == 0)
            mbarrier_wait(&t->kv_free[turn->stage][box / HALF_BOXES], turn->parity ^ 1);
        uint64_t *full = &t->kv_full[turn->stage][box];
        mbarrier_arrive_expect(full, BOX_BYTES);
        tensor_copy(t->kv[turn->stage][box], &m->pages, box * BOX, page * TOKENS, full);
    }
}

static __device__ void load(const struct mla *m, struct tiles *t)
{
    struct mbarrier_turn kv = {}, query = {};
    for (int i = m->plan.part_first[blockIdx.y]; i < m->plan.part_first[blockIdx.y + 1]; i++) {
        const struct attention_item item = m->plan.item[i];
        const int32_t *table =
            m->a.table + item.request * m->a.table_pages + item.first_slot / TOKENS;
        const int blocks = blocks_of(&item);
        int page = blocks > 0 ? table[0] : 0;
        for (int block = 0; block < blocks; block++) {
            const int next = block + 1 < blocks ? table[block + 1] : 0;
            load_page(m, t, &kv, page);
            mbarrier_advance(&kv, STAGES);
            if (block == 0) { /* the last item's queries may still be in use */
                mbarrier_wait(&t->query_free, query.parity ^ 1);
                load_query(m, t, &item);
                mbarrier_advance(&query, 1);
            }
            page = next;
        }
    }
}

/* What a thread of the score warpgroup keeps of its two rows of S. */
struct softmax {
    float max[2], sum[2];
    int seen[2]; /* slots, from the item's first */
};

/* The thread's first row of a sum of 64 rows; the other one is 8 further. */
static __device__ int sum_row(void)
{
    return threadIdx.x % WARPGROUP / 32 * 16 + threadIdx.x % 32 / 4;
}

static __device__ struct softmax softmax_start(const struct mla *m,
                                               const struct attention_item *item)
{
    struct softmax s;
    for (int k = 0; k < 2; k++) {
        const int row = (blockIdx.x * PAIRS + sum_row() + 8 * k) / m->a.heads;
        const int64_t slots = m->a.row_slots[item->first_row + min(row, item->rows - 1)];
        s.seen[k] = (int)min(slots, (int64_t)item->end_slot) - item->first_slot;
        s.max[k] = -INFINITY;
        s.sum[k] = 0;
    }
    return s;
}

/* S of one block of KV rows. */
static __device__ void score(struct tiles *t, const struct mbarrier_turn *turn,
                             float (&s)[TOKENS / 2])
{
#pragma unroll
    for (int box = 0; box < KEY_BOXES; box++) {
        mbarrier_wait(&t->kv_full[turn->stage][box], turn->parity);
        wgmma_start(s);
#pragma unroll
        for (int k = 0; k < BOX; k += WGMMA_K)
            wgmma_64x64(s, wgmma_rows(t->query[box], k), wgmma_rows(t->kv[turn->stage][box], k),
                        box + k > 0);
    }
    wgmma_finish(s);
}

static __device__ void mask(float (&s)[TOKENS / 2], const int (&seen)[2])
{
    if (!__any_sync(~0u, min(seen[0], seen[1]) < TOKENS))
        return;
    const int column = threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < TOKENS / 2; i++)
        if (i / 4 * 8 + column + i % 2 >= seen[i / 2 % 2])
            s[i] = -INFINITY;
}

/* Four threads hold a row. */
static __device__ float row_max(float x)
{
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
    return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

static __device__ float row_sum(float x)
{
    x += __shfl_xor_sync(~0u, x, 1);
    return x + __shfl_xor_sync(~0u, x, 2);
}

/* 0 for -infinity. */
static __device__ float exp2_approx(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Scores become weights 2^(scale S - max); returns in `factor` what earlier sums shrink by. */
static __device__ void softmax_step(struct softmax *m, float (&s)[TOKENS / 2], float scale_log2,
                                    float (&factor)[2])
{
#pragma unroll
    for (int k = 0; k < 2; k++) {
        float max = -INFINITY, sum = 0;
#pragma unroll
        for (int i = 2 * k; i < TOKENS / 2; i += 4)
            max = fmaxf(max, fmaxf(s[i], s[i + 1]));
        max = fmaxf(m->max[k], row_max(max) * scale_log2);
        const float zero = max == -INFINITY ? 0 : max; /* nothing seen so far: weights are 0 */
        factor[k] = exp2_approx(m->max[k] - zero);
#pragma unroll
        for (int i = 0; i < TOKENS / 2; i++)
            if (i / 2 % 2 == k) {
                s[i] = exp2_approx(s[i] * scale_log2 - zero);
                sum += s[i];
            }
        m->max[k] = max;
        m->sum[k] = m->sum[k] * factor[k] + sum;
    }
}

static __device__ void store_weights(struct tiles *t, const float (&p)[TOKENS / 2])
{
#pragma unroll
    for (int i = 0; i < TOKENS / 2; i += 2) {
        const int row = sum_row() + i / 2 % 2 * 8, unit = i / 4 ^ row % 8;
        *reinterpret_cast<__nv_bfloat162 *>(t->weights + row * 128 + unit * 16 +
                                            threadIdx.x % 4 * 4) =
            __floats2bfloat162_rn(p[i], p[i + 1]);
    }
}

static __device__ void store_factors(struct tiles *t, const float (&factor)[2])
{
    if (threadIdx.x % 4 == 0)
        for (int k = 0; k < 2; k++)
            t->factor[sum_row() + 8 * k] = factor[k];
}

/* Value rows from this one on were seen by nobody and may hold NaN, which a weight of 0 keeps. */
static __device__ void clear_unseen(struct tiles *t, int stage, int first_token)
{
    const int units = (TOKENS - first_token) * 128 / 16;
    for (int i = threadIdx.x % WARPGROUP; i < VALUE_BOXES * units; i += WARPGROUP) {
        char *box = t->kv[stage][i / units];
        *reinterpret_cast<uint4 *>(box + first_token * 128 + i % units * 16) =
            make_uint4(0, 0, 0, 0);
    }
}

/* After the item's last weights: what the value warpgroups multiply their sums by. */
static __device__ void softmax_finish(const struct mla *m, struct tiles *t, struct softmax *s,
                                      const struct pairs *pairs, bool is_partial)
{
    float *lse = is_partial ? m->partials.lse_base_e : m->a.lse_base_e;
    float factor[2];
    for (int k = 0; k < 2; k++) {
        const float sum = row_sum(s->sum[k]);
        const int pair = sum_row() + 8 * k;
        factor[k] = sum > 0 ? 1 / sum : 0;
        if (threadIdx.x % 4 == 0 && pair < pairs->n)
            lse[pairs->first + pair] = sum > 0 ? s->max[k] * (float)M_LN2 + logf(sum) : -INFINITY;
    }
    store_factors(t, factor);
}

static __device__ void score_item(const struct mla *m, struct tiles *t,
                                  const struct attention_item *item, struct mbarrier_turn *kv,
                                  struct mbarrier_turn *query, struct mbarrier_turn *weights)
{
    const float scale_log2 = m->a.scale * (float)M_LOG2E;
    const int blocks = blocks_of(item), slots = item->end_slot - item->first_slot;
    const struct pairs pairs = pairs_of(m, item);
    struct softmax state = softmax_start(m, item);
    if (blocks > 0) {
        mbarrier_wait(&t->query_full, query->parity);
        mbarrier_advance(query, 1);
    }
    for (int block = 0; block < blocks; block++) {
        float s[TOKENS / 2], factor[2];
        score(t, kv, s);
        mbarrier_arrive_warp(&t->kv_free[kv->stage][FREE_KEY]);
        if (block == blocks - 1)
            mbarrier_arrive_warp(&t->query_free);
        mask(s, state.seen);
        softmax_step(&state, s, scale_log2, factor);
        if (slots - block * TOKENS < TOKENS)
            clear_unseen(t, kv->stage, slots - block * TOKENS);
        mbarrier_wait(&t->weights_free, weights->parity ^ 1);
        store_weights(t, s);
        store_factors(t, factor);
        fence_proxy_async();
        mbarrier_arrive(&t->weights_full);
        mbarrier_advance(weights, 1);
        mbarrier_advance(kv, STAGES);
        for (int k = 0; k < 2; k++)
            state.seen[k] -= TOKENS;
    }
    mbarrier_wait(&t->weights_free, weights->parity ^ 1);
    softmax_finish(m, t, &state, &pairs, item->partial >= 0);
    mbarrier_arrive(&t->weights_full);
    mbarrier_advance(weights, 1);
}

static __device__ void scale_rows(struct tiles *t, float (&o)[PARTS][PART_SUMS])
{
    const float factor[2] = {t->factor[sum_row()], t->factor[sum_row() + 8]};
    if (__all_sync(~0u, factor[0] == 1 && factor[1] == 1))
        return;
#pragma unroll
    for (int part = 0; part < PARTS; part++)
#pragma unroll
        for (int i = 0; i < PART_SUMS; i++)
            o[part][i] *= factor[i / 2 % 2];
}

static __device__ void store_pair(const struct mla *m, int64_t at, bool is_partial, float x,
                                  float y)
{
    if (is_partial)
        *reinterpret_cast<float2 *>(m->partials.out + at) = make_float2(x, y);
    else
        *reinterpret_cast<__nv_bfloat162 *>(m->a.out + at) = __floats2bfloat162_rn(x, y);
}

static __device__ void store_values(const struct mla *m, const float (&o)[PARTS][PART_SUMS],
                                    const struct pairs *pairs, bool is_partial, int half)
{
    const int column = half * HALF_BOXES * BOX + threadIdx.x % 4 * 2;
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const int pair = sum_row() + 8 * k;
        if (pair >= pairs->n)
            continue;
        const int64_t at = (pairs->first + pair) * VALUE_DIM + column;
#pragma unroll
        for (int part = 0; part < PARTS; part++)
#pragma unroll
            for (int i = 2 * k; i < PART_SUMS; i += 4)
                store_pair(m, at + part * PART_BOXES * BOX + i / 4 * 8, is_partial, o[part][i],
                           o[part][i + 1]);
    }
}

/* The warpgroup's half of O += P V. */
static __device__ void add_values(struct tiles *t, int stage, int half,
                                  float (&o)[PARTS][PART_SUMS])
{
    const char(*values)[BOX_BYTES] = &t->kv[stage][half * HALF_BOXES];
    wgmma_start(o);
#pragma unroll
    for (int k = 0; k < TOKENS; k += WGMMA_K)
#pragma unroll
        for (int part = 0; part < PARTS; part++)
            wgmma_64x128(o[part], wgmma_rows(t->weights, k),
                         wgmma_columns(values[part * PART_BOXES], k, BOX_BYTES), true);
    wgmma_finish(o);
}

static __device__ void value_item(const struct mla *m, struct tiles *t,
                                  const struct attention_item *item, int half,
                                  struct mbarrier_turn *kv, struct mbarrier_turn *weights)
{
    float o[PARTS][PART_SUMS] = {};
    for (int block = blocks_of(item); block > 0; block--) {
        mbarrier_wait(&t->weights_full, weights->parity);
        scale_rows(t, o);
        add_values(t, kv->stage, half, o);
        mbarrier_arrive_warp(&t->kv_free[kv->stage][half]);
        mbarrier_arrive(&t->weights_free);
        mbarrier_advance(weights, 1);
        mbarrier_advance(kv, STAGES);
    }
    mbarrier_wait(&t->weights_full, weights->parity);
    scale_rows(t, o);
    mbarrier_arrive(&t->weights_free);
    mbarrier_advance(weights, 1);
    const struct pairs pairs = pairs_of(m, item);
    store_values(m, o, &pairs, item->partial >= 0, half);
}

static __device__ void init_barriers(struct tiles *t)
{
    const int warps = WARPGROUP / 32;
    mbarrier_init(&t->query_full, 1);
    mbarrier_init(&t->query_free, warps);
    for (int stage = 0; stage < STAGES; stage++) {
        for (int box = 0; box < KEY_BOXES; box++)
            mbarrier_init(&t->kv_full[stage][box], 1);
        for (int i = 0; i < FREE_COUNT; i++)
            mbarrier_init(&t->kv_free[stage][i], warps);
    }
    mbarrier_init(&t->weights_full, WARPGROUP);
    mbarrier_init(&t->weights_free, 2 * WARPGROUP);
    mbarrier_init_fence();
}

/* Grid: tiles of heads, then parts: blocks that read the same KV rows run side by side. */
static __global__ void __launch_bounds__(THREADS, 1) attend(const __grid_constant__ struct mla m)
{
    extern __shared__ char shared[];
    struct tiles *t =
        reinterpret_cast<struct tiles *>(shared + (1024 - shared_address(shared) % 1024) % 1024);
    if (threadIdx.x == 0)
        init_barriers(t);
    __syncthreads();

    const int role = threadIdx.x / WARPGROUP;
    const int first = m.plan.part_first[blockIdx.y], end = m.plan.part_first[blockIdx.y + 1];
    struct mbarrier_turn kv = {}, query = {}, weights = {};
    if (role == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"((int)LOAD_REGISTERS));
        if (threadIdx.x == 0) {
            load(&m, t);
            cudaTriggerProgrammaticLaunchCompletion(); /* merging may get ready */
        }
    } else if (role == 1) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"((int)SCORE_REGISTERS));
        for (int i = first; i < end; i++) {
            const struct attention_item item = m.plan.item[i];
            score_item(&m, t, &item, &kv, &query, &weights);
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"((int)VALUE_REGISTERS));
        for (int i = first; i < end; i++) {
            const struct attention_item item = m.plan.item[i];
            value_item(&m, t, &item, role - 2, &kv, &weights);
        }
    }
}

static int head_tiles(int heads)
{
    return (heads + PAIRS - 1) / PAIRS;
}

static cudaError_t launch(const struct attention *a, cudaStream_t stream)
{
    struct mla m = {};
    m.a = *a;
    m.plan = attention_plan_at(const_cast<void *>(a->plan), &a->bounds);
    m.partials = attention_partials_of(a, attention_plan_partials_max(&a->bounds));
    cudaError_t e = tensor_map_rows(&m.queries, a->query, a->rows * a->heads, KEY_DIM);
    /* How many pages there are is not known here, only that the table names none beyond. */
    if (e == cudaSuccess)
        e = tensor_map_rows(&m.pages, a->pages, (int64_t)1 << 31, KEY_DIM);
    if (e == cudaSuccess)
        e = cudaFuncSetAttribute(attend, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (e != cudaSuccess)
        return e;
    const dim3 grid(head_tiles(a->heads), a->bounds.parts);
    attend<<<grid, THREADS, SHARED_BYTES, stream>>>(m);
    e = cudaGetLastError();
    return e == cudaSuccess ? attention_merge(a, stream) : e;
}

cudaError_t mla_attention(const struct attention *a, cudaStream_t stream)
{
    const uintptr_t addresses = (uintptr_t)a->query | (uintptr_t)a->pages | (uintptr_t)a->out;
    if (a->rows < 0 || a->heads < 1 || a->kv_heads != 1 || a->value_dim > a->key_dim)
        return cudaErrorInvalidValue;
    if (a->key_dim != KEY_DIM || a->value_dim != VALUE_DIM || addresses % 16 != 0)
        return plain_attention(a, a->key_dim, 0, stream);
    return a->rows > 0 ? launch(a, stream) : cudaSuccess;
}

cudaError_t mla_attention_bounds(int heads, int reserved_sms, int rows_max,
                                 struct attention_bounds *bounds)
{
    int device, sms;
    cudaError_t e = cudaGetDevice(&device);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    if (e != cudaSuccess)
        return e;
    const int parts = (sms - reserved_sms) / head_tiles(heads);
    *bounds = {rows_max, heads < PAIRS ? PAIRS / heads : 1, parts > 1 ? parts : 1};
    return cudaSuccess;
}
