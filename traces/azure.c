/* SPDX-License-Identifier: Apache-2.0
 *
 * Azure LLM inference traces of 2023 and 2024 (Azure/AzurePublicDataset): one CSV row per request
 * with a calendar time.
 */
#include "traces/csv.h"
#include "traces/field.h"
#include "traces/reader.h"

static const struct csv_column columns[] = {
    {"TIMESTAMP", field_calendar_ps, CSV_REQUIRED},
    {"ContextTokens", field_tokens, CSV_REQUIRED},
    {"GeneratedTokens", field_tokens, CSV_REQUIRED},
};

static bool detect(const struct trace_head *h)
{
    return csv_has_column(h->line, "ContextTokens");
}

static int read_rows(struct trace *t, struct lines *l, const struct trace_reading *reading,
                     struct err *err)
{
    (void)reading;
    t->calendar = true;
    return csv_read_requests(t, l, columns, err);
}

const struct trace_reader reader_azure = {
    .name = "azure",
    .what = "CSV: TIMESTAMP, ContextTokens, GeneratedTokens",
    .detect = detect,
    .read = read_rows,
};
