/* SPDX-License-Identifier: Apache-2.0
 *
 * Meeting the other ranks' blocks (kernels/peers.h). A kernel counts its meetings: from
 * peers_met() + 1 on, and leaves the last with peers_leave(). All threads of a block call these.
 */
#ifndef KERNELS_PEERS_CUH
#define KERNELS_PEERS_CUH

#include "kernels/peers.h"

#include <cuda_runtime.h>

enum { PEERS_POLLS = 64, PEERS_LOOK_NS = 1000000 /* at the alarm, which lies in host memory */ };

static __device__ uint64_t peers_now_ns()
{
    uint64_t t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

static __device__ uint64_t peers_met(const struct peers &p)
{
    return p.flags[p.rank]->met[blockIdx.x];
}

/* After this, the others see all that the block has written. */
static __device__ void peers_raise(const struct peers &p, uint64_t meeting)
{
    __syncthreads();
    const int r = (int)threadIdx.x;
    if (r < p.ranks && r != p.rank)
        asm volatile(
            "st.release.sys.global.u64 [%0], %1;" ::"l"(&p.flags[r]->raised_by[p.rank][blockIdx.x]),
            "l"(meeting)
            : "memory");
}

static __device__ void peers_wait(const struct peers &p, int r, uint64_t meeting)
{
    const uint64_t *flag = &p.flags[p.rank]->raised_by[r][blockIdx.x];
    volatile struct peers_alarm *alarm = p.alarm;
    const uint64_t start_ns = peers_now_ns();
    for (uint64_t look_ns = start_ns + PEERS_LOOK_NS;;) {
#pragma unroll 1
        for (int i = 0; i < PEERS_POLLS; i++) {
            uint64_t raised;
            asm volatile("ld.acquire.sys.global.u64 %0, [%1];"
                         : "=l"(raised)
                         : "l"(flag)
                         : "memory");
            if (raised >= meeting)
                return;
        }
        const uint64_t now_ns = peers_now_ns();
        if (now_ns < look_ns)
            continue;
        if (alarm->stop != PEERS_GO)
            return;
        if (now_ns - start_ns > (uint64_t)p.timeout_ns) {
            alarm->late_rank = r;
            __threadfence_system();
            alarm->stop = PEERS_LATE;
            return;
        }
        look_ns = now_ns + PEERS_LOOK_NS;
    }
}

/* After this, the block sees all that its counterparts had written when they raised. */
static __device__ void peers_await(const struct peers &p, uint64_t meeting)
{
    const int r = (int)threadIdx.x;
    if (r < p.ranks && r != p.rank)
        peers_wait(p, r, meeting);
    __syncthreads();
}

static __device__ void peers_leave(const struct peers &p, uint64_t meeting)
{
    if (threadIdx.x == 0)
        p.flags[p.rank]->met[blockIdx.x] = meeting;
}

#endif
