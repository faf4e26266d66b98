/* SPDX-License-Identifier: Apache-2.0
 *
 * A validation as tables for people.
 */
#ifndef SIM_REPORT_VALIDATION_TEXT_H
#define SIM_REPORT_VALIDATION_TEXT_H

#include <stdio.h>

#include "sim/report/validation_about.h"

void validation_print(const struct validation *v, const struct validation_about *about, FILE *out);

#endif
