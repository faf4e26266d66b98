/* SPDX-License-Identifier: Apache-2.0
 *
 * MLA attention against a double loop on the CPU at sampled (row, head) pairs, over batches that
 * mix decode rows, prefill chunks and rows that see nothing. What must not be read is poison, what
 * must not be written stays poison. --small: few cases, for compute-sanitizer. Without a GPU
 * nothing runs.
 */
#include "kernels/attention.h"
#include "kernels/kv_pages.h"
#include "tests/gpu/checks.cuh"

#include <numeric>

static const double OUT_L2_MAX = 5e-3, LSE_MAX = 1e-3;

/* n normally distributed numbers: runs of a pool from random places. */
static bf16s random_normal(size_t n)
{
    enum { POOL = 1 << 20, RUN = 1 << 10 };
    static bf16s pool;
    if (pool.empty())
        pool = random_rows(POOL);
    bf16s v;
    v.reserve(n + RUN);
    while (v.size() < n) {
        const uint16_t *run = &pool[pick(0, POOL - RUN)];
        v.insert(v.end(), run, run + RUN);
    }
    v.resize(n);
    return v;
}

/* The last `rows` positions of a context of so many tokens are queries; of no tokens, they see
 * nothing. */
struct request {
    int64_t tokens;
    int rows;
};

struct mla_case {
    const char *name;
    int heads, shards, shard;
    int parts;       /* 0: as many as the device has room for */
    int32_t n_pages; /* 0: a few more than are used */
    float scale;
    int key_dim, value_dim;
    std::vector<struct request> requests;
};

/* One rank's share of a batch. */
struct batch {
    std::vector<int32_t> row_request, table;
    std::vector<int64_t> row_slots, seen; /* of a row; by any row of a request */
    std::vector<bf16s> kv;                /* of a request: [seen][key_dim] */
    bf16s query;
    int64_t rows, table_pages;
    int32_t n_pages;
};

static void add_rows(const struct mla_case *c, struct batch *b, int32_t r)
{
    const struct request *q = &c->requests[r];
    int64_t seen = 0;
    for (int i = 0; i < q->rows; i++) {
        const int64_t tokens = std::max<int64_t>(q->tokens - q->rows + 1 + i, 0);
        seen = kv_pages_shard_tokens(tokens, c->shard, c->shards);
        b->row_request.push_back(r);
        b->row_slots.push_back(seen);
    }
    b->seen.push_back(seen);
    b->kv.push_back(random_normal(seen * c->key_dim));
}

static struct batch make_batch(const struct mla_case *c)
{
    struct batch b = {};
    for (size_t r = 0; r < c->requests.size(); r++)
        add_rows(c, &b, (int32_t)r);
    b.rows = (int64_t)b.row_request.size();
    b.query = random_normal(b.rows * c->heads * c->key_dim);
    b.table_pages = 1 + *std::max_element(b.seen.begin(), b.seen.end()) / KV_PAGE_TOKENS;
    const int64_t used = b.table_pages * (int64_t)c->requests.size();
    b.n_pages = c->n_pages ? c->n_pages : (int32_t)used + 3;
    std::vector<int32_t> pages(b.n_pages);
    std::iota(pages.begin(), pages.end(), 0);
    std::shuffle(pages.begin(), pages.end(), rng);
    b.table.assign(pages.begin(), pages.begin() + used);
    return b;
}

/* The slots that are seen, the others stay poison. */
static void fill_pages(const struct mla_case *c, const struct batch *b, guarded<uint16_t> *pages)
{
    const int64_t page = (int64_t)KV_PAGE_TOKENS * c->key_dim;
    for (size_t r = 0; r < b->kv.size(); r++)
        for (int64_t at = 0; at < (int64_t)b->kv[r].size(); at += page) {
            const int64_t end = std::min<int64_t>(at + page, (int64_t)b->kv[r].size());
            const int32_t there = b->table[r * b->table_pages + at / page];
            pages->write(there * page, bf16s(&b->kv[r][at], &b->kv[r][at] + (end - at)));
        }
}

