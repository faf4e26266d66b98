/* SPDX-License-Identifier: Apache-2.0
 *
 * AIBrix workloads (vllm-project/aibrix): JSON Lines, each with the requests of one moment.
 */
#include <string.h>

#include "traces/reader.h"
#include "traces/row.h"

static bool detect(const struct trace_head *h)
{
    return h->line[strspn(h->line, " \t")] == '{' && strstr(h->line, "\"timestamp\"") &&
           strstr(h->line, "\"requests\"");
}

static int add_request(struct trace *t, const struct row *r, __int128 at_ps, struct err *err)
{
    enum { UNKNOWN = INT64_MIN };
    int64_t input = UNKNOWN, output = UNKNOWN;
    char session[ROW_LABEL_BYTES];
    if (row_tokens(r, "Prompt Length|prompt_length", false, &input, err) < 0 ||
        row_tokens(r, "Output Length|output_length", false, &output, err) < 0 ||
        row_label(r, "session_id", false, session, err) < 0)
        return -1;
    if (input == UNKNOWN || output == UNKNOWN) {
        t->skipped[SKIP_NO_LENGTH]++;
        return 0;
    }
    int added = trace_add(t, at_ps, input, output, row_line(r), err);
    if (added > 0 && session[0] != '\0')
        trace_set_session(t, session);
    return added;
}

static int add_row(void *trace, const struct row *r, struct err *err)
{
    struct trace *t = trace;
    __int128 at_ps = 0;
    json_t *requests = NULL;
    struct row in;
    if (row_time(r, "timestamp", ROW_MS, true, &at_ps, err) < 0 ||
        row_array(r, "requests", true, &requests, err) < 0)
        return -1;
    for (size_t i = 0; i < json_array_size(requests); i++)
        if (row_inside(&in, r, "requests", i, err) < 0 || add_request(t, &in, at_ps, err) < 0)
            return -1;
    return 0;
}

static int read_rows(struct trace *t, struct lines *l, const struct trace_reading *reading,
                     struct err *err)
{
    (void)reading;
    return row_each(l, add_row, t, err);
}

const struct trace_reader reader_aibrix = {
    .name = "aibrix",
    .what = "JSON Lines: timestamp (ms), requests of Prompt Length and Output Length",
    .detect = detect,
    .read = read_rows,
};
