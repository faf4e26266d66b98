/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/traffic.h"

#include <string.h>

enum { SPREAD_BYTES = 128 << 10 /* over which sources lie */ };

/* A size in words, most often of some. */
static int64_t pick(struct rng *rng, int64_t most)
{
    return rng_range(rng, 0, 9) == 0 ? 0 : rng_range(rng, 1, most);
}

static int64_t extent(const struct link_box *b, int64_t block, int64_t row)
{
    if (b->blocks == 0 || b->rows == 0)
        return 0;
    return (b->blocks - 1) * block + (b->rows - 1) * row + b->bytes;
}

/* Blocks of rows with gaps between them or without, in words of 16, 2, or 1 bytes. */
static struct link_box random_box(struct rng *rng, int64_t grow)
{
    static const int64_t word_of[] = {16, 16, 2, 1};
    int64_t word = word_of[rng_range(rng, 0, 3)], gaps = rng_range(rng, 0, 3);
    struct link_box b = {.blocks = pick(rng, 4), .rows = pick(rng, 6)};
    b.bytes = word * grow * pick(rng, word == 1 ? 97 : 40);
    b.from_row = b.bytes + word * rng_range(rng, 0, 9) * (gaps & 1);
    b.to_row = b.bytes + word * rng_range(rng, 0, 9) * (gaps >> 1);
    b.from_block = b.rows * b.from_row + word * rng_range(rng, 0, 9) * (gaps & 1);
    b.to_block = b.rows * b.to_row + word * rng_range(rng, 0, 9) * (gaps >> 1);
    b.from = word * rng_range(rng, 0, SPREAD_BYTES / word);
    b.to = word * rng_range(rng, 0, 20);
    return b;
}

void traffic_make(struct traffic *t, struct rng *rng, int ranks, int64_t grow)
{
    int64_t end[16] = {0};
    int silent = (int)rng_range(rng, 0, 3 * ranks), deaf = (int)rng_range(rng, 0, 3 * ranks);
    bool many = rng_range(rng, 0, 9) == 0;
    t->n = (int)rng_range(rng, 0, grow > 1 ? 12 : many ? TRAFFIC_MAX : 30);
    t->from_bytes = t->to_bytes = 0;
    for (int i = 0; i < t->n; i++) {
        struct link_box b = random_box(rng, grow);
        int sender = (int)rng_range(rng, 0, ranks - 1),
            receiver = (int)rng_range(rng, 0, ranks - 1);
        if (sender == silent || receiver == deaf)
            b.bytes = 0;
        if (b.bytes % 16 == 0)
            end[receiver] = (end[receiver] + 15) / 16 * 16;
        else if (b.bytes % 2 == 0)
            end[receiver] = (end[receiver] + 1) / 2 * 2;
        b.to += end[receiver];
        if (b.blocks * b.rows * b.bytes > 0)
            end[receiver] = b.to + extent(&b, b.to_block, b.to_row);
        int64_t from_end = b.from + extent(&b, b.from_block, b.from_row);
        t->from_bytes = from_end > t->from_bytes ? from_end : t->from_bytes;
        t->to_bytes = end[receiver] > t->to_bytes ? end[receiver] : t->to_bytes;
        t->item[i].sender = sender;
        t->item[i].receiver = receiver;
        t->item[i].box = b;
    }
}

void traffic_boxes(const struct traffic *t, int rank, struct link_box *out, int *n_out,
                   struct link_box *in, int *n_in)
{
    *n_out = *n_in = 0;
    for (int i = 0; i < t->n; i++) {
        struct link_box b = t->item[i].box;
        b.peer = t->item[i].receiver;
        if (t->item[i].sender == rank)
            out[(*n_out)++] = b;
        b.peer = t->item[i].sender;
        if (t->item[i].receiver == rank)
            in[(*n_in)++] = b;
    }
}

static int64_t bytes_of(const struct link_box *b)
{
    return b->blocks * b->rows * b->bytes;
}

int64_t traffic_sent_bytes(const struct traffic *t, int rank)
{
    int64_t sum = 0;
    for (int i = 0; i < t->n; i++)
        if (t->item[i].sender == rank && t->item[i].receiver != rank)
            sum += bytes_of(&t->item[i].box);
    return sum;
}

int64_t traffic_received_bytes(const struct traffic *t, int rank)
{
    int64_t sum = 0;
    for (int i = 0; i < t->n; i++)
        if (t->item[i].receiver == rank && t->item[i].sender != rank)
            sum += bytes_of(&t->item[i].box);
    return sum;
}

void traffic_source(unsigned char *to, int64_t n, uint64_t seed, int rank)
{
    struct rng rng;
    rng_init(&rng, seed * 64 + (uint64_t)rank);
    for (int64_t i = 0; i < n; i += 8) {
        uint64_t word = rng_u64(&rng) & 0x7f7f7f7f7f7f7f7f; /* never the poison */
        memcpy(to + i, &word, sizeof word);
    }
}

void traffic_deliver(const struct traffic *t, uint64_t seed, int rank, unsigned char *to,
                     unsigned char *room)
{
    int filled = -1; /* whose bytes are in the room */
    for (int sender = 0; sender < 16; sender++)
        for (int i = 0; i < t->n; i++) {
            const struct link_box *b = &t->item[i].box;
            if (t->item[i].sender != sender || t->item[i].receiver != rank || bytes_of(b) == 0)
                continue;
            if (filled != sender)
                traffic_source(room, (t->from_bytes + 7) / 8 * 8, seed, sender);
            filled = sender;
            for (int64_t block = 0; block < b->blocks; block++)
                for (int64_t row = 0; row < b->rows; row++)
                    memcpy(to + b->to + block * b->to_block + row * b->to_row,
                           room + b->from + block * b->from_block + row * b->from_row,
                           (size_t)b->bytes);
        }
}
