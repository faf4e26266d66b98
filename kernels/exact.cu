/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/exact.h"

enum { THREADS = 256, TILE = 64, DEPTH = 32 };
/* Distance of two rows of a tile: 4 banks (of 8 bytes) on, so that four of them store at once. */
enum { TILE_ROW = TILE + 4 };
/* A product is cut along k, in runs of at least MIN_RUN, while it has fewer tiles than this. */
enum { TILES_WANTED = 1024, MIN_RUN = 256 };
static_assert(2 * TILES_WANTED * TILE * TILE <= EXACT_WORKSPACE_NUMBERS, "the workspace holds it");

static int64_t cuts(int64_t n, int64_t piece)
{
    return (n + piece - 1) / piece;
}

/* One step of SplitMix64, as in replay/values.c. */
static __host__ __device__ uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) + 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 27) * 0x94d049bb133111ebu;
    return h ^ h >> 31;
}

/* To nearest, ties to even. */
static __device__ double rounded_to_bf16(double x)
{
    const uint64_t ulp = (uint64_t)1 << (52 - 7);
    uint64_t bits = (uint64_t)__double_as_longlong(x);
    bits += ulp / 2 - 1 + (bits >> (52 - 7) & 1);
    return __longlong_as_double((long long)(bits & ~(ulp - 1)));
}

/* Matrices: row(i) is something to take [j] of. */

struct made_row {
    uint64_t hash; /* of all but the column */
    double divisor;

    __device__ double operator[](int64_t j) const
    {
        const double uniform = (double)(mix(hash, (uint64_t)j) >> 11) * 0x1p-52 - 1.0;
        return rounded_to_bf16(rounded_to_bf16(uniform) / divisor);
    }
};

struct made_matrix {
    uint64_t hash; /* of seed, tag and a */
    int64_t c;
    double divisor;

    __device__ struct made_row row(int64_t i) const
    {
        return {mix(mix(hash, (uint64_t)i), (uint64_t)c), divisor};
    }
};

struct stored_matrix {
    struct exact_stored stored;

    __device__ const double *row(int64_t i) const
    {
        return stored.chunk[i / EXACT_CHUNK_ROWS] + i % EXACT_CHUNK_ROWS * stored.row;
    }
};

struct dense_matrix {
    const double *first;
    int64_t distance; /* of rows */

    __device__ const double *row(int64_t i) const
    {
        return first + i * distance;
    }
};

static struct made_matrix made(const struct exact_values *v)
{
    return {mix(mix(v->seed, (uint64_t)v->tag), (uint64_t)v->a), v->c, v->divisor};
}

/* A part of a matrix. */
struct window {
    int64_t row, column, rows, columns;
};

/* Put the window's first TILE x DEPTH numbers as [column][row], or, transposed, its first DEPTH x
 * TILE as [row][column]; what the window lacks is 0. */
template <bool Transposed, typename Matrix>
static __device__ void load(double (&tile)[DEPTH][TILE_ROW], const Matrix &m, const window &w)
{
    constexpr int ROWS = Transposed ? DEPTH : TILE, COLUMNS = Transposed ? TILE : DEPTH;
    constexpr int LANES = THREADS / ROWS; /* threads of one row */
    const int i = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const auto row = m.row(w.row + (i < w.rows ? i : 0));
#pragma unroll
    for (int j = lane; j < COLUMNS; j += LANES)
        tile[Transposed ? i : j][Transposed ? j : i] =
            i < w.rows && j < w.columns ? row[w.column + j] : 0;
}

/* One TILE x TILE part of one batch of y over one run of k; of several runs, each has a y of its
 * own. 16 x 16 threads, each with 4 x 4 numbers that lie 16 apart. */
