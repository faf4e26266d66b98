/* SPDX-License-Identifier: Apache-2.0
 *
 * What a study minimises: arithmetic over a run's metrics, as in "e2e_s_mean + 0.01 * switches".
 *
 *     sum  = term (("+" | "-") term)*          unit = number | metric | "(" sum ")" | "-" unit
 *     term = unit (("*" | "/") unit)*               | ("min" | "max") "(" sum "," sum ")"
 */
#ifndef SIM_TUNE_FORMULA_H
#define SIM_TUNE_FORMULA_H

#include "sim/tune/metrics.h"

enum { FORMULA_OPS_MAX = 128, FORMULA_DEPTH_MAX = 32 };

enum formula_op {
    OP_NUMBER,
    OP_METRIC,
    OP_NEGATE,
    OP_ADD,
    OP_SUBTRACT,
    OP_MULTIPLY,
    OP_DIVIDE,
    OP_MIN,
    OP_MAX
};

/* In reverse Polish order. */
struct formula {
    int n;
    struct {
        enum formula_op op;
        int metric;
        double number;
    } step[FORMULA_OPS_MAX];
};

/* An objective with a name of its own, for lists. */
struct objective {
    const char *name, *text, *what;
};
extern const struct objective objectives[]; /* ends with a zeroed entry */

/* Parse an objective's name or an expression; `what` opens the messages. */
int formula_parse(struct formula *f, const char *what, const char *text, struct err *err);
/* NAN where it has no finite value, as in a division by zero. */
double formula_value(const struct formula *f, const struct metrics *m);

#endif
