/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/boxes.h"
#include "kernels/peers.cuh"

#include <stdlib.h>

enum {
    THREADS = 512,
    WARPS = THREADS / 32,
    NEAR_BOXES = 64,         /* lists up to this long are kept in shared memory */
    WARPS_BUSY = 32 * WARPS, /* short lists are cut finer so that so many warps have a part */
    LOADS_MAX = 8
};

/* n / d for n < 2^31 without a division: (n * mul) >> shift with mul = ceil(2^shift / d) and
 * shift = 31 + ceil(log2 d) is exact, since n * (mul * d - 2^shift) < 2^shift. */
struct divisor {
    uint32_t d, mul, shift;
};

/* Numbered from 0, a box's words run through its rows, then through its blocks. */
struct __align__(16) boxes_placed
{
    int64_t from, from_block, from_row;
    int64_t to, to_block, to_row;
    int64_t first_unit; /* a unit is what a warp copies at once: 32 * loads words */
    uint32_t words;
    struct divisor row_words, rows;
    uint16_t target, word_bytes;
};

static struct divisor divisor_of(int64_t d)
{
    uint32_t log2 = 0;
    while ((int64_t)1 << log2 < d)
        log2++;
    const uint32_t shift = 31 + log2;
    return {(uint32_t)d, (uint32_t)((((uint64_t)1 << shift) + (uint64_t)d - 1) / (uint64_t)d),
            shift};
}

static __device__ uint32_t divide(uint32_t n, struct divisor by)
{
    return (uint32_t)(((uint64_t)n * by.mul) >> by.shift);
}

static int word_bytes_of(const struct boxes_box *b)
{
    int64_t bits = b->from | b->to | b->bytes;
    if (b->rows > 1)
        bits |= b->from_row | b->to_row;
    if (b->blocks > 1)
        bits |= b->from_block | b->to_block;
    return bits % 16 == 0 ? 16 : bits % 2 == 0 ? 2 : 1;
}

/* How many placed boxes a box becomes, written to `out` unless that is NULL: halved along its
 * outermost extent until its words can be numbered in 31 bits. */
static int64_t place(struct boxes_box b, struct boxes_placed *out)
{
    if (b.blocks <= 0 || b.rows <= 0 || b.bytes <= 0)
        return 0;
    const int word_bytes = word_bytes_of(&b);
    const int64_t row_words = b.bytes / word_bytes, words = b.blocks * b.rows * row_words;
    if (words < INT32_MAX - 32 * LOADS_MAX) {
        if (out)
            *out = {b.from,
                    b.from_block,
                    b.from_row,
                    b.to,
                    b.to_block,
                    b.to_row,
                    0,
                    (uint32_t)words,
                    divisor_of(row_words),
                    divisor_of(b.rows),
                    (uint16_t)b.target,
                    (uint16_t)word_bytes};
        return 1;
    }
    struct boxes_box rest = b;
    int64_t *extent = b.blocks > 1 ? &b.blocks : b.rows > 1 ? &b.rows : &b.bytes;
    int64_t *rest_extent = b.blocks > 1 ? &rest.blocks : b.rows > 1 ? &rest.rows : &rest.bytes;
    const int64_t from = b.blocks > 1 ? b.from_block : b.rows > 1 ? b.from_row : 1;
    const int64_t to = b.blocks > 1 ? b.to_block : b.rows > 1 ? b.to_row : 1;
    const int64_t half = extent == &b.bytes ? b.bytes / 32 * 16 : *extent / 2;
    *extent = half;
    *rest_extent -= half;
    rest.from += half * from;
    rest.to += half * to;
    const int64_t n = place(b, out);
    return n + place(rest, out ? out + n : nullptr);
}

static int64_t place_all(const struct boxes_box *box, int n, struct boxes_placed *out)
{
    int64_t placed = 0;
    for (int i = 0; i < n; i++)
        placed += place(box[i], out ? out + placed : nullptr);
    return placed;
}

static int64_t number_units(struct boxes_placed *placed, int64_t n, int loads)
{
    int64_t units = 0;
    for (int64_t i = 0; i < n; i++) {
        placed[i].first_unit = units;
        units += (placed[i].words + 32 * loads - 1) / (32 * loads);
    }
    return units;
}

cudaError_t boxes_list_make(struct boxes_list *list, const struct boxes_box *box, int n,
                            cudaStream_t stream)
{
    struct boxes_list made = {nullptr, place_all(box, n, nullptr), 0, 1};
    const size_t bytes = (size_t)made.n * sizeof(struct boxes_placed);
    if (made.n == 0) {
        *list = made;
        return cudaSuccess;
    }
    struct boxes_placed *host = static_cast<struct boxes_placed *>(malloc(bytes));
    if (!host)
        return cudaErrorMemoryAllocation;
    place_all(box, n, host);
    made.units = number_units(host, made.n, made.loads);
    while (made.units > WARPS_BUSY && made.loads < LOADS_MAX) {
        made.loads *= 2;
        made.units = number_units(host, made.n, made.loads);
    }
    cudaError_t e = cudaMalloc(&made.placed, bytes);
    if (e == cudaSuccess)
        e = cudaMemcpyAsync(made.placed, host, bytes, cudaMemcpyHostToDevice, stream);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(stream);
    free(host);
    if (e == cudaSuccess)
        *list = made;
    else
        cudaFree(made.placed);
    return e;
}

void boxes_list_free(struct boxes_list *list)
{
    cudaFree(list->placed);
    *list = {};
}

