/* SPDX-License-Identifier: Apache-2.0
 *
 * The actions of wavetank plan that make plans. argv[0] is the action's name; each returns the exit
 * code.
 */
#ifndef SIM_CMD_PLAN_MAKE_H
#define SIM_CMD_PLAN_MAKE_H

int plan_grid(int argc, char **argv);
int plan_compare(int argc, char **argv);
int plan_predict(int argc, char **argv);
int plan_switches(int argc, char **argv);

#endif
