/* SPDX-License-Identifier: Apache-2.0
 *
 * Time of single launches between two events, the launch gap included, with nothing of theirs in
 * the L2 cache; and that of a plain copy to hold them against.
 */
#ifndef TESTS_GPU_TIMING_CUH
#define TESTS_GPU_TIMING_CUH

#include "tests/gpu/guarded.cuh"

#include <algorithm>
#include <fstream>
#include <functional>
#include <string>

enum { WARM_UPS = 5, REPEATS = 20, COPY_LOADS = 4 };

static const size_t SCRATCH_BYTES = (size_t)256 << 20; /* four times the L2 cache */

typedef std::function<cudaError_t(void)> launch_fn;

/* Reading leaves the cache clean; what a memset leaves would be written back in the kernel's time.
 */
static __global__ void read_scratch(uint32_t *scratch, int64_t n)
{
    const int64_t threads = (int64_t)gridDim.x * blockDim.x;
    uint32_t seen = 0;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads)
        seen |= scratch[i];
    if (seen == 0) /* never: it holds poison */
        scratch[0] = seen;
}

static __global__ void copy_floor(uint4 *to, const uint4 *from, int64_t n)
{
    const int64_t threads = (int64_t)gridDim.x * blockDim.x;
    const int64_t thread = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (int64_t i = thread; i < n; i += COPY_LOADS * threads) {
        uint4 held[COPY_LOADS];
#pragma unroll
        for (int k = 0; k < COPY_LOADS; k++)
            if (i + k * threads < n)
                held[k] = from[i + k * threads];
#pragma unroll
        for (int k = 0; k < COPY_LOADS; k++)
            if (i + k * threads < n)
                to[i + k * threads] = held[k];
    }
}

class stopwatch
{
  public:
    stopwatch()
    {
        must(cudaEventCreate(&start), "cudaEventCreate");
        must(cudaEventCreate(&stop), "cudaEventCreate");
        must(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0), "SM count");
    }
    /* The median. */
    double time_us(const launch_fn &launch)
    {
        std::vector<double> us;
        for (int i = 0; i < WARM_UPS + REPEATS; i++) {
            float ms;
            read_scratch<<<1024, 256>>>(scratch.data(), SCRATCH_BYTES / 4);
            must(cudaEventRecord(start, 0), "cudaEventRecord");
            must(launch(), "launch");
            must(cudaEventRecord(stop, 0), "cudaEventRecord");
            must(cudaEventSynchronize(stop), "kernel");
            must(cudaEventElapsedTime(&ms, start, stop), "cudaEventElapsedTime");
            if (i >= WARM_UPS)
                us.push_back(1e3 * ms);
        }
        std::sort(us.begin(), us.end());
        return (us[REPEATS / 2 - 1] + us[REPEATS / 2]) / 2;
    }
    /* Of a copy that reads and writes so many bytes in all. */
    double copy_us(void *to, const void *from, int64_t bytes)
    {
        return time_us([=] {
            copy_floor<<<sms * 4, 512>>>(static_cast<uint4 *>(to), static_cast<const uint4 *>(from),
                                         bytes / 32);
            return cudaGetLastError();
        });
    }

  private:
    guarded<uint32_t> scratch{SCRATCH_BYTES / 4};
    cudaEvent_t start, stop;
    int sms;
};

static inline void print_machine(const char *date)
{
    struct cudaDeviceProp device;
    int cuda;
    std::string driver = "unknown";
    std::ifstream version("/proc/driver/nvidia/version");
    std::getline(version, driver);
    must(cudaGetDeviceProperties(&device, 0), "device");
    must(cudaDriverGetVersion(&cuda), "driver");
    printf("%s, %d SMs, CUDA %d.%d, %s\n\n", device.name, device.multiProcessorCount, cuda / 1000,
           cuda % 1000 / 10, date);
    printf("driver: %s\n\n", driver.c_str());
}

#endif
