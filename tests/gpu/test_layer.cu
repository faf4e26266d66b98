/* SPDX-License-Identifier: Apache-2.0
 *
 * What a layer does besides attention, against loops on the CPU in double: test_layer [--small].
 * Around every output and wherever nothing must be written, poison stays; what must not be read is
 * NaN. Without a GPU nothing runs.
 */
#include "kernels/moe.h"
#include "kernels/rows.h"
#include "kernels/values.h"
#include "tests/gpu/checks.cuh"

static void test_norm(int64_t rows, int width, size_t shift)
{
    const std::string what = "rows_norm " + shape_of({rows, width});
    const std::vector<float> in = random_floats(rows * width);
    guarded<float> x(in, shift);
    guarded<uint16_t> y(in.size(), shift);
    finish(rows_norm(y.data(), x.data(), rows, width, 0), what.c_str());
    std::vector<sum> want;
    for (int64_t r = 0; r < rows; r++) {
        double squares = 0;
        for (int j = 0; j < width; j++)
            squares += (double)in[r * width + j] * in[r * width + j];
        for (int j = 0; j < width; j++)
            want.push_back({in[r * width + j] / sqrt(squares / width + 1e-6), 0});
    }
    check_sums(want, y.read(), what);
    check(y.is_fenced(), what + " fences");
}

/* Heads lie apart, and what is between them stays. */
static void test_rotate(int64_t rows, int heads, int width, bool in_place, size_t shift)
{
    const std::string what = "rows_rotate " + shape_of({rows, heads, width});
    const int64_t head = width + 8 * pick(0, 2) + (shift ? 3 : 0), row = heads * head + 8;
    const bf16s in = random_rows(rows * row);
    std::vector<int64_t> at(rows);
    for (int64_t &position : at)
        position = pick(0, 3) ? pick(0, 200000) : pick(0, 1 << 30);
    guarded<uint16_t> from(in, shift), to(in.size(), shift);
    guarded<int64_t> position(at);
    uint16_t *target = in_place ? from.data() : to.data();
    const struct rows_rotate p = {from.data(), target, position.data(), rows, row, head,
                                  row,         head,   heads,           width};
    finish(rows_rotate(&p, 0), what.c_str());
    std::vector<sum> want;
    bf16s got, all = in_place ? from.read() : to.read();
    bf16s around = in_place ? in : bf16s(in.size(), POISON);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < heads * width; i++) {
            const int64_t first = r * row + i / width * head, j = i % width;
            const double angle = (double)at[r] * pow(10000, -(double)(j / 2 * 2) / width);
            const double c = cos(angle), s = j % 2 ? sin(angle) : -sin(angle);
            sum turned = {};
            turned.add(c * from_bits(in[first + j]));
            turned.add(s * from_bits(in[first + (j ^ 1)]));
            want.push_back(turned);
            got.push_back(all[first + j]);
            around[first + j] = all[first + j];
        }
    }
    check_sums(want, got, what);
    check_bits(around, all, what + " between heads");
    check(from.is_fenced() && to.is_fenced(), what + " fences");
}

static void test_parts(int64_t n, int parts, size_t shift)
{
    const std::string what = shape_of({parts, n});
    const bf16s in = random_rows(parts * n);
    const std::vector<float> before = random_floats(n);
    std::vector<sum> sums(n), added(n);
    for (int64_t i = 0; i < n; i++) {
        added[i].add(before[i]);
        for (int p = 0; p < parts; p++) {
            sums[i].add(from_bits(in[p * n + i]));
            added[i].add(from_bits(in[p * n + i]));
        }
    }
    guarded<uint16_t> part(in, shift), y(n, shift);
    guarded<float> x(before, shift);
    finish(rows_add(x.data(), part.data(), parts, n, 0), "rows_add");
    finish(rows_sum(y.data(), part.data(), parts, n, 0), "rows_sum");
    finish(rows_sum(part.data(), part.data(), parts, n, 0), "rows_sum in place");
    const std::vector<float> got = x.read();
    bool near = x.is_fenced();
    for (int64_t i = 0; i < n; i++)
        near = near && added[i].is_near(got[i], FP32_ROUNDING);
    check(near, "rows_add " + what);
    check_sums(sums, y.read(), "rows_sum " + what);
    check_bits(y.read(), part.read(0, n), "rows_sum in place " + what);
    check_bits(bf16s(in.begin() + n, in.end()), part.read(n, (parts - 1) * n), "other parts");
    check(y.is_fenced() && part.is_fenced(), "rows_sum fences " + what);
}

