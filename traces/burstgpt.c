/* SPDX-License-Identifier: Apache-2.0
 *
 * BurstGPT (HPMLL/BurstGPT): CSV of a campus's requests, in whole seconds. A request without
 * response tokens failed.
 */
#include "traces/csv.h"
#include "traces/field.h"
#include "traces/reader.h"

enum { ARRIVAL, INPUT, OUTPUT, SESSION, COLUMNS };

static const struct csv_column columns[COLUMNS] = {
    [ARRIVAL] = {"Timestamp", field_seconds_ps, CSV_REQUIRED},
    [INPUT] = {"Request tokens", field_tokens, CSV_REQUIRED},
    [OUTPUT] = {"Response tokens", field_tokens, CSV_REQUIRED},
    [SESSION] = {"Session ID", NULL, CSV_OPTIONAL},
};

static bool detect(const struct trace_head *h)
{
    return csv_has_column(h->line, columns[INPUT].names);
}

static int add(struct trace *t, const struct csv *row, void *state, struct err *err)
{
    (void)state;
    __int128 arrival_ps = 0, input = 0, output = 0;
    const char *session;
    if (csv_get(row, ARRIVAL, &arrival_ps, err) < 0 || csv_get(row, INPUT, &input, err) < 0 ||
        csv_get(row, OUTPUT, &output, err) < 0)
        return -1;
    if (output == 0) {
        t->skipped[SKIP_FAILED]++;
        return 0;
    }
    int added = trace_add(t, arrival_ps, (int64_t)input, (int64_t)output, row->line, err);
    if (added > 0 && csv_get_text(row, SESSION, &session, err) > 0)
        trace_set_session(t, session);
    return added;
}

static int read_rows(struct trace *t, struct lines *l, const struct trace_reading *reading,
                     struct err *err)
{
    static const struct csv_table table = {columns, COLUMNS, add};
    (void)reading;
    return csv_read_table(t, l, &table, NULL, err);
}

const struct trace_reader reader_burstgpt = {
    .name = "burstgpt",
    .what = "CSV: Timestamp (s), Request tokens, Response tokens, maybe Session ID",
    .detect = detect,
    .read = read_rows,
};
