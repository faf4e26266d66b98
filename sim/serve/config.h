/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operator sets about the server: where it listens, where it keeps things, and its limits.
 */
#ifndef SIM_SERVE_CONFIG_H
#define SIM_SERVE_CONFIG_H

#include <stdint.h>

enum { SERVE_WORKERS_MAX = 64, SERVE_PART_BYTES = 1 << 20, SERVE_PATH_BYTES = 4096 };

struct serve_config {
    const char *host, *data, *token_file;
    int64_t port; /* 0: any that is free */
    int64_t connections, request_s;
    int64_t workers, queue, worker_mib, worker_s;
    int64_t upload_mib;
    char token[128];                     /* as read from token_file; empty: none is asked for */
    char folder[SERVE_PATH_BYTES - 128]; /* `data`, absolute, once it is there */
};

#endif
