/* SPDX-License-Identifier: Apache-2.0
 *
 * A progress bar on stderr when that is a terminal, nothing otherwise. At most ten redraws a
 * second. A program that runs this one may ask for lines "DONE TOTAL LABEL" instead, on a
 * descriptor whose number it puts in the environment: it is told of the beginning, and of the rest
 * at that pace.
 */
#ifndef SIM_BASE_PROGRESS_H
#define SIM_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#define PROGRESS_FD_VARIABLE "WAVETANK_PROGRESS_FD"

struct progress {
    bool on;
    int fd; /* for lines; -1: the bar */
    const char *label;
    int64_t total, done;
    uint64_t start_ns, drawn_ns;
};

void progress_begin(struct progress *p, const char *label, int64_t total);
/* Cheap when nothing is due. */
void progress_update(struct progress *p, int64_t done);
/* One more is done. */
void progress_step(struct progress *p);
/* Wipes the line. */
void progress_end(struct progress *p);

/* Wall time, monotonic. */
uint64_t wall_ns(void);

#endif
