/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/cuda/gemm.h"

#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>

#include "replay/cuda/gpu.h"
#include "sim/base/mem.h"

enum { WORKSPACE_BYTES = 32 << 20 };

/* A shape with what cuBLASLt made of it. */
struct kernel {
    struct gemm shape; /* addresses NULL */
    cublasLtMatmulDesc_t op;
    cublasLtMatrixLayout_t w, x, y;
    cublasLtMatmulAlgo_t algo;
};

struct gemm_context {
    cublasLtHandle_t handle;
    void *workspace;
    struct kernel *kernel;
    size_t n, cap;
};

static int lt_try(cublasStatus_t s, const char *what, struct err *err)
{
    if (s == CUBLAS_STATUS_SUCCESS)
        return 0;
    return err_run(err, "cuBLASLt: %s: %s", what, cublasLtGetStatusString(s));
}

struct gemm_context *gemm_new(struct err *err)
{
    struct gemm_context *g = xcalloc(1, sizeof *g);
    if (lt_try(cublasLtCreate(&g->handle), "cublasLtCreate", err) < 0 ||
        gpu_try(cudaMalloc(&g->workspace, WORKSPACE_BYTES), "workspace of cuBLASLt", err) < 0) {
        gemm_free(g);
        return NULL;
    }
    return g;
}

void gemm_free(struct gemm_context *g)
{
    if (g == NULL)
        return;
    for (size_t i = 0; i < g->n; i++) {
        cublasLtMatmulDescDestroy(g->kernel[i].op);
        cublasLtMatrixLayoutDestroy(g->kernel[i].w);
        cublasLtMatrixLayoutDestroy(g->kernel[i].x);
        cublasLtMatrixLayoutDestroy(g->kernel[i].y);
    }
    free(g->kernel);
    cudaFree(g->workspace);
    if (g->handle != NULL)
        cublasLtDestroy(g->handle);
    free(g);
}

/* cuBLAS thinks in columns: there, y^T [n][rows] = w^T' x^T. */
static int describe(cublasLtMatrixLayout_t *l, cudaDataType_t type, int64_t height, int64_t width,
                    int64_t distance, int batch, int64_t batch_distance, struct err *err)
{
    int32_t count = batch > 1 ? batch : 1;
    if (lt_try(cublasLtMatrixLayoutCreate(l, type, (uint64_t)height, (uint64_t)width, distance),
               "layout", err) < 0)
        return -1;
    if (count > 1 &&
        (lt_try(cublasLtMatrixLayoutSetAttribute(*l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                                 sizeof count),
                "batch", err) < 0 ||
         lt_try(cublasLtMatrixLayoutSetAttribute(*l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                 &batch_distance, sizeof batch_distance),
                "batch", err) < 0))
        return -1;
    return 0;
}

static int choose_algorithm(struct gemm_context *g, struct kernel *k, struct err *err)
{
    cublasLtMatmulPreference_t wish;
    cublasLtMatmulHeuristicResult_t found;
    size_t workspace = WORKSPACE_BYTES;
    int n = 0;
    if (lt_try(cublasLtMatmulPreferenceCreate(&wish), "preference", err) < 0)
        return -1;
    cublasStatus_t s = cublasLtMatmulPreferenceSetAttribute(
        wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatmulAlgoGetHeuristic(g->handle, k->op, k->w, k->x, k->y, k->y, wish, 1,
                                           &found, &n);
    cublasLtMatmulPreferenceDestroy(wish);
    if (s == CUBLAS_STATUS_SUCCESS && n == 0)
        s = CUBLAS_STATUS_NOT_SUPPORTED;
    k->algo = found.algo;
    return lt_try(s, "choosing an algorithm", err);
}

static int make_kernel(struct gemm_context *g, struct kernel *k, struct err *err)
{
    const struct gemm *m = &k->shape;
    cublasOperation_t turned = CUBLAS_OP_T;
    cudaDataType_t type = m->y_is_fp32 ? CUDA_R_32F : CUDA_R_16BF;
    if (lt_try(cublasLtMatmulDescCreate(&k->op, CUBLAS_COMPUTE_32F, CUDA_R_32F), "operation", err) <
        0)
        return -1;
    if (!m->k_first && lt_try(cublasLtMatmulDescSetAttribute(k->op, CUBLASLT_MATMUL_DESC_TRANSA,
                                                             &turned, sizeof turned),
                              "transposition", err) < 0)
        return -1;
    int64_t w_height = m->k_first ? m->n : m->k, w_width = m->k_first ? m->k : m->n;
    if (describe(&k->w, CUDA_R_16BF, w_height, w_width, m->w_row, m->batch, m->w_batch, err) < 0 ||
        describe(&k->x, CUDA_R_16BF, m->k, m->rows, m->x_row, m->batch, m->x_batch, err) < 0 ||
        describe(&k->y, type, m->n, m->rows, m->y_row, m->batch, m->y_batch, err) < 0)
        return -1;
    return choose_algorithm(g, k, err);
}

static struct gemm shape_of(const struct gemm *m)
{
    struct gemm s;
    memset(&s, 0, sizeof s); /* compared as bytes */
    s.rows = m->rows;
    s.n = m->n;
    s.k = m->k;
    s.x_row = m->x_row;
    s.w_row = m->w_row;
    s.y_row = m->y_row;
    s.batch = m->batch;
    s.x_batch = m->x_batch;
    s.w_batch = m->w_batch;
    s.y_batch = m->y_batch;
    s.k_first = m->k_first;
    s.y_is_fp32 = m->y_is_fp32;
    return s;
}

static struct kernel *find_kernel(struct gemm_context *g, const struct gemm *m, struct err *err)
{
    struct gemm shape = shape_of(m);
    for (size_t i = 0; i < g->n; i++)
        if (memcmp(&g->kernel[i].shape, &shape, sizeof shape) == 0)
            return &g->kernel[i];
    g->kernel = xgrow(g->kernel, &g->cap, g->n + 1, sizeof *g->kernel);
    struct kernel *k = &g->kernel[g->n++];
    memset(k, 0, sizeof *k);
    memcpy(&k->shape, &shape, sizeof shape);
    return make_kernel(g, k, err) < 0 ? NULL : k;
}

int gemm_run(struct gemm_context *g, const struct gemm *m, cudaStream_t stream, struct err *err)
{
    const float one = 1, zero = 0;
    if (m->rows == 0 || m->n == 0)
        return 0;
    const struct kernel *k = find_kernel(g, m, err);
    if (k == NULL)
        return -1;
    return lt_try(cublasLtMatmul(g->handle, k->op, &one, m->w, k->w, m->x, k->x, &zero, m->y, k->y,
                                 m->y, k->y, &k->algo, g->workspace, WORKSPACE_BYTES, stream),
                  "product", err);
}