template <bool Transposed, typename Matrix>
static __global__ void __launch_bounds__(THREADS)
    multiply(const __grid_constant__ struct exact_product p, const __grid_constant__ Matrix matrix,
             int64_t run, int64_t y_run)
{
    __shared__ double x_tile[DEPTH][TILE_ROW], w_tile[DEPTH][TILE_ROW];
    const int64_t batch = blockIdx.z % p.batches, first_k = blockIdx.z / p.batches * run;
    const int64_t end_k = min(first_k + run, p.k);
    const int64_t first_m = (int64_t)blockIdx.y * TILE, first_n = (int64_t)blockIdx.x * TILE;
    const int64_t w_row = p.w_row + batch * p.w_batch_row, w_column = batch * p.w_batch_column;
    const struct dense_matrix x = {p.x + batch * p.x_batch, p.x_row};
    const int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
    double sum[4][4] = {};

    for (int64_t k = first_k; k < end_k; k += DEPTH) {
        load<false>(x_tile, x, {first_m, k, p.m - first_m, end_k - k});
        if constexpr (Transposed)
            load<true>(w_tile, matrix, {w_row + k, w_column + first_n, end_k - k, p.n - first_n});
        else
            load<false>(w_tile, matrix, {w_row + first_n, w_column + k, p.n - first_n, end_k - k});
        __syncthreads();
        for (int d = 0; d < DEPTH; d++)
#pragma unroll
            for (int a = 0; a < 4; a++)
#pragma unroll
                for (int b = 0; b < 4; b++)
                    sum[a][b] += x_tile[d][ty + 16 * a] * w_tile[d][tx + 16 * b];
        __syncthreads();
    }
    double *y = p.y + blockIdx.z / p.batches * y_run + batch * p.y_batch;
#pragma unroll
    for (int a = 0; a < 4; a++)
#pragma unroll
        for (int b = 0; b < 4; b++) {
            const int64_t i = first_m + ty + 16 * a, j = first_n + tx + 16 * b;
            if (i < p.m && j < p.n)
                y[i * p.y_row + j] = sum[a][b];
        }
}

/* y = the sum over the workspace's [runs][batches][m][n]. */
static __global__ void add_runs(const __grid_constant__ struct exact_product p, int64_t runs)
{
    const int64_t size = p.batches * p.m * p.n;
    const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (at >= size)
        return;
    double sum = 0;
    for (int64_t r = 0; r < runs; r++)
        sum += p.workspace[r * size + at];
    const int64_t batch = at / (p.m * p.n), i = at / p.n % p.m, j = at % p.n;
    p.y[batch * p.y_batch + i * p.y_row + j] = sum;
}

template <typename Matrix>
static cudaError_t product(const struct exact_product *p, const Matrix &matrix)
{
    if (p->batches < 1 || p->m < 1 || p->n < 1 || p->k < 1)
        return cudaErrorInvalidValue;
    const int64_t tiles_n = cuts(p->n, TILE), tiles_m = cuts(p->m, TILE);
    const int64_t tiles = tiles_n * tiles_m * p->batches;
    const int64_t wanted = min(cuts(TILES_WANTED, tiles), cuts(p->k, MIN_RUN));
    const int64_t run = cuts(cuts(p->k, wanted), DEPTH) * DEPTH, runs = cuts(p->k, run);
    const dim3 grid((unsigned)tiles_n, (unsigned)tiles_m, (unsigned)(p->batches * runs));
    struct exact_product part = *p;
    if (runs > 1) {
        part.y = p->workspace;
        part.y_row = p->n;
        part.y_batch = p->m * p->n;
    }
    const int64_t y_run = p->batches * p->m * p->n;
    if (p->transposed)
        multiply<true><<<grid, THREADS>>>(part, matrix, run, y_run);
    else
        multiply<false><<<grid, THREADS>>>(part, matrix, run, y_run);
    if (runs > 1)
        add_runs<<<(unsigned)cuts(y_run, THREADS), THREADS>>>(*p, runs);
    return cudaGetLastError();
}

cudaError_t exact_product_values(const struct exact_product *p, const struct exact_values *w)
{
    return product(p, made(w));
}

cudaError_t exact_product_stored(const struct exact_product *p, const struct exact_stored *w)
{
    return product(p, stored_matrix{*w});
}

/* A block per row, for fill, norm and softmax. */

static __global__ void fill(double *to, const __grid_constant__ struct made_matrix m,
                            int64_t first_row, int64_t columns)
{
    const struct made_row row = m.row(first_row + blockIdx.x);
    for (int64_t j = threadIdx.x; j < columns; j += THREADS)
        to[blockIdx.x * columns + j] = row[j];
}

