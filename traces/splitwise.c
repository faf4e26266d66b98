/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces of splitwise-sim (Mutinifni/splitwise-sim): CSV whose rows are requests of several types,
 * of which one is to a language model.
 */
#include "traces/csv.h"
#include "traces/field.h"
#include "traces/reader.h"

enum { TYPE, ARRIVAL, BATCH, INPUT, OUTPUT, COLUMNS };
enum { TYPE_LLM = 2 };

static const struct csv_column columns[COLUMNS] = {
    [TYPE] = {"request_type", field_tokens, CSV_REQUIRED},
    [ARRIVAL] = {"arrival_timestamp", field_seconds_ps, CSV_REQUIRED},
    [BATCH] = {"batch_size", field_tokens, CSV_OPTIONAL},
    [INPUT] = {"prompt_size", field_tokens, CSV_REQUIRED},
    [OUTPUT] = {"token_size", field_tokens, CSV_REQUIRED},
};

static bool detect(const struct trace_head *h)
{
    return csv_has_column(h->line, columns[INPUT].names) &&
           csv_has_column(h->line, columns[OUTPUT].names);
}

static int add(struct trace *t, const struct csv *row, void *state, struct err *err)
{
    (void)state;
    __int128 value[COLUMNS] = {[BATCH] = 1};
    if (csv_get(row, TYPE, &value[TYPE], err) < 0)
        return -1;
    if (value[TYPE] != TYPE_LLM) {
        t->skipped[SKIP_OTHER]++;
        return 0;
    }
    for (int i = ARRIVAL; i < COLUMNS; i++)
        if (csv_get(row, i, &value[i], err) < 0)
            return -1;
    if (value[BATCH] != 1)
        return err_at(err, t->path, row->line,
                      "batch_size is not 1: give each prompt a row of its own");
    return trace_add(t, value[ARRIVAL], (int64_t)value[INPUT], (int64_t)value[OUTPUT], row->line,
                     err);
}

static int read_rows(struct trace *t, struct lines *l, const struct trace_reading *reading,
                     struct err *err)
{
    static const struct csv_table table = {columns, COLUMNS, add};
    (void)reading;
    return csv_read_table(t, l, &table, NULL, err);
}

const struct trace_reader reader_splitwise = {
    .name = "splitwise",
    .what = "CSV: request_type, arrival_timestamp (s), prompt_size, token_size",
    .detect = detect,
    .read = read_rows,
};
