/* SPDX-License-Identifier: Apache-2.0
 *
 * Speed of what a layer does besides attention, and of made-up numbers, as a Markdown table:
 * bench_layer DATE. Shapes are DeepSeek-V3's, experts those of one of two ranks. The floor is a
 * plain copy that reads and writes as many bytes in all, timed in the same run; that of moe_gemm is
 * reading the weights of the experts that have rows at 4,400 GB/s, or 790 TFLOP/s if that is
 * longer.
 */
#include "kernels/kv_pages.h"
#include "kernels/moe.h"
#include "kernels/rows.h"
#include "kernels/values.h"
#include "tests/gpu/timing.cuh"

#include <numeric>
#include <random>

enum { HIDDEN = 7168, INTER = 18432, HEADS = 128, ROPE = 64, KV_WIDTH = 576 };
enum { EXPERTS = 256, MINE = 128, TOPK = 8, MOE_INTER = 2048, ROWS_MAX = 4096 };
enum { READ_GB_PER_S = 4400, TENSOR_TFLOPS = 790 };

static const int64_t WEIGHTS = (int64_t)MINE * 2 * MOE_INTER * HIDDEN;

struct bench {
    stopwatch watch;
    guarded<uint16_t> weights{(size_t)WEIGHTS};
    guarded<uint16_t> from{(size_t)1 << 29}, to{(size_t)1 << 29};
    guarded<float> logits{(size_t)ROWS_MAX * EXPERTS};
    std::mt19937 rng{1};
};

static std::string shape_of(std::initializer_list<int64_t> sizes)
{
    std::string s;
    for (int64_t n : sizes)
        s += "[" + std::to_string(n) + "]";
    return s;
}

static void print_row(const char *kernel, const std::string &shape, double bytes, double us,
                      double tflops, double floor_us)
{
    printf("| %s | %s | %.0f | %.1f | %.0f | ", kernel, shape.c_str(), bytes, us, bytes / us / 1e3);
    printf(tflops > 0 ? "%.0f" : "", tflops);
    printf(" | %.1f | %.2f |\n", floor_us, floor_us / us);
    fflush(stdout);
}

/* `bytes` read plus written. */
static void report(struct bench *b, const char *kernel, const std::string &shape, int64_t bytes,
                   const launch_fn &launch)
{
    const double us = b->watch.time_us(launch);
    const double floor_us = b->watch.copy_us(b->to.data(), b->weights.data(), bytes);
    print_row(kernel, shape, (double)bytes, us, 0, floor_us);
}

static void bench_rows(struct bench *b, int64_t rows)
{
    float *x = reinterpret_cast<float *>(b->to.data() + ((size_t)1 << 28));
    const int64_t n = rows * HIDDEN;
    report(b, "rows_norm", shape_of({rows, HIDDEN}), 6 * n,
           [=] { return rows_norm(b->to.data(), x, rows, HIDDEN, 0); });
    for (int parts : {1, 8}) {
        report(b, "rows_add", shape_of({parts, rows, HIDDEN}), (8 + 2 * parts) * n,
               [=] { return rows_add(x, b->from.data(), parts, n, 0); });
        report(b, "rows_sum", shape_of({parts, rows, HIDDEN}), (2 + 2 * parts) * n,
               [=] { return rows_sum(b->to.data(), b->from.data(), parts, n, 0); });
    }
    for (int inter : {(int)INTER, (int)MOE_INTER})
        report(b, "rows_swiglu", shape_of({rows, inter}), 6 * rows * inter,
               [=] { return rows_swiglu(b->to.data(), b->from.data(), rows, inter, 0); });
}

static void bench_rotate(struct bench *b, int64_t rows, int heads)
{
    std::vector<int64_t> at(rows);
    for (int64_t &position : at)
        position = std::uniform_int_distribution<int>(0, 131071)(b->rng);
    guarded<int64_t> position(at);
    const struct rows_rotate p = {
        b->from.data(), b->to.data(), position.data(), rows, (int64_t)heads * 192, 192,
        heads * ROPE,   ROPE,         heads,           ROPE};
    report(b, "rows_rotate", shape_of({rows, heads, ROPE}), 4 * rows * heads * ROPE,
           [&] { return rows_rotate(&p, 0); });
}

