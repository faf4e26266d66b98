/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests of kernels share: checks that are counted, random numbers in BF16, and comparisons
 * that say where they fail.
 */
#ifndef TESTS_GPU_CHECKS_CUH
#define TESTS_GPU_CHECKS_CUH

#include "tests/gpu/guarded.cuh"

extern "C" {
#include "replay/values.h"
}

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>

typedef std::vector<uint16_t> bf16s;

static const uint16_t POISON = 0xffff;
static int n_passed, n_failed;
static std::mt19937_64 rng(20261130);

static inline void check(bool ok, const std::string &what)
{
    ok ? n_passed++ : n_failed++;
    if (!ok)
        printf("failed: %s\n", what.c_str());
}

/* The launch and what it did. */
static inline void finish(cudaError_t launched, const char *what)
{
    must(launched, what);
    must(cudaDeviceSynchronize(), what);
}

static inline std::string shape_of(std::initializer_list<int64_t> sizes)
{
    std::string s;
    for (int64_t n : sizes)
        s += "[" + std::to_string(n) + "]";
    return s;
}

static inline int pick(int low, int high)
{
    return std::uniform_int_distribution<int>(low, high)(rng);
}

/* Mostly multiples of 8 numbers, which take the 16-byte path. */
static inline int pick_width(int high)
{
    return pick(0, 2) ? 8 * pick(1, high / 8) : pick(1, high);
}

static inline double normal(void)
{
    static std::normal_distribution<double> d;
    return d(rng);
}

static inline uint16_t bits_of(double x)
{
    const float wide = x == 0 ? 0 : (float)value_bf16(x);
    uint32_t bits;
    memcpy(&bits, &wide, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static inline double from_bits(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

static inline bf16s random_rows(size_t n)
{
    bf16s v(n);
    for (uint16_t &x : v)
        x = bits_of(normal());
    return v;
}

static inline std::vector<float> random_floats(size_t n)
{
    std::vector<float> v(n);
    for (float &x : v)
        x = (float)normal();
    return v;
}

/* What a number must be, and how large the terms are that it is the sum of. */
struct sum {
    double value, size;

    void add(double x)
    {
        value += x;
        size += fabs(x);
    }
    bool is_near(double got, double rounding) const
    {
        return fabs(got - value) <= rounding * fabs(value) + size / (1 << 18);
    }
};

/* Twice what rounding does at most. */
static const double BF16_ROUNDING = 1.0 / 256, FP32_ROUNDING = 1.0 / (1 << 23);

static inline void check_sums(const std::vector<sum> &want, const bf16s &got,
                              const std::string &what)
{
    for (size_t i = 0; i < want.size(); i++) {
        if (!want[i].is_near(from_bits(got[i]), BF16_ROUNDING)) {
            printf("%s: number %zu is %.9g, not %.9g (terms %.3g)\n", what.c_str(), i,
                   from_bits(got[i]), want[i].value, want[i].size);
            check(false, what);
            return;
        }
    }
    check(want.size() == got.size(), what);
}

static inline void check_bits(const bf16s &want, const bf16s &got, const std::string &what)
{
    const auto at = std::mismatch(want.begin(), want.end(), got.begin());
    if (at.first != want.end())
        printf("%s: number %zu of %zu is %04x, not %04x\n", what.c_str(),
               (size_t)(at.first - want.begin()), want.size(), *at.second, *at.first);
    check(at.first == want.end(), what);
}

#endif
