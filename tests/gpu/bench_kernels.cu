/* SPDX-License-Identifier: Apache-2.0
 *
 * Speed of what moves and combines data as a Markdown table (docs/kernels.md): bench_kernels DATE.
 * Shapes are one H200 pair's share of DeepSeek-V3 (128 heads, 512 + 64 latent); the floor is a
 * plain copy that reads and writes as many bytes in all, timed in the same run.
 */
#include "kernels/kv_append.h"
#include "kernels/lse_combine.h"
#include "tests/gpu/box_lists.cuh"
#include "tests/gpu/timing.cuh"

#include <numeric>
#include <random>

enum { RANKS = 2, HEADS = 64, NOPE = 512, ROPE = 64, WIDTH = NOPE + ROPE, REQUESTS = 16 };

static const size_t ARENA_BYTES = ((size_t)1 << 30) + ((size_t)64 << 20);

struct bench {
    stopwatch watch;
    guarded<uint16_t> from{ARENA_BYTES / 2}, to{ARENA_BYTES / 2};
    std::mt19937 rng{1};
};

/* Numbers between 1 and 2 in size, as BF16 and also as FP32: zeros would be faster. */
static __global__ void fill_random(uint32_t *to, int64_t n)
{
    const int64_t threads = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads) {
        uint32_t h = (uint32_t)i * 2654435761u;
        h = (h ^ h >> 15) * 2246822519u;
        h = (h ^ h >> 13) * 3266489917u;
        to[i] = ((h ^ h >> 16) & 0x807f807fu) | 0x3f803f80u;
    }
}

/* `bytes` read plus written. */
static void report(struct bench *b, const std::string &kernel, const std::string &shape,
                   int64_t bytes, const launch_fn &launch)
{
    const double us = b->watch.time_us(launch);
    const double floor_us = b->watch.copy_us(b->to.data(), b->from.data(), bytes);
    printf("| %s | %s | %lld | %.1f | %.0f | %.0f | %.2f |\n", kernel.c_str(), shape.c_str(),
           (long long)bytes, us, (double)bytes / us / 1e3, (double)bytes / floor_us / 1e3,
           floor_us / us);
    fflush(stdout);
}

static std::string shape_of(std::initializer_list<int64_t> sizes)
{
    std::string s;
    for (int64_t n : sizes)
        s += "[" + std::to_string(n) + "]";
    return s;
}

static void bench_boxes(struct bench *b, const std::string &what, const std::string &shape,
                        const box_list &list)
{
    const device_list on_device(list);
    int64_t bytes = 0;
    for (const struct boxes_box &box : list)
        bytes += box.blocks * box.rows * box.bytes;
    report(b, "boxes: " + what, shape, 2 * bytes,
           [&] { return on_device.copy(b->from.data(), {b->to.data()}, PACK_BLOCKS); });
}

static void bench_dop(struct bench *b, int64_t moved)
{
    const int64_t query = 2 * HEADS * WIDTH, output = 2 * HEADS * NOPE;
    const int64_t rows = moved / 2 / query / RANKS; /* of an owner */
    const int64_t piece = rows * query;
    box_list to_owners;
    for (int owner = 0; owner < RANKS; owner++)
        to_owners.push_back({0, 1, 1, piece, owner * piece, 0, 0, owner * piece, 0, 0});
    bench_boxes(b, "DOP queries, packed", shape_of({RANKS * rows, HEADS, WIDTH}), to_owners);
    bench_boxes(b, "DOP queries, unpacked", shape_of({RANKS, rows, HEADS, WIDTH}),
                interleaving(RANKS, rows, query));
    bench_boxes(b, "DOP outputs, packed", shape_of({rows, RANKS * HEADS, NOPE}),
                turned(interleaving(RANKS, moved / 2 / output / RANKS, output)));
}

/* An owner's end: half of its rows, in blocks of 16, are the other rank's. */
static void bench_kv(struct bench *b, int64_t moved)
{
    const int64_t row = 2 * WIDTH, round = KV_PAGE_TOKENS * RANKS;
    const int64_t tokens = moved / 2 / row / REQUESTS * RANKS / round * round;
    box_list list;
    for (int r = 0; r < REQUESTS; r++)
        add_kv(&list, {tokens, 1, RANKS, r * tokens * row, row, r * tokens / RANKS * row, row});
    const std::string shape = shape_of({REQUESTS, tokens / RANKS, WIDTH});
    bench_boxes(b, "KV, owner to shard", shape, list);
    bench_boxes(b, "KV, shard to owner", shape, turned(list));
}