struct want {
    std::vector<double> out;
    double lse;
};

static struct want reference(const struct mla_case *c, const struct batch *b, int64_t row, int head)
{
    const int64_t slots = b->row_slots[row];
    const uint16_t *query = &b->query[(row * c->heads + head) * c->key_dim];
    const uint16_t *kv = b->kv[b->row_request[row]].data();
    std::vector<double> s(slots);
    struct want w = {std::vector<double>(c->value_dim), -INFINITY};
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < slots; i++) {
        for (int d = 0; d < c->key_dim; d++)
            s[i] += from_bits(query[d]) * from_bits(kv[i * c->key_dim + d]);
        s[i] *= c->scale;
        max = std::max(max, s[i]);
    }
    for (int64_t i = 0; i < slots; i++) {
        const double p = exp(s[i] - max);
        sum += p;
        for (int d = 0; d < c->value_dim; d++)
            w.out[d] += p * from_bits(kv[i * c->key_dim + d]);
    }
    for (double &x : w.out)
        x = sum > 0 ? x / sum : 0;
    if (sum > 0)
        w.lse = max + log(sum);
    return w;
}

/* The largest error so far, and whether every one was small enough. */
struct worst {
    double out = 0, lse = 0;
    bool ok = true;
};

static void compare(const struct mla_case *c, const struct batch *b, int64_t row, int head,
                    const bf16s &out, const std::vector<float> &lse, struct worst *worst)
{
    const int64_t pair = row * c->heads + head;
    const struct want want = reference(c, b, row, head);
    double off = 0, size = 0, lse_off = fabs(lse[pair] - want.lse);
    if (want.lse == -INFINITY)
        lse_off = lse[pair] == -INFINITY ? 0 : INFINITY;
    for (int d = 0; d < c->value_dim; d++) {
        const double got = from_bits(out[pair * c->value_dim + d]);
        off += (got - want.out[d]) * (got - want.out[d]);
        size += want.out[d] * want.out[d];
    }
    const double l2 = off == 0 ? 0 : sqrt(off / size);
    if (!(l2 <= OUT_L2_MAX && lse_off <= LSE_MAX)) {
        if (worst->ok)
            printf("    row %lld of %lld, request %d, head %d, %lld slots: L2 %g, LSE %g for %g, "
                   "out %g %g .. %g for %g %g .. %g\n",
                   (long long)row, (long long)b->rows, b->row_request[row], head,
                   (long long)b->row_slots[row], l2, lse[pair], want.lse,
                   from_bits(out[pair * c->value_dim]), from_bits(out[pair * c->value_dim + 1]),
                   from_bits(out[(pair + 1) * c->value_dim - 1]), want.out[0], want.out[1],
                   want.out[c->value_dim - 1]);
        worst->ok = false;
    }
    worst->out = std::max(worst->out, std::isnan(l2) ? INFINITY : l2);
    worst->lse = std::max(worst->lse, std::isnan(lse_off) ? INFINITY : lse_off);
}

/* The corners, one row of each request, and some more. */
static struct worst compare_samples(const struct mla_case *c, const struct batch *b,
                                    const bf16s &out, const std::vector<float> &lse)
{
    struct worst worst;
    compare(c, b, 0, 0, out, lse, &worst);
    compare(c, b, b->rows - 1, c->heads - 1, out, lse, &worst);
    for (int64_t row = 0; row < b->rows; row++)
        if (row == 0 || b->row_request[row] != b->row_request[row - 1])
            compare(c, b, row, pick(0, c->heads - 1), out, lse, &worst);
    for (int i = 0; i < 24; i++)
        compare(c, b, pick(0, (int)b->rows - 1), pick(0, c->heads - 1), out, lse, &worst);
    for (int64_t i = 0; i < (int64_t)out.size() && worst.ok; i++)
        if (std::isnan(from_bits(out[i]))) {
            printf("    NaN in row %lld, head %lld, column %lld\n",
                   (long long)(i / c->value_dim / c->heads),
                   (long long)(i / c->value_dim % c->heads), (long long)(i % c->value_dim));
            worst.ok = false;
        }
    return worst;
}

