/* SPDX-License-Identifier: Apache-2.0
 *
 * One client of ServeGen (alibaba/ServeGen): what is recorded are not requests but, per window of
 * time, their number, how the gaps between them are distributed, and how their lengths are.
 * Requests are drawn from these. Arrivals are in chunk-N-trace.csv, lengths beside it in
 * chunk-N-dataset.json.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/draw.h"
#include "sim/base/json.h"
#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "traces/field.h"
#include "traces/pdf.h"
#include "traces/reader.h"

#define RATE_MAX  1e6
#define SHAPE_MIN 0.01
#define SHAPE_MAX 1e6

enum { FIELDS = 6, WINDOW_S = 600, DRAWN_MAX = 100 * 1000 * 1000 };
enum { START, RATE, CV, FAMILY, SHAPE, SCALE };

static const char trace_ending[] = "-trace.csv", dataset_ending[] = "-dataset.json";

struct lengths {
    int64_t from_ps;
    struct pdf input, output;
};

/* Of the windows that have any, by time. */
struct dataset {
    struct lengths *window;
    size_t n, cap;
    size_t at; /* of lengths_at() */
};

static void dataset_release(struct dataset *d)
{
    for (size_t i = 0; i < d->n; i++) {
        pdf_release(&d->window[i].input);
        pdf_release(&d->window[i].output);
    }
    free(d->window);
}

static int parse_pdf(struct jobj *window, const char *key, struct pdf *p, struct err *err)
{
    const char *text = NULL;
    struct err fault = ERR_NONE;
    if (jobj_str(window, key, true, &text, err) < 0)
        return -1;
    return pdf_parse(p, text, &fault) < 0 ? jobj_fail(window, key, err, "%s", fault.text) : 0;
}

static int parse_window(struct lengths *w, const char *path, json_t *document, const char *start,
                        struct err *err)
{
    struct jobj root, window;
    __int128 from_ps;
    if (jobj_root(&root, path, document, err) < 0 ||
        jobj_open(&window, &root, start, true, err) < 0)
        return -1;
    const char *fault = field_seconds_ps(start, &from_ps);
    if (fault != NULL || from_ps >= TRACE_SPAN_MAX_PS)
        return jobj_fail(&window, NULL, err, "expected a start in seconds, of 100 days at most");
    w->from_ps = (int64_t)from_ps;
    if (parse_pdf(&window, "input_tokens", &w->input, err) < 0 ||
        parse_pdf(&window, "output_tokens", &w->output, err) < 0)
        return -1;
    if ((w->input.n == 0) != (w->output.n == 0))
        return jobj_fail(&window, NULL, err, "has lengths of inputs or outputs alone");
    return 0;
}

static int parse_dataset(struct dataset *d, const char *path, json_t *document, struct err *err)
{
    const char *start;
    json_t *value;
    if (!json_is_object(document))
        return err_set(err, "%s: expected a JSON object of windows", path);
    json_object_foreach (document, start, value) {
        d->window = xgrow(d->window, &d->cap, d->n + 1, sizeof *d->window);
        struct lengths *w = &d->window[d->n++];
        *w = (struct lengths){0};
        if (parse_window(w, path, document, start, err) < 0)
            return -1;
        if (w->input.n == 0)
            d->n--;
        else if (d->n > 1 && w->from_ps <= w[-1].from_ps)
            return err_set(err, "%s: .%s: starts before the window above it", path, start);
    }
    return d->n > 0 ? 0 : err_set(err, "%s: has no lengths in any window", path);
}

static int read_dataset(struct dataset *d, const char *trace_path, struct err *err)
{
    size_t stem = strlen(trace_path) - strlen(trace_ending);
    char *path = xasprintf("%.*s%s", (int)stem, trace_path, dataset_ending);
    json_t *document = json_load_path(path, err);
    int rc = document != NULL ? parse_dataset(d, path, document, err) : -1;
    json_decref(document);
    free(path);
    return rc;
}

