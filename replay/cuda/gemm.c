/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/cuda/gemm.h"

#include <cublasLt.h>
#include <stdlib.h>

#include "replay/cuda/gpu.h"
#include "sim/base/mem.h"

enum { WORKSPACE_BYTES = 32 << 20 };

/* A shape with what cuBLASLt made of it. */
struct kernel {
    struct gemm shape; /* whose addresses mean nothing */
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

/* A matrix as cuBLAS sees it, which thinks in columns: there, y^T [n][rows] = w^T' x^T. */
struct seen {
    cudaDataType_t type;
    int64_t height, width, distance, batch_distance;
};

static int describe(cublasLtMatrixLayout_t *l, const struct seen *m, int batch, struct err *err)
{
    int32_t count = batch > 1 ? batch : 1;
    if (lt_try(cublasLtMatrixLayoutCreate(l, m->type, (uint64_t)m->height, (uint64_t)m->width,
                                          m->distance),
               "layout", err) < 0)
        return -1;
    if (count == 1)
        return 0;
    if (lt_try(cublasLtMatrixLayoutSetAttribute(*l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                                sizeof count),
               "batch", err) < 0)
        return -1;
    return lt_try(cublasLtMatrixLayoutSetAttribute(*l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                   &m->batch_distance, sizeof m->batch_distance),
                  "batch", err);
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
    const struct seen w = {CUDA_R_16BF, m->k_first ? m->n : m->k, m->k_first ? m->k : m->n,
                           m->w_row, m->w_batch};
    const struct seen x = {CUDA_R_16BF, m->k, m->rows, m->x_row, m->x_batch};
    const struct seen y = {type, m->n, m->rows, m->y_row, m->y_batch};
    if (describe(&k->w, &w, m->batch, err) < 0 || describe(&k->x, &x, m->batch, err) < 0 ||
        describe(&k->y, &y, m->batch, err) < 0)
        return -1;
    return choose_algorithm(g, k, err);
}

static bool has_shape(const struct gemm *a, const struct gemm *b)
{
    return a->rows == b->rows && a->n == b->n && a->k == b->k && a->x_row == b->x_row &&
           a->w_row == b->w_row && a->y_row == b->y_row && a->batch == b->batch &&
           a->x_batch == b->x_batch && a->w_batch == b->w_batch && a->y_batch == b->y_batch &&
           a->k_first == b->k_first && a->y_is_fp32 == b->y_is_fp32;
}

static struct kernel *find_kernel(struct gemm_context *g, const struct gemm *m, struct err *err)
{
    for (size_t i = 0; i < g->n; i++)
        if (has_shape(&g->kernel[i].shape, m))
            return &g->kernel[i];
    g->kernel = xgrow(g->kernel, &g->cap, g->n + 1, sizeof *g->kernel);
    struct kernel *k = &g->kernel[g->n++];
    *k = (struct kernel){.shape = *m};
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
