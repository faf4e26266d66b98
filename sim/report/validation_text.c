/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/validation_text.h"

#include <math.h>

#include "sim/base/units.h"
#include "sim/report/doubts.h"
#include "sim/report/notes.h"
#include "sim/report/percent.h"
#include "sim/report/table.h"

static void add_heads(struct table *t, const char *const *head)
{
    for (; *head != NULL; head++)
        table_add(t, "%s", *head);
}

static void add_percent(struct table *t, double frac)
{
    char buf[PERCENT_SIZE];
    table_add(t, "%s", percent(frac, buf));
}

static void add_signed(struct table *t, double frac)
{
    char buf[PERCENT_SIZE];
    table_add(t, "%s", percent_signed(frac, buf));
}

static void add_count(struct table *t, int64_t n)
{
    char buf[32];
    table_add(t, "%s", units_count(n, buf, sizeof buf));
}

/* In milliseconds; dT may be negative. */
static void add_ms(struct table *t, double ns)
{
    char buf[TABLE_MS_SIZE];
    table_add(t, "%s", table_ms(ns, buf));
}

/* The line's first words are printed, up to `column`, where further lines begin. */
static void end_line(const char *text, int column, FILE *out)
{
    table_words(text, column, out);
    fputc('\n', out);
}

static void print_about(const struct validation_about *about, const struct joined *j, FILE *out)
{
    enum { LABEL_WIDTH = 8 };
    struct about_facts facts;
    about_facts_init(&facts, about, j);
    for (int i = 0; i < facts.n; i++) {
        fprintf(out, "%-*s ", LABEL_WIDTH, facts.fact[i].label);
        end_line(facts.fact[i].text, LABEL_WIDTH + 1, out);
    }
}

static void add_errors(struct table *t, const char *name, const struct error_summary *e)
{
    table_add(t, "%s", name);
    add_count(t, e->n);
    add_percent(t, e->p50);
    add_percent(t, e->p95);
    add_signed(t, e->mean);
}

static void print_errors(const struct joined *j, const struct step_errors *e, FILE *out)
{
    static const char *const head[] = {
        "", "", "|error|", "|error|", "mean", "layout", "steps", "p50", "p95", "error", NULL,
    };
    struct table t;
    table_init(&t, "lrrrr");
    add_heads(&t, head);
    add_errors(&t, "all", &e->all);
    for (int l = 0; l < j->n_layouts; l++)
        if (e->layout[l].n > 0)
            add_errors(&t, j->layout[l], &e->layout[l]);
    table_print(&t, out);
    table_release(&t);
}

static void print_stages(const struct step_errors *e, FILE *out)
{
    static const char *const head[] = {
        "",     "share of", "|error|", "|error|", "mean",       "part of", "stage",
        "time", "p50",      "p95",     "error",   "step error", NULL,
    };
    struct table t;
    table_init(&t, "lrrrrr");
    add_heads(&t, head);
    for (int p = 0; p < PART_COUNT; p++) {
        const struct part_error *part = &e->part[p];
        table_add(&t, "%s", step_part_names[p]);
        add_percent(&t, part->share_frac);
        add_percent(&t, part->error.p50);
        add_percent(&t, part->error.p95);
        add_signed(&t, part->error.mean);
        add_signed(&t, part->blame);
    }
    table_print(&t, out);
    table_release(&t);
}

static void print_worst(const struct joined *j, const struct step_errors *e, FILE *out)
{
    static const char *const head[] = {
        "",        "",   "",       "",      "mean",     "longest", "pred.",
        "meas.",   "",   "layout", "step",  "requests", "rows",    "context",
        "context", "ms", "ms",     "error", NULL,
    };
    struct table t;
    table_init(&t, "lrrrrrrrr");
    add_heads(&t, head);
    for (int i = 0; i < e->n_worst; i++) {
        const struct joined_step *s = &j->step[e->worst[i]];
        struct step_shape shape = joined_shape(s->at);
        table_add(&t, "%s", j->layout[s->layout]);
        table_add(&t, "%lld", (long long)s->at->step);
        add_count(&t, shape.requests);
        add_count(&t, shape.rows);
        add_count(&t, shape.mean_ctx_tokens);
        add_count(&t, shape.max_ctx_tokens);
        add_ms(&t, (double)s->pred->step_ns);
        add_ms(&t, (double)s->meas->step_ns);
        add_signed(&t, s->error);
    }
    table_print(&t, out);
    table_release(&t);
}

