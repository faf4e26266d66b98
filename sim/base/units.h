/* SPDX-License-Identifier: Apache-2.0
 *
 * Units at the edges. Inside, time is int64 picoseconds (`_ps`), sizes are bytes, lengths tokens.
 */
#ifndef SIM_BASE_UNITS_H
#define SIM_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#include "sim/base/err.h"

#define PS_PER_NS 1000LL
#define PS_PER_US 1000000LL
#define PS_PER_MS 1000000000LL
#define PS_PER_S  1000000000000LL

#define KIB 1024.0
#define MIB (1024.0 * 1024.0)
#define GIB (1024.0 * 1024.0 * 1024.0)

/* A non-negative time in seconds, rounded to the nearest picosecond; asserts that it fits. */
int64_t ps_from_s(double seconds);
double ps_to_s(int64_t ps);

/* "2s", "50ms", "10us", "5ns", "3m", "1h", "2d"; a bare number is seconds. Writes picoseconds.
 * Rejects negative, NaN, and what does not fit in 100 days. `what` names the option in the message.
 */
int units_parse_time(const char *text, const char *what, int64_t *ps, struct err *err);

/* "1M", "256K", "65536": K and M are 1024 and 1024*1024 (the papers' use). Writes a count. */
int units_parse_tokens(const char *text, const char *what, int64_t *tokens, struct err *err);

/* A finite double in [min, max]. */
int units_parse_f64(const char *text, const char *what, double min, double max, double *out,
                    struct err *err);
int units_parse_i64(const char *text, const char *what, int64_t min, int64_t max, int64_t *out,
                    struct err *err);

/* The words after "must be": "in [0, 1]", "at least 0", "at most 9"; a bound of 2^63 or more counts
 * as none, and with neither bound it is "finite". */
char *units_range(double min, double max, char *buf, size_t size);

/* Human forms in a caller's buffer, returned: "12.3 ms", "1.25 GiB", "12,031". */
char *units_time(int64_t ps, char *buf, size_t size);
char *units_bytes(double bytes, char *buf, size_t size);
char *units_count(int64_t n, char *buf, size_t size);

#endif
