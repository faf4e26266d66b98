/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls into code that is not ours. What crashes, exits or does not return within GUARD_LIMIT_S is
 * reported with the policy, the callback and the step, and the program ends with exit code 1 and no
 * output half written. It does not go on: after a crash nothing in memory can be relied on.
 */
#ifndef SIM_POLICY_GUARD_H
#define SIM_POLICY_GUARD_H

#include <stdint.h>

enum { GUARD_LIMIT_S = 5 };

/* From here to guard_leave() all that goes wrong is this policy's. The texts are borrowed; step of
 * -1: before the first. */
void guard_enter(const char *policy, const char *callback, int64_t step);
void guard_leave(void);

#endif
