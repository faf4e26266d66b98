/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/box.h"

#include <stdlib.h>

#include "sim/base/mem.h"

void boxes_release(struct boxes *b)
{
    free(b->out);
    free(b->in);
    *b = (struct boxes){0};
}

static void close_gaps(struct link_box *b)
{
    if (b->rows == 1 || (b->from_row == b->bytes && b->to_row == b->bytes)) {
        b->bytes *= b->rows;
        b->rows = 1;
        b->from_row = b->to_row = b->bytes;
    }
    if (b->rows == 1) {
        b->rows = b->blocks;
        b->from_row = b->from_block;
        b->to_row = b->to_block;
        b->blocks = 1;
        if (b->from_row == b->bytes && b->to_row == b->bytes) {
            b->bytes *= b->rows;
            b->rows = 1;
        }
    }
}

void boxes_add(struct boxes *b, int rank, int sender, int receiver, struct link_box box)
{
    if (box.blocks <= 0 || box.rows <= 0 || box.bytes <= 0)
        return;
    close_gaps(&box);
    if (sender == rank) {
        b->out = xgrow(b->out, &b->cap_out, b->n_out + 1, sizeof *b->out);
        box.peer = receiver;
        b->out[b->n_out++] = box;
    }
    if (receiver == rank) {
        b->in = xgrow(b->in, &b->cap_in, b->n_in + 1, sizeof *b->in);
        box.peer = sender;
        b->in[b->n_in++] = box;
    }
}
