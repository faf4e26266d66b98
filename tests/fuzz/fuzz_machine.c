/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer target: any bytes as a model, cluster or profile file. What loads as a model must give
 * finite sizes; nothing may crash, whatever is refused.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "hw/device.h"
#include "hw/profile.h"
#include "sim/layout/footprint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[] = "/tmp/fuzz_machine_XXXXXX";

static void remove_file(void)
{
    unlink(path);
}

static void as_model(void)
{
    struct model m;
    struct err err = ERR_NONE;
    if (model_load(&m, path, &err) < 0) {
        assert(err.set);
        return;
    }
    assert(isfinite(model_kv_bytes_per_token(&m)) && model_kv_bytes_per_token(&m) >= 0);
    assert(isfinite(footprint_common_bytes(&m, 8)));
}

static void as_cluster_and_profile(void)
{
    struct cluster c;
    struct profile p;
    struct err first = ERR_NONE, second = ERR_NONE;
    if (cluster_load(&c, path, &first) < 0)
        assert(first.set);
    if (profile_load(&p, path, &second) == 0)
        profile_release(&p);
    else
        assert(second.set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    if (fd < 0) {
        fd = mkstemp(path);
        assert(fd >= 0);
        atexit(remove_file);
    }
    ssize_t written = pwrite(fd, data, size, 0);
    int truncated = ftruncate(fd, (off_t)size);
    assert(written == (ssize_t)size && truncated == 0);
    as_model();
    as_cluster_and_profile();
    return 0;
}
