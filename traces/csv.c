/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/csv.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sim/base/mem.h"
#include "traces/reader.h"

static const char blanks[] = " \t";

/* Take the quotes off in place. Returns what ends the field in the line, a comma or the NUL; NULL
 * when the quote is not closed or text follows it. */
static char *unquote(char *field)
{
    char *to = field, *from = field + 1;
    for (;; *to++ = *from++) {
        if (*from == '\0')
            return NULL;
        if (*from == '"' && *++from != '"')
            break;
    }
    *to = '\0';
    from += strspn(from, blanks);
    return *from == ',' || *from == '\0' ? from : NULL;
}

static char *trim(char *field)
{
    char *end = field + strcspn(field, ","), *last = end;
    while (last > field && strchr(blanks, last[-1]) != NULL)
        last--;
    if (last < end)
        *last = '\0';
    return end;
}

/* Cut `line` into fields in place. Returns whether its quotes are in order. */
static bool split(struct csv *c, char *line)
{
    c->n = 0;
    for (bool more = true; more; line++) {
        line += strspn(line, blanks);
        char *field = line;
        line = *field == '"' ? unquote(field) : trim(field);
        if (line == NULL)
            return false;
        more = *line == ',';
        *line = '\0';
        c->field = xgrow(c->field, &c->cap, c->n + 1, sizeof *c->field);
        c->field[c->n++] = field;
    }
    return true;
}

/* Whether text that begins inside of a quoted field, or outside, ends inside of one. */
static bool ends_quoted(const char *c, bool quoted)
{
    bool first = !quoted, closed = false; /* of a field; right behind a closing quote */
    for (; *c != '\0'; c++) {
        if (*c == '"' && (quoted || first || closed)) {
            closed = quoted;
            quoted = !quoted;
            first = false;
        } else {
            closed = false;
            first = !quoted && (*c == ',' || (first && strchr(blanks, *c) != NULL));
        }
    }
    return quoted;
}

static int fail_quotes(const struct csv *c, struct err *err)
{
    return err_at(err, c->lines->path, c->line,
                  "a quoted field does not end with a quote and a comma");
}

/* The current line and those that its open quote takes in, as one text. */
static int join_lines(struct csv *c, struct err *err)
{
    const struct lines *l = c->lines;
    bool quoted = false;
    int got = 1;
    for (size_t len = 0; got > 0 && len <= LINE_BYTES_MAX; got = lines_next(c->lines, err)) {
        c->joined = xgrow(c->joined, &c->cap_joined, len + l->len + 2, 1);
        memcpy(c->joined + len, l->line, l->len + 1);
        quoted = ends_quoted(c->joined + len, quoted);
        if (!quoted)
            return 0;
        len += l->len;
        c->joined[len++] = '\n';
    }
    return got < 0 ? -1 : fail_quotes(c, err);
}

static int split_current(struct csv *c, struct err *err)
{
    char *row = c->lines->line;
    c->line = c->lines->number;
    if (memchr(row, '"', c->lines->len) != NULL && ends_quoted(row, false)) {
        if (join_lines(c, err) < 0)
            return -1;
        row = c->joined;
    }
    return split(c, row) ? 0 : fail_quotes(c, err);
}

static bool is_one_of(const char *names, const char *name)
{
    size_t len = strlen(name);
    for (const char *alias = names;; alias += strcspn(alias, "|") + 1) {
        size_t alias_len = strcspn(alias, "|");
        if (alias_len == len && strncasecmp(alias, name, len) == 0)
            return true;
        if (alias[alias_len] == '\0')
            return false;
    }
}

static int fail_missing(const struct csv *c, int column, struct err *err)
{
    const struct csv_column *col = &c->column[column];
    char there[400] = "";
    size_t used = 0;
    for (size_t i = 0; i < c->n && used < sizeof there; i++)
        used +=
            (size_t)snprintf(there + used, sizeof there - used, "%s%s", i ? ", " : "", c->field[i]);
    return err_at(err, c->lines->path, c->line, "no column \"%.*s\" (the columns here: %s)",
                  (int)strcspn(col->names, "|"), col->names, there);
}

