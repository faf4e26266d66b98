/* SPDX-License-Identifier: Apache-2.0
 *
 * What the coordinator knows about each rank: where it was last heard of and whether it still runs,
 * and from that who died and who has stalled. No I/O but waitpid; the caller brings the time.
 */
#ifndef REPLAY_ROSTER_H
#define REPLAY_ROSTER_H

#include <stdbool.h>
#include <sys/types.h>

#include "sim/base/err.h"

enum { ROSTER_START_UP = -1 }; /* the step of a rank that has not begun its first one */

struct member {
    pid_t pid;         /* 0: not our child */
    int step;          /* the last one heard of */
    bool joined;       /* has said hello */
    bool waits;        /* for other ranks, by its last heartbeat */
    bool done;         /* has said bye */
    bool ended;        /* the process is gone (not our child: its connection is) */
    double advanced_s; /* when it last joined, took a new step or said bye */
    double heard_s;    /* when it last sent anything */
};

struct roster {
    int ranks;
    struct member *member;
};

/* `pid` (one per rank) are children of this process; NULL when something else started the ranks. */
void roster_init(struct roster *r, int ranks, const pid_t *pid, double now_s);
void roster_release(struct roster *r);

bool roster_all_joined(const struct roster *r);
bool roster_all_ended(const struct roster *r);

/* A rank was heard of: it is in `step`, and waits for others or not. */
void roster_hear(struct roster *r, int rank, int step, bool waits, double now_s);

/* A rank has joined, or is done. */
void roster_join(struct roster *r, int rank, double now_s);
void roster_finish(struct roster *r, int rank, double now_s);

/* Where a rank is, in words: "step 17", "start-up", "shutdown". */
const char *roster_place(const struct roster *r, int rank, char *buf, size_t size);

/* Collect children that have ended. Fails when one ended badly: "rank 3 died (signal 9) in step
 * 17". */
int roster_reap(struct roster *r, struct err *err);

/* Fails when a rank has not advanced for stall_s: "rank 2 has been in step 17 for 10 s: stalled",
 * or, of those that something else was to start, "ranks 1, 4-7 of 8 did not come within 10 s".
 * When one hangs all hang, so of those that have been there for half as long it names one that
 * works or is silent before one that says it waits, and then the one furthest behind. */
int roster_check_stall(const struct roster *r, double stall_s, double now_s, struct err *err);

/* SIGKILL every child that still runs. */
void roster_kill(const struct roster *r);

#endif
