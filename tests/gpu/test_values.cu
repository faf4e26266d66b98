/* SPDX-License-Identifier: Apache-2.0
 *
 * Made-up numbers on the GPU against those of the CPU, bit for bit, and the checksums and the
 * poison of KV pages: test_values [--small]. Without a GPU nothing runs.
 */
#include "kernels/kv_pages.h"
#include "kernels/values.h"
#include "tests/gpu/checks.cuh"

extern "C" {
#include "replay/slice.h"
}

/* As slice_weight() has it, so that replay's weights are these. */
static void test_weights(void)
{
    struct slice s = {};
    s.model.attention = ATTN_MLA, s.model.hidden = 328, s.model.q_lora = 41;
    s.model.heads = 3, s.model.nope_dim = 5, s.model.v_dim = 7, s.layers = 5, s.seed = rng();
    const enum matrix which[] = {MAT_Q_A, MAT_O}; /* 41 x 328, 328 x 21 */
    for (enum matrix m : which) {
        const int rows = slice_rows(&s, 4, m), columns = slice_columns(&s, 4, m);
        bf16s want;
        for (int64_t i = 0; i < (int64_t)rows * columns; i++)
            want.push_back(bits_of(slice_weight(&s, 4, m, i / columns, (int)(i % columns))));
        guarded<uint16_t> to(want.size());
        const struct values_matrix p = {{s.seed, VALUE_WEIGHT, sqrt(columns)},
                                        to.data(),
                                        m,
                                        0,
                                        4,
                                        0,
                                        rows,
                                        columns,
                                        columns,
                                        1};
        finish(values_fill_matrix(&p, 0), "values_fill_matrix");
        check_bits(want, to.read(), "weights of a slice " + shape_of({rows, columns}));
    }
}

/* Part of a matrix, with room between rows, or turned around. */
static void test_matrix(int64_t rows, int64_t columns, bool is_turned, size_t shift)
{
    const std::string what = "values_fill_matrix " + shape_of({rows, columns});
    const int64_t row = is_turned ? 1 : columns + pick(0, 1) * 8, column = is_turned ? rows + 5 : 1;
    const uint64_t seed = rng();
    const int64_t a = pick(0, 9), b = pick(0, 1 << 30) * (int64_t)9, c = pick(0, 99);
    const int64_t d = pick(0, 20000);
    bf16s want((is_turned ? column : row) * (is_turned ? columns : rows), POISON);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            want[i * row + j * column] =
                bits_of(value_bf16(value_at(seed, VALUE_WEIGHT, a, b + i, c, d + j) / 3));
    guarded<uint16_t> to(want.size(), shift);
    const struct values_matrix p = {
        {seed, VALUE_WEIGHT, 3}, to.data(), a, b, c, d, rows, columns, row, column};
    finish(values_fill_matrix(&p, 0), what.c_str());
    check_bits(want, to.read(), what + (is_turned ? " turned" : ""));
    check(to.is_fenced(), what + " fences");
}

static void test_rows(int64_t rows, int columns, size_t shift)
{
    const std::string what = "values_fill_rows " + shape_of({rows, columns});
    const struct values_key key = {rng(), VALUE_HIDDEN, 1};
    std::vector<int64_t> request(rows), position(rows);
    std::vector<float> want;
    for (int64_t i = 0; i < rows; i++) {
        request[i] = pick(0, 1000), position[i] = pick(0, 1 << 20);
        for (int j = 0; j < columns; j++)
            want.push_back((float)value_at(key.seed, VALUE_HIDDEN, request[i], position[i], 0, j));
    }
    guarded<float> to(want.size(), shift);
    guarded<int64_t> a(request), b(position);
    finish(values_fill_rows(to.data(), &key, a.data(), b.data(), rows, columns, 0), what.c_str());
    check(to.read() == want, what);
    check(to.is_fenced(), what + " fences");
}

static std::vector<int32_t> shuffled_pages(int64_t n)
{
    std::vector<int32_t> pages(n);
    for (int64_t i = 0; i < n; i++)
        pages[i] = (int32_t)i;
    std::shuffle(pages.begin(), pages.end(), rng);
    return pages;
}

/* The checksum's definition, a number at a time: value()'s hash before it becomes a number. */
static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) + 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 27) * 0x94d049bb133111ebu;
    return h ^ h >> 31;
}

static uint64_t checksum_of(const struct values_kv *p, int64_t position, int64_t d, uint16_t bits)
{
    const uint64_t h = mix(mix(p->key.seed, (uint64_t)p->key.tag), (uint64_t)p->req);
    const uint64_t row = mix(mix(h, (uint64_t)position), (uint64_t)p->layer);
    return mix(row, (uint64_t)d << 16 | bits);
}

