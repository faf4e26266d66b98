/* SPDX-License-Identifier: Apache-2.0
 *
 * The actions of wavetank plan that make plans. argv[0] is the action's name; each returns the exit
 * code.
 */
#ifndef SIM_CMD_PLAN_MAKE_H
#define SIM_CMD_PLAN_MAKE_H

#include "sim/cmd/manual.h"

int plan_grid(int argc, char **argv);
int plan_compare(int argc, char **argv);
int plan_predict(int argc, char **argv);
int plan_switches(int argc, char **argv);

extern const struct manual plan_grid_manual, plan_compare_manual, plan_predict_manual,
    plan_switches_manual;

#endif
