/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens that a rank's KV pool holds, as the paper's figures need them. 0 or -1.
 */
#ifndef SIM_REPRODUCE_POOLS_H
#define SIM_REPRODUCE_POOLS_H

#include "sim/layout/footprint.h"

/* From Table 3; `platform` is "b200", "h200" or "dcu". */
int pools_table3_tokens(const char *platform, const char *layout, double *tokens, struct err *err);

/* Appendix B: DeepSeek-V3.2 in the memory that Table 3's H200 row of GLM-5.3 fills. */
int pools_appendix_b_tokens(const char *layout, double *tokens, struct err *err);

#endif