/* Fills what one shard has of a request and adds its checksum to *sum; both as they must be. */
static void fill_share(struct values_kv p, size_t shift, guarded<uint64_t> *sum, uint64_t *want_sum)
{
    const std::string what = "values_fill_kv " + shape_of({p.tokens, p.width}) + " shard " +
                             std::to_string(p.shard) + " of " + std::to_string(p.shards);
    const std::vector<int32_t> pages = shuffled_pages(p.tokens / KV_PAGE_TOKENS + 2);
    guarded<uint16_t> kv(pages.size() * KV_PAGE_TOKENS * p.width, shift);
    guarded<int32_t> table(pages);
    p.pages = kv.data(), p.table = table.data();
    finish(values_fill_kv(&p, 0), what.c_str());
    bf16s want(pages.size() * KV_PAGE_TOKENS * p.width, POISON);
    int64_t slot = 0;
    for (int64_t position = 0; position < p.tokens; position++) {
        if (position / KV_BLOCK_TOKENS % p.shards != p.shard)
            continue;
        const int64_t row = (int64_t)pages[slot / 64] * 64 + slot % 64;
        slot++;
        for (int j = 0; j < p.width; j++) {
            const int64_t d = p.first_d + j;
            const uint16_t bits =
                bits_of(value_at(p.key.seed, VALUE_HISTORY, p.req, position, p.layer, d));
            want[row * p.width + j] = bits;
            *want_sum += checksum_of(&p, position, d, bits);
        }
    }
    check_bits(want, kv.read(), what);
    check(kv.is_fenced(), what + " fences");
    finish(values_checksum_kv(&p, sum->data(), 0), "values_checksum_kv");
}

/* An owner's pages, those of position shards, and those of a cut of the columns add up to the same,
 * unless one number differs. */
static void test_kv(int64_t tokens, int width, int shards, size_t shift)
{
    const std::string what = "values_checksum_kv " + shape_of({tokens, width, shards});
    struct values_kv p = {};
    p.key = {rng(), VALUE_HISTORY, 1}, p.req = pick(0, 1000), p.layer = pick(0, 60);
    p.tokens = tokens, p.width = width, p.first_d = 0, p.shard = 0, p.shards = 1;
    uint64_t want[3] = {};
    guarded<uint64_t> owner(std::vector<uint64_t>{0}), sharded(std::vector<uint64_t>{0});
    guarded<uint64_t> cut(std::vector<uint64_t>{0});
    fill_share(p, shift, &owner, &want[0]);
    p.shards = shards;
    for (p.shard = 0; p.shard < shards; p.shard++)
        fill_share(p, shift, &sharded, &want[1]);
    p.shard = 0, p.shards = 1;
    const int widths[] = {width / 2, width - width / 2};
    for (int part : widths) {
        p.width = part;
        fill_share(p, shift, &cut, &want[2]);
        p.first_d += part;
    }
    check(owner.read(0, 1)[0] == want[0] && want[0] == want[1] && want[0] == want[2], what);
    check(sharded.read(0, 1)[0] == want[0], what + " over shards");
    check(cut.read(0, 1)[0] == want[0], what + " over columns");
    check(owner.is_fenced() && sharded.is_fenced() && cut.is_fenced(), what + " fences");
}

static void test_checksum_sees(int tokens, int width)
{
    struct values_kv p = {};
    const bf16s in = random_rows((size_t)KV_PAGE_TOKENS * width);
    guarded<uint16_t> kv(in);
    guarded<int32_t> table(std::vector<int32_t>{0});
    guarded<uint64_t> sums(std::vector<uint64_t>{0, 0, 0});
    p.key = {1, VALUE_HISTORY, 1}, p.pages = kv.data(), p.table = table.data();
    p.tokens = tokens, p.width = width, p.shards = 1;
    finish(values_checksum_kv(&p, sums.data(), 0), "values_checksum_kv");
    const size_t last = (size_t)tokens * width - 1;
    kv.write(last, {(uint16_t)(in[last] ^ 1)});
    finish(values_checksum_kv(&p, sums.data() + 1, 0), "values_checksum_kv");
    kv.write(last, {in[last]});
    p.layer = 1;
    finish(values_checksum_kv(&p, sums.data() + 2, 0), "values_checksum_kv");
    const std::vector<uint64_t> got = sums.read();
    check(got[0] != got[1] && got[0] != got[2], "values_checksum_kv tells what differs");
}

