/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/all_reduce.h"
#include "kernels/peers.cuh"

#include <cuda_bf16.h>

enum {
    THREADS = 512,
    LOADS = 4, /* of a thread in flight */
    WORD_BYTES_MAX = 16,
    ONE_SHOT_BYTES = 1 << 20, /* that a rank sends at most */
    HALF_BYTES_MIN = 1 << 20,
};

/* The block's part of `words`, the same on every rank: what its counterparts write and read is what
 * it writes and reads, so meeting them is enough. Warps of different blocks take turns, so that
 * little work is spread over all SMs. */
template <typename Word, typename Load, typename Store>
static __device__ void stream_share(int64_t words, Load load, Store store)
{
    const int64_t threads = (int64_t)gridDim.x * THREADS;
    const int64_t warp = threadIdx.x / 32 * (int64_t)gridDim.x + blockIdx.x;
    for (int64_t first = warp * 32 + threadIdx.x % 32; first < words; first += threads * LOADS) {
        Word held[LOADS];
#pragma unroll
        for (int k = 0; k < LOADS; k++)
            if (first + k * threads < words)
                held[k] = load(first + k * threads);
#pragma unroll
        for (int k = 0; k < LOADS; k++)
            if (first + k * threads < words)
                store(first + k * threads, held[k]);
    }
}

/* Two BF16 numbers in each 32 bits. */
template <typename Word> struct sums {
    float low[sizeof(Word) / 4], high[sizeof(Word) / 4];

    __device__ void add(const Word &word)
    {
        const unsigned *pair = reinterpret_cast<const unsigned *>(&word);
#pragma unroll
        for (int i = 0; i < (int)sizeof(Word) / 4; i++) {
            low[i] += __uint_as_float(pair[i] << 16);
            high[i] += __uint_as_float(pair[i] & 0xffff0000u);
        }
    }
    __device__ Word round() const
    {
        Word word;
        __nv_bfloat162 *pair = reinterpret_cast<__nv_bfloat162 *>(&word);
#pragma unroll
        for (int i = 0; i < (int)sizeof(Word) / 4; i++)
            pair[i] = __floats2bfloat162_rn(low[i], high[i]);
        return word;
    }
};

/* A rank's part of the sum, own from x, others' from where they left it in the scratch memory. */
template <typename Word>
static __device__ Word sum(const struct peers &p, const Word *own, const Word *scratch,
                           int64_t slot_words, int64_t i)
{
    struct sums<Word> s = {
    };
    for (int r = 0; r < p.ranks; r++)
        s.add(r == p.rank ? own[i] : scratch[r * slot_words + i]);
    return s.round();
}

/* A rank may be one kernel ahead of another that still reads what it was sent; not two ahead, since
 * both meet in the one between. Hence two halves, in turns. */
template <typename Word>
static __device__ Word *scratch_half(const struct all_reduce &p, int r, uint64_t meeting)
{
    return reinterpret_cast<Word *>(p.scratch[r] + (meeting & 1) * p.half_bytes);
}

template <typename Word>
static __global__ void __launch_bounds__(THREADS)
    one_shot(const __grid_constant__ struct all_reduce p)
{
    const int me = p.peers.rank;
    const uint64_t meeting = peers_met(p.peers) + 1;
    const int64_t words = 2 * p.n / (int64_t)sizeof(Word);
    Word *x = reinterpret_cast<Word *>(p.x[me]);
    stream_share<Word>(
        words, [&](int64_t i) { return x[i]; },
        [&](int64_t i, const Word &word) {
            for (int r = 0; r < p.peers.ranks; r++)
                if (r != me)
                    scratch_half<Word>(p, r, meeting)[me * words + i] = word;
        });
    peers_raise(p.peers, meeting);
    peers_await(p.peers, meeting);
    const Word *scratch = scratch_half<Word>(p, me, meeting);
    stream_share<Word>(
        words, [&](int64_t i) { return sum(p.peers, x, scratch, words, i); },
        [&](int64_t i, const Word &word) { x[i] = word; });
    peers_leave(p.peers, meeting);
}

template <typename Word>
static __global__ void __launch_bounds__(THREADS)
    two_shots(const __grid_constant__ struct all_reduce p)
{
    const int me = p.peers.rank, ranks = p.peers.ranks;
    const uint64_t meeting = peers_met(p.peers) + 1;
    const int64_t words = 2 * p.n / (int64_t)sizeof(Word), slice = (words + ranks - 1) / ranks;
    const Word *x = reinterpret_cast<const Word *>(p.x[me]);
    for (int k = 1; k < ranks; k++) {
        const int r = (me + k) % ranks; /* not all to the same rank at once */
        Word *there = scratch_half<Word>(p, r, meeting) + me * slice;
        stream_share<Word>(
            min(slice, words - r * slice), [&](int64_t i) { return x[r * slice + i]; },
            [&](int64_t i, const Word &word) { there[i] = word; });
    }
    peers_raise(p.peers, meeting);
    peers_await(p.peers, meeting);
    const Word *scratch = scratch_half<Word>(p, me, meeting);
    stream_share<Word>(
        min(slice, words - me * slice),
        [&](int64_t i) { return sum(p.peers, x + me * slice, scratch, slice, i); },
        [&](int64_t i, const Word &word) {
            for (int r = 0; r < ranks; r++)
                reinterpret_cast<Word *>(p.x[r])[me * slice + i] = word;
        });
    peers_raise(p.peers, meeting + 1);
    peers_await(p.peers, meeting + 1);
    peers_leave(p.peers, meeting + 1);
}

static bool is_right(const struct all_reduce *p)
{
    const struct peers *peers = &p->peers;
    return peers->ranks >= 1 && peers->ranks <= PEERS_MAX && peers->blocks >= 1 &&
           peers->blocks <= PEERS_BLOCKS_MAX && p->n >= 0 && p->n % 2 == 0 &&
           (uintptr_t)p->x[peers->rank] % 4 == 0 && p->half_bytes >= HALF_BYTES_MIN &&
           p->half_bytes % WORD_BYTES_MAX == 0;
}

template <typename Word>
static void launch(const struct all_reduce &piece, bool in_one_shot, cudaStream_t stream)
{
    if (in_one_shot)
        one_shot<Word><<<piece.peers.blocks, THREADS, 0, stream>>>(piece);
    else
        two_shots<Word><<<piece.peers.blocks, THREADS, 0, stream>>>(piece);
}

cudaError_t all_reduce(const struct all_reduce *p, cudaStream_t stream)
{
    if (!is_right(p))
        return cudaErrorInvalidValue;
    const int ranks = p->peers.ranks;
    const int64_t bytes = 2 * p->n;
    const bool in_one_shot =
        (ranks - 1) * bytes <= ONE_SHOT_BYTES && ranks * bytes <= p->half_bytes;
    /* slices are whole words, of which the last may be cut short */
    const int64_t most = (p->half_bytes / WORD_BYTES_MAX - ranks) * (WORD_BYTES_MAX / 2);
    const bool wide = p->n % 8 == 0 && (uintptr_t)p->x[p->peers.rank] % 16 == 0;
    struct all_reduce piece = *p;
    for (int64_t done = 0; done < p->n; done += most) {
        piece.n = p->n - done < most ? p->n - done : most;
        for (int r = 0; r < ranks; r++)
            piece.x[r] = p->x[r] + done;
        if (wide)
            launch<uint4>(piece, in_one_shot, stream);
        else
            launch<uint32_t>(piece, in_one_shot, stream);
    }
    return cudaGetLastError();
}
