/* SPDX-License-Identifier: Apache-2.0
 *
 * Where measurements come from, as their header says it: device, day, transport, command.
 */
#ifndef REPLAY_ORIGIN_H
#define REPLAY_ORIGIN_H

#include "replay/backend.h"

struct plan_origin origin_of(const struct backend *b, const struct backend_options *o, int argc,
                             char *const *argv);

#endif
