/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/study/speeds.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "traces/csv.h"
#include "traces/field.h"

enum { LAYOUT, INPUT, BATCH, OUTPUT, THROUGHPUT, STEP, COLUMNS };
enum {
    ROWS_MAX = 10000,
    STEP_ROWS_MAX = 1 << 20,    /* query rows */
    LENGTH_MAX = 1 << 24,       /* tokens */
    BURST_TOKENS_MAX = 1 << 30, /* or the cost model is asked for more than 131072 steps */
    MICRO_DIGITS = 6,
    PS_PER_MS_DIGITS = 9
};

static const double micro = 1e6, measure_max = 1e15;

static const char *micro_tokens(const char *text, __int128 *out)
{
    return field_decimal(text, MICRO_DIGITS, out);
}

static const char *milliseconds_ps(const char *text, __int128 *out)
{
    return field_decimal(text, PS_PER_MS_DIGITS, out);
}

static const struct csv_column columns[COLUMNS] = {
    [LAYOUT] = {"layout", NULL, CSV_REQUIRED},
    [INPUT] = {"input_len", field_tokens, CSV_REQUIRED},
    [BATCH] = {"batch", field_tokens, CSV_REQUIRED},
    [OUTPUT] = {"output_len", field_tokens, CSV_REQUIRED},
    [THROUGHPUT] = {"throughput_tok_s", micro_tokens, CSV_OPTIONAL},
    [STEP] = {"step_ms", milliseconds_ps, CSV_OPTIONAL},
};

bool speeds_header(const char *line)
{
    return csv_has_column(line, "layout");
}

/* Index of the layout, which is new or was there; -1 with err. */
static int add_layout(struct speeds *s, const char *text, struct err *err)
{
    struct layout l;
    if (layout_parse(&l, text, s->model, s->cluster->ranks, err) < 0)
        return -1;
    for (int i = 0; i < s->n_layouts; i++)
        if (strcmp(s->layout[i].name, l.name) == 0)
            return i;
    if (s->n_layouts == LAYOUT_MAX)
        return err_set(err, "more than %d layouts; fit them in parts", LAYOUT_MAX);
    s->layout[s->n_layouts] = l;
    return s->n_layouts++;
}

static int read_layout(struct speeds *s, const struct csv *c, struct err *err)
{
    const char *text;
    struct err fault = ERR_NONE;
    if (csv_get_text(c, LAYOUT, &text, err) < 0)
        return -1;
    int layout = add_layout(s, text, &fault);
    return layout >= 0 ? layout : err_at(err, s->path, c->line, "%s", fault.text);
}

static int read_count(const struct csv *c, int column, int64_t min, int64_t max, int64_t *out,
                      struct err *err)
{
    __int128 value = 0;
    char range[64];
    if (csv_get(c, column, &value, err) < 0)
        return -1;
    if (value < min || value > max)
        return err_at(err, c->lines->path, c->line, "column \"%s\": must be %s",
                      columns[column].names,
                      units_range((double)min, (double)max, range, sizeof range));
    *out = (int64_t)value;
    return 0;
}

/* The measured value, and whether it is a step's. */
static int read_measure(const struct csv *c, struct speed *r, double *value, struct err *err)
{
    __int128 throughput = 0, step = 0;
    int has_throughput = csv_get(c, THROUGHPUT, &throughput, err);
    int has_step = has_throughput < 0 ? -1 : csv_get(c, STEP, &step, err);
    if (has_step < 0)
        return -1;
    if (has_throughput == has_step)
        return err_at(err, c->lines->path, c->line,
                      "%s is measured here; give \"throughput_tok_s\" or \"step_ms\"",
                      has_step ? "more than one thing" : "nothing");
    r->is_step = has_step;
    *value = has_step ? (double)step / PS_PER_S : (double)throughput / micro;
    if (!(*value > 0 && *value <= measure_max))
        return err_at(err, c->lines->path, c->line, "column \"%s\": must be above 0 and below %g",
                      columns[has_step ? STEP : THROUGHPUT].names, measure_max);
    return 0;
}

