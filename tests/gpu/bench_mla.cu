/* SPDX-License-Identifier: Apache-2.0
 *
 * Speed of MLA attention as a Markdown table: bench_mla DATE. Decode rows, one a request, over
 * DeepSeek-V3's latent (576 wide, 512 of them values), and one prefill chunk. GB/s counts each KV
 * row once, TFLOP/s 2,176 operations per row, head and slot seen.
 */
#include "kernels/attention.h"
#include "kernels/kv_pages.h"
#include "tests/gpu/timing.cuh"

#include <cuda_bf16.h>
#include <numeric>
#include <random>

enum { KEY_DIM = 576, VALUE_DIM = 512, POOL_PAGES = 20480, HEADS_MAX = 128, ROWS_MAX = 512 };
enum { SETS_MAX = 8 };

static const double FLOOR_GB_PER_S = 4400, FLOOR_TFLOPS = 790;

struct bench {
    guarded<uint16_t> pages{(size_t)POOL_PAGES * KV_PAGE_TOKENS * KEY_DIM};
    guarded<uint16_t> query{(size_t)ROWS_MAX * HEADS_MAX * KEY_DIM};
    guarded<uint16_t> out{(size_t)ROWS_MAX * HEADS_MAX * VALUE_DIM};
    guarded<float> lse{(size_t)ROWS_MAX * HEADS_MAX};
    stopwatch watch;
    std::mt19937 rng{1};
};

struct shape {
    int heads, requests, rows; /* rows of a request */
    int64_t tokens;            /* of a request, its rows included */
};

static __device__ uint32_t hash(uint32_t x)
{
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

/* Normally distributed, a pair per step. */
static __global__ void fill_normal(__nv_bfloat162 *to, int64_t n, uint32_t seed)
{
    const int64_t threads = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads) {
        const uint32_t h = hash((uint32_t)i ^ seed);
        const float radius = sqrtf(-2 * logf(((float)h + 1) * 0x1p-32f));
        const float angle = (float)hash(h) * 0x1p-31f;
        to[i] = __floats2bfloat162_rn(radius * cospif(angle), radius * sinpif(angle));
    }
}

static void fill(guarded<uint16_t> *to, size_t n, uint32_t seed)
{
    fill_normal<<<1024, 256>>>(reinterpret_cast<__nv_bfloat162 *>(to->data()), (int64_t)n / 2,
                               seed);
    must(cudaGetLastError(), "fill_normal");
}

/* Launches take turns over `sets` page tables, tables [sets][table_numbers]. */
static double time_us(struct bench *b, struct attention a, int64_t table_numbers, int sets)
{
    const int32_t *tables = a.table;
    int launch = 0;
    return b->watch.time_us([&] {
        a.table = tables + launch++ % sets * table_numbers;
        return mla_attention(&a, 0);
    });
}

static void print_row(const struct shape *s, double us, double slots_seen)
{
    const double bytes = 2.0 * KEY_DIM * (double)(s->requests * s->tokens);
    const double flop = 2.0 * (KEY_DIM + VALUE_DIM) * s->heads * slots_seen;
    const double gb_per_s = bytes / us / 1e3, tflops = flop / us / 1e6;
    printf("| %d | %d%s | %lld | %.1f | %.0f | %.2f | %.0f | %.2f |\n", s->heads, s->requests,
           s->rows > 1 ? (" x " + std::to_string(s->rows) + " rows").c_str() : "",
           (long long)s->tokens, us, gb_per_s, gb_per_s / FLOOR_GB_PER_S, tflops,
           tflops / FLOOR_TFLOPS);
    fflush(stdout);
}

static void bench_shape(struct bench *b, const struct shape *s)
{
    const int64_t table_pages = s->tokens / KV_PAGE_TOKENS;
    const int64_t used = s->requests * table_pages;
    const int sets = (int)std::min<int64_t>(POOL_PAGES / used, SETS_MAX);
    std::vector<int32_t> pages(POOL_PAGES), row_request;
    std::vector<int64_t> row_slots;
    double slots_seen = 0;
    std::iota(pages.begin(), pages.end(), 0);
    std::shuffle(pages.begin(), pages.end(), b->rng);
    for (int i = 0; i < s->requests * s->rows; i++) {
        row_request.push_back(i / s->rows);
        row_slots.push_back(s->tokens - s->rows + 1 + i % s->rows);
        slots_seen += (double)row_slots.back();
    }
    const int rows = (int)row_request.size();
    struct attention_bounds bounds;
    must(mla_attention_bounds(s->heads, 0, rows, &bounds), "mla_attention_bounds");
    std::vector<unsigned char> laid_out(attention_plan_bytes(&bounds));
    attention_plan_make(laid_out.data(), &bounds, rows, row_request.data(), row_slots.data());

    guarded<int32_t> table(pages), request(row_request);
    guarded<int64_t> slots(row_slots);
    guarded<unsigned char> plan(laid_out);
    guarded<unsigned char> workspace(attention_workspace_bytes(&bounds, s->heads, VALUE_DIM));
    const struct attention a = {b->query.data(), b->pages.data(),  table.data(),
                                request.data(),  slots.data(),     rows,
                                plan.data(),     workspace.data(), b->out.data(),
                                b->lse.data(),   0.0721688f,       table_pages,
                                bounds,          s->heads,         1,
                                KEY_DIM,         VALUE_DIM};
    print_row(s, time_us(b, a, used, sets), slots_seen);
}

int main(int argc, char **argv)
{
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("no GPU: skipped\n");
        return 0;
    }
    print_machine(argc > 1 ? argv[1] : "no date given");
    printf("| heads | requests | context | us | GB/s of KV | of %.0f | TFLOP/s | of %.0f |\n",
           FLOOR_GB_PER_S, FLOOR_TFLOPS);
    printf("| --- | --- | --- | --- | --- | --- | --- | --- |\n");
    struct bench b;
    fill(&b.pages, (size_t)POOL_PAGES * KV_PAGE_TOKENS * KEY_DIM, 1);
    fill(&b.query, (size_t)ROWS_MAX * HEADS_MAX * KEY_DIM, 2);
    for (int heads : {8, 16, 32, 64, 128}) {
        const struct shape shapes[] = {{heads, 16, 1, 65536},
                                       {heads, 32, 1, 32768},
                                       {heads, 1, 1, 131072},
                                       {heads, 64, 1, 4096},
                                       {heads, 1, 1, 1024}};
        for (const struct shape &s : shapes)
            bench_shape(&b, &s);
    }
    const struct shape prefill = {128, 1, 512, 16384};
    bench_shape(&b, &prefill);
    return 0;
}
