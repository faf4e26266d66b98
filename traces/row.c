/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/row.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "traces/field.h"
#include "traces/reader.h"

/* Jansson's integers are signed, hashes are not: numbers with as many digits as 2^63 or more become
 * strings. */
enum { BIG_DIGITS = 19, KEY_BYTES = 48 };

static const struct {
    int ps_digits;
    const char *name;
} units[] = {
    [ROW_NS] = {3, "nanoseconds"}, [ROW_MS] = {9, "milliseconds"}, [ROW_S] = {12, "seconds"}};

/* Behind a string that begins at *c. */
static const char *pass_string(const char *c)
{
    for (c++; *c != '\0' && *c != '"'; c++)
        c += *c == '\\' && c[1] != '\0';
    return c + (*c == '"');
}

/* Behind a number that begins at *c. */
static const char *pass_number(const char *c)
{
    return c + strspn(c, "+-.0123456789eE");
}

static bool is_big(const char *number, size_t n)
{
    return n >= BIG_DIGITS && strspn(number, "0123456789") >= n;
}

/* What such a number has become. */
static bool is_big_text(const json_t *value)
{
    return json_is_string(value) && is_big(json_string_value(value), json_string_length(value));
}

static char *quote_big_numbers(const char *line, size_t len)
{
    char *text = xmalloc(len + len / BIG_DIGITS * 2 + 1), *out = text;
    for (const char *c = line, *end; *c != '\0'; c = end) {
        bool number = *c == '-' || isdigit((unsigned char)*c);
        end = *c == '"' ? pass_string(c) : number ? pass_number(c) : c + 1;
        size_t n = (size_t)(end - c);
        bool big = number && is_big(c, n);
        if (big)
            *out++ = '"';
        memcpy(out, c, n);
        out += n;
        if (big)
            *out++ = '"';
    }
    *out = '\0';
    return text;
}

static json_t *parse(const struct lines *l, json_error_t *fault)
{
    json_t *value = json_loadb(l->line, l->len, JSON_REJECT_DUPLICATES, fault);
    if (value != NULL || json_error_code(fault) != json_error_numeric_overflow)
        return value;
    char *text = quote_big_numbers(l->line, l->len);
    value = json_loads(text, JSON_REJECT_DUPLICATES, fault);
    free(text);
    return value;
}

static int add_line(struct lines *l, row_fn *add, void *to, struct err *err)
{
    json_error_t fault;
    struct row r = {.lines = l, .object = parse(l, &fault)};
    int rc;
    if (r.object == NULL)
        rc = row_fail(&r, err, "column %d: %s", fault.column, fault.text);
    else if (!json_is_object(r.object))
        rc = row_fail(&r, err, "expected a JSON object");
    else
        rc = add(to, &r, err);
    json_decref(r.object);
    return rc;
}

int row_each(struct lines *l, row_fn *add, void *to, struct err *err)
{
    int got;
    while ((got = reader_next(l, err)) > 0)
        if (add_line(l, add, to, err) < 0)
            return -1;
    return got;
}

long row_line(const struct row *r)
{
    return r->lines->number;
}

int row_fail(const struct row *r, struct err *err, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (r->array == NULL)
        return err_at(err, r->lines->path, r->lines->number, "%s", text);
    return err_at(err, r->lines->path, r->lines->number, "\"%s\"[%zu]: %s", r->array, r->index,
                  text);
}

/* The first of the names, which messages use. */
static const char *first_name(const char *names, char key[KEY_BYTES])
{
    size_t n = strcspn(names, "|");
    assert(n < KEY_BYTES);
    memcpy(key, names, n);
    key[n] = '\0';
    return key;
}

int row_value(const struct row *r, const char *names, bool required, json_t **out, struct err *err)
{
    char key[KEY_BYTES], found[KEY_BYTES] = "";
    json_t *value = NULL;
    for (const char *name = names; *name != '\0'; name += strspn(name, "|")) {
        json_t *given = json_object_get(r->object, first_name(name, key));
        if (json_is_null(given))
            given = NULL;
        if (given != NULL && value != NULL)
            return row_fail(r, err, "\"%s\" and \"%s\" mean the same; drop one", found, key);
        if (given != NULL)
            memcpy(found, key, sizeof found);
        value = given != NULL ? given : value;
        name += strlen(key);
    }
    if (value == NULL && required)
        return row_fail(r, err, "no key \"%s\"", first_name(names, key));
    if (value != NULL)
        *out = value;
    return 0;
}