static double silu(double x)
{
    return x / (1 + exp(-x));
}

static void test_swiglu(int64_t rows, int inter, size_t shift)
{
    const std::string what = "rows_swiglu " + shape_of({rows, inter});
    bf16s in = random_rows(rows * 2 * inter);
    for (int i = 0; i < 20 && !in.empty(); i++) /* the ends of exp */
        in[rng() % in.size()] = bits_of(120 * normal());
    guarded<uint16_t> from(in, shift), to(rows * inter, shift);
    finish(rows_swiglu(to.data(), from.data(), rows, inter, 0), what.c_str());
    std::vector<sum> want;
    for (int64_t i = 0; i < rows * inter; i++) {
        const int64_t gate = i / inter * 2 * inter + i % inter;
        want.push_back({silu(from_bits(in[gate])) * from_bits(in[gate + inter]), 1e-20});
    }
    check_sums(want, to.read(), what);
    check(to.is_fenced(), what + " fences");
}

struct route_case {
    int64_t rows;
    int experts, topk, first, end;
    int levels; /* so many different logits: few make ties */
    int taken;  /* experts below it get what beats all others */
};

/* The definition: of a row's logits, the best by value and then by index. */
static std::vector<int32_t> chosen_by(const float *logits, const struct route_case *c)
{
    std::vector<int32_t> order(c->experts);
    for (int e = 0; e < c->experts; e++)
        order[e] = e;
    std::stable_sort(order.begin(), order.end(),
                     [=](int32_t a, int32_t b) { return logits[a] > logits[b]; });
    order.resize(c->topk);
    return order;
}

static std::vector<float> random_logits(const struct route_case *c)
{
    std::vector<float> logits(c->rows * c->experts);
    for (size_t i = 0; i < logits.size(); i++) {
        logits[i] = (float)(pick(0, c->levels) - c->levels / 2) * 10 / (float)c->levels;
        if (logits[i] == 0 && pick(0, 1))
            logits[i] = -0.0f; /* ties with 0 */
        if ((int)(i % c->experts) < c->taken)
            logits[i] += 20;
    }
    return logits;
}

/* Where the pairs go: slots in the order of experts, then of rows. */
static void sort_pairs(const std::vector<int32_t> &expert, const struct route_case *c,
                       std::vector<int32_t> *slot, std::vector<int32_t> *slot_row,
                       std::vector<int32_t> *first)
{
    int32_t next = 0;
    slot->assign(expert.size(), -1);
    slot_row->assign(expert.size(), -1);
    for (int e = c->first; e < c->end; e++) {
        first->push_back(next);
        for (size_t pair = 0; pair < expert.size(); pair++) {
            if (expert[pair] != e)
                continue;
            (*slot_row)[next] = (int32_t)(pair / c->topk);
            (*slot)[pair] = next++;
        }
    }
    first->push_back(next);
}

static void test_route(const struct route_case *c)
{
    const std::string what = "moe_route " + shape_of({c->rows, c->experts, c->topk}) + " of " +
                             shape_of({c->first, c->end});
    const std::vector<float> in = random_logits(c);
    std::vector<int32_t> expert, slot, slot_row, first;
    std::vector<sum> weights;
    for (int64_t row = 0; row < c->rows; row++) {
        const float *logits = &in[row * c->experts];
        double total = 0;
        const std::vector<int32_t> chosen = chosen_by(logits, c);
        for (int32_t e : chosen)
            total += exp((double)logits[e] - logits[chosen[0]]);
        for (int32_t e : chosen)
            weights.push_back({exp((double)logits[e] - logits[chosen[0]]) / total, 1e-6});
        expert.insert(expert.end(), chosen.begin(), chosen.end());
    }
    sort_pairs(expert, c, &slot, &slot_row, &first);
    const size_t pairs = expert.size();
    guarded<float> logits(in), weight(pairs);
    guarded<int32_t> got_expert(pairs), got_slot(pairs), got_slot_row(pairs);
    guarded<int32_t> got_first(first.size());
    const struct moe_routes r = {got_expert.data(), weight.data(), got_slot.data(),
                                 got_slot_row.data(), got_first.data()};
    finish(moe_route(&r, logits.data(), c->rows, c->experts, c->topk, c->first, c->end, 0),
           what.c_str());
    check(got_expert.read() == expert, what + " experts");
    check(got_slot.read() == slot, what + " slots");
    check(got_slot_row.read() == slot_row, what + " rows of slots"); /* -1 is the poison */
    check(got_first.read() == first, what + " first slots");
    bool near = true;
    const std::vector<float> got = weight.read();
    for (size_t i = 0; i < pairs; i++)
        near = near && weights[i].is_near(got[i], 1e-5);
    check(near, what + " weights");
    check(got_expert.is_fenced() && got_slot.is_fenced() && got_slot_row.is_fenced() &&
              got_first.is_fenced() && weight.is_fenced(),
          what + " fences");
}

