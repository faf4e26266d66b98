/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/web/asset.h"

#include <string.h>

const struct asset *asset_find(const char *name)
{
    for (const struct asset *a = assets; a->name != NULL; a++)
        if (strcmp(a->name, name) == 0)
            return a;
    return NULL;
}
