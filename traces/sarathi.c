/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces as Sarathi-Serve reads them (microsoft/sarathi-serve, TraceRequestGenerator): CSV with the
 * time in seconds of the row's date. It replays one date, so a file holds one.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "traces/csv.h"
#include "traces/field.h"
#include "traces/reader.h"

enum { DATE, ARRIVAL, INPUT, OUTPUT, COLUMNS };

static const struct csv_column columns[COLUMNS] = {
    [DATE] = {"Date", NULL, CSV_REQUIRED},
    [ARRIVAL] = {"Time", field_seconds_ps, CSV_REQUIRED},
    [INPUT] = {"PromptTokenCount", field_tokens, CSV_REQUIRED},
    [OUTPUT] = {"CompletionTokenCount", field_tokens, CSV_REQUIRED},
};

static bool detect(const struct trace_head *h)
{
    return csv_has_column(h->line, columns[INPUT].names);
}

static int check_date(const struct csv *row, char **first, struct err *err)
{
    const char *date;
    if (csv_get_text(row, DATE, &date, err) < 0)
        return -1;
    if (*first == NULL)
        *first = xstrdup(date);
    if (strcmp(*first, date) != 0)
        return err_at(err, row->lines->path, row->line,
                      "has date \"%.40s\" after \"%.40s\"; times count within a date, so keep the "
                      "rows of one",
                      date, *first);
    return 0;
}

static int add(struct trace *t, const struct csv *row, void *first_date, struct err *err)
{
    __int128 arrival_ps = 0, input = 0, output = 0;
    if (check_date(row, first_date, err) < 0 || csv_get(row, ARRIVAL, &arrival_ps, err) < 0 ||
        csv_get(row, INPUT, &input, err) < 0 || csv_get(row, OUTPUT, &output, err) < 0)
        return -1;
    return trace_add(t, arrival_ps, (int64_t)input, (int64_t)output, row->line, err);
}

static int read_rows(struct trace *t, struct lines *l, const struct trace_reading *reading,
                     struct err *err)
{
    static const struct csv_table table = {columns, COLUMNS, add};
    char *first_date = NULL;
    (void)reading;
    int rc = csv_read_table(t, l, &table, &first_date, err);
    free(first_date);
    return rc;
}

const struct trace_reader reader_sarathi = {
    .name = "sarathi",
    .what = "CSV: Date, Time (s), PromptTokenCount, CompletionTokenCount",
    .detect = detect,
    .read = read_rows,
};