/* Those of the last window that has begun and has any, else of the first. Times ascend from call to
 * call. */
static const struct lengths *lengths_at(struct dataset *d, int64_t at_ps)
{
    while (d->at + 1 < d->n && d->window[d->at + 1].from_ps <= at_ps)
        d->at++;
    return &d->window[d->at];
}

static const struct family {
    const char *name;
    double (*draw)(struct rng *r, double shape);
} families[] = {{"Gamma", draw_gamma}, {"Weibull", draw_weibull}};

static const struct family *find_family(const char *name)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strcmp(families[i].name, name) == 0)
            return &families[i];
    return NULL;
}

/* The line in parts, in place; false when they are not as many. */
static bool split(char *line, char *field[FIELDS])
{
    for (int i = 0; i < FIELDS; i++) {
        field[i] = line;
        line += strcspn(line, ",");
        if ((*line == ',') != (i < FIELDS - 1))
            return false;
        *line++ = '\0';
    }
    field[FIELDS - 1][strcspn(field[FIELDS - 1], " \t")] = '\0';
    return true;
}

/* A window of time: count requests from from_ps on. */
struct window {
    int64_t from_ps, count;
    const struct family *family;
    double shape;
};

static int parse_number(const struct lines *l, const char *what, const char *text, double max,
                        double *out, struct err *err)
{
    struct err fault = ERR_NONE;
    if (units_parse_f64(text, what, 0, max, out, &fault) < 0)
        return err_at(err, l->path, l->number, "%s", fault.text);
    return 0;
}

static int parse_gaps(struct window *w, const struct lines *l, char *const field[FIELDS],
                      struct err *err)
{
    double scale;
    w->family = find_family(field[FAMILY]);
    if (w->family == NULL)
        return err_at(err, l->path, l->number, "family: \"%.60s\" is neither Gamma nor Weibull",
                      field[FAMILY]);
    if (parse_number(l, "p1 (shape)", field[SHAPE], SHAPE_MAX, &w->shape, err) < 0 ||
        parse_number(l, "p2 (scale)", field[SCALE], INFINITY, &scale, err) < 0)
        return -1;
    if (w->shape < SHAPE_MIN)
        return err_at(err, l->path, l->number, "p1 (shape): must be at least %g, got %s", SHAPE_MIN,
                      field[SHAPE]);
    return 0;
}

static int parse_row(struct window *w, const struct lines *l, struct err *err)
{
    char *field[FIELDS];
    double rate, cv;
    __int128 from_ps;
    if (!split(l->line, field))
        return err_at(err, l->path, l->number, "expected start, rate, cv, family, p1, p2");
    const char *fault = field_seconds_ps(field[START], &from_ps);
    if (fault != NULL || from_ps >= TRACE_SPAN_MAX_PS)
        return err_at(err, l->path, l->number, "start: \"%.60s\" %s", field[START],
                      fault ? fault : "is 100 days or more");
    if (parse_number(l, "rate", field[RATE], RATE_MAX, &rate, err) < 0 ||
        parse_number(l, "cv", field[CV], INFINITY, &cv, err) < 0)
        return -1;
    *w = (struct window){.from_ps = (int64_t)from_ps, .count = llround(rate * WINDOW_S)};
    return w->count > 0 ? parse_gaps(w, l, field, err) : 0;
}

/* Sums of the gaps so far, count + 1 of them: the last one reaches the window's end. */
static double *draw_sums(const struct window *w, struct rng *r)
{
    double sum = 0, *sums = xcalloc((size_t)w->count + 1, sizeof *sums);
    for (int64_t i = 0; i <= w->count; i++)
        sums[i] = sum += w->family->draw(r, w->shape);
    return sums;
}

