/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/validation_about.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/units.h"

__attribute__((format(printf, 3, 4))) static void add(struct about_facts *f, const char *label,
                                                      const char *fmt, ...)
{
    va_list ap;
    assert(f->n < ABOUT_FACTS_MAX);
    f->fact[f->n].label = label;
    va_start(ap, fmt);
    vsnprintf(f->fact[f->n].text, sizeof f->fact[f->n].text, fmt, ap);
    va_end(ap);
    f->n++;
}

static void add_files(struct about_facts *f, const struct validation_about *a,
                      const struct joined *j)
{
    char steps[32], unmatched[32];
    int switches = 0;
    for (int i = 0; i < j->n; i++)
        switches += j->step[i].from >= 0;
    units_count(j->n, steps, sizeof steps);
    units_count(j->unmatched, unmatched, sizeof unmatched);
    add(f, "plan", "%s", a->plan_path);
    if (j->unmatched == 0)
        add(f, "measured", "%s: %s steps, %d switches", a->measured_path, steps, switches);
    else
        add(f, "measured",
            "%s: the first %s steps, %d switches; the run was cut, %s steps are missing",
            a->measured_path, steps, switches, unmatched);
}

static void add_profile(struct about_facts *f, const struct validation_about *a)
{
    if (a->profile == NULL)
        add(f, "profile", "not known (%.*s)", (int)strcspn(a->profile_fault, ";"),
            a->profile_fault);
    else if (!a->profile_predicts)
        add(f, "profile", "not known: not %s, which predicts other times (see --profile)",
            a->profile);
    else
        add(f, "profile", "%s: %s", a->profile,
            strcmp(a->profile_kind, "analytic") == 0 ? "efficiencies assumed, not measured"
                                                     : a->profile_kind);
}

static void add_origin(struct about_facts *f, const struct plan_origin *o)
{
    if (o->device[0] != '\0')
        add(f, "device", "%s%s%s", o->device, o->transport[0] != '\0' ? ", transport " : "",
            o->transport);
    if (o->date[0] != '\0')
        add(f, "date", "%s", o->date);
    if (o->command[0] != '\0')
        add(f, "run", "%s", o->command);
    if (o->repeats > 0)
        add(f, "repeats", "%d of each step that does not switch", o->repeats);
}

void about_facts_init(struct about_facts *f, const struct validation_about *a,
                      const struct joined *j)
{
    f->n = 0;
    add_files(f, a, j);
    add(f, "model", "%s, %d layers", a->plan->model, a->plan->layers);
    add(f, "cluster", "%s, %d ranks", a->plan->cluster, a->plan->ranks);
    add_profile(f, a);
    add_origin(f, &a->measured->origin);
}