static int check_size(const struct speeds *s, const struct speed *r, struct err *err)
{
    int64_t tokens = r->batch * (r->input_tokens + r->output_tokens);
    if (r->is_step && r->output_tokens == 0 && tokens > STEP_ROWS_MAX)
        return err_at(err, s->path, r->line, "%lld query rows are more than a step's %d",
                      (long long)tokens, STEP_ROWS_MAX);
    if (!r->is_step && tokens > BURST_TOKENS_MAX)
        return err_at(err, s->path, r->line, "%lld tokens are more than a burst's %d",
                      (long long)tokens, BURST_TOKENS_MAX);
    return 0;
}

static bool same_shape(const struct speed *a, const struct speed *b)
{
    return a->is_step == b->is_step && a->batch == b->batch && a->input_tokens == b->input_tokens &&
           a->output_tokens == b->output_tokens;
}

/* Its shape's number; the same layout may come again with another measurement, as a repeat. */
static int place(struct speeds *s, struct speed *r, struct err *err)
{
    r->shape = s->n_shapes;
    for (int i = 0; i < s->n; i++) {
        const struct speed *old = &s->row[i];
        if (!same_shape(old, r))
            continue;
        r->shape = old->shape;
        if (old->layout == r->layout && old->s == r->s)
            return err_at(err, s->path, r->line,
                          "says what line %ld says; drop one (repeats have times of their own)",
                          old->line);
    }
    s->n_shapes += r->shape == s->n_shapes;
    return 0;
}

static int add_row(struct speeds *s, const struct csv *c, struct err *err)
{
    struct speed r = {.line = c->line, .layout = read_layout(s, c, err)};
    int64_t batch = 0;
    double value = 0;
    if (r.layout < 0 || read_count(c, INPUT, 1, LENGTH_MAX, &r.input_tokens, err) < 0 ||
        read_count(c, BATCH, 1, STEP_ROWS_MAX, &batch, err) < 0 ||
        read_count(c, OUTPUT, 0, LENGTH_MAX, &r.output_tokens, err) < 0 ||
        read_measure(c, &r, &value, err) < 0)
        return -1;
    r.batch = (int)batch;
    r.s = r.is_step ? value : (double)(batch * (r.input_tokens + r.output_tokens)) / value;
    if (s->n == ROWS_MAX)
        return err_at(err, s->path, r.line, "more than %d rows", ROWS_MAX);
    if (check_size(s, &r, err) < 0 || place(s, &r, err) < 0)
        return -1;
    s->row = xgrow(s->row, &s->cap, (size_t)s->n + 1, sizeof *s->row);
    s->row[s->n++] = r;
    return 0;
}

static int read_rows(struct speeds *s, struct lines *l, struct err *err)
{
    struct csv c;
    int got;
    if (csv_open(&c, l, columns, COLUMNS, err) < 0)
        return -1;
    while ((got = csv_next(&c, err)) > 0 && (got = add_row(s, &c, err)) >= 0)
        continue;
    csv_close(&c);
    return got < 0 || s->n > 0 ? got : err_at(err, s->path, 0, "has no rows: nothing is measured");
}

static int read_decode_layout(struct speeds *s, const char *text, struct err *err)
{
    struct err fault = ERR_NONE;
    s->decode_layout = text != NULL ? add_layout(s, text, &fault) : -1;
    return fault.set ? err_set(err, "--decode-layout: %s", fault.text) : 0;
}

int speeds_load(struct speeds *s, const char *path, const struct model *m, const struct cluster *c,
                const char *decode_layout, struct err *err)
{
    struct lines l;
    *s = (struct speeds){.path = path, .model = m, .cluster = c};
    if (lines_open(&l, path, err) < 0)
        return -1;
    int rc = read_rows(s, &l, err);
    lines_close(&l);
    if (rc == 0)
        rc = read_decode_layout(s, decode_layout, err);
    if (rc < 0)
        speeds_release(s);
    return rc;
}

void speeds_release(struct speeds *s)
{
    free(s->row);
    s->row = NULL;
}