static void bench_values(struct bench *b)
{
    const double root = 84.66640419; /* of 7168 */
    for (double divisor : {1.0, root}) {
        const struct values_matrix p = {{1, 2, divisor}, b->to.data(), 1,      0, 1, 0,
                                        65536,           HIDDEN,       HIDDEN, 1};
        report(b, divisor == 1 ? "values_fill_matrix" : "values_fill_matrix, divided",
               shape_of({p.rows, HIDDEN}), 2 * p.rows * HIDDEN,
               [&] { return values_fill_matrix(&p, 0); });
    }
    const struct values_matrix turned = {{1, 2, root}, b->to.data(), 1, 0,    1, 0,
                                         16384,        512,          1, 16384};
    report(b, "values_fill_matrix, turned", shape_of({16384, 512}), 2 * 16384 * 512,
           [&] { return values_fill_matrix(&turned, 0); });

    const int64_t tokens = 131072, bytes = 2 * tokens * KV_WIDTH;
    std::vector<int32_t> pages(tokens / KV_PAGE_TOKENS);
    std::iota(pages.begin(), pages.end(), 0);
    std::shuffle(pages.begin(), pages.end(), b->rng);
    guarded<int32_t> table(pages);
    guarded<uint64_t> sum(1);
    struct values_kv kv = {};
    kv.key = {1, 1, 1}, kv.pages = b->to.data(), kv.table = table.data();
    kv.tokens = tokens, kv.width = KV_WIDTH, kv.shards = 1;
    report(b, "values_fill_kv", shape_of({tokens, KV_WIDTH}), bytes,
           [&] { return values_fill_kv(&kv, 0); });
    report(b, "values_checksum_kv", shape_of({tokens, KV_WIDTH}), bytes,
           [&] { return values_checksum_kv(&kv, sum.data(), 0); });
    report(b, "values_poison_pages", shape_of({tokens, KV_WIDTH}), bytes, [&] {
        return values_poison_pages(b->to.data(), table.data(), (int64_t)pages.size(), KV_WIDTH, 0);
    });
}

/* Of the experts that have rows. */
static void bench_gemm(struct bench *b, const struct moe_gemm *p, const std::vector<int32_t> &first,
                       const char *what)
{
    double touched = 0;
    for (int e = 0; e < p->experts; e++)
        touched += first[e + 1] > first[e];
    const double weights = touched * p->n * p->k, slots = first.back();
    const double bytes = 2 * (weights + slots * (p->n + p->k)), flop = 2 * slots * p->n * p->k;
    const double us = b->watch.time_us([=] { return moe_gemm(p, 0); });
    print_row("moe_gemm",
              what + shape_of({(int64_t)touched, p->n, p->k}) + " x " +
                  std::to_string(first.back()),
              bytes, us, flop / us / 1e6,
              std::max(2 * weights / READ_GB_PER_S / 1e3, flop / TENSOR_TFLOPS / 1e6));
}

/* Rows of all ranks, half of the experts here. */
static void bench_moe(struct bench *b, int64_t rows)
{
    const size_t pairs = rows * TOPK;
    guarded<int32_t> expert(pairs), slot(pairs), slot_row(pairs), first(MINE + 1);
    guarded<float> weight(pairs);
    const struct moe_routes r = {expert.data(), weight.data(), slot.data(), slot_row.data(),
                                 first.data()};
    report(b, "moe_route", shape_of({rows, EXPERTS}), rows * (4 * EXPERTS + 16 * TOPK),
           [&] { return moe_route(&r, b->logits.data(), rows, EXPERTS, TOPK, MINE, EXPERTS, 0); });
    const std::vector<int32_t> bounds = first.read();
    struct moe_gemm p = {b->from.data(), b->weights.data(), b->to.data(),
                         first.data(),   slot_row.data(),   (int64_t)pairs,
                         MINE,           2 * MOE_INTER,     HIDDEN};
    bench_gemm(b, &p, bounds, "gate and up ");
    p.slot_row = nullptr, p.n = HIDDEN, p.k = MOE_INTER;
    bench_gemm(b, &p, bounds, "down ");
    report(b, "moe_combine", shape_of({rows, HIDDEN}) + " of " + std::to_string(bounds.back()),
           2 * HIDDEN * (2 * rows + bounds.back()), [&] {
               return moe_combine(b->to.data(), b->weights.data(), b->from.data(), &r, rows, TOPK,
                                  HIDDEN, 0);
           });
}

static void fill(const guarded<uint16_t> &to, int64_t n)
{
    const int64_t row = 4096;
    const struct values_matrix p = {{3, 2, 1}, to.data(), 0, 0, 0, 0, n / row, row, row, 1};
    must(values_fill_matrix(&p, 0), "values_fill_matrix");
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
    std::vector<float> logits((size_t)ROWS_MAX * EXPERTS);
    std::normal_distribution<float> normal;
    for (float &x : logits)
        x = normal(b.rng);
    b.logits.write(0, logits);
    fill(b.weights, WEIGHTS);
    fill(b.from, (int64_t)1 << 29);
    fill(b.to, (int64_t)1 << 29);
    printf("| kernel | shape | bytes | us | GB/s | TFLOP/s | floor us | fraction |\n");
    printf("| --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (int rows : {32, (int)ROWS_MAX}) {
        bench_rows(&b, rows);
        bench_rotate(&b, rows, HEADS);
        bench_rotate(&b, rows, 1);
    }
    for (int rows : {8, 32, 256, 512, 1024, 2048, (int)ROWS_MAX})
        bench_moe(&b, rows);
    bench_values(&b);
    return 0;
}
