/* SPDX-License-Identifier: Apache-2.0
 *
 * From a request to its route, past the checks that all routes share: the token, the method, the
 * type of the body.
 */
#ifndef SIM_SERVE_DISPATCH_H
#define SIM_SERVE_DISPATCH_H

#include "sim/serve/api.h"

/* Answers any request, refusals too. */
void dispatch(struct site *s, const struct ask *a, struct answer *r);

#endif
