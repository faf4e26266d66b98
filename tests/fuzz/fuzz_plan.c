/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_load on any bytes: it must load or refuse, and what it loads must save and load again.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/plan/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[64], again[80];

static void name_files(void)
{
    snprintf(path, sizeof path, "/dev/shm/wavetank_fuzz_plan_%ld", (long)getpid());
    snprintf(again, sizeof again, "%s.again", path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plan plan, twin;
    struct err err = ERR_NONE;
    if (path[0] == '\0')
        name_files();
    FILE *f = fopen(path, "wb");
    if (f == NULL)
        abort();
    fwrite(data, 1, size, f);
    fclose(f);
    if (plan_load(&plan, path, &err) == 0) {
        if (plan_save(&plan, again, &err) < 0 || plan_load(&twin, again, &err) < 0)
            abort();
        plan_release(&twin);
        plan_release(&plan);
    }
    return 0;
}
