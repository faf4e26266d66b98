/* SPDX-License-Identifier: Apache-2.0
 *
 * Request traces as Vidur writes them (microsoft/vidur): CSV with arrivals in seconds.
 */
#include "traces/csv.h"
#include "traces/field.h"
#include "traces/reader.h"

static const struct csv_column columns[] = {
    {"arrived_at|arrived_at_s", field_seconds_ps, CSV_REQUIRED},
    {"num_prefill_tokens", field_tokens, CSV_REQUIRED},
    {"num_decode_tokens", field_tokens, CSV_REQUIRED},
};

static bool detect(const struct trace_head *h)
{
    return csv_has_column(h->line, "num_prefill_tokens");
}

static int read_rows(struct trace *t, struct lines *l, const struct trace_reading *reading,
                     struct err *err)
{
    (void)reading;
    return csv_read_requests(t, l, columns, err);
}

const struct trace_reader reader_vidur = {
    .name = "vidur",
    .what = "CSV: arrived_at (s), num_prefill_tokens, num_decode_tokens",
    .detect = detect,
    .read = read_rows,
};
