/* SPDX-License-Identifier: Apache-2.0
 *
 * A fit to speeds as tables for people: parameters, and errors by layout, seen and held out.
 */
#ifndef SIM_REPORT_SPEED_TEXT_H
#define SIM_REPORT_SPEED_TEXT_H

#include <stdio.h>

#include "sim/study/speed_fit.h"

void speed_text_print(const struct speed_fit *f, const struct speeds *s, FILE *out);

#endif
