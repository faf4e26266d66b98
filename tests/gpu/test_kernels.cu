/* SPDX-License-Identifier: Apache-2.0
 *
 * Every kernel against a loop on the CPU that is written from the layout's definition. Moved data
 * must be equal, and what lies around it untouched; combined outputs within BF16's rounding.
 * Without a GPU nothing runs.
 */
#include "kernels/dop.h"
#include "kernels/kv_append.h"
#include "kernels/kv_pages.h"
#include "kernels/kv_repack.h"
#include "kernels/lse_combine.h"
#include "tests/gpu/guarded.cuh"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>

typedef std::vector<uint16_t> bf16s;

static const uint16_t POISON = 0xffff;
static int n_passed, n_failed;
static std::mt19937_64 rng(20260901);

static void check(bool ok, const char *what)
{
    ok ? n_passed++ : n_failed++;
    if (!ok)
        printf("failed: %s\n", what);
}

/* The launch and what it did. */
static void finish(cudaError_t launched, const char *what)
{
    must(launched, what);
    must(cudaDeviceSynchronize(), what);
}

static int pick(int low, int high)
{
    return std::uniform_int_distribution<int>(low, high)(rng);
}

/* Mostly multiples of 8 numbers, which take the 16-byte path. */
static int pick_dim(int high)
{
    return pick(0, 2) ? 8 * pick(1, high / 8) : pick(1, high);
}

/* Random bits, but never the poison. */
static bf16s random_bits(size_t n)
{
    bf16s v(n);
    for (uint16_t &x : v)
        x = (uint16_t)(rng() % POISON);
    return v;
}

