/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands in for replay/cuda/ where it is not built in.
 */
#include "replay/driver.h"

static int refuse(const struct driver_job *job, const char *path, struct err *err)
{
    (void)job;
    (void)path;
    return err_set(err, "--backend: this wavetank-replay has no CUDA; build it with `make replay`");
}

const struct backend backend_cuda = {.name = "cuda", .check = refuse};