static void test_routes(int rounds)
{
    for (int round = 0; round < rounds; round++) {
        struct route_case c = {pick(0, 300), pick(1, MOE_EXPERTS_MAX), 0, 0, 0, 0, 0};
        c.topk = pick(1, std::min(c.experts, (int)MOE_TOPK_MAX));
        c.first = pick(0, c.experts), c.end = pick(c.first, c.experts);
        c.levels = pick(0, 1) ? 5 : 100000;
        c.taken = pick(0, 2) ? 0 : pick(0, c.experts);
        test_route(&c);
    }
    const struct route_case cases[] = {
        {0, 256, 8, 128, 256, 5, 0},      {1, 1, 1, 0, 1, 5, 0},
        {32, 256, 8, 0, 128, 100000, 0},  {4096, 256, 8, 128, 256, 100000, 0},
        {700, 256, 1, 0, 128, 5, 1},      {700, 256, 8, 100, 228, 5, 8},
        {700, 256, 8, 8, 256, 100000, 8}, {4099, MOE_EXPERTS_MAX, MOE_TOPK_MAX, 0, 512, 3, 0},
        {65, 16, 16, 0, 16, 5, 0},
    };
    for (const struct route_case &c : cases)
        test_route(&c);
}

struct gemm_case {
    std::vector<int> counts; /* slots per expert */
    int n, k;
    int64_t rows; /* of x; 0: no gather */
    int64_t slots_spare;
};

/* Experts without slots have NaN weights; so has x rows that no slot is of. */
static void test_gemm(const struct gemm_case *c)
{
    const int experts = (int)c->counts.size();
    const int64_t matrix = (int64_t)c->n * c->k;
    std::vector<int32_t> first = {0}, expert, row;
    bf16s w;
    for (int e = 0; e < experts; e++) {
        const bf16s some = c->counts[e] ? random_rows(matrix) : bf16s(matrix, POISON);
        w.insert(w.end(), some.begin(), some.end());
        first.push_back(first.back() + c->counts[e]);
        expert.insert(expert.end(), c->counts[e], e);
    }
    const int64_t slots = first.back(), rows = c->rows ? c->rows : slots;
    const std::string what = "moe_gemm " + shape_of({experts, c->n, c->k}) + ", slots " +
                             std::to_string(slots) + " + " + std::to_string(c->slots_spare) +
                             (c->rows ? " of rows " + std::to_string(rows) : "");
    bf16s x(rows * c->k, POISON);
    for (int64_t s = 0; s < slots; s++) {
        row.push_back(c->rows ? pick(0, (int)rows - 1) : (int)s);
        const bf16s some = random_rows(c->k);
        std::copy(some.begin(), some.end(), &x[row[s] * c->k]);
    }
    std::vector<sum> want(slots * c->n);
    for (int64_t i = 0; i < slots * c->n; i++) {
        const int64_t s = i / c->n;
        const uint16_t *a = &x[row[s] * c->k], *b = &w[expert[s] * matrix + i % c->n * c->k];
        for (int k = 0; k < c->k; k++)
            want[i].add(from_bits(a[k]) * from_bits(b[k]));
    }
    guarded<uint16_t> xs(x), ws(w), y(want.size()), again(want.size());
    guarded<int32_t> firsts(first), slot_row(row);
    struct moe_gemm p = {xs.data(),
                         ws.data(),
                         y.data(),
                         firsts.data(),
                         c->rows ? slot_row.data() : nullptr,
                         slots + c->slots_spare,
                         experts,
                         c->n,
                         c->k};
    finish(moe_gemm(&p, 0), what.c_str());
    check_sums(want, y.read(), what);
    check(y.is_fenced(), what + " fences");
    p.y = again.data();
    finish(moe_gemm(&p, 0), what.c_str());
    check_bits(y.read(), again.read(), what + " again");
}