/* In full only those that stand for the plan. */
static void print_steps(const struct validation *v, const struct step_errors *e, const char *which,
                        FILE *out)
{
    if (e->all.n == 0)
        return;
    fprintf(out, "\n%s (error: predicted / measured - 1)\n\n", which);
    print_errors(&v->joined, e, out);
    if (e != v->main)
        return;
    fputc('\n', out);
    print_stages(e, out);
    fputs("\nThe steps furthest off\n\n", out);
    print_worst(&v->joined, e, out);
}

static void print_schedule(const struct schedule_errors *e, FILE *out)
{
    char pred[32], meas[32], error[PERCENT_SIZE], p50[PERCENT_SIZE], p95[PERCENT_SIZE];
    fprintf(out,
            "\nSchedule: %s ms predicted, %s ms measured, %s\n"
            "From switch to switch (%d windows): |error| p50 %s, p95 %s\n",
            table_number(e->pred_ns / 1e6, pred, sizeof pred),
            table_number(e->meas_ns / 1e6, meas, sizeof meas), percent_signed(e->error, error),
            e->n_windows, percent(e->windows.p50, p50), percent(e->windows.p95, p95));
}

static void print_order(const struct layout_order *o, FILE *out)
{
    char agreement[PERCENT_SIZE], regret[PERCENT_SIZE];
    if (o->n == 0) {
        fputs("\nLayout order: no batch ran under two layouts\n", out);
        return;
    }
    fprintf(out,
            "\nLayout order: the layout predicted fastest is so in %s of %d comparisons\n"
            "(%d right, %d ties within 2%%, %d wrong); Kendall tau %.2f, regret %s\n",
            percent(o->agreement, agreement), o->n, o->verdicts[ORDER_RIGHT],
            o->verdicts[ORDER_TIE], o->verdicts[ORDER_WRONG], o->tau, percent(o->regret, regret));
}

static void add_direction(struct table *t, const struct joined *j, const struct switch_direction *d)
{
    table_add(t, "%s to %s", j->layout[d->from], j->layout[d->to]);
    table_skip(t, t->columns - 1);
}

static void add_way(struct table *t, const struct switch_direction *d, enum mechanism m)
{
    const struct switch_way *w = &d->way[m];
    table_add(t, "  %s", mechanism_names[m]);
    add_count(t, w->n);
    add_ms(t, d->ready_ns);
    add_ms(t, w->step_ns);
    add_ms(t, w->dt_ns);
    add_ms(t, w->dt_p95_ns);
    add_ms(t, w->pred_ns);
    if (w->resolved)
        add_signed(t, w->error);
    else
        table_add(t, "noise");
    if (m == MECH_OVERLAPPED) {
        add_percent(t, d->hidden_frac);
        add_percent(t, d->pred_hidden_frac);
    } else {
        table_skip(t, 2);
    }
}

static void print_note(const char *note, FILE *out)
{
    if (note[0] == '\0')
        return;
    fputc('\n', out);
    end_line(note, 0, out);
}

static void print_switches(const struct validation *v, FILE *out)
{
    static const char *const head[] = {
        "",  "",    "ready", "T",   "dT",  "dT",    "dT",    "",       "",      "hidden", "",
        "n", "p50", "p50",   "p50", "p95", "pred.", "error", "hidden", "pred.", NULL,
    };
    char note[NOTE_SIZE];
    struct table t;
    if (v->trials.n == 0) {
        fputs("\nSwitches: no step has one inside\n", out);
        return;
    }
    table_init(&t, "lrrrrrrrrr");
    add_heads(&t, head);
    for (int i = 0; i < v->trials.n; i++) {
        add_direction(&t, &v->joined, &v->trials.direction[i]);
        for (int m = 0; m < MECH_COUNT; m++)
            if (v->trials.direction[i].way[m].n > 0)
                add_way(&t, &v->trials.direction[i], m);
    }
    fputs("\nSwitches: what they add to a step, dT = T - T of target-ready steps, in ms;\n"
          "n trials each\n\n",
          out);
    table_print(&t, out);
    table_release(&t);
    print_note(note_noise(&v->trials, note), out);
    print_note(note_hidden(v, note), out);
}

