/* SPDX-License-Identifier: Apache-2.0
 *
 * Speed of gqa_attention as a Markdown table: bench_gqa DATE. Shapes are Llama-3.1-405B's (128
 * heads, 8 KV heads of 128) whole, on two ranks and on eight. The floor is reading the KV once at
 * 4,400 GB/s or multiplying at 790 TFLOP/s, whichever takes longer. Times include the launch gap
 * and the merging of cut tiles.
 */
#include "kernels/attention.h"
#include "kernels/kv_pages.h"
#include "tests/gpu/guarded.cuh"

#include <algorithm>
#include <fstream>
#include <numeric>
#include <random>
#include <string>

enum { DIM = 128, WARM_UPS = 5, REPEATS = 20, FLOOR_GB_PER_S = 4400, FLOOR_TFLOPS = 790 };

static const size_t SCRATCH_BYTES = (size_t)256 << 20; /* four times the L2 cache */

/* `requests` contexts of as many tokens, the last `rows` of each as queries. */
struct bench_case {
    int heads, kv_heads, requests, rows;
    int64_t context;
};

struct bench {
    guarded<uint16_t> pages{(size_t)16 * 65536 * 8 * 2 * DIM}; /* of the largest case */
    guarded<uint32_t> scratch{SCRATCH_BYTES / 4};
    cudaEvent_t start, stop;
    std::mt19937 rng{1};
};

static __device__ uint32_t hash(uint64_t x)
{
    x = (x ^ x >> 32) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    return (uint32_t)(x >> 32);
}

/* Normal numbers by Box and Muller's method, two at a time. */
static __global__ void fill_normal(uint32_t *to, int64_t n)
{
    const int64_t threads = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads) {
        const float u = ((float)hash(2 * i) + 0.5f) * 0x1p-32f;
        const float radius = sqrtf(-2 * logf(fminf(u, 1 - 0x1p-24f)));
        float sine, cosine;
        sincospif((float)hash(2 * i + 1) * 0x1p-31f, &sine, &cosine);
        to[i] =
            __float_as_uint(radius * sine) >> 16 | (__float_as_uint(radius * cosine) & 0xffff0000u);
    }
}

/* Between repeats, so that nothing stays in the cache. */
static __global__ void read_scratch(uint32_t *scratch, int64_t n)
{
    const int64_t threads = (int64_t)gridDim.x * blockDim.x;
    uint32_t seen = 0;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads)
        seen |= scratch[i];
    if (seen == 0) /* never: it holds poison */
        scratch[0] = seen;
}

/* Median of single launches between two events, in microseconds. */
static double median_us(struct bench *b, const struct attention *a)
{
    std::vector<double> us;
    for (int i = 0; i < WARM_UPS + REPEATS; i++) {
        float ms;
        read_scratch<<<1024, 256>>>(b->scratch.data(), SCRATCH_BYTES / 4);
        must(cudaEventRecord(b->start, 0), "cudaEventRecord");
        must(gqa_attention(a, 0), "gqa_attention");
        must(cudaEventRecord(b->stop, 0), "cudaEventRecord");
        must(cudaEventSynchronize(b->stop), "kernel");
        must(cudaEventElapsedTime(&ms, b->start, b->stop), "cudaEventElapsedTime");
        if (i >= WARM_UPS)
            us.push_back(1e3 * ms);
    }
    std::sort(us.begin(), us.end());
    return (us[REPEATS / 2 - 1] + us[REPEATS / 2]) / 2;
}

/* Pages in random order. */
static std::vector<int32_t> random_table(struct bench *b, const struct bench_case *c)
{
    std::vector<int32_t> table(c->requests * c->context / KV_PAGE_TOKENS);
    std::iota(table.begin(), table.end(), 0);
    std::shuffle(table.begin(), table.end(), b->rng);
    return table;
}

static void report(const struct bench_case *c, double us)
{
    const double kv_bytes = (double)c->requests * (double)c->context * c->kv_heads * 2 * DIM * 2;
    const double seen = (double)c->context - (c->rows - 1) / 2.0; /* mean of rows */
    const double flop = 4.0 * DIM * c->heads * c->requests * c->rows * seen;
    const double floor_us = std::max(kv_bytes / FLOOR_GB_PER_S / 1e3, flop / FLOOR_TFLOPS / 1e6);
    printf("| %d | %d | %d | %lld | %d | %.1f | %.0f | %.0f | %.1f | %.2f |\n", c->heads,
           c->kv_heads, c->requests, (long long)c->context, c->rows, us, kv_bytes / us / 1e3,
           flop / us / 1e6, floor_us, floor_us / us);
    fflush(stdout);
}

static void bench_one(struct bench *b, const struct bench_case *c)
{
    const int rows = c->requests * c->rows;
    std::vector<int32_t> who(rows);
    std::vector<int64_t> slots(rows);
    struct attention_bounds bounds;
    for (int i = 0; i < rows; i++)
        who[i] = i / c->rows, slots[i] = c->context - c->rows + i % c->rows + 1;
    must(gqa_attention_bounds(c->heads, c->kv_heads, 0, rows, &bounds), "gqa_attention_bounds");
    std::vector<char> laid_out(attention_plan_bytes(&bounds));
    attention_plan_make(laid_out.data(), &bounds, rows, who.data(), slots.data());

    guarded<char> plan(laid_out), workspace(attention_workspace_bytes(&bounds, c->heads, DIM));
    guarded<int32_t> table(random_table(b, c)), row_request(who);
    guarded<int64_t> row_slots(slots);
    guarded<uint16_t> query((size_t)rows * c->heads * DIM), out((size_t)rows * c->heads * DIM);
    guarded<float> lse((size_t)rows * c->heads);
    fill_normal<<<1024, 256>>>(reinterpret_cast<uint32_t *>(query.data()),
                               (int64_t)rows * c->heads * DIM / 2);
    const struct attention a = {query.data(),
                                b->pages.data(),
                                table.data(),
                                row_request.data(),
                                row_slots.data(),
                                rows,
                                plan.data(),
                                workspace.data(),
                                out.data(),
                                lse.data(),
                                0.088388f,
                                c->context / KV_PAGE_TOKENS,
                                bounds,
                                c->heads,
                                c->kv_heads,
                                DIM,
                                DIM};
    report(c, median_us(b, &a));
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
    printf("| heads | KV heads | requests | context | rows each | us | GB/s of KV | TFLOP/s | "
           "floor us | fraction |\n");
    printf("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
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
    fill_normal<<<1024, 256>>>(reinterpret_cast<uint32_t *>(b.pages.data()),
                               (int64_t)16 * 65536 * 8 * DIM);
    for (int kv_heads : {8, 4, 1}) {
        const int heads = 16 * kv_heads;
        const struct bench_case cases[] = {{heads, kv_heads, 16, 1, 65536},
                                           {heads, kv_heads, 32, 1, 32768},
                                           {heads, kv_heads, 1, 1, 131072},
                                           {heads, kv_heads, 64, 1, 4096},
                                           {heads, kv_heads, 1, 2048, 16384}};
        for (const struct bench_case &c : cases)
            bench_one(&b, &c);
    }
    return 0;
}
