/* SPDX-License-Identifier: Apache-2.0
 *
 * What moves and combines data, against loops on the CPU that are written from the layouts'
 * definitions. Moved data must be equal, and what lies around it untouched; combined outputs within
 * BF16's rounding. test_kernels --small runs few small cases, for the sanitizers. Without a GPU
 * nothing runs.
 */
#include "kernels/kv_append.h"
#include "kernels/lse_combine.h"
#include "tests/gpu/box_lists.cuh"
#include "tests/gpu/checks.cuh"

extern "C" {
#include "tests/gpu/traffic.h"
}

#include <memory>
#include <numeric>

typedef std::vector<unsigned char> bytes;

template <typename T>
static void check_equal(const std::vector<T> &want, const guarded<T> &memory,
                        const std::string &what)
{
    const std::vector<T> got = memory.read();
    const auto at = std::mismatch(want.begin(), want.end(), got.begin());
    if (at.first != want.end())
        printf("%s: number %zu of %zu is %x, not %x\n", what.c_str(),
               (size_t)(at.first - want.begin()), want.size(), *at.second, *at.first);
    check(at.first == want.end(), what);
    check(memory.is_fenced(), what + " fences");
}

/* What the list makes of poisoned memory at each target. */
template <typename T>
static void check_copy(const box_list &list, const std::vector<T> &from,
                       const std::vector<std::vector<T>> &want, const std::string &what)
{
    const guarded<T> source(from);
    std::vector<std::unique_ptr<guarded<T>>> targets;
    std::vector<void *> to;
    for (const std::vector<T> &w : want) {
        targets.push_back(std::make_unique<guarded<T>>(w.size()));
        to.push_back(targets.back()->data());
    }
    finish(device_list(list).copy(source.data(), to, pick(1, PACK_BLOCKS)), what.c_str());
    for (size_t t = 0; t < want.size(); t++)
        check_equal(want[t], *targets[t], what + ", target " + std::to_string(t));
}

/* All that several ranks would send each other, each sender's boxes in one list. */
static void test_traffic(struct rng *random, int ranks, int64_t grow)
{
    static struct traffic t;
    const uint64_t seed = rng_u64(random);
    traffic_make(&t, random, ranks, grow);
    const std::string what = "traffic of " + shape_of({t.n, t.from_bytes, t.to_bytes});
    bytes source((t.from_bytes + 7) / 8 * 8);
    std::vector<std::unique_ptr<guarded<unsigned char>>> targets;
    std::vector<void *> to;
    for (int r = 0; r < ranks; r++) {
        targets.push_back(std::make_unique<guarded<unsigned char>>(t.to_bytes));
        to.push_back(targets[r]->data());
    }
    for (int sender = 0; sender < ranks; sender++) {
        box_list list;
        for (int i = 0; i < t.n; i++) {
            const struct link_box &b = t.item[i].box;
            if (t.item[i].sender == sender)
                list.push_back({t.item[i].receiver, b.blocks, b.rows, b.bytes, b.from, b.from_block,
                                b.from_row, b.to, b.to_block, b.to_row});
        }
        traffic_source(source.data(), (int64_t)source.size(), seed, sender);
        const guarded<unsigned char> from(source);
        finish(device_list(list).copy(from.data(), to, pick(1, PACK_BLOCKS)), what.c_str());
    }
    for (int r = 0; r < ranks; r++) {
        bytes want(t.to_bytes, 0xff);
        traffic_deliver(&t, seed, r, want.data(), source.data());
        check_equal(want, *targets[r], what + ", target " + std::to_string(r));
    }
}

