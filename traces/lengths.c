/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of lengths alone, as Vidur (microsoft/vidur) and etalon (project-etalon/etalon) keep
 * beside their traces: no arrivals, so these are drawn at a rate that the user gives.
 */
#include "traces/arrivals.h"
#include "traces/csv.h"
#include "traces/field.h"
#include "traces/reader.h"

enum { INPUT, OUTPUT, COLUMNS };

static const struct csv_column columns[COLUMNS] = {
    [INPUT] = {"num_prefill_tokens|input_tokens|prompt_tokens", field_tokens, CSV_REQUIRED},
    [OUTPUT] = {"num_decode_tokens|output_tokens|completion_tokens", field_tokens, CSV_REQUIRED},
};

static bool detect(const struct trace_head *h)
{
    return csv_has_column(h->line, columns[INPUT].names) &&
           !csv_has_column(h->line, "arrived_at|arrived_at_s|arrival_s|arrival_time_s");
}

static int add(struct trace *t, const struct csv *row, void *state, struct err *err)
{
    struct arrivals *arrivals = state;
    __int128 input = 0, output = 0;
    if (csv_get(row, INPUT, &input, err) < 0 || csv_get(row, OUTPUT, &output, err) < 0)
        return -1;
    int added =
        trace_add(t, arrivals_next(arrivals), (int64_t)input, (int64_t)output, row->line, err);
    t->noted[NOTE_DRAWN] += added > 0;
    return added;
}

static int read_rows(struct trace *t, struct lines *l, const struct trace_reading *reading,
                     struct err *err)
{
    static const struct csv_table table = {columns, COLUMNS, add};
    struct arrivals arrivals;
    if (reading->arrivals_per_s == 0)
        return err_at(err, l->path, 0,
                      "has lengths, but no column of arrivals such as \"arrived_at\"; to draw them "
                      "give --arrivals, in requests a second");
    arrivals_begin(&arrivals, reading);
    return csv_read_table(t, l, &table, &arrivals, err);
}

const struct trace_reader reader_lengths = {
    .name = "lengths",
    .what = "CSV without arrivals (--arrivals): num_prefill_tokens, num_decode_tokens",
    .detect = detect,
    .read = read_rows,
};