cudaError_t exact_fill(double *to, const struct exact_values *v, int64_t first_row, int64_t rows,
                       int64_t columns)
{
    if (rows < 1 || rows > INT32_MAX)
        return cudaErrorInvalidValue;
    fill<<<(unsigned)rows, THREADS>>>(to, made(v), first_row, columns);
    return cudaGetLastError();
}

struct sum {
    __device__ double operator()(double a, double b) const
    {
        return a + b;
    }
};

struct maximum {
    __device__ double operator()(double a, double b) const
    {
        return fmax(a, b);
    }
};

/* All threads' x put together, for all of them. */
template <typename Op> static __device__ double over_block(double x, Op op)
{
    __shared__ double all[THREADS];
    __syncthreads();
    all[threadIdx.x] = x;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            all[threadIdx.x] = op(all[threadIdx.x], all[threadIdx.x + half]);
    }
    __syncthreads();
    return all[0];
}

static __global__ void norm(double *y, const double *x, int64_t width)
{
    x += blockIdx.x * width;
    y += blockIdx.x * width;
    double squares = 0;
    for (int64_t i = threadIdx.x; i < width; i += THREADS)
        squares += x[i] * x[i];
    const double rms = sqrt(over_block(squares, sum()) / (double)width + 1e-6);
    for (int64_t i = threadIdx.x; i < width; i += THREADS)
        y[i] = x[i] / rms;
}

cudaError_t exact_norm(double *y, const double *x, int64_t rows, int64_t width)
{
    if (rows < 1 || rows > INT32_MAX)
        return cudaErrorInvalidValue;
    norm<<<(unsigned)rows, THREADS>>>(y, x, width);
    return cudaGetLastError();
}

static __global__ void softmax(double *x, double *lse, double divisor, int64_t width)
{
    x += blockIdx.x * width;
    double max = -INFINITY, total = 0;
    for (int64_t i = threadIdx.x; i < width; i += THREADS)
        max = fmax(max, x[i] / divisor);
    max = over_block(max, maximum());
    for (int64_t i = threadIdx.x; i < width; i += THREADS)
        total += x[i] = exp(x[i] / divisor - max);
    total = over_block(total, sum());
    for (int64_t i = threadIdx.x; i < width; i += THREADS)
        x[i] /= total;
    if (threadIdx.x == 0)
        lse[blockIdx.x] = max + log(total);
}

cudaError_t exact_softmax(double *x, double *lse, double divisor, int64_t rows, int64_t width)
{
    if (rows < 1 || rows > INT32_MAX || width < 1)
        return cudaErrorInvalidValue;
    softmax<<<(unsigned)rows, THREADS>>>(x, lse, divisor, width);
    return cudaGetLastError();
}

static __global__ void rotate(double *x, int64_t heads, int64_t distance, int width,
                              int64_t position)
{
    const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int64_t head = at / (width / 2), i = at % (width / 2) * 2;
    if (head >= heads)
        return;
    double *pair = x + head * distance + i;
    const double angle = (double)position * pow(10000.0, -(double)i / width);
    const double a = pair[0], b = pair[1];
    pair[0] = a * cos(angle) - b * sin(angle);
    pair[1] = a * sin(angle) + b * cos(angle);
}

cudaError_t exact_rotate(double *x, int64_t heads, int64_t distance, int width, int64_t position)
{
    if (heads < 1 || width < 2)
        return cudaErrorInvalidValue;
    const int64_t blocks = cuts(heads * (width / 2), THREADS);
    rotate<<<(unsigned)blocks, THREADS>>>(x, heads, distance, width, position);
    return cudaGetLastError();
}

static __global__ void swiglu(double *gate, const double *up, int64_t n)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i];
}

cudaError_t exact_swiglu(double *gate, const double *up, int64_t n)
{
    if (n < 1)
        return cudaErrorInvalidValue;
    swiglu<<<(unsigned)cuts(n, THREADS), THREADS>>>(gate, up, n);
    return cudaGetLastError();
}

static __global__ void add(double *y, double scale, const double *x, int64_t n)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        y[i] += scale * x[i];
}

cudaError_t exact_add(double *y, double scale, const double *x, int64_t n)
{
    if (n < 1)
        return cudaErrorInvalidValue;
    add<<<(unsigned)cuts(n, THREADS), THREADS>>>(y, scale, x, n);
    return cudaGetLastError();
}
