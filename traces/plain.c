/* SPDX-License-Identifier: Apache-2.0
 *
 * The format for traces of one's own: CSV with names that say their units.
 */
#include "traces/csv.h"
#include "traces/field.h"
#include "traces/reader.h"

static const struct csv_column columns[] = {
    {"arrived_at_s|arrival_s|arrival_time_s", field_seconds_ps, CSV_REQUIRED},
    {"input_tokens|prompt_tokens", field_tokens, CSV_REQUIRED},
    {"output_tokens|completion_tokens", field_tokens, CSV_REQUIRED},
};

static bool detect(const struct trace_head *h)
{
    return csv_has_column(h->line, columns[1].names);
}

static int read_rows(struct trace *t, struct lines *l, const struct trace_reading *reading,
                     struct err *err)
{
    (void)reading;
    return csv_read_requests(t, l, columns, err);
}

const struct trace_reader reader_plain = {
    .name = "plain",
    .what = "CSV: arrived_at_s, input_tokens, output_tokens",
    .detect = detect,
    .read = read_rows,
};