int row_array(const struct row *r, const char *names, bool required, json_t **out, struct err *err)
{
    char key[KEY_BYTES];
    json_t *value = NULL;
    if (row_value(r, names, required, &value, err) < 0)
        return -1;
    if (value != NULL && !json_is_array(value))
        return row_fail(r, err, "\"%s\": expected an array", first_name(names, key));
    if (value != NULL)
        *out = value;
    return 0;
}

static int whole(const struct row *r, const char *names, bool required, const char *what,
                 int64_t *out, struct err *err)
{
    char key[KEY_BYTES];
    json_t *value = NULL;
    if (row_value(r, names, required, &value, err) < 0)
        return -1;
    if (is_big_text(value))
        return row_fail(r, err, "\"%s\": %.60s is too large", first_name(names, key),
                        json_string_value(value));
    if (value != NULL && !json_is_integer(value))
        return row_fail(r, err, "\"%s\": expected a whole number%s", first_name(names, key), what);
    if (value != NULL)
        *out = json_integer_value(value);
    return 0;
}

int row_whole(const struct row *r, const char *names, bool required, int64_t *out, struct err *err)
{
    return whole(r, names, required, "", out, err);
}

int row_tokens(const struct row *r, const char *names, bool required, int64_t *out, struct err *err)
{
    return whole(r, names, required, " of tokens", out, err);
}

/* The decimal text of a number, which some formats write as a string. */
static const char *number_text(const json_t *value, char buf[ROW_LABEL_BYTES])
{
    if (!json_is_real(value))
        return row_label_of(value, buf);
    snprintf(buf, ROW_LABEL_BYTES, "%.17g", json_real_value(value));
    return buf;
}

int row_time(const struct row *r, const char *names, enum row_unit unit, bool required,
             __int128 *out_ps, struct err *err)
{
    char key[KEY_BYTES], buf[ROW_LABEL_BYTES];
    json_t *value = NULL;
    if (row_value(r, names, required, &value, err) < 0)
        return -1;
    if (value == NULL)
        return 0;
    const char *text = number_text(value, buf);
    if (text == NULL)
        return row_fail(r, err, "\"%s\": expected a number of %s", first_name(names, key),
                        units[unit].name);
    const char *fault = field_decimal(text, units[unit].ps_digits, out_ps);
    if (fault != NULL)
        return row_fail(r, err, "\"%s\": \"%.60s\" %s", first_name(names, key), text, fault);
    return 0;
}

int row_calendar(const struct row *r, const char *names, bool required, __int128 *out_ps,
                 struct err *err)
{
    char key[KEY_BYTES];
    json_t *value = NULL;
    if (row_value(r, names, required, &value, err) < 0)
        return -1;
    if (value == NULL)
        return 0;
    if (!json_is_string(value))
        return row_fail(r, err, "\"%s\": expected a date and time", first_name(names, key));
    const char *text = json_string_value(value), *fault = field_calendar_ps(text, out_ps);
    if (fault != NULL)
        return row_fail(r, err, "\"%s\": \"%.60s\" %s", first_name(names, key), text, fault);
    return 0;
}

int row_label(const struct row *r, const char *names, bool required, char out[ROW_LABEL_BYTES],
              struct err *err)
{
    char key[KEY_BYTES], buf[ROW_LABEL_BYTES];
    json_t *value = NULL;
    if (row_value(r, names, required, &value, err) < 0)
        return -1;
    const char *text = value != NULL ? row_label_of(value, buf) : "";
    if (text == NULL)
        return row_fail(r, err, "\"%s\": expected a string or a whole number",
                        first_name(names, key));
    size_t n = strlen(text);
    if (n >= ROW_LABEL_BYTES)
        return row_fail(r, err, "\"%s\": is longer than %d bytes", first_name(names, key),
                        ROW_LABEL_BYTES - 1);
    memcpy(out, text, n + 1);
    return 0;
}

int row_inside(struct row *in, const struct row *r, const char *key, size_t i, struct err *err)
{
    json_t *object = json_array_get(json_object_get(r->object, key), i);
    *in = (struct row){.lines = r->lines, .object = object, .array = key, .index = i};
    return json_is_object(object) ? 0 : row_fail(in, err, "expected a JSON object");
}

const char *row_label_of(const json_t *value, char buf[ROW_LABEL_BYTES])
{
    if (!json_is_integer(value))
        return json_string_value(value);
    snprintf(buf, ROW_LABEL_BYTES, "%lld", (long long)json_integer_value(value));
    return buf;
}

bool row_hash_of(const json_t *value, uint64_t *out)
{
    if (json_is_integer(value) && json_integer_value(value) >= 0) {
        *out = (uint64_t)json_integer_value(value);
        return true;
    }
    if (!is_big_text(value))
        return false;
    errno = 0;
    *out = strtoull(json_string_value(value), NULL, 10);
    return errno == 0;
}
