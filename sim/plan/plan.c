/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/plan/plan.h"

#include <ctype.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/mem.h"

static const char *const layout_words[] = {"tp", "cp", "dp", "dop", "helix"};
static const char *const mechanism_words[] = {"overlapped", "blocking", "drain", "restart", "free"};

static const int64_t time_ns_max = INT64_MAX / 1000, tokens_max = 1LL << 40;

static void write_line(FILE *out, json_t *o)
{
    json_dumpf(o, out, JSON_COMPACT | JSON_REAL_PRECISION(9));
    putc('\n', out);
    json_decref(o);
}

static void set_text(json_t *o, const char *key, const char *text)
{
    if (text[0] != '\0')
        json_object_set_new(o, key, json_string(text));
}

/* What may be left out. */
static void set_time(json_t *o, const char *key, int64_t ns)
{
    if (ns > 0)
        json_object_set_new(o, key, json_integer(ns));
}

void plan_write_header(FILE *out, const struct plan_header *h)
{
    json_t *o = json_pack("{s:i, s:s, s:s, s:i, s:i, s:I}", "plan", PLAN_VERSION, "model", h->model,
                          "cluster", h->cluster, "ranks", h->ranks, "layers", h->layers, "seed",
                          (json_int_t)h->seed);
    set_text(o, "device", h->origin.device);
    set_text(o, "date", h->origin.date);
    set_text(o, "transport", h->origin.transport);
    if (h->origin.repeats > 0)
        json_object_set_new(o, "repeats", json_integer(h->origin.repeats));
    set_text(o, "command", h->origin.command);
    write_line(out, o);
}

static json_t *rows_json(const struct plan_step *s)
{
    json_t *rows = json_array();
    for (int i = 0; i < s->n_rows; i++) {
        const struct plan_row *r = &s->row[i];
        json_array_append_new(rows, json_pack("{s:I, s:i, s:I, s:I}", "req", (json_int_t)r->req,
                                              "owner", r->owner, "ctx", (json_int_t)r->ctx_tokens,
                                              "q", (json_int_t)r->q));
    }
    return rows;
}

static json_t *times_json(const struct plan_times *t)
{
    json_t *o =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "step_ns", (json_int_t)t->step_ns, "proj_ns",
                  (json_int_t)t->proj_ns, "attn_ns", (json_int_t)t->attn_ns, "exchange_ns",
                  (json_int_t)t->exchange_ns, "ffn_ns", (json_int_t)t->ffn_ns, "switch_exposed_ns",
                  (json_int_t)t->switch_exposed_ns);
    set_time(o, "switch_first_ns", t->switch_first_ns);
    return o;
}

static json_t *measured_json(const struct plan_step *s)
{
    json_t *o =
        json_pack("{s:o, s:o}", "p50", times_json(&s->meas_p50), "p95", times_json(&s->meas_p95));
    set_time(o, "first_ns", s->meas_first_ns);
    return o;
}

void plan_write_step(FILE *out, const struct plan_step *s)
{
    json_t *o = json_pack("{s:I, s:I, s:s}", "step", (json_int_t)s->step, "at_ns",
                          (json_int_t)s->at_ns, "layout", s->layout);
    if (s->from[0] != '\0') {
        json_object_set_new(o, "from", json_string(s->from));
        json_object_set_new(o, "mechanism", json_string(s->mechanism));
    }
    json_object_set_new(o, "rows", rows_json(s));
    json_object_set_new(o, "pred", times_json(&s->pred));
    if (s->is_measured) {
        json_object_set_new(o, "meas", measured_json(s));
        json_object_set_new(o, "check", json_num(s->check_error));
    }
    write_line(out, o);
}

static int read_text(struct jobj *o, const char *key, bool required, char *to, size_t size,
                     struct err *err)
{
    const char *text = NULL;
    if (jobj_str(o, key, required, &text, err) < 0)
        return -1;
    if (text == NULL)
        return 0;
    if (text[0] == '\0' || strlen(text) >= size)
        return jobj_fail(o, key, err, "must have 1 to %zu characters", size - 1);
    snprintf(to, size, "%s", text);
    return 0;
}

