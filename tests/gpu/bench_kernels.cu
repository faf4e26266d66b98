/* SPDX-License-Identifier: Apache-2.0
 *
 * Speed of the data-movement kernels as a Markdown table (docs/kernels.md): bench_kernels DATE.
 * Shapes are one H200 pair's share of DeepSeek-V3 (128 heads, 512 + 64 latent); the floor is a
 * plain copy that reads and writes as many bytes in all, timed in the same run.
 */
#include "kernels/dop.h"
#include "kernels/kv_append.h"
#include "kernels/kv_pages.h"
#include "kernels/kv_repack.h"
#include "kernels/lse_combine.h"
#include "tests/gpu/guarded.cuh"

#include <algorithm>
#include <fstream>
#include <functional>
#include <numeric>
#include <random>
#include <string>

enum { RANKS = 2, HEADS = 64, NOPE = 512, ROPE = 64, WIDTH = NOPE + ROPE, REQUESTS = 16 };
enum { WARM_UPS = 5, REPEATS = 20, COPY_LOADS = 4 };

static const size_t ARENA_BYTES = ((size_t)1 << 30) + ((size_t)64 << 20);
static const size_t SCRATCH_BYTES = (size_t)256 << 20; /* four times the L2 cache */

typedef std::function<cudaError_t(void)> launch_fn;

/* What the kernels work on, and memory to read between repeats so that nothing stays in cache. */
struct bench {
    guarded<uint16_t> from{ARENA_BYTES / 2}, to{ARENA_BYTES / 2};
    guarded<uint32_t> scratch{SCRATCH_BYTES / 4};
    cudaEvent_t start, stop;
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

/* Reading leaves the cache clean; what a memset leaves would be written back in the kernel's time.
 */
static __global__ void read_scratch(uint32_t *scratch, int64_t n)
{
    const int64_t threads = (int64_t)gridDim.x * blockDim.x;
    uint32_t seen = 0;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads)
        seen |= scratch[i];
    if (seen == 0) /* never: it holds poison */
        scratch[0] = seen;
}

static __global__ void copy_floor(uint4 *to, const uint4 *from, int64_t n)
{
    const int64_t threads = (int64_t)gridDim.x * blockDim.x;
    const int64_t thread = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (int64_t i = thread; i < n; i += COPY_LOADS * threads) {
        uint4 held[COPY_LOADS];
#pragma unroll
        for (int k = 0; k < COPY_LOADS; k++)
            if (i + k * threads < n)
                held[k] = from[i + k * threads];
#pragma unroll
        for (int k = 0; k < COPY_LOADS; k++)
            if (i + k * threads < n)
                to[i + k * threads] = held[k];
    }
}

static cudaError_t launch_floor(struct bench *b, int64_t bytes)
{
    int sms;
    must(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0), "SM count");
    copy_floor<<<sms * 4, 512>>>(reinterpret_cast<uint4 *>(b->to.data()),
                                 reinterpret_cast<const uint4 *>(b->from.data()), bytes / 32);
    return cudaGetLastError();
}

/* Median of single launches between two events, in microseconds. */
static double median_us(struct bench *b, const launch_fn &launch)
{
    std::vector<double> us;
    for (int i = 0; i < WARM_UPS + REPEATS; i++) {
        float ms;
        read_scratch<<<1024, 256>>>(b->scratch.data(), SCRATCH_BYTES / 4);
        must(cudaEventRecord(b->start, 0), "cudaEventRecord");
        must(launch(), "launch");
        must(cudaEventRecord(b->stop, 0), "cudaEventRecord");
        must(cudaEventSynchronize(b->stop), "kernel");
        must(cudaEventElapsedTime(&ms, b->start, b->stop), "cudaEventElapsedTime");
        if (i >= WARM_UPS)
            us.push_back(1e3 * ms);
    }
    std::sort(us.begin(), us.end());
    return (us[REPEATS / 2 - 1] + us[REPEATS / 2]) / 2;
}

static void report(struct bench *b, const char *kernel, const std::string &shape, int64_t bytes,
                   const launch_fn &launch)
{
    const double us = median_us(b, launch);
    const double floor_us = median_us(b, [=] { return launch_floor(b, bytes); });
    printf("| %s | %s | %lld | %.1f | %.0f | %.0f | %.2f |\n", kernel, shape.c_str(),
           (long long)bytes, us, (double)bytes / us / 1e3, (double)bytes / floor_us / 1e3,
           floor_us / us);
}

static std::string shape_of(std::initializer_list<int64_t> sizes)
{
    std::string s;
    for (int64_t n : sizes)
        s += "[" + std::to_string(n) + "]";
    return s;
}

