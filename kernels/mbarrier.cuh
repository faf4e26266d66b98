/* SPDX-License-Identifier: Apache-2.0
 *
 * Barriers in shared memory that threads and bulk copies arrive at (PTX mbarrier), and the tensor
 * copies that arrive at them. A barrier's phases are told apart by their parity: the first is 0.
 */
#ifndef KERNELS_MBARRIER_CUH
#define KERNELS_MBARRIER_CUH

#include <cuda.h>
#include <stdint.h>

static __device__ inline uint32_t shared_address(const void *p)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

static __device__ inline void mbarrier_init(uint64_t *bar, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(bar)),
                 "r"(arrivals));
}

/* After the inits and before the barrier of the block: the copy engine sees them too. */
static __device__ inline void mbarrier_init_fence(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

static __device__ inline void mbarrier_arrive(uint64_t *bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(bar)) : "memory");
}

/* One arrival for the warp, after what all of its threads did before. */
static __device__ inline void mbarrier_arrive_warp(uint64_t *bar)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        mbarrier_arrive(bar);
}

/* Arrives, and the phase also waits for so many bytes of copies. */
static __device__ inline void mbarrier_arrive_expect(uint64_t *bar, int bytes)
{
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(bar)),
        "r"(bytes)
        : "memory");
}

/* Returns once the phase of this parity is over. */
static __device__ inline void mbarrier_wait(uint64_t *bar, uint32_t parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" ::"r"(shared_address(bar)),
                 "r"(parity)
                 : "memory");
}

/* The map's box at (column, row) to shared memory, as bytes of the barrier. */
static __device__ inline void tensor_copy(void *to, const CUtensorMap *map, int column, int row,
                                          uint64_t *bar)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(to)),
                 "l"(map), "r"(column), "r"(row), "r"(shared_address(bar))
                 : "memory");
}

/* Of stages that take turns, which one is next, and the parity of its phase that ends when it is
 * full. Who fills it waits for the other parity of the barrier that says it is free. */
struct mbarrier_turn {
    int stage;
    uint32_t parity;
};

static __device__ inline void mbarrier_advance(struct mbarrier_turn *t, int stages)
{
    if (++t->stage == stages) {
        t->stage = 0;
        t->parity ^= 1;
    }
}

/* This thread's writes to shared memory, before what copies and wgmma do there afterwards. */
static __device__ inline void fence_proxy_async(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#endif
