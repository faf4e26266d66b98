/* SPDX-License-Identifier: Apache-2.0
 *
 * Sentences on a validation's tables of switches and of HOP-B, the same in every kind of report.
 */
#ifndef SIM_REPORT_NOTES_H
#define SIM_REPORT_NOTES_H

#include "sim/study/validation.h"

enum { NOTE_SIZE = 400 };

/* Each into `buf`, which is returned: empty when there is nothing to say. */
char *note_noise(const struct switch_trials *t, char buf[NOTE_SIZE]);
/* How much of a transfer can hide at all. */
char *note_hidden(const struct validation *v, char buf[NOTE_SIZE]);
char *note_first_runs(const struct first_runs *f, char buf[NOTE_SIZE]);
/* Where HOP-B loses. */
char *note_hopb(const struct validation *v, char buf[NOTE_SIZE]);

#endif