static void test_poison(int64_t pages, int width, size_t shift)
{
    const std::string what = "values_poison_pages " + shape_of({pages, width});
    bf16s want = random_rows(pages * KV_PAGE_TOKENS * width);
    std::vector<int32_t> some = shuffled_pages(pages);
    some.resize(pages / 2);
    guarded<uint16_t> kv(want, shift);
    guarded<int32_t> page(some);
    for (int32_t i : some)
        std::fill_n(want.begin() + i * (int64_t)KV_PAGE_TOKENS * width, KV_PAGE_TOKENS * width,
                    POISON);
    finish(values_poison_pages(kv.data(), page.data(), (int64_t)some.size(), width, 0),
           what.c_str());
    check_bits(want, kv.read(), what);
    check(kv.is_fenced(), what + " fences");
}

static void test_delay(int64_t ns)
{
    cudaEvent_t start, stop;
    float ms;
    must(cudaEventCreate(&start), "cudaEventCreate");
    must(cudaEventCreate(&stop), "cudaEventCreate");
    must(cudaEventRecord(start, 0), "cudaEventRecord");
    finish(values_delay(ns, 0), "values_delay");
    must(cudaEventRecord(stop, 0), "cudaEventRecord");
    must(cudaEventSynchronize(stop), "cudaEventSynchronize");
    must(cudaEventElapsedTime(&ms, start, stop), "cudaEventElapsedTime");
    if (ms < 0.9e-6 * (double)ns)
        printf("values_delay of %lld ns took %.3f ms\n", (long long)ns, ms);
    check(ms >= 0.9e-6 * (double)ns, "values_delay");
    must(cudaEventDestroy(start), "cudaEventDestroy");
    must(cudaEventDestroy(stop), "cudaEventDestroy");
}

/* Pages of more than 2^31 numbers in all, the request's in reverse. */
static void test_far_pages(void)
{
    size_t free_bytes, total_bytes;
    must(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
    if (free_bytes < (size_t)8 << 30) {
        printf("offsets beyond 2^31: skipped, less than 8 GiB of GPU memory free\n");
        return;
    }
    const int32_t pages = 58354;
    const size_t width = 576, page = KV_PAGE_TOKENS * width;
    std::vector<int32_t> reversed(pages);
    for (int32_t i = 0; i < pages; i++)
        reversed[i] = pages - 1 - i;
    guarded<uint16_t> kv(pages * page);
    guarded<int32_t> table(reversed);
    guarded<uint64_t> sums(std::vector<uint64_t>{0, 0});
    struct values_kv p = {};
    p.key = {7, VALUE_HISTORY, 1}, p.pages = kv.data(), p.table = table.data(), p.layer = 1;
    p.tokens = pages * (int64_t)KV_PAGE_TOKENS, p.width = (int)width, p.shards = 1;
    finish(values_fill_kv(&p, 0), "values_fill_kv");
    const bf16s first = kv.read((pages - 1) * page, width), last = kv.read(page - width, width);
    bf16s want_first, want_last;
    for (size_t j = 0; j < width; j++) {
        want_first.push_back(bits_of(value_at(7, VALUE_HISTORY, 0, 0, 1, j)));
        want_last.push_back(bits_of(value_at(7, VALUE_HISTORY, 0, p.tokens - 1, 1, j)));
    }
    check_bits(want_first, first, "values_fill_kv beyond 2^31, first row");
    check_bits(want_last, last, "values_fill_kv beyond 2^31, last row");
    finish(values_checksum_kv(&p, sums.data(), 0), "values_checksum_kv");
    kv.write(pages * page - 1, {0x1234});
    finish(values_checksum_kv(&p, sums.data() + 1, 0), "values_checksum_kv");
    check(sums.read(0, 1) != sums.read(1, 1), "values_checksum_kv beyond 2^31");
    finish(values_poison_pages(kv.data(), table.data(), 1, (int)width, 0), "values_poison_pages");
    check(kv.read((pages - 1) * page, page) == bf16s(page, POISON) &&
              kv.read((pages - 2) * page, 1)[0] != POISON && kv.is_fenced(),
          "values_poison_pages beyond 2^31");
}

int main(int argc, char **argv)
{
    const bool small = argc > 1 && !strcmp(argv[1], "--small");
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("no GPU: skipped\n");
    } else {
        test_weights();
        for (int round = 0; round < (small ? 5 : 40); round++) {
            const size_t shift = round % 5 == 4; /* addresses that rule out the 16-byte path */
            test_matrix(pick(0, 90), pick_width(700), round % 2, shift);
            test_rows(pick(0, 30), pick_width(3000), shift);
            test_kv(pick(0, 4) ? pick(1, 700) : 0, pick_width(600), pick(1, 5), shift);
            test_poison(pick(0, 30), pick_width(600), shift);
        }
        test_checksum_sees(1, 1);
        test_checksum_sees(33, 576);
        test_delay(0);
        test_delay(2000000);
        if (!small)
            test_far_pages();
    }
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed != 0;
}
