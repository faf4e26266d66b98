/* SPDX-License-Identifier: Apache-2.0
 *
 * The server: everything of sim/serve put together, and HTTP around it.
 */
#ifndef SIM_SERVE_SERVER_H
#define SIM_SERVE_SERVER_H

#include <stdbool.h>

#include "sim/serve/config.h"

#include "sim/base/err.h"

/* Reads the token, opens the data folder, listens, says on standard output where, and serves until
 * SIGINT or SIGTERM. */
int server_run(struct serve_config *config, struct err *err);

/* Is `host` one that only this machine reaches? */
bool server_is_loopback(const char *host);

#endif
