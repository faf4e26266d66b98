/* SPDX-License-Identifier: Apache-2.0
 *
 * The subcommands. argv[0] is the command's name; each returns the exit code: 0 ok, 1 the run
 * failed, 2 usage or bad input.
 */
#ifndef SIM_CMD_CMD_H
#define SIM_CMD_CMD_H

#include "sim/base/opt.h"

/* What a command does with its settings and positional arguments. */
typedef int cmd_run_fn(void *settings, int n_args, char **args, struct err *err);

/* Defaults, argv, --help, run: what all commands without a config file do. `settings` is zeroed, or
 * NULL for a table that stores nothing. Returns the exit code. */
int cmd_main(const struct opt *options, void *settings, void (*print_help)(void), cmd_run_fn *run,
             int argc, char **argv);

int cmd_explain(int argc, char **argv);
int cmd_fit(int argc, char **argv);
int cmd_gen(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_reproduce(int argc, char **argv);
int cmd_sim(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_validate(int argc, char **argv);

#endif