/* As many as were counted; their gaps are stretched to fill the window. */
static int draw_window(struct trace *t, const struct window *w, const struct lengths *lengths,
                       struct rng *r, long line, struct err *err)
{
    int rc = 0;
    double *sums = draw_sums(w, r), whole = sums[w->count];
    for (int64_t i = 0; i < w->count && rc >= 0; i++) {
        double part = whole > 0 ? sums[i] / whole : 0;
        int64_t at_ps = w->from_ps + llround(part * WINDOW_S * (double)PS_PER_S);
        int64_t input = pdf_draw(&lengths->input, r), output = pdf_draw(&lengths->output, r);
        rc = trace_add(t, at_ps, input, output, line, err);
        t->noted[NOTE_DRAWN] += rc > 0;
    }
    free(sums);
    return rc < 0 ? -1 : 0;
}

static int draw_all(struct trace *t, struct lines *l, struct dataset *d, struct rng *r,
                    struct err *err)
{
    struct window w = {0};
    int64_t free_ps = 0;
    int got;
    while ((got = reader_next(l, err)) > 0) {
        if (parse_row(&w, l, err) < 0)
            return -1;
        if (w.from_ps < free_ps)
            return err_at(err, l->path, l->number,
                          "starts in the window of the row before, which lasts %d s", WINDOW_S);
        free_ps = w.from_ps + WINDOW_S * PS_PER_S;
        if (w.count > DRAWN_MAX - (int64_t)t->n)
            return err_at(err, l->path, l->number,
                          "more than %d requests would be drawn; cut the file before this row",
                          DRAWN_MAX);
        if (w.count > 0 && draw_window(t, &w, lengths_at(d, w.from_ps), r, l->number, err) < 0)
            return -1;
    }
    return got;
}

static bool ends_in(const char *path, const char *ending)
{
    size_t n = strlen(path), m = strlen(ending);
    return n >= m && strcmp(path + n - m, ending) == 0;
}

static bool is_window(const char *line)
{
    char *copy = xstrdup(line), *field[FIELDS];
    bool is = split(copy, field) && (*field[FAMILY] == '\0' || find_family(field[FAMILY]) != NULL);
    for (int i = 0; i < FIELDS && is; i++) {
        __int128 number;
        is = i == FAMILY || field_decimal(field[i], 0, &number) == NULL;
    }
    free(copy);
    return is;
}

static bool is_dataset(const struct trace_head *h)
{
    return h->line[0] == '{' && (strstr(h->line, "\"input_tokens\": \"{") != NULL ||
                                 strstr(h->text, "\"input_tokens\": \"{") != NULL);
}

static bool detect(const struct trace_head *h)
{
    return is_window(h->line) || is_dataset(h);
}

/* Clients of one folder draw apart from one another, wherever the folder is. */
static void seed(struct rng *r, const char *path, int64_t seed)
{
    const char *slash = strrchr(path, '/');
    char *stream = xasprintf("trace %s", slash != NULL ? slash + 1 : path);
    rng_stream(r, (uint64_t)seed, stream);
    free(stream);
}

static int read_client(struct trace *t, struct lines *l, const struct trace_reading *reading,
                       struct err *err)
{
    struct rng r;
    struct dataset d = {0};
    if (ends_in(l->path, dataset_ending)) /* read with its trace; of a folder, every file is met */
        return 0;
    if (!ends_in(l->path, trace_ending))
        return err_set(err,
                       "%s: name it NAME%s, with NAME%s beside it: without that the requests "
                       "have no lengths",
                       l->path, trace_ending, dataset_ending);
    seed(&r, l->path, reading->seed);
    int rc = read_dataset(&d, l->path, err);
    rc = rc == 0 ? draw_all(t, l, &d, &r, err) : rc;
    dataset_release(&d);
    return rc;
}

const struct trace_reader reader_servegen = {
    .name = "servegen",
    .what = "CSV without header: windows of a client, drawn with NAME-dataset.json",
    .detect = detect,
    .read = read_client,
};