static int read_name(struct jobj *o, const char *key, char name[PLAN_NAME_MAX], struct err *err)
{
    return read_text(o, key, true, name, PLAN_NAME_MAX, err);
}

/* A word, or a word and its options after a colon ("dop:cache=0.25"). */
static int read_word(struct jobj *o, const char *key, const char *const *words, int n,
                     char name[PLAN_NAME_MAX], struct err *err)
{
    if (read_name(o, key, name, err) < 0)
        return -1;
    size_t len = strcspn(name, ":");
    for (int i = 0; i < n; i++)
        if (strlen(words[i]) == len && memcmp(words[i], name, len) == 0)
            return 0;
    const char *near = err_nearest(name, words, n);
    return jobj_fail(o, key, err, "unknown word \"%s\"%s%s%s", name,
                     near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
}

static bool is_date(const char *text)
{
    static const char form[] = "0000-00-00";
    for (size_t i = 0; i < sizeof form; i++)
        if (form[i] == '0' ? !isdigit((unsigned char)text[i]) : text[i] != form[i])
            return false;
    int month = atoi(text + 5), day = atoi(text + 8);
    return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

static int read_origin(struct jobj *o, struct plan_origin *r, struct err *err)
{
    if (read_text(o, "device", false, r->device, sizeof r->device, err) < 0 ||
        read_text(o, "date", false, r->date, sizeof r->date, err) < 0 ||
        read_text(o, "transport", false, r->transport, sizeof r->transport, err) < 0 ||
        jobj_int(o, "repeats", false, 1, INT32_MAX, &r->repeats, err) < 0 ||
        read_text(o, "command", false, r->command, sizeof r->command, err) < 0)
        return -1;
    if (r->date[0] != '\0' && !is_date(r->date))
        return jobj_fail(o, "date", err, "must be YYYY-MM-DD, got \"%s\"", r->date);
    return 0;
}

static int read_header(struct jobj *o, struct plan_header *h, struct err *err)
{
    int version;
    int64_t seed;
    if (jobj_int(o, "plan", true, 0, INT32_MAX, &version, err) < 0)
        return -1;
    if (version != PLAN_VERSION)
        return jobj_fail(o, "plan", err, "version %d is not known; this program reads version %d",
                         version, PLAN_VERSION);
    if (read_name(o, "model", h->model, err) < 0 || read_name(o, "cluster", h->cluster, err) < 0 ||
        jobj_int(o, "ranks", true, 1, 1 << 16, &h->ranks, err) < 0 ||
        jobj_int(o, "layers", true, 1, 1 << 16, &h->layers, err) < 0 ||
        jobj_i64(o, "seed", true, 0, INT64_MAX, &seed, err) < 0 ||
        read_origin(o, &h->origin, err) < 0)
        return -1;
    h->seed = (uint64_t)seed;
    return jobj_done(o, err);
}

static int read_row(struct jobj *o, int ranks, struct plan_row *r, struct err *err)
{
    if (jobj_i64(o, "req", true, 0, INT64_MAX, &r->req, err) < 0 ||
        jobj_int(o, "owner", true, 0, ranks - 1, &r->owner, err) < 0 ||
        jobj_i64(o, "ctx", true, 1, tokens_max, &r->ctx_tokens, err) < 0 ||
        jobj_i64(o, "q", true, 1, tokens_max, &r->q, err) < 0)
        return -1;
    if (r->q > r->ctx_tokens)
        return jobj_fail(o, "q", err, "more query rows (%lld) than context (%lld)", (long long)r->q,
                         (long long)r->ctx_tokens);
    return jobj_done(o, err);
}

static int read_rows(struct jobj *o, int ranks, struct plan_step *s, struct err *err)
{
    json_t *rows;
    if (jobj_array(o, "rows", true, &rows, err) < 0)
        return -1;
    size_t n = json_array_size(rows);
    if (n < 1 || n > PLAN_ROWS_MAX)
        return jobj_fail(o, "rows", err, "must have 1 to %d rows, got %zu", PLAN_ROWS_MAX, n);
    s->row = xcalloc(n, sizeof *s->row);
    s->cap_rows = (int)n;
    for (size_t i = 0; i < n; i++) {
        struct jobj row;
        if (jobj_open_at(&row, o, "rows", i, err) < 0 || read_row(&row, ranks, &s->row[i], err) < 0)
            return -1;
    }
    s->n_rows = (int)n;
    return 0;
}

static int read_times(struct jobj *o, struct plan_times *t, struct err *err)
{
    if (jobj_i64(o, "step_ns", true, 0, time_ns_max, &t->step_ns, err) < 0 ||
        jobj_i64(o, "proj_ns", true, 0, time_ns_max, &t->proj_ns, err) < 0 ||
        jobj_i64(o, "attn_ns", true, 0, time_ns_max, &t->attn_ns, err) < 0 ||
        jobj_i64(o, "exchange_ns", true, 0, time_ns_max, &t->exchange_ns, err) < 0 ||
        jobj_i64(o, "ffn_ns", true, 0, time_ns_max, &t->ffn_ns, err) < 0 ||
        jobj_i64(o, "switch_exposed_ns", true, 0, time_ns_max, &t->switch_exposed_ns, err) < 0 ||
        jobj_i64(o, "switch_first_ns", false, 1, time_ns_max, &t->switch_first_ns, err) < 0)
        return -1;
    if (t->switch_first_ns > t->switch_exposed_ns)
        return jobj_fail(o, "switch_first_ns", err, "is a part of switch_exposed_ns, but longer");
    return jobj_done(o, err);
}

enum { N_LAYOUTS = sizeof layout_words / sizeof *layout_words };
enum { N_MECHANISMS = sizeof mechanism_words / sizeof *mechanism_words };

static int read_switch(struct jobj *o, struct plan_step *s, struct err *err)
{
    json_t *from, *mechanism;
    if (jobj_any(o, "from", false, &from, err) < 0 ||
        jobj_any(o, "mechanism", false, &mechanism, err) < 0)
        return -1;
    if ((from != NULL) != (mechanism != NULL))
        return jobj_fail(o, from ? "mechanism" : "from", err,
                         "missing: a switch has both \"from\" and \"mechanism\"");
    if (from == NULL)
        return 0;
    if (read_word(o, "from", layout_words, N_LAYOUTS, s->from, err) < 0)
        return -1;
    if (strcmp(s->from, s->layout) == 0)
        return jobj_fail(o, "from", err, "a switch must leave its layout, both are \"%s\"",
                         s->from);
    return read_word(o, "mechanism", mechanism_words, N_MECHANISMS, s->mechanism, err);
}

static int read_times_at(struct jobj *up, const char *key, struct plan_times *t, struct err *err)
{
    struct jobj o;
    return jobj_open(&o, up, key, true, err) < 0 ? -1 : read_times(&o, t, err);
}

static int read_measured(struct jobj *o, struct plan_step *s, struct err *err)
{
    struct jobj meas;
    int there = jobj_open(&meas, o, "meas", false, err);
    if (there <= 0)
        return there;
    s->is_measured = true;
    if (read_times_at(&meas, "p50", &s->meas_p50, err) < 0 ||
        read_times_at(&meas, "p95", &s->meas_p95, err) < 0 ||
        jobj_i64(&meas, "first_ns", false, 1, time_ns_max, &s->meas_first_ns, err) < 0 ||
        jobj_done(&meas, err) < 0)
        return -1;
    return jobj_f64(o, "check", true, 0, DBL_MAX, &s->check_error, err);
}

static int read_step(struct jobj *o, const struct plan_header *h, struct plan_step *s,
                     struct err *err)
{
    if (jobj_i64(o, "step", true, 0, INT64_MAX, &s->step, err) < 0 ||
        jobj_i64(o, "at_ns", true, 0, time_ns_max, &s->at_ns, err) < 0 ||
        read_word(o, "layout", layout_words, N_LAYOUTS, s->layout, err) < 0 ||
        read_switch(o, s, err) < 0 || read_rows(o, h->ranks, s, err) < 0 ||
        read_times_at(o, "pred", &s->pred, err) < 0 || read_measured(o, s, err) < 0)
        return -1;
    return jobj_done(o, err);
}

static int check_order(const struct jobj *o, const struct plan_step *before,
                       const struct plan_step *s, struct err *err)
{
    if (s->step <= before->step)
        return jobj_fail(o, "step", err, "steps must ascend; the one before is %lld",
                         (long long)before->step);
    if (s->at_ns < before->at_ns)
        return jobj_fail(o, "at_ns", err, "earlier than the step before, which starts at %lld",
                         (long long)before->at_ns);
    return 0;
}

static int append_step(struct plan *p, struct jobj *o, struct err *err)
{
    struct plan_step step = {0};
    if (read_step(o, &p->header, &step, err) < 0 ||
        (p->n > 0 && check_order(o, &p->step[p->n - 1], &step, err) < 0)) {
        plan_step_release(&step);
        return -1;
    }
    size_t cap = (size_t)p->cap;
    p->step = xgrow(p->step, &cap, (size_t)p->n + 1, sizeof *p->step);
    p->cap = (int)cap;
    p->step[p->n++] = step;
    return 0;
}

static int read_line(struct plan *p, const struct lines *l, struct err *err)
{
    json_error_t why;
    char place[512];
    struct jobj o;
    snprintf(place, sizeof place, "%s:%ld", l->path, l->number);
    json_t *line = json_loadb(l->line, l->len, JSON_REJECT_DUPLICATES, &why);
    if (line == NULL)
        return err_at(err, l->path, l->number, "not a JSON object: %s", why.text);
    int rc = jobj_root(&o, place, line, err);
    if (rc == 0)
        rc = p->header.ranks == 0 ? read_header(&o, &p->header, err) : append_step(p, &o, err);
    json_decref(line);
    return rc;
}

int plan_load(struct plan *p, const char *path, struct err *err)
{
    struct lines l;
    struct plan read = {0};
    int rc;
    if (lines_open(&l, path, err) < 0)
        return -1;
    while ((rc = lines_next(&l, err)) > 0)
        if (l.len > 0 && (rc = read_line(&read, &l, err)) < 0)
            break;
    if (rc == 0 && read.header.ranks == 0)
        rc = err_at(err, l.path, 0, "empty: a plan begins with a header line {\"plan\":1,...}");
    lines_close(&l);
    if (rc < 0) {
        plan_release(&read);
        return -1;
    }
    *p = read;
    return 0;
}

int plan_save(const struct plan *p, const char *path, struct err *err)
{
    struct outfile out;
    if (outfile_open(&out, path, err) < 0)
        return -1;
    plan_write_header(out.f, &p->header);
    for (int i = 0; i < p->n; i++)
        plan_write_step(out.f, &p->step[i]);
    return outfile_commit(&out, err);
}

struct names {
    const char **name; /* borrowed */
    size_t n, cap;
};

static void add_name(struct names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->name[i], name) == 0)
            return;
    names->name = xgrow(names->name, &names->cap, names->n + 1, sizeof *names->name);
    names->name[names->n++] = name;
}

char *plan_layouts(const struct plan *p)
{
    struct names names = {0};
    char *list = xstrdup("");
    for (int i = 0; i < p->n; i++) {
        if (p->step[i].from[0] != '\0')
            add_name(&names, p->step[i].from);
        add_name(&names, p->step[i].layout);
    }
    for (size_t i = 0; i < names.n; i++) {
        char *longer = xasprintf("%s%s%s", list, i > 0 ? "," : "", names.name[i]);
        free(list);
        list = longer;
    }
    free(names.name);
    return list;
}

void plan_step_release(struct plan_step *s)
{
    free(s->row);
    s->row = NULL;
    s->n_rows = s->cap_rows = 0;
}

void plan_release(struct plan *p)
{
    for (int i = 0; i < p->n; i++)
        plan_step_release(&p->step[i]);
    free(p->step);
    *p = (struct plan){0};
}