static int find_column(struct csv *c, int column, struct err *err)
{
    size_t found = c->n;
    for (size_t i = 0; i < c->n; i++) {
        if (!is_one_of(c->column[column].names, c->field[i]))
            continue;
        if (found < c->n)
            return err_at(err, c->lines->path, c->line,
                          "columns \"%.100s\" and \"%.100s\" mean the same; drop one",
                          c->field[found], c->field[i]);
        found = i;
    }
    if (found == c->n && c->column[column].need == CSV_REQUIRED)
        return fail_missing(c, column, err);
    c->at[column] = found < c->n ? found : CSV_ABSENT;
    return 0;
}

int csv_open(struct csv *c, struct lines *l, const struct csv_column *column, int n_columns,
             struct err *err)
{
    assert(n_columns <= CSV_COLUMNS_MAX);
    *c = (struct csv){.lines = l, .column = column};
    int rc = reader_next(l, err) == 1 ? split_current(c, err) : -1;
    for (int i = 0; rc == 0 && i < n_columns; i++)
        rc = find_column(c, i, err);
    c->width = c->n;
    if (rc < 0)
        csv_close(c);
    return rc;
}

int csv_next(struct csv *c, struct err *err)
{
    int got = reader_next(c->lines, err);
    if (got <= 0)
        return got;
    if (split_current(c, err) < 0)
        return -1;
    if (c->n != c->width)
        return err_at(err, c->lines->path, c->line, "has %zu fields where the header has %zu", c->n,
                      c->width);
    return 1;
}

int csv_get_text(const struct csv *c, int column, const char **out, struct err *err)
{
    const struct csv_column *col = &c->column[column];
    assert(c->field != NULL);
    *out = c->at[column] == CSV_ABSENT ? "" : c->field[c->at[column]];
    if (**out != '\0')
        return 1;
    if (col->need == CSV_OPTIONAL)
        return 0;
    return err_at(err, c->lines->path, c->line, "column \"%.*s\" is empty",
                  (int)strcspn(col->names, "|"), col->names);
}

int csv_get(const struct csv *c, int column, __int128 *out, struct err *err)
{
    const struct csv_column *col = &c->column[column];
    const char *text;
    int got = csv_get_text(c, column, &text, err);
    const char *fault = got > 0 ? col->parse(text, out) : NULL;
    if (fault != NULL)
        return err_at(err, c->lines->path, c->line, "column \"%.*s\": \"%.60s\" %s",
                      (int)strcspn(col->names, "|"), col->names, text, fault);
    return got;
}

void csv_close(struct csv *c)
{
    free(c->field);
    free(c->joined);
    *c = (struct csv){0};
}

bool csv_has_column(const char *header, const char *names)
{
    struct csv c = {0};
    if (*header == '{' || *header == '[') /* JSON, whose lines are long */
        return false;
    char *copy = xstrdup(header);
    bool found = false;
    if (split(&c, copy))
        for (size_t i = 0; i < c.n && !found; i++)
            found = is_one_of(names, c.field[i]);
    csv_close(&c);
    free(copy);
    return found;
}

int csv_read_table(struct trace *t, struct lines *l, const struct csv_table *table, void *state,
                   struct err *err)
{
    struct csv c;
    int got;
    if (csv_open(&c, l, table->column, table->n_columns, err) < 0)
        return -1;
    while ((got = csv_next(&c, err)) > 0 && (got = table->add(t, &c, state, err)) >= 0)
        continue;
    csv_close(&c);
    return got;
}

enum { ARRIVAL, INPUT, OUTPUT, REQUEST_COLUMNS };

static int add_request(struct trace *t, const struct csv *row, void *state, struct err *err)
{
    (void)state;
    __int128 value[REQUEST_COLUMNS] = {0};
    for (int i = 0; i < REQUEST_COLUMNS; i++)
        if (csv_get(row, i, &value[i], err) < 0)
            return -1;
    return trace_add(t, value[ARRIVAL], (int64_t)value[INPUT], (int64_t)value[OUTPUT], row->line,
                     err);
}

int csv_read_requests(struct trace *t, struct lines *l, const struct csv_column column[3],
                      struct err *err)
{
    const struct csv_table table = {column, REQUEST_COLUMNS, add_request};
    return csv_read_table(t, l, &table, NULL, err);
}
