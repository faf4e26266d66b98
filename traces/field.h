/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of one field as an exact integer: decimal numbers and calendar times, with no
 * floating-point number in between. The functions return NULL and write *out, or say what is wrong
 * with the text ("is not a number") and leave *out alone.
 */
#ifndef TRACES_FIELD_H
#define TRACES_FIELD_H

/* value * 10^scale, rounded to the nearest integer (halves up): "0.052" at scale 12 is a time of
 * seconds in picoseconds. Takes digits, a point and an exponent; refuses a sign, NaN, infinity and
 * results above 10^36. */
const char *field_decimal(const char *text, int scale, __int128 *out);

const char *field_seconds_ps(const char *text, __int128 *out);

/* A whole number that fits in int64, also when written "472.0". */
const char *field_tokens(const char *text, __int128 *out);

/* YYYY-MM-DD[ T]HH:MM:SS[.f{1,9}][Z|+HH:MM|-HH:MM] as picoseconds since 1970-01-01 UTC; without an
 * offset it is UTC. Refuses dates that do not exist and leap seconds. */
const char *field_calendar_ps(const char *text, __int128 *out);

#endif