/* `moved` counts bytes read and bytes written. */
static void bench_dop(struct bench *b, int64_t moved)
{
    const int64_t row_bytes = 2 * HEADS * WIDTH, rows = moved / 2 / row_bytes;
    guarded<int64_t> first(std::vector<int64_t>{0, rows / 2, rows});
    const uint16_t *rope = b->from.data() + rows * HEADS * NOPE;
    uint16_t *second = b->to.data() + rows / 2 * HEADS * WIDTH;
    const struct dop_queries q = {
        b->from.data(), rope, first.data(), {b->to.data(), second}, rows, RANKS, HEADS, NOPE, ROPE};
    report(b, "dop_pack_queries", shape_of({rows, HEADS, NOPE}) + " + " + shape_of({ROPE}),
           2 * rows * row_bytes, [&] { return dop_pack_queries(&q, 0); });

    const int64_t mine = rows / RANKS;
    const struct dop_rows in = {b->from.data(), b->to.data(), mine, RANKS, HEADS, WIDTH};
    report(b, "dop_unpack_queries", shape_of({RANKS, mine, HEADS, WIDTH}),
           2 * RANKS * mine * row_bytes, [&] { return dop_unpack_queries(&in, 0); });
    const struct dop_rows out = {b->from.data(), b->to.data(), mine, RANKS, HEADS, NOPE};
    report(b, "dop_pack_outputs", shape_of({mine, RANKS * HEADS, NOPE}),
           2 * RANKS * mine * 2 * HEADS * NOPE, [&] { return dop_pack_outputs(&out, 0); });
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

/* An owner's end: half of its rows, in blocks of 16, are the other rank's. */
static void bench_repack(struct bench *b, int64_t moved)
{
    const int64_t round = KV_PAGE_TOKENS * RANKS;
    const int64_t tokens = moved / 2 / (2 * WIDTH) / REQUESTS * RANKS / round * round;
    const int64_t each = kv_pages_shard_tokens(tokens, 1, RANKS);
    const int64_t rows = REQUESTS * each, table_pages = tokens / KV_PAGE_TOKENS;
    std::vector<int64_t> bounds;
    for (int r = 0; r <= REQUESTS; r++)
        bounds.push_back(r * each);
    guarded<int32_t> table(shuffled_pages(b, REQUESTS * table_pages));
    guarded<int64_t> first(bounds);
    struct kv_repack p = {b->to.data(), b->from.data(), table.data(),
                          first.data(), rows,           table_pages,
                          REQUESTS,     WIDTH,          1,
                          RANKS};
    report(b, "kv_repack_gather", shape_of({rows, WIDTH}), 2 * rows * 2 * WIDTH,
           [&] { return kv_repack_gather(&p, 0); });
    p.buffer = b->from.data(), p.pages = b->to.data();
    report(b, "kv_repack_scatter", shape_of({rows, WIDTH}), 2 * rows * 2 * WIDTH,
           [&] { return kv_repack_scatter(&p, 0); });
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

static void print_machine(const char *date)
{
    struct cudaDeviceProp device;
    int cuda;
    std::string driver = "unknown";
    std::ifstream version("/proc/driver/nvidia/version");
    std::getline(version, driver);
    must(cudaGetDeviceProperties(&device, 0), "device");
    must(cudaDriverGetVersion(&cuda), "driver");
    printf("%s, %d SMs, CUDA %d.%d, %s\n\n", device.name, device.multiProcessorCount, cuda / 1000,
           cuda % 1000 / 10, date);
    printf("driver: %s\n\n", driver.c_str());
    printf("| kernel | shape | bytes | us | GB/s | floor GB/s | fraction |\n");
    printf("| --- | --- | --- | --- | --- | --- | --- |\n");
}

int main(int argc, char **argv)
{
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("no GPU: skipped\n");
        return 0;
    }
    print_machine(argc > 1 ? argv[1] : "no date given");
    struct bench b;
    must(cudaEventCreate(&b.start), "cudaEventCreate");
    must(cudaEventCreate(&b.stop), "cudaEventCreate");
    fill_random<<<1024, 256>>>(reinterpret_cast<uint32_t *>(b.from.data()), ARENA_BYTES / 4);
    fill_random<<<1024, 256>>>(reinterpret_cast<uint32_t *>(b.to.data()), ARENA_BYTES / 4);
    for (int64_t moved = (int64_t)64 << 20; moved <= (int64_t)1 << 30; moved *= 4) {
        bench_dop(&b, moved);
        bench_append(&b, moved);
        bench_repack(&b, moved);
        bench_combine(&b, moved, RANKS, NOPE, true);
        bench_combine(&b, moved, RANKS, 128, true);
        bench_combine(&b, moved, 8, NOPE, false);
    }
    return 0;
}
