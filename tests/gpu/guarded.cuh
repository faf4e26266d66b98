/* SPDX-License-Identifier: Apache-2.0
 *
 * Device memory for the kernel tests: poisoned with 0xFF (NaN) and fenced on both sides.
 */
#ifndef TESTS_GPU_GUARDED_CUH
#define TESTS_GPU_GUARDED_CUH

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

static inline void must(cudaError_t e, const char *what)
{
    if (e == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
    exit(1);
}

enum { GUARD_BYTES = 256 };

template <typename T> class guarded
{
  public:
    /* `n` poisoned numbers; `shift` of them before the first spoil its alignment. */
    explicit guarded(size_t n, size_t shift = 0) : n(n), before(GUARD_BYTES + shift * sizeof(T))
    {
        must(cudaMalloc(&base, total()), "cudaMalloc");
        must(cudaMemset(base, 0xff, total()), "cudaMemset");
    }
    explicit guarded(const std::vector<T> &host, size_t shift = 0) : guarded(host.size(), shift)
    {
        must(cudaMemcpy(data(), host.data(), n * sizeof(T), cudaMemcpyDefault), "copy to device");
    }
    guarded(const guarded &) = delete;
    guarded &operator=(const guarded &) = delete;
    ~guarded()
    {
        cudaFree(base);
    }
    T *data() const
    {
        return reinterpret_cast<T *>(base + before);
    }
    std::vector<T> read(size_t first, size_t count) const
    {
        std::vector<T> host(count);
        must(cudaMemcpy(host.data(), data() + first, count * sizeof(T), cudaMemcpyDefault),
             "copy from device");
        return host;
    }
    std::vector<T> read() const
    {
        return read(0, n);
    }
    void write(size_t first, const std::vector<T> &host)
    {
        must(cudaMemcpy(data() + first, host.data(), host.size() * sizeof(T), cudaMemcpyDefault),
             "copy to device");
    }
    bool is_fenced() const
    {
        return is_poison(0, before) && is_poison(before + n * sizeof(T), GUARD_BYTES);
    }

  private:
    size_t total() const
    {
        return before + n * sizeof(T) + GUARD_BYTES;
    }
    bool is_poison(size_t from, size_t bytes) const
    {
        std::vector<unsigned char> host(bytes);
        must(cudaMemcpy(host.data(), base + from, bytes, cudaMemcpyDefault), "copy a guard");
        for (unsigned char byte : host)
            if (byte != 0xff)
                return false;
        return true;
    }

    size_t n, before;
    char *base = nullptr;
};

#endif
