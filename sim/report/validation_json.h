/* SPDX-License-Identifier: Apache-2.0
 *
 * A validation as the JSON object of `validate --json` (docs/formats.md has its keys).
 */
#ifndef SIM_REPORT_VALIDATION_JSON_H
#define SIM_REPORT_VALIDATION_JSON_H

#include <jansson.h>

#include "sim/report/validation_about.h"

/* New reference. */
json_t *validation_json(const struct validation *v, const struct validation_about *about);

#endif
