/* SPDX-License-Identifier: Apache-2.0
 *
 * A fit as tables for people: parameters, errors by stage and layout, and on the steps left out.
 */
#ifndef SIM_REPORT_FIT_TEXT_H
#define SIM_REPORT_FIT_TEXT_H

#include <stdio.h>

#include "sim/study/fit.h"

/* Parameters alone: value, base, sigma, and what the data say of them. */
void fit_text_params(const struct fit_param *param, int n, FILE *out);

void fit_text_print(const struct fit *f, const struct fit_data *d, FILE *out);

#endif