static void report(const struct mla_case *c, int64_t rows, int parts, const struct worst *w,
                   bool fenced)
{
    printf("%s, %d heads, %lld rows, shard %d of %d, %d parts: L2 %.1e, LSE %.1e%s\n", c->name,
           c->heads, (long long)rows, c->shard, c->shards, parts, w->out, w->lse,
           fenced ? "" : ", wrote out of bounds");
    check(w->ok && fenced, c->name);
    fflush(stdout);
}

/* What a launch needs on the device, of the sizes of one batch; batches of the same sizes may
 * follow. */
struct device_batch {
    const struct mla_case *c;
    struct attention_bounds bounds;
    guarded<uint16_t> query, pages, out;
    guarded<int32_t> table, row_request;
    guarded<int64_t> row_slots;
    guarded<unsigned char> plan, workspace;
    guarded<float> lse;

    device_batch(const struct mla_case *c, const struct batch *b, struct attention_bounds bounds)
        : c(c), bounds(bounds), query(b->query.size()),
          pages((size_t)b->n_pages * KV_PAGE_TOKENS * c->key_dim),
          out(b->rows * c->heads * c->value_dim), table(b->table.size()), row_request(b->rows),
          row_slots(b->rows), plan(attention_plan_bytes(&bounds)),
          workspace(attention_workspace_bytes(&bounds, c->heads, c->value_dim)),
          lse(b->rows * c->heads)
    {
    }

    void load(const struct batch *b)
    {
        std::vector<unsigned char> laid_out(attention_plan_bytes(&bounds));
        attention_plan_make(laid_out.data(), &bounds, (int)b->rows, b->row_request.data(),
                            b->row_slots.data());
        plan.write(0, laid_out);
        query.write(0, b->query);
        table.write(0, b->table);
        row_request.write(0, b->row_request);
        row_slots.write(0, b->row_slots);
        fill_pages(c, b, &pages);
    }

    struct attention launch_of(const struct batch *b) const
    {
        return {
            query.data(), pages.data(),   table.data(),     row_request.data(), row_slots.data(),
            b->rows,      plan.data(),    workspace.data(), out.data(),         lse.data(),
            c->scale,     b->table_pages, bounds,           c->heads,           1,
            c->key_dim,   c->value_dim};
    }

    void compare_with(const struct batch *b) const
    {
        must(cudaDeviceSynchronize(), c->name);
        const struct worst worst = compare_samples(c, b, out.read(), lse.read());
        const bool fenced = out.is_fenced() && lse.is_fenced() && workspace.is_fenced() &&
                            query.is_fenced() && pages.is_fenced() && plan.is_fenced();
        report(c, b->rows, bounds.parts, &worst, fenced);
    }
};

static struct attention_bounds bounds_of(const struct mla_case *c, int64_t rows)
{
    struct attention_bounds bounds;
    must(mla_attention_bounds(c->heads, 0, (int)rows + pick(0, 5), &bounds),
         "mla_attention_bounds");
    if (c->parts)
        bounds.parts = c->parts;
    return bounds;
}

static void test_case(const struct mla_case *c)
{
    const struct batch b = make_batch(c);
    struct device_batch d(c, &b, bounds_of(c, b.rows));
    d.load(&b);
    const struct attention a = d.launch_of(&b);
    must(mla_attention(&a, 0), c->name);
    d.compare_with(&b);
}

