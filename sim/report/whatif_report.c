/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/whatif_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "sim/report/table.h"

const char *const whatif_question_names[FIND_COUNT] = {
    [FIND_MAX_RATE] = "max-rate",
    [FIND_MIN_GPUS] = "min-gpus",
};

double whatif_rate(double step, int64_t at)
{
    char text[32];
    snprintf(text, sizeof text, "%.9g", step * (double)at);
    return strtod(text, NULL);
}

char *whatif_set_text(const json_t *set)
{
    const char *key, *sep = "";
    char *text;
    size_t size;
    json_t *value;
    FILE *out = open_memstream(&text, &size);
    json_object_foreach ((json_t *)set, key, value) {
        char *dump =
            json_is_string(value)
                ? NULL
                : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
        fprintf(out, "%s%s %s", sep, key, dump != NULL ? dump : json_string_value(value));
        free(dump);
        sep = ", ";
    }
    fclose(out);
    return text;
}

static bool is_priced(const struct whatif_row *row)
{
    return row->terms.price_per_gpu_hour > 0;
}

static int name_width(const struct whatif_report *w)
{
    size_t width = 0;
    for (int i = 0; i < w->n; i++)
        width = strlen(w->row[i].name) > width ? strlen(w->row[i].name) : width;
    return (int)width;
}

/* A case's line: its name, and behind it what is said of it; "" goes on with the line before. */
static void print_case(const char *name, const char *text, int width, FILE *out)
{
    fprintf(out, "%-*s  ", width, name);
    table_words(text, width + 2, out);
    fputc('\n', out);
}

static void print_base(const struct whatif_row *base, int width, FILE *out)
{
    char *text =
        xasprintf("%s, %s on %s, %s", base->trace, base->model, base->cluster, base->policy);
    print_case(base->name, text, width, out);
    free(text);
    if (base->has_slo) {
        text = xasprintf("SLO %s for %g%% of requests", base->slo,
                         100 * base->terms.slo_attained_frac);
        print_case("", text, width, out);
        free(text);
    }
    if (is_priced(base))
        fprintf(out, "%-*s  %g per GPU-hour\n", width, "", base->terms.price_per_gpu_hour);
}

static void print_cases(const struct whatif_report *w, FILE *out)
{
    int width = name_width(w);
    print_base(&w->row[0], width, out);
    for (int i = 1; i < w->n; i++) {
        char *text = whatif_set_text(w->row[i].set);
        print_case(w->row[i].name, text, width, out);
        free(text);
    }
    fputc('\n', out);
}

static void add_number(struct table *t, double x)
{
    char buf[32];
    table_add(t, "%s", isnan(x) ? "-" : table_number(x, buf, sizeof buf));
}

static void add_count(struct table *t, double x)
{
    char buf[32];
    table_add(t, "%s", units_count(llround(x), buf, sizeof buf));
}

static void add_service(struct table *t, const struct whatif_row *row)
{
    const struct outcome *o = &row->outcome;
    table_add(t, "%s", row->name);
    table_add(t, "%s", !row->has_slo ? "-" : o->meets_slo ? "met" : "missed");
    if (row->has_slo)
        table_add(t, "%.1f%%", 100 * o->slo_met_frac);
    else
        table_add(t, "-");
    add_count(t, o->total_tok_s);
    add_count(t, o->output_tok_s);
    add_number(t, o->ttft_p99_s);
    add_number(t, 1000 * o->tpot_p99_s);
    add_number(t, o->e2e_p99_s);
}

static void print_service(const struct whatif_report *w, FILE *out)
{
    static const char *const head[] = {
        "",     "",    "within", "tok/s", "",       "TTFT s", "TPOT ms", "E2E s",
        "case", "SLO", "SLO",    "total", "output", "p99",    "p99",     "p99",
    };
    struct table t;
    table_init(&t, "llrrrrrr");
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        table_add(&t, "%s", head[i]);
    for (int i = 0; i < w->n; i++)
        add_service(&t, &w->row[i]);
    table_print(&t, out);
    table_release(&t);
}

static void add_cost(struct table *t, const struct whatif_row *row, bool with_prices)
{
    const struct outcome *o = &row->outcome;
    table_add(t, "%s", row->name);
    table_add(t, "%lld", (long long)row->terms.gpus);
    add_number(t, o->gpu_hours);
    if (!with_prices)
        return;
    add_number(t, is_priced(row) ? o->price_per_m_output_tokens : NAN);
    add_number(t, is_priced(row) ? o->price_per_m_total_tokens : NAN);
}

static void print_costs(const struct whatif_report *w, FILE *out)
{
    enum { UNPRICED = 3, COLUMNS = 5 };
    static const char *const head[][COLUMNS] = {
        {"", "", "GPU-", "price/Mtok", ""},
        {"case", "GPUs", "hours", "output", "total"},
    };
    struct table t;
    bool priced = false;
    for (int i = 0; i < w->n; i++)
        priced = priced || is_priced(&w->row[i]);
    table_init(&t, priced ? "lrrrr" : "lrr");
    for (int line = 0; line < 2; line++)
        for (int i = 0; i < (priced ? COLUMNS : UNPRICED); i++)
            table_add(&t, "%s", head[line][i]);
    for (int i = 0; i < w->n; i++)
        add_cost(&t, &w->row[i], priced);
    fputc('\n', out);
    table_print(&t, out);
    table_release(&t);
}

