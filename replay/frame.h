/* SPDX-License-Identifier: Apache-2.0
 *
 * The messages of the control plane: a header of four 32-bit words in network order (mark, kind,
 * step, payload bytes), then the payload. Both sides read and write them in libevent buffers.
 */
#ifndef REPLAY_FRAME_H
#define REPLAY_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include <event2/buffer.h>

enum { FRAME_HEADER_BYTES = 16, FRAME_PAYLOAD_MAX_BYTES = 64 << 20 };

enum frame_kind {
    FRAME_HELLO,     /* rank to coordinator: its rank in the place of the step; struct tcp_address
                        with the port where it listens for other ranks, 0: it does not */
    FRAME_START,     /* coordinator to rank: all have joined; a struct tcp_address of each */
    FRAME_BROADCAST, /* rank 0 to coordinator, and from there to all others */
    FRAME_BUSY,      /* heartbeat: working in this step */
    FRAME_WAITING,   /* heartbeat: waiting for other ranks in this step */
    FRAME_RESULT,    /* rank to coordinator: what it measured in this step */
    FRAME_FAILED,    /* rank to coordinator: the text of its error */
    FRAME_ABORT,     /* coordinator to rank: exit at once; why, when nobody else will say it */
    FRAME_BYE,       /* rank to coordinator: all done; the answer says that all has arrived */
    FRAME_COUNT
};

struct frame {
    enum frame_kind kind;
    int step;
    const void *data; /* in the buffer it was read from, until that buffer changes */
    size_t bytes;
};

/* Append a frame. Atomic on a buffer with a lock. At most FRAME_PAYLOAD_MAX_BYTES. */
void frame_add(struct evbuffer *to, struct frame f);

/* Look at the frame at the front of a buffer. Returns 1 when all of it is there, 0 when more has to
 * arrive first, and -1 when it is not a frame. */
int frame_peek(struct evbuffer *from, struct frame *out);

/* The payload as a string that was sent with its NUL, or NULL when it is none. */
const char *frame_text(const struct frame *f);

/* Header and payload: what to take from the buffer once the frame has been dealt with. */
size_t frame_size(const struct frame *f);

#endif
