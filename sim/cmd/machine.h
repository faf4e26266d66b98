/* SPDX-License-Identifier: Apache-2.0
 *
 * What a model, a cluster and a profile are, in one digest of their files: JSON whatever its
 * layout, the device and the table of collectives included.
 */
#ifndef SIM_CMD_MACHINE_H
#define SIM_CMD_MACHINE_H

#include "hw/catalog.h"
#include "sim/base/digest.h"
#include "sim/cmd/setup.h"

struct machine {
    char model[CATALOG_NAME_SIZE], cluster[CATALOG_NAME_SIZE], profile[CATALOG_NAME_SIZE];
    struct digest digest;
};

int machine_load(struct machine *m, const struct setup_options *o, struct err *err);

#endif
