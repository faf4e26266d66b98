/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cmd/cmd.h"

int cmd_main(const struct opt *options, void *settings, void (*print_help)(void), cmd_run_fn *run,
             int argc, char **argv)
{
    struct err err = ERR_NONE;
    bool help = false;
    int n_args = 0;
    opt_defaults(options, settings);
    if (opt_parse_argv(options, settings, argc, argv, &n_args, &help, &err) < 0)
        return err_report(&err, "wavetank");
    if (help) {
        print_help();
        return 0;
    }
    return run(settings, n_args, argv + 1, &err) < 0 ? err_report(&err, "wavetank") : 0;
}
