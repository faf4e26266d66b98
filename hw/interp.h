/* SPDX-License-Identifier: Apache-2.0
 *
 * Interpolation that gives the same bits on every machine. libm's log2 may differ in its last bit
 * between processors, and results are compared byte for byte.
 */
#ifndef HW_INTERP_H
#define HW_INTERP_H

/* log2 of a positive finite x, by + - * / alone; exact at powers of two, elsewhere to a few ulp. */
double interp_log2(double x);

/* The line through (x0, y0) and (x1, y1) at x; exactly y0 at x0. */
double interp_linear(double x, double x0, double y0, double x1, double y1);

#endif
