/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/frame.h"

#include <assert.h>
#include <string.h>

#include <arpa/inet.h>

enum { MARK = 0x57544b31 }; /* "WTK1" */

void frame_add(struct evbuffer *to, struct frame f)
{
    assert(f.bytes <= FRAME_PAYLOAD_MAX_BYTES);
    const uint32_t header[] = {htonl(MARK), htonl((uint32_t)f.kind), htonl((uint32_t)f.step),
                               htonl((uint32_t)f.bytes)};
    evbuffer_lock(to);
    int added = evbuffer_add(to, header, sizeof header);
    if (added == 0 && f.bytes > 0)
        added = evbuffer_add(to, f.data, f.bytes);
    evbuffer_unlock(to);
    assert(added == 0);
}

int frame_peek(struct evbuffer *from, struct frame *out)
{
    uint32_t header[4];
    if (evbuffer_copyout(from, header, sizeof header) < (ev_ssize_t)sizeof header)
        return 0;
    uint32_t kind = ntohl(header[1]), bytes = ntohl(header[3]);
    if (ntohl(header[0]) != MARK || kind >= FRAME_COUNT || bytes > FRAME_PAYLOAD_MAX_BYTES)
        return -1;
    size_t size = FRAME_HEADER_BYTES + bytes;
    if (evbuffer_get_length(from) < size)
        return 0;
    *out = (struct frame){.kind = (enum frame_kind)kind, .step = (int)ntohl(header[2])};
    out->data = evbuffer_pullup(from, (ev_ssize_t)size) + FRAME_HEADER_BYTES;
    out->bytes = bytes;
    return 1;
}

const char *frame_text(const struct frame *f)
{
    const char *text = f->data;
    return f->bytes > 0 && text[f->bytes - 1] == '\0' ? text : NULL;
}

size_t frame_size(const struct frame *f)
{
    return FRAME_HEADER_BYTES + f->bytes;
}