/* Heads of Q-B, K-B, V-B and O. */
static void bench_weights(struct bench *b, int64_t moved)
{
    const int64_t head_bytes[] = {2 * 192 * 1536, 2 * 128 * 512, 2 * 128 * 512, 2 * 128 * 7168};
    const int64_t heads = moved / 2 / std::accumulate(head_bytes, head_bytes + 4, (int64_t)0);
    box_list list;
    int64_t at = 0;
    for (int64_t bytes : head_bytes) {
        list.push_back({0, 1, 1, heads * bytes, at, 0, 0, at, 0, 0});
        at += heads * bytes;
    }
    bench_boxes(b, "weights", std::to_string(heads) + " heads of Q-B, K-B, V-B, O", list);
}

/* All pages in random order. */
static std::vector<int32_t> shuffled_pages(struct bench *b, int64_t n)
{
    std::vector<int32_t> pages(n);
    std::iota(pages.begin(), pages.end(), 0);
    std::shuffle(pages.begin(), pages.end(), b->rng);
    return pages;
}

static void bench_append(struct bench *b, int64_t moved)
{
    const int64_t each = moved / 2 / (2 * WIDTH) / REQUESTS; /* tokens of a request */
    const int64_t table_pages = (each + KV_PAGE_TOKENS - 1) / KV_PAGE_TOKENS;
    std::vector<int32_t> who(REQUESTS * each);
    std::vector<int64_t> where(REQUESTS * each);
    for (int64_t i = 0; i < REQUESTS * each; i++)
        who[i] = (int32_t)(i / each), where[i] = i % each;
    guarded<int32_t> table(shuffled_pages(b, REQUESTS * table_pages)), request(who);
    guarded<int64_t> position(where);
    const struct kv_append p = {b->from.data(),
                                request.data(),
                                position.data(),
                                table.data(),
                                b->to.data(),
                                REQUESTS * each,
                                table_pages,
                                WIDTH,
                                0,
                                1};
    report(b, "kv_append", shape_of({REQUESTS * each, WIDTH}), 2 * REQUESTS * each * 2 * WIDTH,
           [&] { return kv_append(&p, 0); });
}

static void bench_combine(struct bench *b, int64_t moved, int partials, int dim, bool bf16)
{
    const int heads = RANKS * HEADS;
    const int64_t in_bytes = partials * ((bf16 ? 2 : 4) * dim + 4), out_bytes = 2 * dim + 4;
    const int64_t rows = moved / (heads * (in_bytes + out_bytes)), pairs = rows * heads;
    std::uniform_real_distribution<float> uniform(-2, 2);
    std::vector<float> sums(partials * pairs);
    for (float &x : sums)
        x = uniform(b->rng);
    guarded<float> lse(sums), out_lse(pairs);
    const struct lse_combine p = {
        b->from.data(), lse.data(), b->to.data(), out_lse.data(), rows, partials, heads, dim, bf16};
    report(b, bf16 ? "lse_combine BF16" : "lse_combine FP32",
           shape_of({partials, rows, heads, dim}), pairs * (in_bytes + out_bytes),
           [&] { return lse_combine(&p, 0); });
}

int main(int argc, char **argv)
{
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("no GPU: skipped\n");
        return 0;
    }
    print_machine(argc > 1 ? argv[1] : "no date given");
    printf("| kernel | shape | bytes | us | GB/s | floor GB/s | fraction |\n");
    printf("| --- | --- | --- | --- | --- | --- | --- |\n");
    struct bench b;
    fill_random<<<1024, 256>>>(reinterpret_cast<uint32_t *>(b.from.data()), ARENA_BYTES / 4);
    fill_random<<<1024, 256>>>(reinterpret_cast<uint32_t *>(b.to.data()), ARENA_BYTES / 4);
    for (int64_t moved = (int64_t)64 << 20; moved <= (int64_t)1 << 30; moved *= 4) {
        bench_dop(&b, moved);
        bench_kv(&b, moved);
        bench_weights(&b, moved);
        bench_append(&b, moved);
        for (int dim : {(int)NOPE, 128})
            bench_combine(&b, moved, RANKS, dim, true);
        for (bool bf16 : {true, false})
            bench_combine(&b, moved, 8, NOPE, bf16);
    }
    return 0;
}