/* The lane's words of one unit: `word`, then every 32nd. */
template <typename Word, int Loads>
static __device__ void copy_words(const struct boxes_placed &b, uint32_t word, const char *from,
                                  char *to)
{
    Word held[Loads];
    int64_t at[Loads];
#pragma unroll
    for (int k = 0; k < Loads; k++) {
        const uint32_t w = word + 32 * k;
        if (w < b.words) {
            const uint32_t line = divide(w, b.row_words), block = divide(line, b.rows);
            const int64_t row = line - block * b.rows.d;
            const int64_t byte = (int64_t)(w - line * b.row_words.d) * (int64_t)sizeof(Word);
            const char *source = from + b.from + block * b.from_block + row * b.from_row + byte;
            held[k] = *reinterpret_cast<const Word *>(source);
            at[k] = b.to + block * b.to_block + row * b.to_row + byte;
        }
    }
#pragma unroll
    for (int k = 0; k < Loads; k++)
        if (word + 32 * k < b.words)
            *reinterpret_cast<Word *>(to + at[k]) = held[k];
}

template <int Loads>
static __device__ void copy_unit(const struct boxes_placed &b, uint32_t word,
                                 const struct boxes_copy &c)
{
    const char *from = static_cast<const char *>(c.from);
    char *to = static_cast<char *>(c.to[b.target]);
    if (b.word_bytes == 16)
        copy_words<uint4, Loads>(b, word, from, to);
    else if (b.word_bytes == 2)
        copy_words<uint16_t, Loads>(b, word, from, to);
    else
        copy_words<uint8_t, Loads>(b, word, from, to);
}

/* The last of the n boxes that begins at or before this unit. */
static __device__ int64_t box_of(const struct boxes_placed *box, int64_t n, int64_t unit)
{
    int64_t low = 0, high = n;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (box[middle].first_unit <= unit)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* A stretch of units a warp: it looks for its first box once and goes on from there. */
template <int Loads>
static __device__ void copy_share(const struct boxes_copy &c, const struct boxes_placed *box)
{
    const int64_t n = c.list.n, units = c.list.units, warps = (int64_t)gridDim.x * WARPS;
    const int64_t warp = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    const int64_t end = units * (warp + 1) / warps;
    int64_t unit = units * warp / warps;
    if (unit == end)
        return;
    int64_t i = box_of(box, n, unit);
    struct boxes_placed b = box[i];
    for (; unit < end; unit++) {
        while (i + 1 < n && box[i + 1].first_unit <= unit)
            b = box[++i];
        const int64_t word = (unit - b.first_unit) * 32 * Loads + threadIdx.x % 32;
        copy_unit<Loads>(b, (uint32_t)word, c);
    }
}

/* Searching in global memory would cost a short list more than the copy. */
static __device__ const struct boxes_placed *bring_near(const struct boxes_list &list, uint4 *near)
{
    if (list.n > NEAR_BOXES)
        return list.placed;
    const int words = (int)(list.n * (int64_t)(sizeof(struct boxes_placed) / sizeof(uint4)));
    for (int i = (int)threadIdx.x; i < words; i += THREADS)
        near[i] = reinterpret_cast<const uint4 *>(list.placed)[i];
    __syncthreads();
    return reinterpret_cast<const struct boxes_placed *>(near);
}

/* Meets nobody when there are no ranks. */
template <int Loads>
static __global__ void __launch_bounds__(THREADS)
    copy_and_meet(const __grid_constant__ struct boxes_copy c,
                  const __grid_constant__ struct peers peers)
{
    __shared__ uint4 near[NEAR_BOXES * (sizeof(struct boxes_placed) / sizeof(uint4))];
    const uint64_t meeting = peers.ranks > 0 ? peers_met(peers) + 1 : 0;
    copy_share<Loads>(c, bring_near(c.list, near));
    if (peers.ranks > 0) {
        peers_raise(peers, meeting);
        peers_await(peers, meeting);
        peers_leave(peers, meeting);
    }
}

static cudaError_t launch(const struct boxes_copy *c, const struct peers *peers, int blocks,
                          cudaStream_t stream)
{
    switch (c->list.loads) {
    case 2: copy_and_meet<2><<<blocks, THREADS, 0, stream>>>(*c, *peers); break;
    case 4: copy_and_meet<4><<<blocks, THREADS, 0, stream>>>(*c, *peers); break;
    case 8: copy_and_meet<8><<<blocks, THREADS, 0, stream>>>(*c, *peers); break;
    default: copy_and_meet<1><<<blocks, THREADS, 0, stream>>>(*c, *peers); break;
    }
    return cudaGetLastError();
}

cudaError_t boxes_copy(const struct boxes_copy *p, int blocks, cudaStream_t stream)
{
    const struct peers nobody = {};
    const int64_t useful = (p->list.units + WARPS - 1) / WARPS;
    if (blocks < 1)
        return cudaErrorInvalidValue;
    if (useful == 0)
        return cudaSuccess;
    return launch(p, &nobody, (int)(useful < blocks ? useful : blocks), stream);
}

cudaError_t boxes_push(const struct boxes_copy *p, const struct peers *peers, cudaStream_t stream)
{
    if (peers->ranks < 1 || peers->ranks > PEERS_MAX || peers->blocks < 1 ||
        peers->blocks > PEERS_BLOCKS_MAX)
        return cudaErrorInvalidValue;
    return launch(p, peers, peers->blocks, stream);
}