static void test_gemms(int rounds)
{
    for (int round = 0; round < rounds; round++) {
        struct gemm_case c = {std::vector<int>(pick(1, 9)), 2 * pick(1, 300), 8 * pick(1, 40), 0,
                              0};
        const int most = round % 3 == 0 ? 40 : round % 3 == 1 ? 140 : 400;
        for (int &n : c.counts)
            n = pick(0, 2) ? pick(0, most) : 0;
        c.rows = pick(0, 2) ? pick(1, 500) : 0;
        c.slots_spare = pick(0, 1) ? pick(0, 1000) : 0;
        test_gemm(&c);
    }
    std::vector<int> one_of_many(MOE_EXPERTS_MAX, 0);
    one_of_many[300] = 130;
    const struct gemm_case cases[] = {
        {{0, 0, 0}, 64, 64, 0, 100},
        {one_of_many, 34, 72, 50, 4096},
        {{1}, 2, 8, 0, 0},
        {{129}, 258, 136, 0, 0},
        {{64, 65, 63}, 512, 512, 0, 0},
        {{32, 33, 31, 1, 0, 16}, 768, 1024, 64, 0},
    };
    for (const struct gemm_case &c : cases)
        test_gemm(&c);
}

static void test_combine(int64_t rows, int topk, int width, bool add, bool in_place, size_t shift)
{
    const std::string what = "moe_combine " + shape_of({rows, topk, width});
    std::vector<int32_t> slot(rows * topk, -1);
    int32_t slots = 0;
    for (int32_t &s : slot)
        s = pick(0, 1) ? slots++ : -1;
    std::shuffle(slot.begin(), slot.end(), rng);
    bf16s part = random_rows((size_t)(slots + 1) * width), base = random_rows(rows * width);
    std::fill(part.end() - width, part.end(), POISON); /* a slot of no row */
    const std::vector<float> weight = random_floats(slot.size());
    guarded<uint16_t> parts(part, shift), bases(base, shift), to(base.size(), shift);
    guarded<int32_t> slots_of(slot);
    guarded<float> weights(weight);
    const struct moe_routes r = {nullptr, weights.data(), slots_of.data(), nullptr, nullptr};
    guarded<uint16_t> &y = add && in_place ? bases : to;
    finish(
        moe_combine(y.data(), add ? bases.data() : nullptr, parts.data(), &r, rows, topk, width, 0),
        what.c_str());
    std::vector<sum> want(rows * width);
    for (int64_t i = 0; i < rows * width; i++) {
        if (add)
            want[i].add(from_bits(base[i]));
        for (int64_t pair = i / width * topk; pair < (i / width + 1) * topk; pair++)
            if (slot[pair] >= 0)
                want[i].add(weight[pair] *
                            from_bits(part[slot[pair] * (int64_t)width + i % width]));
    }
    check_sums(want, y.read(), what);
    check(y.is_fenced(), what + " fences");
}

static void test_random_shapes(int rounds)
{
    for (int round = 0; round < rounds; round++) {
        const size_t shift = round % 5 == 4; /* addresses that rule out the 16-byte path */
        test_norm(pick(0, 30), pick_width(3000), shift);
        test_rotate(pick(0, 30), pick(1, 9), shift ? 2 * pick(1, 256) : 8 * pick(1, 64), round % 2,
                    shift);
        test_parts(pick_width(20000), pick(1, 9), shift);
        test_swiglu(pick(0, 30), pick_width(3000), shift);
        test_combine(pick(0, 30), pick(1, MOE_TOPK_MAX), pick_width(3000), pick(0, 1), pick(0, 1),
                     shift);
    }
    for (int width : {1, 7168, 8192, 8200, 18432, 18433})
        test_norm(3, width, 0);
    test_rotate(5, 128, 64, true, 0);
    test_rotate(5, 1, ROWS_ROTATE_WIDTH_MAX, false, 0);
    test_parts(0, 2, 0);
    test_parts(7168 * 33, 1, 0);
    test_swiglu(70, 18432, 0);
    test_combine(300, 8, 7168, true, false, 0);
}