static float from_bf16(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

static std::vector<int64_t> prefix(const std::vector<int64_t> &counts)
{
    std::vector<int64_t> first = {0};
    for (int64_t n : counts)
        first.push_back(first.back() + n);
    return first;
}

static void test_pack(const std::vector<int64_t> &counts, size_t shift)
{
    const int owners = (int)counts.size(), heads = pick(1, 9);
    const int nope = pick_dim(600), rope = pick_dim(80), dim = nope + rope;
    const std::vector<int64_t> first = prefix(counts);
    const int64_t rows = first.back() + pick(0, 3); /* the last ones are nobody's */
    const bf16s a = random_bits(rows * heads * nope), b = random_bits(rows * heads * rope);
    guarded<uint16_t> nopes(a, shift), ropes(b, shift);
    guarded<int64_t> bounds(first);
    std::vector<std::unique_ptr<guarded<uint16_t>>> pieces;
    struct dop_queries p = {nopes.data(), ropes.data(), bounds.data(), {},  rows,
                            owners,       heads,        nope,          rope};
    for (int o = 0; o < owners; o++) {
        pieces.push_back(std::make_unique<guarded<uint16_t>>(counts[o] * heads * dim, shift));
        p.to[o] = pieces[o]->data();
    }
    finish(dop_pack_queries(&p, 0), "dop_pack_queries");
    bool equal = true;
    for (int o = 0; o < owners; o++) {
        bf16s want;
        for (int64_t i = first[o] * heads; i < first[o + 1] * heads; i++) {
            want.insert(want.end(), &a[i * nope], &a[i * nope] + nope);
            want.insert(want.end(), &b[i * rope], &b[i * rope] + rope);
        }
        equal = equal && pieces[o]->read() == want && pieces[o]->is_fenced();
    }
    check(equal, "dop_pack_queries");
}

static void test_unpack_and_outputs(int64_t rows, size_t shift)
{
    const int ranks = pick(1, 8), heads = pick(1, 5), dim = pick_dim(600);
    const int64_t run = heads * dim;
    const bf16s in = random_bits(ranks * rows * run);
    bf16s swapped(in.size());
    for (int rank = 0; rank < ranks; rank++)
        for (int64_t row = 0; row < rows; row++)
            for (int64_t e = 0; e < run; e++)
                swapped[(row * ranks + rank) * run + e] = in[(rank * rows + row) * run + e];
    guarded<uint16_t> from(in, shift), to(in.size(), shift), back(in.size(), shift);
    struct dop_rows p = {from.data(), to.data(), rows, ranks, heads, dim};
    finish(dop_unpack_queries(&p, 0), "dop_unpack_queries");
    check(to.read() == swapped && to.is_fenced(), "dop_unpack_queries");
    p.from = to.data(), p.to = back.data();
    finish(dop_pack_outputs(&p, 0), "dop_pack_outputs");
    check(back.read() == in && back.is_fenced(), "dop_pack_outputs");
}

/* Distinct pages in random order, some to spare. */
static std::vector<int32_t> random_table(int64_t entries, int64_t pages)
{
    std::vector<int32_t> all(pages);
    for (int64_t i = 0; i < pages; i++)
        all[i] = (int32_t)i;
    std::shuffle(all.begin(), all.end(), rng);
    all.resize(entries);
    return all;
}

/* Which of the request's positions a shard holds, in order: the definition, counted out. */
static std::vector<int64_t> positions_of(int64_t tokens, int shard, int shards)
{
    std::vector<int64_t> held;
    for (int64_t p = 0; p < tokens; p++)
        if (p / 16 % shards == shard)
            held.push_back(p);
    return held;
}

static int64_t paged_row(const std::vector<int32_t> &table, int64_t request, int64_t table_pages,
                         int64_t slot)
{
    return (int64_t)table[request * table_pages + slot / 64] * 64 + slot % 64;
}

static void test_append(int requests, size_t shift)
{
    const int width = pick_dim(600), shards = pick(1, 4), shard = pick(0, shards - 1);
    const int64_t table_pages = pick(1, 5), pages = requests * table_pages + 2;
    const std::vector<int32_t> table = random_table(requests * table_pages, pages);
    std::vector<int32_t> request;
    std::vector<int64_t> position;
    for (int r = 0; r < requests; r++) {
        const int start = pick(0, (int)table_pages * 64 - 1), rows = pick(0, 40);
        for (int i = 0; i < rows; i++) {
            const bool fits = start + i < table_pages * 64;
            request.push_back(r);
            position.push_back(fits ? start + i : -1);
        }
    }
    const int64_t rows = (int64_t)request.size();
    const bf16s in = random_bits(rows * width);
    bf16s want(pages * 64 * width, POISON);
    for (int64_t i = 0; i < rows; i++) {
        if (position[i] < 0 || position[i] / 16 % shards != shard)
            continue;
        const int64_t slot = (int64_t)positions_of(position[i], shard, shards).size();
        const int64_t there = paged_row(table, request[i], table_pages, slot);
        std::copy(&in[i * width], &in[i * width] + width, &want[there * width]);
    }
    guarded<uint16_t> from(in, shift), to(want.size(), shift);
    guarded<int32_t> who(request), tables(table);
    guarded<int64_t> where(position);
    const struct kv_append p = {from.data(), who.data(),  where.data(), tables.data(), to.data(),
                                rows,        table_pages, width,        shard,         shards};
    finish(kv_append(&p, 0), "kv_append");
    check(to.read() == want && to.is_fenced(), "kv_append");
}

/* Owner to shard, and the shard's rows back into new pages of an owner. */
static void test_repack(const std::vector<int64_t> &tokens, size_t shift)
{
    const int requests = (int)tokens.size();
    const int width = pick_dim(600), shards = pick(1, 4), shard = pick(0, shards - 1);
    const int64_t table_pages = 5, pages = requests * table_pages + 2;
    const std::vector<int32_t> table = random_table(requests * table_pages, pages);
    const bf16s owned = random_bits(pages * 64 * width);
    std::vector<int64_t> counts;
    bf16s packed, sharded(owned.size(), POISON), returned(owned.size(), POISON);
    for (int r = 0; r < requests; r++) {
        const std::vector<int64_t> held = positions_of(tokens[r], shard, shards);
        counts.push_back(kv_pages_shard_tokens(tokens[r], shard, shards));
        check(counts[r] == (int64_t)held.size(), "kv_pages_shard_tokens");
        for (size_t slot = 0; slot < held.size(); slot++) {
            const int64_t row = paged_row(table, r, table_pages, held[slot]);
            const uint16_t *from = &owned[row * width];
            packed.insert(packed.end(), from, from + width);
            std::copy(from, from + width,
                      &sharded[paged_row(table, r, table_pages, (int64_t)slot) * width]);
            std::copy(from, from + width, &returned[row * width]);
        }
    }
    const std::vector<int64_t> first = prefix(counts);
    const int64_t spare = pick(0, 3); /* rows that belong to no request */
    packed.resize(packed.size() + spare * width, POISON);
    guarded<uint16_t> owner(owned, shift), buffer(packed.size(), shift),
        again(packed.size(), shift);
    guarded<uint16_t> at_shard(owned.size(), shift), at_owner(owned.size(), shift);
    guarded<int32_t> tables(table);
    guarded<int64_t> bounds(first);
    struct kv_repack p = {
        buffer.data(), owner.data(), tables.data(), bounds.data(), first.back() + spare,
        table_pages,   requests,     width,         shard,         shards};
    finish(kv_repack_gather(&p, 0), "kv_repack_gather");
    check(buffer.read() == packed && buffer.is_fenced(), "kv_repack_gather from an owner");
    p.pages = at_owner.data();
    finish(kv_repack_scatter(&p, 0), "kv_repack_scatter");
    check(at_owner.read() == returned && at_owner.is_fenced(), "kv_repack_scatter to an owner");
    p.shard = 0, p.shards = 1, p.pages = at_shard.data();
    finish(kv_repack_scatter(&p, 0), "kv_repack_scatter");
    check(at_shard.read() == sharded && at_shard.is_fenced(), "kv_repack_scatter to a shard");
    p.buffer = again.data();
    finish(kv_repack_gather(&p, 0), "kv_repack_gather");
    check(again.read() == packed && again.is_fenced(), "kv_repack_gather from a shard");
}

struct combine_case {
    int64_t rows;
    int partials, heads, dim;
    bool bf16;
    int empty_in_8; /* chance of an empty partial: 8 makes all of them empty */
    size_t shift;
};

/* One (row, head) against a double sum. Empty partials hold NaN and must not count. */
static bool combines(const struct combine_case *c, const std::vector<float> &o,
                     const std::vector<float> &lse, int64_t pair, const bf16s &out, float out_lse)
{
    const int64_t pairs = c->rows * c->heads;
    double max = -INFINITY, sum = 0;
    for (int i = 0; i < c->partials; i++)
        max = std::max(max, (double)lse[i * pairs + pair]);
    for (int i = 0; i < c->partials && max > -INFINITY; i++)
        sum += exp(lse[i * pairs + pair] - max);
    if (sum == 0 ? out_lse != -INFINITY : !(fabs(out_lse - (max + log(sum))) <= 1e-4))
        return false;
    for (int d = 0; d < c->dim; d++) {
        double want = 0, size = 0;
        for (int i = 0; i < c->partials; i++) {
            if (lse[i * pairs + pair] == -INFINITY)
                continue;
            const double part =
                exp(lse[i * pairs + pair] - max) / sum * o[(i * pairs + pair) * c->dim + d];
            want += part;
            size += fabs(part);
        }
        /* 2^-8 of the result, and FP32's rounding of terms that cancel. */
        const double got = from_bf16(out[pair * c->dim + d]);
        if (!(fabs(got - want) <= fabs(want) / 256 + size / (1 << 18)))
            return false;
    }
    return true;
}

static void test_combine(const struct combine_case *c)
{
    const int64_t pairs = c->rows * c->heads;
    std::normal_distribution<float> normal;
    std::vector<float> o(c->partials * pairs * c->dim), lse(c->partials * pairs);
    bf16s halves(o.size());
    for (float &x : lse)
        x = pick(1, 8) <= c->empty_in_8 ? -INFINITY : 20 * normal(rng);
    for (size_t i = 0; i < o.size(); i++) {
        const float x = normal(rng);
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        halves[i] = lse[i / c->dim] == -INFINITY ? POISON : (uint16_t)(bits >> 16);
        o[i] = lse[i / c->dim] == -INFINITY ? NAN : c->bf16 ? from_bf16(halves[i]) : x;
    }
    guarded<float> wide(o, c->shift), sums(lse), out_lse(pairs);
    guarded<uint16_t> narrow(halves, c->shift), out(pairs * c->dim, c->shift);
    const void *partial = c->bf16 ? (const void *)narrow.data() : (const void *)wide.data();
    const struct lse_combine p = {partial,     sums.data(), out.data(), out_lse.data(), c->rows,
                                  c->partials, c->heads,    c->dim,     c->bf16};
    finish(lse_combine(&p, 0), "lse_combine");
    const bf16s got = out.read();
    const std::vector<float> got_lse = out_lse.read();
    bool ok = out.is_fenced() && out_lse.is_fenced();
    for (int64_t pair = 0; pair < pairs && ok; pair++)
        ok = combines(c, o, lse, pair, got, got_lse[pair]);
    check(ok, "lse_combine");
}

static void test_random_shapes(void)
{
    for (int round = 0; round < 40; round++) {
        const size_t shift = round % 5 == 4; /* addresses that rule out the 16-byte path */
        std::vector<int64_t> counts(pick(1, 9)), tokens(pick(1, 6));
        for (int64_t &n : counts)
            n = pick(0, 2) ? pick(0, 20) : 0;
        for (int64_t &n : tokens)
            n = pick(0, 3) ? pick(1, 320) : 0;
        test_pack(counts, shift);
        test_unpack_and_outputs(pick(0, 30), shift);
        test_append(pick(0, 6), shift);
        test_repack(tokens, shift);
        const struct combine_case c = {pick(0, 9),     pick(1, 12), pick(1, 9), pick_dim(600),
                                       round % 2 == 0, pick(0, 8),  shift};
        test_combine(&c);
    }
    test_pack({0}, 0);
    test_pack({0, 0, 0, 0, 17}, 0);
    test_pack(std::vector<int64_t>(DOP_OWNERS_MAX, 1), 0);
    test_repack({0}, 0);
    const struct combine_case extremes[] = {{3, LSE_PARTIALS_MAX, 2, 64, true, 4, 0},
                                            {3, 33, 2, 512, false, 8, 0},
                                            {5, 1, 3, 512, false, 0, 0}};
    for (const struct combine_case &c : extremes)
        test_combine(&c);
}

/* Random bits in the middle of what is poison otherwise. */
static bf16s put(guarded<uint16_t> *to, size_t first, size_t n)
{
    const bf16s bits = random_bits(n);
    to->write(first, bits);
    return bits;
}

/* Tensors of more than 2^31 numbers, of which the first and last rows are set and looked at. */
enum { FAR_ROWS = 33000, FAR_HEADS = 128, FAR_DIM = 512, FAR_ROPE = 64 };

static void test_far_pack(void)
{
    const size_t dim = FAR_DIM + FAR_ROPE, rows = FAR_ROWS, heads = FAR_HEADS;
    guarded<uint16_t> nope(rows * heads * FAR_DIM), rope(rows * heads * FAR_ROPE);
    guarded<uint16_t> big((rows - 5) * heads * dim), small(5 * heads * dim);
    guarded<int64_t> first(std::vector<int64_t>{0, FAR_ROWS - 5, FAR_ROWS});
    const struct dop_queries p = {
        nope.data(), rope.data(), first.data(), {big.data(), small.data()}, FAR_ROWS, 2,
        FAR_HEADS,   FAR_DIM,     FAR_ROPE};
    const size_t from[] = {0, (rows - 5) * heads - 1, rows * heads - 1}; /* (row, head) */
    bf16s want[3];
    for (int i = 0; i < 3; i++) {
        want[i] = put(&nope, from[i] * FAR_DIM, FAR_DIM);
        const bf16s tail = put(&rope, from[i] * FAR_ROPE, FAR_ROPE);
        want[i].insert(want[i].end(), tail.begin(), tail.end());
    }
    finish(dop_pack_queries(&p, 0), "dop_pack_queries");
    check(big.read(0, dim) == want[0] && big.read(from[1] * dim, dim) == want[1] &&
              small.read((5 * heads - 1) * dim, dim) == want[2] && big.is_fenced() &&
              small.is_fenced(),
          "dop_pack_queries beyond 2^31");
}

static void test_far_swap(void)
{
    const size_t run = FAR_HEADS / 2 * FAR_DIM, n = 2 * FAR_ROWS * run;
    const size_t row = FAR_ROWS - 2; /* of rank 1, then of rank 0 */
    guarded<uint16_t> from(n), to(n);
    const struct dop_rows p = {from.data(), to.data(), FAR_ROWS, 2, FAR_HEADS / 2, FAR_DIM};
    const bf16s a = put(&from, (FAR_ROWS + row) * run, run), b = put(&from, row * run, run);
    finish(dop_unpack_queries(&p, 0), "dop_unpack_queries");
    check(to.read((row * 2 + 1) * run, run) == a && to.read(row * 2 * run, run) == b &&
              to.is_fenced(),
          "dop_unpack_queries beyond 2^31");
}

/* Appends to the last page, then moves all pages, in reverse, to a buffer and back. */
static void test_far_pages(void)
{
    const int32_t pages = 58354;
    const int width = 576;
    const size_t page = 64 * (size_t)width, last = (pages - 1) * page;
    std::vector<int32_t> reversed(pages);
    for (int32_t i = 0; i < pages; i++)
        reversed[i] = pages - 1 - i;
    const bf16s in = random_bits(64 * width);
    std::vector<int64_t> position(64);
    for (int i = 0; i < 64; i++)
        position[i] = i;
    guarded<uint16_t> from(in), paged(pages * page), buffer(pages * page);
    guarded<int32_t> table(reversed), request(std::vector<int32_t>(64, 0));
    guarded<int64_t> where(position), first(std::vector<int64_t>{0, pages * (int64_t)64});
    const struct kv_append a = {from.data(),
                                request.data(),
                                where.data(),
                                table.data(),
                                paged.data(),
                                64,
                                pages,
                                width,
                                0,
                                1};
    finish(kv_append(&a, 0), "kv_append");
    check(paged.read(last, page) == in && paged.is_fenced(), "kv_append beyond 2^31");

    const bf16s low = put(&paged, 0, page);
    const struct kv_repack p = {buffer.data(),
                                paged.data(),
                                table.data(),
                                first.data(),
                                pages * (int64_t)64,
                                pages,
                                1,
                                width,
                                0,
                                1};
    finish(kv_repack_gather(&p, 0), "kv_repack_gather");
    check(buffer.read(0, page) == in && buffer.read(last, page) == low && buffer.is_fenced(),
          "kv_repack_gather beyond 2^31");
    must(cudaMemset(paged.data(), 0xff, pages * page * 2), "cudaMemset");
    finish(kv_repack_scatter(&p, 0), "kv_repack_scatter");
    check(paged.read(last, page) == in && paged.read(0, page) == low && paged.is_fenced(),
          "kv_repack_scatter beyond 2^31");
}

/* One partial result of the last (row, head) is empty: the other must come out as it is. */
static void test_far_combine(void)
{
    const size_t pairs = (size_t)FAR_ROWS * FAR_HEADS, last = pairs - 1;
    guarded<uint16_t> partial(2 * pairs * FAR_DIM), out(pairs * FAR_DIM);
    guarded<float> lse(2 * pairs), out_lse(pairs);
    const bf16s ones(FAR_DIM, 0x3f80);
    partial.write((pairs + last) * FAR_DIM, ones);
    lse.write(last, {-INFINITY});
    lse.write(pairs + last, {3});
    const struct lse_combine p = {partial.data(), lse.data(), out.data(),
                                  out_lse.data(), FAR_ROWS,   2,
                                  FAR_HEADS,      FAR_DIM,    true};
    finish(lse_combine(&p, 0), "lse_combine");
    check(out.read(last * FAR_DIM, FAR_DIM) == ones && out_lse.read(last, 1)[0] == 3 &&
              out.is_fenced() && out_lse.is_fenced(),
          "lse_combine beyond 2^31");
}

static void test_far_offsets(void)
{
    size_t free_bytes, total_bytes;
    must(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
    if (free_bytes < (size_t)16 << 30) {
        printf("offsets beyond 2^31: skipped, less than 16 GiB of GPU memory free\n");
        return;
    }
    test_far_pack();
    test_far_swap();
    test_far_pages();
    test_far_combine();
}

int main(void)
{
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("no GPU: skipped\n");
    } else {
        test_random_shapes();
        test_far_offsets();
    }
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed != 0;
}
