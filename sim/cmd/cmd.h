/* SPDX-License-Identifier: Apache-2.0
 *
 * The subcommands. argv[0] is the command's name; each returns the exit code: 0 ok, 1 the run
 * failed, 2 usage or bad input.
 */
#ifndef SIM_CMD_CMD_H
#define SIM_CMD_CMD_H

int cmd_explain(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_sim(int argc, char **argv);
int cmd_trace(int argc, char **argv);

#endif
