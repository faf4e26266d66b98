/* SPDX-License-Identifier: Apache-2.0
 *
 * A table of measured speeds, CSV by the rules of traces/csv.h: layout, input_len, batch,
 * output_len and throughput_tok_s or step_ms, of which a row has one.
 *
 * A throughput is of a burst: `batch` prompts of input_len tokens arrive together and are prefilled
 * (sim/study/prefill.h); then all decode together, output_len - 1 steps, since prefill gives the
 * first token. It counts all tokens, batch x (input_len + output_len), over the time from arrival
 * to the last token. A step time is of one step: decode of requests that hold input_len +
 * output_len tokens each, or, where output_len is 0, prefill of the whole prompts at once.
 */
#ifndef SIM_STUDY_SPEEDS_H
#define SIM_STUDY_SPEEDS_H

#include "sim/cost/cost.h"

struct speed {
    long line; /* of the file */
    int layout, shape, batch;
    int64_t input_tokens, output_tokens;
    bool is_step;
    double s; /* measured time of the burst, or of the step */
};

struct speeds {
    const char *path; /* borrowed, as are model and cluster */
    const struct model *model;
    const struct cluster *cluster;
    struct layout layout[LAYOUT_MAX];
    int n_layouts;
    int decode_layout; /* of bursts: what all decode in; -1: each in its own */
    struct speed *row;
    int n;
    size_t cap;
    int n_shapes; /* what rows under several layouts may share: batch, lengths, kind */
};

/* Whether a table's first line begins one of these. */
bool speeds_header(const char *line);

/* Read the table. `decode_layout`: bursts decode in a pool of this layout; NULL: where they were
 * prefilled. Refuses rows that say the same twice, and a table without any row. */
int speeds_load(struct speeds *s, const char *path, const struct model *m, const struct cluster *c,
                const char *decode_layout, struct err *err);
void speeds_release(struct speeds *s);

#endif
