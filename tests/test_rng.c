/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of sim/base/rng against values drawn with numpy 1.24.2 (Generator(PCG64(...))).
 */
#include "sim/base/rng.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

static const struct {
    uint64_t seed, state[2], inc[2], first, second;
} known[] = {
    {0,
     {0x1aa1b5345996452d, 0x09585eb7a69561e3},
     {0x418ddadb3af71a82, 0x588133bc447873a9},
     0xa30febcfd9c2825f,
     0x4510bdf882d9d721},
    {1,
     {0x9c5b484bfedb756c, 0x2a6e7d6f320fbc7e},
     {0x922af2da2645f895, 0xa19857b95740937b},
     0x8306bdf37922e4ff,
     0xf35196bbc152a866},
    {20260922,
     {0xd1903448a4301ff5, 0x1724a943521d1637},
     {0xa71d72d1599a72ce, 0xd5aeafa85ec2d187},
     0xfde7fe45b6a135ba,
     0xde851393e5a84ee7},
    {4294967296,
     {0x24d060cf1520dbdd, 0x21bbf7fbff1ac5d4},
     {0x77ff3ed86c5c5633, 0x7b62eea7340ca9c7},
     0xe3c5ebe285ac1625,
     0x8ea09968fe31dbcc},
    {UINT64_MAX,
     {0xddc419442aebde79, 0x4d8b0a3b048acdb0},
     {0x37762aacb3cc854f, 0x4ed623c7d18951ed},
     0xae163a7a8c47568f,
     0xd86659f5f3382359},
};

static unsigned __int128 join(const uint64_t half[2])
{
    return (unsigned __int128)half[0] << 64 | half[1];
}

ParameterizedTestParameters(rng, seeds_as_numpy_does)
{
    static size_t row[sizeof known / sizeof *known];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        row[i] = i;
    return cr_make_param_array(size_t, row, sizeof row / sizeof *row);
}

ParameterizedTest(size_t *i, rng, seeds_as_numpy_does)
{
    struct rng r;
    rng_init(&r, known[*i].seed);
    cr_assert(r.state == join(known[*i].state));
    cr_assert(r.inc == join(known[*i].inc));
    cr_assert_eq(rng_u64(&r), known[*i].first);
    cr_assert_eq(rng_u64(&r), known[*i].second);
}

Test(rng, draws_reals_as_numpy_does)
{
    struct rng r;
    rng_init(&r, 7);
    cr_assert_eq(rng_f64(&r), 0.625095466604667);
    cr_assert_eq(rng_f64(&r), 0.8972138009695755);
    cr_assert_eq(rng_f64(&r), 0.7756856902451935);
}

/* One sequence through all the cases of the range, drawn after three reals with seed 7; the last
 * two ranges reject a quarter of the draws. */
static const struct {
    int64_t lo, hi;
    int n;
    int64_t drawn[12];
} ranges[] = {
    {512, 1024, 5, {939, 627, 540, 665, 658}},
    {-5, 5, 4, {4, 5, -5, 0}},
    {0, 1LL << 40, 3, {876387105058, 514499921694, 333187676881}},
    {0, UINT32_MAX, 3, {3527149199, 1467175557, 1195828898}},
    {INT64_MIN, INT64_MAX, 2, {-4521857981227254032, -1013163328965524078}},
    {0,
     3LL << 61,
     12,
     {3490227227187412139, 3828833999697777461, 5483261835266827525, 1489404169948370103,
      1108271394789055980, 4237260493138472009, 3561758360235076370, 3224993713048861055,
      6344534694278488084, 3437136412398311954, 1330947415998765662, 1387702836320022395}},
    {0,
     3LL << 30,
     12,
     {1190359776, 1575225839, 12028835, 1989241807, 2673770890, 2137893100, 497553968, 1719497302,
      2835748358, 599895191, 1642151142, 3027153317}},
};

Test(rng, draws_integers_as_numpy_does)
{
    struct rng r;
    rng_init(&r, 7);
    for (int i = 0; i < 3; i++)
        rng_f64(&r);
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        for (int k = 0; k < ranges[i].n; k++)
            cr_assert_eq(rng_range(&r, ranges[i].lo, ranges[i].hi), ranges[i].drawn[k],
                         "range %zu, draw %d", i, k);
    cr_assert_eq(rng_f64(&r), 0.6397171669425262);
}

Test(rng, a_range_of_one_value_draws_nothing)
{
    struct rng r, untouched;
    rng_init(&r, 5);
    rng_init(&untouched, 5);
    cr_assert_eq(rng_range(&r, -3, -3), -3);
    cr_assert_eq(rng_u64(&r), rng_u64(&untouched));
}

Test(rng, splash_workload_has_the_known_lengths)
{
    static const int64_t first[] = {860, 1003, 881, 956, 944, 589, 626, 821};
    enum { DRAWS = 200000 * 16 };
    struct rng r;
    rng_init(&r, 20260922);
    for (int i = 0; i < DRAWS; i++)
        rng_f64(&r);
    int64_t sum = 0;
    for (int i = 0; i < DRAWS; i++) {
        int64_t drawn = rng_range(&r, 512, 1024);
        if (i < 8)
            cr_assert_eq(drawn, first[i]);
        sum += drawn;
    }
    cr_assert_eq(sum, 2457309367);
}

Test(rng, named_stream_is_the_spawn_key_of_its_hash)
{
    /* fnv1a32("arrivals") = 0x1e46a9d3, fnv1a32("lengths") = 0xe6c5a292 */
    static const uint64_t arrivals[] = {0x55f2976aeb84583d, 0xfa4b044e5ebf4145};
    static const uint64_t lengths[] = {0x46b61488a4672c94, 0xffb31b80bcefd782};
    struct rng r;
    rng_stream(&r, 7, "arrivals");
    cr_assert(r.state == join(arrivals));
    cr_assert_eq(rng_u64(&r), 0x3ad48765f45a2b53);
    rng_stream(&r, (1ULL << 40) + 3, "lengths");
    cr_assert(r.state == join(lengths));
    cr_assert_eq(rng_u64(&r), 0xffb97c9f2cea60be);
}
