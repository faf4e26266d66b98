/* SPDX-License-Identifier: Apache-2.0
 *
 * wavetank serve: pages and an API to run simulations from a browser.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/base/mem.h"
#include "sim/cmd/cmd.h"
#include "sim/serve/server.h"

#define FIELD(name) offsetof(struct serve_config, name)

static const struct opt options[] = {
    {"host", 0, OPT_STR, FIELD(host), "ADDRESS", "127.0.0.1", 0, 0, NULL,
     "where to listen; any but this machine's own needs --token-file"},
    {"port", 0, OPT_I64, FIELD(port), "N", "8080", 0, 65535, NULL, "port (0: any that is free)"},
    {"data", 0, OPT_STR, FIELD(data), "DIR", NULL, 0, 0, NULL,
     "what is kept: jobs, uploads, results (without it $XDG_STATE_HOME/wavetank, or "
     "wavetank-data here)"},
    {"token-file", 0, OPT_STR, FIELD(token_file), "FILE", NULL, 0, 0, NULL,
     "its first line is a token that clients must send"},
    {"workers", 0, OPT_I64, FIELD(workers), "N", "2", 1, SERVE_WORKERS_MAX, NULL,
     "simulations at a time"},
    {"worker-mib", 0, OPT_I64, FIELD(worker_mib), "MIB", "4096", 0, 1 << 24, NULL,
     "address space of each (0: no limit)"},
    {"worker-s", 0, OPT_I64, FIELD(worker_s), "S", "900", 1, 1000000, NULL,
     "processor time of each; ten times as much by the clock"},
    {"queue", 0, OPT_I64, FIELD(queue), "N", "32", 1, 100000, NULL,
     "jobs that may wait; more are refused"},
    {"upload-mib", 0, OPT_I64, FIELD(upload_mib), "MIB", "256", 1, 1 << 20, NULL,
     "size of an uploaded trace"},
    {"connections", 0, OPT_I64, FIELD(connections), "N", "2000", 1, 100000, NULL,
     "open connections; more wait"},
    {"request-s", 0, OPT_I64, FIELD(request_s), "S", "20", 1, 3600, NULL,
     "a connection that has not asked by then is dropped"},
    {0},
};

static int run(void *settings, int n_args, char **args, struct err *err)
{
    struct serve_config *config = settings;
    const char *state = getenv("XDG_STATE_HOME");
    char *made = NULL;
    (void)args;
    if (n_args != 0)
        return err_set(err, "serve: takes options only (see --help)");
    if (config->data == NULL && state != NULL && state[0] == '/')
        config->data = made = xasprintf("%s/wavetank", state);
    else if (config->data == NULL)
        config->data = "wavetank-data";
    int rc = server_run(config, err);
    free(made);
    return rc;
}

const struct manual serve_manual = {
    .name = "serve",
    .what = "run simulations from a browser, or by a JSON API",
    .synopsis = "serve [option]...",
    .text = "Serves a page on which to pick a trace, a machine and policies, run them, watch,\n"
            "compare and share the results; and the same as a JSON API. Simulations are\n"
            "processes of their own, within limits.",
    .options = options,
    .examples = "wavetank serve\n"
                "wavetank serve --port 9000 --data ~/wavetank-data",
    .see_also = "docs/serve.md",
};

int cmd_serve(int argc, char **argv)
{
    struct serve_config config = {0};
    return cmd_main(&serve_manual, &config, run, argc, argv);
}
