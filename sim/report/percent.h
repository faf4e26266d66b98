/* SPDX-License-Identifier: Apache-2.0
 *
 * Shares and errors as people read them. What is NAN has no value: "-".
 */
#ifndef SIM_REPORT_PERCENT_H
#define SIM_REPORT_PERCENT_H

#include <stddef.h>

enum { PERCENT_SIZE = 24 };

/* "3.1%", "42%"; in `buf`, which is returned. */
char *percent(double frac, char buf[PERCENT_SIZE]);
/* The same with the sign of any but what rounds to zero: "+3.1%", "-42%", "0.0%". */
char *percent_signed(double frac, char buf[PERCENT_SIZE]);

#endif