/* Boxes of some shape side by side, with gaps at both ends. */
static void test_many(int n, int64_t blocks, int64_t rows, int64_t row_bytes)
{
    const int64_t gap = pick(0, 1) ? row_bytes : pick(0, 5);
    const int64_t from_row = row_bytes + gap, to_row = row_bytes + (pick(0, 1) ? gap : 0);
    const int64_t from_block = rows * from_row + gap, to_block = rows * to_row + gap;
    box_list list;
    bytes from(n * blocks * from_block), want(n * blocks * to_block, 0xff);
    for (unsigned char &x : from)
        x = (unsigned char)pick(0, 0xfe);
    for (int i = 0; i < n; i++)
        list.push_back({0, blocks, rows, row_bytes, i * blocks * from_block, from_block, from_row,
                        i * blocks * to_block, to_block, to_row});
    for (int64_t i = 0; i < n * blocks; i++)
        for (int64_t row = 0; row < rows; row++)
            std::copy_n(from.begin() + i * from_block + row * from_row, row_bytes,
                        want.begin() + i * to_block + row * to_row);
    check_copy<unsigned char>(list, from, {want},
                              std::to_string(n) + " boxes " + shape_of({blocks, rows, row_bytes}));
}

/* Queries of `ranks` head shards to the rows' owners, and outputs back: a run is what one shard has
 * of a row. */
