/* SPDX-License-Identifier: Apache-2.0
 *
 * The subcommands. argv[0] is the command's name; each returns the exit code: 0 ok, 1 the run
 * failed, 2 usage or bad input.
 */
#ifndef SIM_CMD_CMD_H
#define SIM_CMD_CMD_H

#include "sim/cmd/manual.h"

/* What a command does with its settings and positional arguments. */
typedef int cmd_run_fn(void *settings, int n_args, char **args, struct err *err);

/* Defaults, argv, --help, run: what all commands without a config file do. `settings` is zeroed, or
 * NULL for a table that stores nothing. Returns the exit code. */
int cmd_main(const struct manual *manual, void *settings, cmd_run_fn *run, int argc, char **argv);

/* All of them, in the order of the help. */
struct command {
    const struct manual *manual;
    int (*run)(int argc, char **argv);
};

extern const struct command commands[];
extern const int n_commands;

/* The manual of "sim" or "plan grid"; NULL when there is none. */
const struct manual *find_manual(const char *name);

int cmd_completion(int argc, char **argv);
int cmd_db(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_fit(int argc, char **argv);
int cmd_gen(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_man(int argc, char **argv);
int cmd_pareto(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_reproduce(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_sim(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_tune(int argc, char **argv);
int cmd_validate(int argc, char **argv);
int cmd_whatif(int argc, char **argv);

extern const struct manual wavetank_manual; /* of the program itself */
extern const struct manual completion_manual;
extern const struct manual db_manual;
extern const struct manual explain_manual;
extern const struct manual fit_manual;
extern const struct manual gen_manual;
extern const struct manual list_manual;
extern const struct manual man_manual;
extern const struct manual pareto_manual;
extern const struct manual plan_manual;
extern const struct manual reproduce_manual;
extern const struct manual serve_manual;
extern const struct manual sim_manual;
extern const struct manual trace_manual;
extern const struct manual tune_manual;
extern const struct manual validate_manual;
extern const struct manual whatif_manual;

#endif
