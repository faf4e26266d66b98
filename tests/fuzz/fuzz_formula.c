/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer target: any text as an objective; what is taken must have a value or none.
 */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "sim/base/mem.h"
#include "sim/tune/formula.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct formula f;
    struct err err = ERR_NONE;
    struct metrics m;
    char *text = xasprintf("%.*s", (int)size, (const char *)data);
    for (int i = 0; i < METRIC_COUNT; i++)
        m.value[i] = i - 3;
    if (formula_parse(&f, "fuzz", text, &err) == 0) {
        double x = formula_value(&f, &m);
        assert(isnan(x) || isfinite(x));
    } else {
        assert(err.set);
    }
    free(text);
    return 0;
}
