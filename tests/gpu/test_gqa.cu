/* SPDX-License-Identifier: Apache-2.0
 *
 * gqa_attention and plain_attention against a loop in double on the CPU for sampled rows and heads,
 * and against each other for all of them. KV slots that no row may see, outputs and workspace are
 * poison. test_gqa --small runs few small cases, for the sanitizers. Without a GPU nothing runs.
 */
#include "kernels/attention.h"
#include "kernels/kv_pages.h"
#include "tests/gpu/guarded.cuh"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <string>

typedef std::vector<uint16_t> bf16s;

static const uint16_t POISON = 0xffff;
static const double OUT_TOLERANCE = 5e-3, LSE_TOLERANCE = 1e-3; /* relative L2; absolute */
static int n_passed, n_failed;
static std::mt19937_64 rng(20260902);

struct shape {
    int heads, kv_heads, key_dim, value_dim, kv_dim, value_at;
    int shard, shards;
    float scale;
};

/* `rows` query rows that end the context; row i of them sees what comes before it and itself. */
struct request {
    int64_t context;
    int rows;
};

struct batch {
    struct shape shape;
    std::vector<int32_t> row_request, table;
    std::vector<int64_t> row_slots;
    bf16s query, pages; /* from first_page on */
    int64_t table_pages, first_page;
};

static int pick(int low, int high)
{
    return std::uniform_int_distribution<int>(low, high)(rng);
}