static void add_parts(struct table *t, const struct switch_way *w, enum mechanism m)
{
    table_add(t, "  %s", mechanism_names[m]);
    add_ms(t, w->dt_ns);
    add_ms(t, w->measured.waits_ns);
    add_ms(t, w->measured.first_ns);
    add_ms(t, w->measured.later_ns);
    add_ms(t, w->measured.slowed_ns);
    add_ms(t, w->predicted.first_ns);
    add_ms(t, w->predicted.later_ns);
}

static void print_switch_parts(const struct validation *v, FILE *out)
{
    static const char *const head[] = {
        "",   "",      "",      "first", "later",  "",      "first", "later", "",
        "dT", "waits", "layer", "waits", "slowed", "pred.", "pred.", NULL,
    };
    const struct switch_trials *s = &v->trials;
    struct table t;
    if (!switch_trials_have_parts(s))
        return;
    table_init(&t, "lrrrrrrr");
    add_heads(&t, head);
    for (int i = 0; i < s->n; i++) {
        const struct switch_way *way = s->direction[i].way;
        bool any = false;
        for (int m = 0; m < MECH_COUNT; m++) {
            if (!switch_way_has_parts(&way[m]))
                continue;
            if (!any)
                add_direction(&t, &v->joined, &s->direction[i]);
            any = true;
            add_parts(&t, &way[m], (enum mechanism)m);
        }
    }
    fputs("\nWhat a switch's time is made of, in ms: dT = waits (first layer + later ones)\n"
          "+ slowed computation\n\n",
          out);
    table_print(&t, out);
    table_release(&t);
}

static void add_hopb(struct table *t, const struct joined *j, const struct hopb_trial *h)
{
    const struct plan_step *at = j->step[h->step].at;
    struct step_shape shape = joined_shape(at);
    table_add(t, "%lld", (long long)at->step);
    table_add(t, "%s", j->layout[h->layout]);
    add_count(t, shape.requests);
    add_count(t, shape.mean_ctx_tokens);
    add_count(t, h->sub_batches);
    add_ms(t, (double)h->pred_ns);
    add_ms(t, (double)h->meas_ns);
    add_signed(t, h->pred_gain);
    add_signed(t, h->gain);
}

static void print_hopb(const struct validation *v, FILE *out)
{
    static const char *const head[] = {
        "from", "",     "",      "mean",   "sub-",     "pred.",   "meas.",
        "gain", "gain", "step",  "layout", "requests", "context", "batches",
        "ms",   "ms",   "pred.", "meas.",  NULL,
    };
    const struct hopb_trials *h = &v->hopb;
    char note[NOTE_SIZE];
    struct table t;
    if (h->n == 0)
        return;
    table_init(&t, "rlrrrrrrr");
    add_heads(&t, head);
    for (int i = 0; i < h->n; i++)
        add_hopb(&t, &v->joined, &h->trial[i]);
    fputs("\nHOP-B (gain: step time in one piece / in sub-batches - 1)\n\n", out);
    table_print(&t, out);
    table_release(&t);
    print_note(note_hopb(v, note), out);
}

static void print_doubts(const struct validation *v, FILE *out)
{
    struct doubts d;
    doubts_init(&d, v);
    fputs("\nWhere not to believe it\n\n", out);
    for (int i = 0; i < d.n; i++) {
        fputs("- ", out);
        end_line(d.sentence[i], 2, out);
    }
    doubts_release(&d);
}

void validation_print(const struct validation *v, const struct validation_about *about, FILE *out)
{
    char note[NOTE_SIZE];
    print_about(about, &v->joined, out);
    print_steps(v, &v->steady, "Steps without a switch", out);
    print_steps(v, &v->ready, "Target-ready steps: after a free switch", out);
    print_schedule(&v->schedule, out);
    print_order(&v->order, out);
    print_hopb(v, out);
    print_switches(v, out);
    print_switch_parts(v, out);
    print_note(note_first_runs(&v->first_runs, note), out);
    fprintf(out, "\nLargest error of any output against the reference: %.2e\n",
            v->joined.check_max_error);
    print_doubts(v, out);
}
