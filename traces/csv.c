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

static int split_current(struct csv *c, struct err *err)
{
    if (split(c, c->lines->line))
        return 0;
    err_at(err, c->lines->path, c->lines->number,
           "a quoted field does not end with a quote and a comma");
    return -1;
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
    return err_at(err, c->lines->path, c->lines->number,
                  "no column \"%.*s\"%s%s (the columns here: %s)", (int)strcspn(col->names, "|"),
                  col->names, col->missing ? ": " : "", col->missing ? col->missing : "", there);
}

static int find_column(struct csv *c, int column, struct err *err)
{
    size_t found = c->n;
    for (size_t i = 0; i < c->n; i++) {
        if (!is_one_of(c->column[column].names, c->field[i]))
            continue;
        if (found < c->n)
            return err_at(err, c->lines->path, c->lines->number,
                          "columns \"%.100s\" and \"%.100s\" mean the same; drop one",
                          c->field[found], c->field[i]);
        found = i;
    }
    if (found == c->n)
        return fail_missing(c, column, err);
    c->at[column] = found;
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
        return err_at(err, c->lines->path, c->lines->number,
                      "has %zu fields where the header has %zu", c->n, c->width);
    return 1;
}

int csv_get(const struct csv *c, int column, __int128 *out, struct err *err)
{
    const struct csv_column *col = &c->column[column];
    const char *text = c->field[c->at[column]];
    int name_len = (int)strcspn(col->names, "|");
    if (*text == '\0')
        return err_at(err, c->lines->path, c->lines->number, "column \"%.*s\" is empty", name_len,
                      col->names);
    const char *fault = col->parse(text, out);
    if (fault != NULL)
        return err_at(err, c->lines->path, c->lines->number, "column \"%.*s\": \"%.60s\" %s",
                      name_len, col->names, text, fault);
    return 0;
}

void csv_close(struct csv *c)
{
    free(c->field);
    *c = (struct csv){0};
}

bool csv_has_column(const char *header, const char *names)
{
    struct csv c = {0};
    char *copy = xstrdup(header);
    bool found = false;
    if (split(&c, copy))
        for (size_t i = 0; i < c.n && !found; i++)
            found = is_one_of(names, c.field[i]);
    csv_close(&c);
    free(copy);
    return found;
}

enum { ARRIVAL, INPUT, OUTPUT, REQUEST_COLUMNS };

static int add_row(struct trace *t, const struct csv *c, struct err *err)
{
    __int128 value[REQUEST_COLUMNS] = {0};
    for (int i = 0; i < REQUEST_COLUMNS; i++)
        if (csv_get(c, i, &value[i], err) < 0)
            return -1;
    return trace_add(t, value[ARRIVAL], (int64_t)value[INPUT], (int64_t)value[OUTPUT],
                     c->lines->number, err);
}

int csv_read_requests(struct trace *t, struct lines *l, const struct csv_column column[3],
                      struct err *err)
{
    struct csv c;
    int got;
    if (csv_open(&c, l, column, REQUEST_COLUMNS, err) < 0)
        return -1;
    while ((got = csv_next(&c, err)) > 0 && (got = add_row(t, &c, err)) >= 0)
        continue;
    csv_close(&c);
    return got;
}