/* More than 2^31 weights, and as many gates and ups: made-up numbers, of which some are worked out
 * again here. */
enum { FAR_EXPERTS = 128, FAR_N = 4096, FAR_K = 7168, FAR_SLOTS = 4 };

static double far_weight(int64_t row, int64_t column)
{
    return value_at(1, VALUE_WEIGHT, 2, row, 3, column);
}

static void test_far_gemm(const guarded<uint16_t> &w)
{
    std::vector<int32_t> first;
    for (int e = 0; e <= FAR_EXPERTS; e++)
        first.push_back(e * FAR_SLOTS);
    const bf16s x = random_rows((size_t)first.back() * FAR_K);
    guarded<uint16_t> xs(x), y((size_t)first.back() * FAR_N);
    guarded<int32_t> firsts(first);
    const struct moe_gemm p = {xs.data(),    w.data(),    y.data(), firsts.data(), nullptr,
                               first.back(), FAR_EXPERTS, FAR_N,    FAR_K};
    finish(moe_gemm(&p, 0), "moe_gemm");
    const bf16s all = y.read();
    std::vector<sum> want;
    bf16s got;
    for (int i = 0; i < 2000; i++) {
        const int64_t slot = i ? pick(0, first.back() - 1) : first.back() - 1;
        const int64_t column = i ? pick(0, FAR_N - 1) : FAR_N - 1;
        sum s = {};
        for (int k = 0; k < FAR_K; k++)
            s.add(from_bits(x[slot * FAR_K + k]) *
                  far_weight(slot / FAR_SLOTS * FAR_N + column, k));
        want.push_back(s);
        got.push_back(all[slot * FAR_N + column]);
    }
    check_sums(want, got, "moe_gemm beyond 2^31");
    check(y.is_fenced(), "moe_gemm beyond 2^31 fences");
}

/* The same weights as rows of a gate and an up. */
static void test_far_swiglu(const guarded<uint16_t> &w)
{
    const int inter = FAR_K / 2;
    const size_t rows = (size_t)FAR_EXPERTS * FAR_N;
    guarded<uint16_t> act(rows * inter);
    finish(rows_swiglu(act.data(), w.data(), (int64_t)rows, inter, 0), "rows_swiglu");
    std::vector<sum> want;
    for (int j = 0; j < inter; j++)
        want.push_back(
            {silu(far_weight((int64_t)rows - 1, j)) * far_weight((int64_t)rows - 1, inter + j),
             1e-20});
    check_sums(want, act.read((rows - 1) * inter, inter), "rows_swiglu beyond 2^31");
    check(act.is_fenced(), "rows_swiglu beyond 2^31 fences");
}

static void test_far_offsets(void)
{
    size_t free_bytes, total_bytes;
    must(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
    if (free_bytes < (size_t)16 << 30) {
        printf("offsets beyond 2^31: skipped, less than 16 GiB of GPU memory free\n");
        return;
    }
    const size_t rows = (size_t)FAR_EXPERTS * FAR_N;
    guarded<uint16_t> w(rows * FAR_K);
    const struct values_matrix p = {{1, VALUE_WEIGHT, 1}, w.data(), 2,     0, 3, 0,
                                    (int64_t)rows,        FAR_K,    FAR_K, 1};
    finish(values_fill_matrix(&p, 0), "values_fill_matrix");
    test_far_gemm(w);
    test_far_swiglu(w);
}

int main(int argc, char **argv)
{
    const bool small = argc > 1 && !strcmp(argv[1], "--small");
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("no GPU: skipped\n");
    } else {
        test_random_shapes(small ? 5 : 40);
        test_routes(small ? 3 : 30);
        test_gemms(small ? 3 : 30);
        if (!small)
            test_far_offsets();
    }
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed != 0;
}