static float from_bf16(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

/* `n` normal numbers from anywhere in a pool of them. */
static void fill_normal(uint16_t *to, size_t n)
{
    static bf16s pool;
    if (pool.empty()) {
        std::normal_distribution<float> normal;
        for (int i = 0; i < 1 << 20; i++) {
            const float x = normal(rng);
            uint32_t bits;
            memcpy(&bits, &x, sizeof bits);
            pool.push_back((uint16_t)(bits >> 16));
        }
    }
    const size_t start = rng() % pool.size();
    for (size_t i = 0; i < n; i++)
        to[i] = pool[(start + i) % pool.size()];
}

static struct batch make_batch(const struct shape &s, const std::vector<struct request> &requests,
                               int64_t table_pages, int64_t first_page = 0)
{
    struct batch b = {s, {}, {}, {}, {}, {}, table_pages, first_page};
    const int64_t pages = (int64_t)requests.size() * table_pages + 3;
    const size_t width = (size_t)s.kv_heads * s.kv_dim;
    b.table.resize(pages);
    std::iota(b.table.begin(), b.table.end(), (int32_t)first_page);
    std::shuffle(b.table.begin(), b.table.end(), rng);
    b.pages.assign(pages * KV_PAGE_TOKENS * width, POISON);
    for (size_t r = 0; r < requests.size(); r++) {
        const int64_t context = requests[r].context;
        for (int i = 0; i < requests[r].rows; i++) {
            const int64_t seen = std::max<int64_t>(context - requests[r].rows + i + 1, 0);
            b.row_request.push_back((int32_t)r);
            b.row_slots.push_back(kv_pages_shard_tokens(seen, s.shard, s.shards));
        }
        for (int64_t i = 0; i < kv_pages_shard_tokens(context, s.shard, s.shards); i++) {
            const int64_t row = kv_pages_row(&b.table[r * table_pages], i);
            fill_normal(&b.pages[(row - first_page * KV_PAGE_TOKENS) * width], width);
        }
    }
    b.query.resize(b.row_request.size() * s.heads * s.key_dim);
    for (size_t i = 0; i < b.row_request.size(); i++)
        fill_normal(&b.query[i * s.heads * s.key_dim], (size_t)s.heads * s.key_dim);
    return b;
}

static const uint16_t *kv_at(const struct batch &b, int64_t row, int head, int64_t slot)
{
    const struct shape &s = b.shape;
    const int64_t at = kv_pages_row(&b.table[b.row_request[row] * b.table_pages], slot) -
                       b.first_page * KV_PAGE_TOKENS;
    return &b.pages[(at * s.kv_heads + head / (s.heads / s.kv_heads)) * s.kv_dim];
}

/* The definition. Returns the natural-log sum of exponentials. */
static double reference(const struct batch &b, int64_t row, int head, std::vector<double> *out)
{
    const struct shape &s = b.shape;
    const uint16_t *query = &b.query[(row * s.heads + head) * s.key_dim];
    std::vector<double> score(b.row_slots[row]);
    double max = -INFINITY, sum = 0;
    for (size_t i = 0; i < score.size(); i++) {
        const uint16_t *kv = kv_at(b, row, head, (int64_t)i);
        double dot = 0;
        for (int d = 0; d < s.key_dim; d++)
            dot += (double)from_bf16(query[d]) * from_bf16(kv[d]);
        score[i] = dot * s.scale;
        max = std::max(max, score[i]);
    }
    out->assign(s.value_dim, 0);
    for (size_t i = 0; i < score.size(); i++) {
        const uint16_t *kv = kv_at(b, row, head, (int64_t)i);
        const double weight = exp(score[i] - max);
        sum += weight;
        for (int d = 0; d < s.value_dim; d++)
            (*out)[d] += weight * from_bf16(kv[s.value_at + d]);
    }
    for (double &x : *out)
        x = sum > 0 ? x / sum : 0;
    return max + log(sum);
}

/* A batch on the device. */
struct device_batch {
    explicit device_batch(const struct batch &b, const struct attention_bounds &bounds,
                          size_t far_numbers = 0)
        : query(b.query), pages(far_numbers + b.pages.size()), out(out_numbers(b)),
          plan(attention_plan_bytes(&bounds)),
          workspace(attention_workspace_bytes(&bounds, b.shape.heads, b.shape.value_dim)),
          table(b.table), row_request(b.row_request), row_slots(b.row_slots),
          lse(b.row_request.size() * b.shape.heads)
    {
        const struct shape &s = b.shape;
        a = {query.data(),     pages.data(),
             table.data(),     row_request.data(),
             row_slots.data(), (int64_t)b.row_request.size(),
             plan.data(),      workspace.data(),
             out.data(),       lse.data(),
             s.scale,          b.table_pages,
             bounds,           s.heads,
             s.kv_heads,       s.key_dim,
             s.value_dim};
        set(b, far_numbers);
    }
    /* Another batch of the same sizes in the same places. */
    void set(const struct batch &b, size_t far_numbers)
    {
        std::vector<char> laid_out(attention_plan_bytes(&a.bounds));
        attention_plan_make(laid_out.data(), &a.bounds, (int)b.row_request.size(),
                            b.row_request.data(), b.row_slots.data());
        plan.write(0, laid_out);
        query.write(0, b.query);
        pages.write(far_numbers, b.pages);
        table.write(0, b.table);
        row_request.write(0, b.row_request);
        row_slots.write(0, b.row_slots);
    }
    bool is_fenced() const
    {
        return out.is_fenced() && lse.is_fenced() && workspace.is_fenced();
    }
    static size_t out_numbers(const struct batch &b)
    {
        return b.row_request.size() * b.shape.heads * b.shape.value_dim;
    }

    guarded<uint16_t> query, pages, out;
    guarded<char> plan, workspace;
    guarded<int32_t> table, row_request;
    guarded<int64_t> row_slots;
    guarded<float> lse;
    struct attention a;
};

struct result {
    bf16s out;
    std::vector<float> lse;
};

static double relative_l2(const uint16_t *got, const double *want, int n)
{
    double error = 0, size = 0;
    for (int d = 0; d < n; d++) {
        error += pow(from_bf16(got[d]) - want[d], 2);
        size += want[d] * want[d];
    }
    return size > 0 ? sqrt(error / size) : sqrt(error);
}

struct worst {
    double out, lse;
    bool ok;
};

/* Not-a-number counts as wrong. */
static void note(struct worst *w, const struct batch &b, int64_t pair, const char *against,
                 double out_error, double lse_error)
{
    const bool ok = out_error <= OUT_TOLERANCE && lse_error <= LSE_TOLERANCE;
    w->out = out_error > w->out || std::isnan(out_error) ? out_error : w->out;
    w->lse = lse_error > w->lse || std::isnan(lse_error) ? lse_error : w->lse;
    if (!ok && w->ok) {
        const int64_t row = pair / b.shape.heads;
        printf("  row %lld of request %d, %lld slots, head %lld, against %s: output off by %g, "
               "LSE by %g\n",
               (long long)row, b.row_request[row], (long long)b.row_slots[row],
               (long long)pair % b.shape.heads, against, out_error, lse_error);
    }
    w->ok = w->ok && ok;
}

static double lse_difference(double got, double want)
{
    return got == want ? 0 : fabs(got - want); /* infinities too */
}

static void check_reference(struct worst *w, const struct batch &b, const struct result &r,
                            int64_t row, int head)
{
    std::vector<double> want;
    const double lse = reference(b, row, head, &want);
    const int64_t pair = row * b.shape.heads + head;
    note(w, b, pair, "the definition",
         relative_l2(&r.out[pair * b.shape.value_dim], want.data(), b.shape.value_dim),
         lse_difference(r.lse[pair], lse));
}

/* The first and the last row of every request and some others; all rows where they are few. */
static void check_samples(struct worst *w, const struct batch &b, const struct result &r)
{
    const int64_t rows = (int64_t)b.row_request.size();
    for (int64_t row = 0; row < rows; row++) {
        const bool edge = row == 0 || row == rows - 1 ||
                          b.row_request[row] != b.row_request[row - 1] ||
                          b.row_request[row] != b.row_request[row + 1];
        if (edge || pick(0, 63) == 0) {
            check_reference(w, b, r, row, pick(0, b.shape.heads - 1));
            check_reference(w, b, r, row, b.shape.heads - 1);
        }
    }
}

static void check_all(struct worst *w, const struct batch &b, const struct result &r,
                      const struct result &other)
{
    for (size_t pair = 0; pair < r.lse.size(); pair++) {
        std::vector<double> want;
        for (int d = 0; d < b.shape.value_dim; d++)
            want.push_back(from_bf16(other.out[pair * b.shape.value_dim + d]));
        note(w, b, (int64_t)pair, "plain_attention",
             relative_l2(&r.out[pair * b.shape.value_dim], want.data(), b.shape.value_dim),
             lse_difference(r.lse[pair], other.lse[pair]));
    }
}

static void finish(cudaError_t launched, const char *what)
{
    must(launched, what);
    must(cudaDeviceSynchronize(), what);
}

static void report(const char *kernel, const struct batch &b, const struct attention_bounds &bounds,
                   const char *note, const struct worst &w)
{
    const struct shape &s = b.shape;
    w.ok ? n_passed++ : n_failed++;
    printf("%s %s: %d/%d heads, dims %d and %d, shard %d of %d, %zu rows, %d parts, %s: output "
           "within %.2g, LSE within %.2g\n",
           w.ok ? "passed" : "FAILED", kernel, s.heads, s.kv_heads, s.key_dim, s.value_dim, s.shard,
           s.shards, b.row_request.size(), bounds.parts, note, w.out, w.lse);
    fflush(stdout);
}

static struct result run_plain(const struct batch &b, const struct attention_bounds &bounds,
                               device_batch *d, const char *note)
{
    struct worst w = {0, 0, true};
    finish(plain_attention(&d->a, b.shape.kv_dim, b.shape.value_at, 0), "plain_attention");
    const struct result r = {d->out.read(), d->lse.read()};
    check_samples(&w, b, r);
    w.ok = w.ok && d->is_fenced();
    report("plain_attention", b, bounds, note, w);
    return r;
}

/* A few times over: the same bits each time. */
static void run_gqa(const struct batch &b, const struct attention_bounds &bounds, device_batch *d,
                    const struct result &plain, const char *note)
{
    struct worst w = {0, 0, true};
    struct result r;
    for (int round = 0; round < 3; round++) {
        d->out.write(0, bf16s(d->out_numbers(b), POISON));
        d->lse.write(0, std::vector<float>(d->a.rows * d->a.heads, NAN));
        finish(gqa_attention(&d->a, 0), "gqa_attention");
        const struct result again = {d->out.read(), d->lse.read()};
        if (round == 0)
            r = again;
        else if (again.out != r.out || memcmp(again.lse.data(), r.lse.data(), r.lse.size() * 4)) {
            printf("  round %d gives other bits\n", round);
            w.ok = false;
        }
    }
    check_samples(&w, b, r);
    check_all(&w, b, r, plain);
    if (!d->is_fenced()) {
        printf("  wrote beyond an output\n");
        w.ok = false;
    }
    report("gqa_attention", b, bounds, note, w);
}

static struct shape gqa_shape(int heads, int kv_heads, int dim, int shard, int shards)
{
    return {
        heads, kv_heads, dim, dim, 2 * dim, dim, shard, shards, (float)(pick(1, 3) / sqrt(dim))};
}

/* parts: 0 as gqa_attention_bounds() has it. */
static struct attention_bounds bounds_of(const struct batch &b, int parts)
{
    struct attention_bounds bounds;
    must(gqa_attention_bounds(b.shape.heads, b.shape.kv_heads, 0, (int)b.row_request.size() + 2,
                              &bounds),
         "gqa_attention_bounds");
    if (parts > 0)
        bounds.parts = parts;
    return bounds;
}

static void test_gqa(const struct shape &shape, const std::vector<struct request> &requests,
                     int parts, const char *note)
{
    const struct batch b = make_batch(shape, requests, 80);
    const struct attention_bounds bounds = bounds_of(b, parts);
    device_batch d(b, bounds);
    const struct result plain = run_plain(b, bounds, &d, note);
    run_gqa(b, bounds, &d, plain, note);
}

static void test_plain(const struct shape &shape, const std::vector<struct request> &requests,
                       const char *note)
{
    const struct batch b = make_batch(shape, requests, 80);
    const struct attention_bounds bounds = {(int)b.row_request.size(), 1, 1};
    device_batch d(b, bounds);
    run_plain(b, bounds, &d, note);
}

/* One graph, captured once, for batches that differ in all but their sizes. */
static void test_graph(void)
{
    const struct shape shape = gqa_shape(32, 4, 128, 0, 1);
    const std::vector<struct request> steps[] = {{{700, 1}, {65, 20}, {0, 1}, {5000, 1}, {64, 1}},
                                                 {{3, 1}, {900, 20}, {4000, 1}, {0, 1}, {129, 1}},
                                                 {{1, 1}, {20, 20}, {2, 1}, {3, 1}, {4, 1}}};
    const struct batch first = make_batch(shape, steps[0], 80);
    const struct attention_bounds bounds = bounds_of(first, 0);
    device_batch d(first, bounds);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    must(cudaStreamCreate(&stream), "cudaStreamCreate");
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
    must(gqa_attention(&d.a, stream), "gqa_attention");
    must(cudaStreamEndCapture(stream, &graph), "capture");
    must(cudaGraphInstantiate(&replay, graph, 0), "cudaGraphInstantiate");
    for (const std::vector<struct request> &step : steps) {
        const struct batch b = make_batch(shape, step, 80);
        struct worst w = {0, 0, true};
        d.set(b, 0);
        must(cudaGraphLaunch(replay, stream), "cudaGraphLaunch");
        must(cudaStreamSynchronize(stream), "graph");
        check_samples(&w, b, {d.out.read(), d.lse.read()});
        w.ok = w.ok && d.is_fenced();
        report("gqa_attention", b, bounds, "replayed graph", w);
    }
    must(cudaGraphExecDestroy(replay), "cudaGraphExecDestroy");
    must(cudaGraphDestroy(graph), "cudaGraphDestroy");
    must(cudaStreamDestroy(stream), "cudaStreamDestroy");
}

static void test_far_pages(void)
{
    const struct shape shape = gqa_shape(64, 8, 128, 0, 1);
    const size_t page_numbers = (size_t)KV_PAGE_TOKENS * shape.kv_heads * shape.kv_dim;
    const int64_t first_page = (((int64_t)1 << 31) / (int64_t)page_numbers) + 1;
    size_t free_bytes, total_bytes;
    must(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
    if (free_bytes < (size_t)6 << 30) {
        printf("pages beyond 2^31 numbers: skipped, less than 6 GiB of GPU memory free\n");
        return;
    }
    const struct batch b = make_batch(shape, {{300, 1}, {129, 3}, {1000, 1}}, 16, first_page);
    const struct attention_bounds bounds = bounds_of(b, 0);
    device_batch d(b, bounds, first_page * page_numbers);
    const struct result plain = run_plain(b, bounds, &d, "beyond 2^31 numbers");
    run_gqa(b, bounds, &d, plain, "beyond 2^31 numbers");
}

static void check(bool ok, const char *what)
{
    ok ? n_passed++ : n_failed++;
    if (!ok)
        printf("FAILED: %s\n", what);
}

static void test_arguments(void)
{
    struct attention_bounds bounds;
    struct attention a = {};
    a.heads = 6, a.kv_heads = 4, a.key_dim = a.value_dim = 128;
    check(gqa_attention(&a, 0) == cudaErrorInvalidValue, "gqa_attention: heads not shared evenly");
    check(plain_attention(&a, 256, 128, 0) == cudaErrorInvalidValue,
          "plain_attention: heads not shared evenly");
    a.kv_heads = 3;
    check(gqa_attention(&a, 0) == cudaSuccess, "gqa_attention: no rows");
    check(plain_attention(&a, 256, 128, 0) == cudaSuccess, "plain_attention: no rows");
    check(plain_attention(&a, 200, 128, 0) == cudaErrorInvalidValue,
          "plain_attention: values beyond the KV row");
    check(gqa_attention_bounds(6, 4, 0, 1, &bounds) == cudaErrorInvalidValue,
          "gqa_attention_bounds: heads not shared evenly");
    check(gqa_attention_bounds(1, 1, 1 << 20, 1, &bounds) == cudaSuccess && bounds.parts == 1,
          "gqa_attention_bounds: one part at least");
}

static const std::vector<struct request> decode = {{0, 1},  {1, 1},    {63, 1},  {64, 1},
                                                   {65, 1}, {1000, 1}, {5000, 1}};
static const std::vector<struct request> mixed = {{65, 65}, {1, 1},  {1000, 200}, {0, 1},
                                                  {300, 7}, {64, 1}, {5000, 33},  {129, 2}};
static const std::vector<struct request> small = {{0, 1}, {1, 1}, {65, 3}, {64, 1}, {130, 1}};

static void test_all(void)
{
    for (int group : {1, 4, 8, 16})
        for (int kv_heads : {1, 2, 4, 8}) {
            const int shards = pick(1, 3), shard = pick(0, shards - 1);
            test_gqa(gqa_shape(group * kv_heads, kv_heads, 128, shard, shards), decode, 0,
                     "decode");
            test_gqa(gqa_shape(group * kv_heads, kv_heads, 128, shard, shards), mixed, 0, "mixed");
        }
    for (int group : {3, 24, 32, 40, 64, 96, 128})
        test_gqa(gqa_shape(group * 2, 2, 128, 0, 1), mixed, 0, "mixed");
    for (int shard = 0; shard < 3; shard++)
        test_gqa(gqa_shape(16, 2, 128, shard, 3), mixed, 0, "mixed");
    for (int parts : {1, 3, 400})
        test_gqa(gqa_shape(16, 2, 128, 1, 2), mixed, parts, "mixed");
    test_gqa(gqa_shape(16, 1, 128, 0, 1), {{5000, 1}}, 400, "one request");
    test_gqa(gqa_shape(16, 1, 128, 0, 1), std::vector<struct request>(300, {70, 1}), 0,
             "more rows than parts");
    test_gqa(gqa_shape(16, 4, 32, 0, 1), mixed, 0, "no tensor cores");
    test_gqa(gqa_shape(130, 1, 128, 0, 1), small, 0, "no tensor cores");
    test_plain({5, 1, 80, 64, 80, 0, 1, 2, 0.1f}, mixed, "latent");
    test_plain({6, 3, 33, 7, 45, 38, 0, 1, 0.2f}, small, "odd dimensions");
    test_graph();
    test_far_pages();
}

static void test_small(void)
{
    for (int group : {1, 16, 24, 64})
        test_gqa(gqa_shape(group * 2, 2, 128, 0, 1), small, 5, "small");
    test_gqa(gqa_shape(64, 1, 128, 1, 2), {{130, 20}, {70, 1}}, 3, "small");
    test_plain({5, 1, 80, 64, 80, 0, 0, 1, 0.1f}, small, "small");
}

int main(int argc, char **argv)
{
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("no GPU: skipped\n");
    } else {
        test_arguments();
        argc > 1 && strcmp(argv[1], "--small") == 0 ? test_small() : test_all();
    }
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed != 0;
}