static void test_dop(const std::vector<int64_t> &counts)
{
    const int ranks = (int)counts.size(), run = pick(1, 5) * pick_width(300);
    const int64_t rows = std::accumulate(counts.begin(), counts.end(), (int64_t)0);
    const bf16s shards = random_rows(ranks * rows * run); /* [ranks][rows][run] */
    std::vector<bf16s> packed, whole; /* of each owner: [ranks][rows][run], [rows][ranks][run] */
    box_list to_owners;
    int64_t first = 0;
    for (int owner = 0; owner < ranks; first += counts[owner++]) {
        packed.emplace_back();
        whole.emplace_back(ranks * counts[owner] * run);
        for (int r = 0; r < ranks; r++) {
            const int64_t piece = 2 * counts[owner] * run, at = (r * rows + first) * run;
            to_owners.push_back({owner, 1, 1, piece, 2 * at, 0, 0, r * piece, 0, 0});
            packed[owner].insert(packed[owner].end(), shards.begin() + at,
                                 shards.begin() + at + counts[owner] * run);
            for (int64_t i = 0; i < counts[owner]; i++)
                std::copy_n(shards.begin() + at + i * run, run,
                            whole[owner].begin() + (i * ranks + r) * run);
        }
    }
    const std::string shape = shape_of({ranks, rows, run});
    check_copy(to_owners, shards, packed, "DOP queries, packed " + shape);
    for (int owner = 0; owner < ranks; owner++) {
        const box_list unpack = interleaving(ranks, counts[owner], 2 * run);
        check_copy(unpack, packed[owner], {whole[owner]}, "DOP queries, unpacked " + shape);
        check_copy(turned(unpack), whole[owner], {packed[owner]}, "DOP outputs, packed " + shape);
    }
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

/* Owner to shard, which may hold some of the KV heads alone, and back. */
static void test_kv(const std::vector<int64_t> &tokens)
{
    enum { EXTENT = 5 * KV_PAGE_TOKENS };
    const int requests = (int)tokens.size(), shards = pick(1, 4), shard = pick(0, shards - 1);
    const int heads = pick(1, 4), first_head = pick(0, heads - 1);
    const int64_t width = pick_width(300), row = heads * width;
    const int64_t part = (heads - first_head) * width, part_at = first_head * width;
    const bf16s owned = random_rows(requests * EXTENT * row);
    bf16s sharded(requests * EXTENT * part, POISON), returned(owned.size(), POISON);
    box_list list;
    for (int r = 0; r < requests; r++) {
        const std::vector<int64_t> held = positions_of(tokens[r], shard, shards);
        check(kv_pages_shard_tokens(tokens[r], shard, shards) == (int64_t)held.size(),
              "kv_pages_shard_tokens");
        add_kv(&list, {tokens[r], shard, shards, 2 * (r * EXTENT * row + part_at), 2 * row,
                       2 * r * EXTENT * part, 2 * part});
        for (size_t slot = 0; slot < held.size(); slot++) {
            const int64_t at = (r * EXTENT + held[slot]) * row + part_at;
            std::copy_n(&owned[at], part, &sharded[(r * EXTENT + slot) * part]);
            std::copy_n(&owned[at], part, &returned[at]);
        }
    }
    const std::string shape = shape_of({requests, shards, row, part});
    check_copy(list, owned, {sharded}, "KV, owner to shard " + shape);
    check_copy(turned(list), sharded, {returned}, "KV, shard to owner " + shape);
}

/* Distinct pages in random order, some to spare. */
static std::vector<int32_t> random_table(int64_t entries, int64_t pages)
{
    std::vector<int32_t> all(pages);
    std::iota(all.begin(), all.end(), 0);
    std::shuffle(all.begin(), all.end(), rng);
    all.resize(entries);
    return all;
}

static void test_append(int requests, size_t shift)
{
    const int width = pick_width(600), shards = pick(1, 4), shard = pick(0, shards - 1);
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
    const bf16s in = random_rows(rows * width);
    bf16s want(pages * 64 * width, POISON);
    for (int64_t i = 0; i < rows; i++) {
        if (position[i] < 0 || position[i] / 16 % shards != shard)
            continue;
        const int64_t slot = (int64_t)positions_of(position[i], shard, shards).size();
        const int64_t page = table[request[i] * table_pages + slot / 64];
        std::copy_n(&in[i * width], width, &want[(page * 64 + slot % 64) * width]);
    }
    guarded<uint16_t> from(in, shift), to(want.size(), shift);
    guarded<int32_t> who(request), tables(table);
    guarded<int64_t> where(position);
    const struct kv_append p = {from.data(), who.data(),  where.data(), tables.data(), to.data(),
                                rows,        table_pages, width,        shard,         shards};
    finish(kv_append(&p, 0), "kv_append");
    check_equal(want, to, "kv_append " + shape_of({rows, width, shards}));
}

struct combine_case {
    int64_t rows;
    int partials, heads, dim;
    bool bf16;
    int empty_in_8; /* chance of an empty partial: 8 makes all of them empty */
    size_t shift;
};

/* Partial results, of which the empty ones hold NaN and must not count. */
struct partials {
    std::vector<float> o, lse;
    bf16s halves;
};

static struct partials random_partials(const struct combine_case *c)
{
    const int64_t pairs = c->rows * c->heads;
    struct partials p = {
        random_floats(c->partials * pairs * c->dim), random_floats(c->partials * pairs), {}};
    for (float &lse : p.lse)
        lse = pick(1, 8) <= c->empty_in_8 ? -INFINITY : 20 * lse;
    for (size_t i = 0; i < p.o.size(); i++) {
        const bool empty = p.lse[i / c->dim] == -INFINITY;
        p.halves.push_back(empty ? POISON : bits_of(p.o[i]));
        p.o[i] = empty ? NAN : c->bf16 ? (float)from_bits(p.halves[i]) : p.o[i];
    }
    return p;
}

static void add_wanted(const struct combine_case *c, const struct partials *p, int64_t pair,
                       std::vector<sum> *out, std::vector<double> *out_lse)
{
    const int64_t pairs = c->rows * c->heads;
    double max = -INFINITY, total = 0;
    for (int i = 0; i < c->partials; i++)
        max = std::max(max, (double)p->lse[i * pairs + pair]);
    for (int i = 0; i < c->partials && max > -INFINITY; i++)
        total += exp(p->lse[i * pairs + pair] - max);
    out_lse->push_back(max + log(total));
    for (int d = 0; d < c->dim; d++) {
        sum want = {};
        for (int i = 0; i < c->partials; i++)
            if (p->lse[i * pairs + pair] > -INFINITY)
                want.add(exp(p->lse[i * pairs + pair] - max) / total *
                         p->o[(i * pairs + pair) * c->dim + d]);
        out->push_back(want);
    }
}

static void test_combine(const struct combine_case *c)
{
    const int64_t pairs = c->rows * c->heads;
    const std::string what = "lse_combine " + shape_of({c->partials, c->rows, c->heads, c->dim}) +
                             (c->bf16 ? " BF16" : " FP32");
    const struct partials parts = random_partials(c);
    std::vector<sum> want;
    std::vector<double> want_lse;
    for (int64_t pair = 0; pair < pairs; pair++)
        add_wanted(c, &parts, pair, &want, &want_lse);
    guarded<float> wide(parts.o, c->shift), lse(parts.lse), out_lse(pairs);
    guarded<uint16_t> narrow(parts.halves, c->shift), out(pairs * c->dim, c->shift);
    const void *partial = c->bf16 ? (const void *)narrow.data() : (const void *)wide.data();
    const struct lse_combine p = {partial,     lse.data(), out.data(), out_lse.data(), c->rows,
                                  c->partials, c->heads,   c->dim,     c->bf16};
    finish(lse_combine(&p, 0), "lse_combine");
    check_sums(want, out.read(), what);
    const std::vector<float> got = out_lse.read();
    for (int64_t pair = 0; pair < pairs; pair++)
        if (got[pair] != want_lse[pair] && !(fabs(got[pair] - want_lse[pair]) <= 1e-4)) {
            printf("%s: sum %lld is %.9g, not %.9g\n", what.c_str(), (long long)pair, got[pair],
                   want_lse[pair]);
            check(false, what + " sums");
            return;
        }
    check(out.is_fenced() && out_lse.is_fenced(), what + " fences");
}

static void test_random_shapes(int rounds)
{
    struct rng random;
    rng_init(&random, 1);
    for (int round = 0; round < rounds; round++) {
        const size_t shift = round % 5 == 4; /* addresses that rule out the 16-byte path */
        std::vector<int64_t> counts(pick(1, 9)), tokens(pick(1, 6));
        for (int64_t &n : counts)
            n = pick(0, 2) ? pick(0, 20) : 0;
        for (int64_t &n : tokens)
            n = pick(0, 3) ? pick(1, 320) : 0;
        test_traffic(&random, pick(1, 8), round % 8 == 7 ? 50 : 1);
        test_many(pick(1, 200), pick(1, 9), pick(1, 9), pick_width(100));
        test_dop(counts);
        test_kv(tokens);
        test_append(pick(0, 6), shift);
        const struct combine_case c = {pick(0, 9),     pick(1, 12), pick(1, 9), pick_width(600),
                                       round % 2 == 0, pick(0, 8),  shift};
        test_combine(&c);
    }
}

static void test_extremes(void)
{
    test_many(0, 1, 1, 1);
    test_many(1, 5000, 3, 80);
    test_many(1, 1, 7001, 333);
    test_many(3000, 1, 1, 48);
    test_many(65, 2, 16, 1152);
    test_dop({0});
    test_dop({0, 0, 0, 0, 17});
    test_dop(std::vector<int64_t>(16, 1));
    test_kv({0});
    const struct combine_case cases[] = {{3, 1000, 2, 64, true, 4, 0},
                                         {3, 33, 2, 512, false, 8, 0},
                                         {5, 1, 3, 512, false, 0, 0},
                                         {40, 2, 16, 512, true, 1, 0}};
    for (const struct combine_case &c : cases)
        test_combine(&c);
}

static void test_arguments(void)
{
    const device_list nothing({{0, 0, 1, 1, 0, 0, 0, 0, 0, 0}, {0, 1, 1, 0, 0, 0, 0, 0, 0, 0}});
    check(nothing.copy(nullptr, {}, 0) == cudaErrorInvalidValue, "boxes_copy by no blocks");
    check(nothing.copy(nullptr, {}, 1) == cudaSuccess, "boxes_copy of nothing");
    struct lse_combine c = {};
    c.heads = c.dim = 1;
    check(lse_combine(&c, 0) == cudaErrorInvalidValue, "lse_combine of no partial result");
    c.partials = 1;
    check(lse_combine(&c, 0) == cudaSuccess, "lse_combine of no rows");
    struct kv_append a = {};
    check(kv_append(&a, 0) == cudaErrorInvalidValue, "kv_append to no shard");
    a.shards = 1;
    check(kv_append(&a, 0) == cudaSuccess, "kv_append of no rows");
    a.rows = -1;
    check(kv_append(&a, 0) == cudaErrorInvalidValue, "kv_append of fewer");
}

static int64_t extent(const struct boxes_box &b, int64_t block, int64_t row)
{
    return (b.blocks - 1) * block + (b.rows - 1) * row + b.bytes;
}

/* Bytes here and there, the first and the last among them, in memory that is poison otherwise. */
static void test_far_box(const struct boxes_box &b)
{
    enum { SAMPLES = 1000 };
    const std::string what = "box " + shape_of({b.blocks, b.rows, b.bytes});
    guarded<unsigned char> from(b.from + extent(b, b.from_block, b.from_row));
    guarded<unsigned char> to(b.to + extent(b, b.to_block, b.to_row));
    std::vector<int64_t> from_at, to_at;
    for (int i = 0; i < SAMPLES; i++) {
        const double part = i == 1 ? 1 : i == 0 ? 0 : (double)(rng() >> 11) * 0x1p-53;
        const int64_t all = b.blocks * b.rows * b.bytes;
        const int64_t n = std::min(all - 1, (int64_t)(part * (double)all));
        const int64_t byte = n % b.bytes, row = n / b.bytes % b.rows, block = n / b.bytes / b.rows;
        from_at.push_back(b.from + block * b.from_block + row * b.from_row + byte);
        to_at.push_back(b.to + block * b.to_block + row * b.to_row + byte);
        from.write(from_at[i], {(unsigned char)pick(0, 0xfe)});
    }
    finish(device_list({b}).copy(from.data(), {to.data()}, PACK_BLOCKS), what.c_str());
    int wrong = 0;
    for (int i = 0; i < SAMPLES; i++)
        wrong += from.read(from_at[i], 1) != to.read(to_at[i], 1);
    if (wrong > 0)
        printf("%s: %d of %d bytes are wrong\n", what.c_str(), wrong, SAMPLES);
    check(wrong == 0 && to.is_fenced(), what);
}

/* More than 2^31 numbers, of which the first and last rows are set and looked at. */
enum { FAR_ROWS = 33000, FAR_HEADS = 128, FAR_DIM = 512, FAR_PAGES = 58354, FAR_WIDTH = 576 };

/* To the last page. */
static void test_far_append(void)
{
    const size_t page = 64 * (size_t)FAR_WIDTH, last = (FAR_PAGES - 1) * page;
    const bf16s in = random_rows(page);
    std::vector<int64_t> position(64);
    std::iota(position.begin(), position.end(), 0);
    guarded<uint16_t> from(in), paged(FAR_PAGES * page);
    guarded<int32_t> table(std::vector<int32_t>{FAR_PAGES - 1});
    guarded<int32_t> request(std::vector<int32_t>(64, 0));
    guarded<int64_t> where(position);
    const struct kv_append a = {from.data(),
                                request.data(),
                                where.data(),
                                table.data(),
                                paged.data(),
                                64,
                                1,
                                FAR_WIDTH,
                                0,
                                1};
    finish(kv_append(&a, 0), "kv_append");
    check(paged.read(last, page) == in && paged.is_fenced(), "kv_append beyond 2^31");
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
    const int64_t many = ((int64_t)1 << 31) + 12345;
    test_far_box({0, 1, 1, many, 1, 0, 0, 3, 0, 0});
    test_far_box({0, 5, 30001, 30002, 0, 30001 * 30002, 30002, 2, 30001 * 30004, 30004});
    test_far_box({0, 1, 150005, 30002, 2, 0, 30002, 0, 0, 30004});
    test_far_box({0, 1, FAR_ROWS, 65536, 0, 0, 65536, 65536, 0, 131072});
    test_far_append();
    test_far_combine();
}

int main(int argc, char **argv)
{
    const bool small = argc > 1 && !strcmp(argv[1], "--small");
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("no GPU: skipped\n");
    } else {
        test_arguments();
        test_random_shapes(small ? 8 : 40);
        if (!small) {
            test_extremes();
            test_far_offsets();
        }
    }
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed != 0;
}