/* A captured launch, replayed over other data, contexts and plans of the same sizes. */
static void test_replays(struct mla_case c)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    std::vector<struct request> largest = c.requests;
    struct batch b = make_batch(&c);
    struct device_batch d(&c, &b, bounds_of(&c, b.rows));
    const struct attention a = d.launch_of(&b);
    must(cudaStreamCreate(&stream), "cudaStreamCreate");
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
    must(mla_attention(&a, stream), c.name);
    must(cudaStreamEndCapture(stream, &graph), "capture");
    must(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
    for (int replay = 0; replay < 4; replay++) {
        d.load(&b);
        must(cudaGraphLaunch(exec, stream), c.name);
        d.compare_with(&b);
        const int64_t table_pages = b.table_pages;
        for (size_t r = 1; r < c.requests.size(); r++) /* the first keeps the table's width */
            c.requests[r].tokens = pick(0, (int)largest[r].tokens);
        b = make_batch(&c);
        if (b.table_pages != table_pages)
            must(cudaErrorInvalidValue, "the test's table changed its width");
    }
    must(cudaGraphExecDestroy(exec), "cudaGraphExecDestroy");
    must(cudaGraphDestroy(graph), "cudaGraphDestroy");
    must(cudaStreamDestroy(stream), "cudaStreamDestroy");
}

static const float SCALE = 0.0721688f; /* 1 / sqrt(192) */

static struct mla_case case_of(const char *name, int heads, int parts,
                               std::vector<struct request> requests)
{
    return {name, heads, 1, 0, parts, 0, SCALE, 576, 512, std::move(requests)};
}

static std::vector<struct request> mixed_decode(void)
{
    return {{1, 1}, {63, 1}, {0, 1}, {64, 1}, {65, 1}, {1000, 1}, {5000, 1}, {0, 1}, {128, 1}};
}

static std::vector<struct request> mixed_prefill(int longest)
{
    return {{700, 1}, {longest, longest},           {0, 2},           {1000, 37},
            {1, 1},   {longest + 129, longest - 3}, {longest * 3, 2}, {5, 5}};
}

static void test_small(void)
{
    for (int heads : {3, 16, 64, 128})
        for (int parts : {1, 5}) {
            struct mla_case c = case_of("small", heads, parts, {{130, 1}, {0, 1}, {64, 3}, {9, 9}});
            test_case(&c);
        }
}

static void test_all(void)
{
    for (int heads : {1, 4, 8, 16, 32, 64, 128}) {
        for (int parts : {0, 1, 7}) {
            struct mla_case c = case_of("decode", heads, parts, mixed_decode());
            test_case(&c);
            c = case_of("prefill", heads, parts, mixed_prefill(heads > 16 ? 60 : 200));
            test_case(&c);
        }
        for (int shards = 2; shards <= 3; shards++)
            for (int shard = 0; shard < shards; shard++) {
                struct mla_case c = case_of("shard", heads, 0, mixed_decode());
                for (const struct request &r : mixed_prefill(40))
                    c.requests.push_back(r);
                c.shards = shards, c.shard = shard;
                test_case(&c);
            }
    }
    for (int heads : {3, 12, 40, 96, 192}) {
        struct mla_case c = case_of("odd heads", heads, 0, mixed_prefill(50));
        test_case(&c);
    }
    struct mla_case c = case_of("sharp", 16, 0, mixed_decode());
    c.scale = 1;
    test_case(&c);
    c = case_of("flat", 64, 0, mixed_decode());
    c.scale = 1e-4f;
    test_case(&c);
    c = case_of("one long request", 128, 0, {{40000, 1}});
    test_case(&c);
    c = case_of("beyond 2^31", 16, 0, {{30000, 1}, {20000, 3}});
    c.n_pages = 60000;
    test_case(&c);
    c = case_of("other dimensions", 16, 0, mixed_prefill(20));
    c.key_dim = 80, c.value_dim = 64;
    test_case(&c);
    test_replays(case_of("replay", 16, 0, {{5000, 1}, {3000, 40}, {2000, 1}, {100, 7}}));
    test_replays(case_of("replay", 128, 0, {{5000, 1}, {3000, 40}, {2000, 1}, {100, 7}}));
}

int main(int argc, char **argv)
{
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
        printf("no GPU: skipped\n");
    else if (argc > 1 && strcmp(argv[1], "--small") == 0)
        test_small();
    else
        test_all();
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed != 0;
}
