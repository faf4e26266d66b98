/* SPDX-License-Identifier: Apache-2.0
 *
 * Maps for tensor copies (kernels/mbarrier.cuh), made on the host and passed to a kernel by value.
 */
#ifndef KERNELS_TENSOR_MAP_CUH
#define KERNELS_TENSOR_MAP_CUH

#include <cuda.h>
#include <cuda_runtime.h>
#include <stdint.h>

typedef CUresult (*tensor_map_encode_fn)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                                         const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                                         const cuuint32_t *, CUtensorMapInterleave,
                                         CUtensorMapSwizzle, CUtensorMapL2promotion,
                                         CUtensorMapFloatOOBfill);

/* The driver's function, without linking to the driver. */
static inline cudaError_t tensor_map_encode(tensor_map_encode_fn *encode)
{
    void *found = nullptr;
    cudaDriverEntryPointQueryResult result;
    cudaError_t e = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000,
                                                     cudaEnableDefault, &result);
    if (e == cudaSuccess && result != cudaDriverEntryPointSuccess)
        e = cudaErrorNotSupported;
    *encode = reinterpret_cast<tensor_map_encode_fn>(found);
    return e;
}

/* Boxes of 64 rows and 64 columns of BF16 [rows][columns], from a multiple of 16 bytes, as
 * kernels/wgmma.cuh wants them; rows beyond the last read as zeros. */
static inline cudaError_t tensor_map_rows(CUtensorMap *map, const uint16_t *from, int64_t rows,
                                          int columns)
{
    tensor_map_encode_fn encode;
    cudaError_t e = tensor_map_encode(&encode);
    if (e != cudaSuccess)
        return e;
    const cuuint64_t sizes[2] = {(cuuint64_t)columns, (cuuint64_t)rows};
    const cuuint64_t row_bytes = 2 * (cuuint64_t)columns;
    const cuuint32_t box[2] = {64, 64}, steps[2] = {1, 1};
    const CUresult r =
        encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<uint16_t *>(from), sizes,
               &row_bytes, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
               CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return r == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

#endif