static void print_question(const struct whatif_report *w, enum whatif_question q, FILE *out)
{
    if (q == FIND_MAX_RATE)
        fprintf(out,
                "\nmax-rate: the highest rate that meets the SLO, in steps of %g up to %g times\n"
                "the recorded one\n",
                w->rate_step, whatif_rate(w->rate_step, w->max_rate_steps));
    else
        fprintf(out, "\nmin-gpus: the fewest groups that meet the SLO, up to %lld\n",
                (long long)w->max_groups);
}

/* A rate, or a number of groups. */
static double value_of(const struct whatif_report *w, enum whatif_question q, int64_t at)
{
    return q == FIND_MAX_RATE ? whatif_rate(w->rate_step, at) : (double)at;
}

static void add_trial(struct table *t, const struct whatif_report *w, enum whatif_question q,
                      const struct bisection_trial *trial)
{
    table_add(t, "%g", value_of(w, q, trial->at));
    if (trial->choice > 0)
        table_add(t, "%lld:%lld", (long long)trial->choice, (long long)(trial->at - trial->choice));
    else
        table_skip(t, 1);
    table_add(t, "%.1f%%", 100 * trial->score);
    table_add(t, "%s", trial->holds ? "met" : "missed");
    table_add(t, "%g to %g", value_of(w, q, trial->low), value_of(w, q, trial->high));
}

static void print_trials(const struct whatif_report *w, enum whatif_question q, FILE *out)
{
    struct table t;
    table_init(&t, "lrrrll");
    table_add(&t, "case");
    table_add(&t, "%s", q == FIND_MAX_RATE ? "rate" : "groups");
    table_skip(&t, 1);
    table_add(&t, "within");
    table_add(&t, "SLO");
    table_add(&t, "edge lies in");
    for (int i = 0; i < w->n; i++) {
        const struct bisection_result *found = &w->row[i].found[q];
        for (size_t k = 0; k < found->n; k++) {
            table_add(&t, "%s", k == 0 ? w->row[i].name : "");
            add_trial(&t, w, q, &found->trial[k]);
        }
    }
    table_print(&t, out);
    table_release(&t);
}

static void print_rate(const struct whatif_report *w, const struct whatif_row *row, FILE *out)
{
    const struct bisection_result *found = &row->found[FIND_MAX_RATE];
    double rate = whatif_rate(w->rate_step, found->trial[found->answer].at);
    char req_s[32];
    fprintf(out, "rate %g (%s requests/s)", rate,
            table_number(rate * row->recorded_req_s, req_s, sizeof req_s));
    if (found->end == BISECTION_ALWAYS)
        fputs(", and maybe more: raise --rate-max", out);
}

static void print_gpus(const struct whatif_row *row, FILE *out)
{
    const struct bisection_result *found = &row->found[FIND_MIN_GPUS];
    const struct bisection_trial *t = &found->trial[found->answer];
    int64_t gpus = t->at * row->ranks;
    fprintf(out, "%lld GPUs (%lld x %lld", (long long)gpus, (long long)t->at,
            (long long)row->ranks);
    if (t->choice > 0)
        fprintf(out, "; %lld prefill, %lld decode", (long long)t->choice,
                (long long)(t->at - t->choice));
    fputc(')', out);
}

char *whatif_answer_text(const struct whatif_report *w, const struct whatif_row *row,
                         enum whatif_question q)
{
    const struct bisection_result *found = &row->found[q];
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (found->end == BISECTION_NEVER)
        fprintf(out, q == FIND_MAX_RATE ? "none: not even rate %g" : "none: not even %g groups",
                value_of(w, q, found->trial[0].at));
    else if (q == FIND_MAX_RATE)
        print_rate(w, row, out);
    else
        print_gpus(row, out);
    fclose(out);
    return text;
}

char *whatif_breach_text(const struct whatif_report *w, const struct whatif_row *row,
                         enum whatif_question q)
{
    const struct bisection_result *found = &row->found[q];
    if (bisection_is_monotone(found))
        return NULL;
    return xasprintf("has no single edge: %g meets the SLO and %g does not",
                     value_of(w, q, found->trial[found->breach].at),
                     value_of(w, q, found->trial[found->broken].at));
}

static void print_answer(const struct whatif_report *w, const struct whatif_row *row,
                         enum whatif_question q, FILE *out)
{
    char *answer = whatif_answer_text(w, row, q), *breach = whatif_breach_text(w, row, q);
    print_case(row->name, answer, name_width(w), out);
    if (breach != NULL)
        fprintf(out, "%s: %s\n", row->name, breach);
    free(answer);
    free(breach);
}

static void print_finding(const struct whatif_report *w, enum whatif_question q, FILE *out)
{
    print_question(w, q, out);
    print_trials(w, q, out);
    fputc('\n', out);
    for (int i = 0; i < w->n; i++)
        print_answer(w, &w->row[i], q, out);
}

void whatif_print(const struct whatif_report *w, FILE *out)
{
    print_cases(w, out);
    print_service(w, out);
    print_costs(w, out);
    for (enum whatif_question q = 0; q < FIND_COUNT; q++)
        if (w->asked[q])
            print_finding(w, q, out);
}
