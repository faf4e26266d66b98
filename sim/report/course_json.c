/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "sim/base/json.h"
#include "sim/base/units.h"
#include "sim/report/course.h"

static const struct {
    const char *name;
    double scale;
} quantities[COURSE_QUANTITIES] = {[COURSE_QUEUE] = {"queue", 1},
                                   [COURSE_DECODE] = {"decode", 1},
                                   [COURSE_PREFILL] = {"prefill", 1},
                                   [COURSE_CTX_TOKENS] = {"ctx_tokens", 1},
                                   [COURSE_KV_FRAC] = {"kv_percent", 100}};

static void add_text(json_t *array, const char *text)
{
    json_array_append_new(array, json_string(text));
}

/* Null where there is no value. Whole numbers are shorter as such. */
static void add(json_t *array, double x)
{
    bool whole = x == floor(x) && fabs(x) < 1e15;
    json_array_append_new(array, isnan(x) ? json_null()
                                 : whole  ? json_integer((json_int_t)x)
                                          : json_real(x));
}

static json_t *bin_columns(const struct layout *layouts, int n_layouts)
{
    static const char *const of[] = {"_mean", "_min", "_max"};
    json_t *columns = json_array();
    add_text(columns, "time_s");
    for (int l = 0; l < n_layouts; l++)
        json_array_append_new(columns, json_sprintf("%s_percent", layouts[l].name));
    for (int i = 0; i < COURSE_QUANTITIES; i++)
        for (int k = 0; k < 3; k++)
            json_array_append_new(columns, json_sprintf("%s%s", quantities[i].name, of[k]));
    add_text(columns, "switches");
    add_text(columns, "exposed_ms");
    return columns;
}

static json_t *bin_row(const struct course *c, int i, int n_layouts)
{
    const struct course_bin *b = &c->bin[i];
    double all_ps = (double)c->bin_ps * c->n_groups;
    json_t *row = json_array();
    add(row, i * ps_to_s(c->bin_ps));
    for (int l = 0; l < n_layouts; l++)
        add(row, 100 * (double)b->layout_ps[l] / all_ps);
    for (int q = 0; q < COURSE_QUANTITIES; q++) {
        const struct course_range *r = &b->range[q];
        double scale = b->busy_ps > 0 ? quantities[q].scale : NAN;
        add(row, scale * r->area_ps / (double)b->busy_ps);
        add(row, scale * r->min);
        add(row, scale * r->max);
    }
    add(row, (double)b->switched.n);
    add(row, (double)b->exposed_ps / (double)PS_PER_MS);
    return row;
}

static const char *reason(const struct course_event *e, bool refused)
{
    if (refused)
        return "its KV does not fit there";
    if (e->why.forced)
        return "its KV no longer fitted";
    return isnan(course_lead(&e->why)) ? "not weighed" : "it led";
}

static json_t *events(const struct course *c, const struct layout *layouts, bool refused)
{
    json_t *rows = json_array();
    for (int i = 0; i < c->n_bins; i++) {
        const struct course_event *e = refused ? &c->bin[i].refused : &c->bin[i].switched;
        if (e->n == 0)
            continue;
        json_t *row = json_array();
        add(row, ps_to_s(e->at_ps));
        add(row, e->group);
        add_text(row, layouts[e->from].name);
        add_text(row, layouts[e->to].name);
        add(row, (double)e->exposed_ps / (double)PS_PER_MS);
        add(row, 100 * course_lead(&e->why));
        add_text(row, reason(e, refused));
        add(row, (double)e->n);
        json_array_append_new(rows, row);
    }
    return json_pack("{s:[s,s,s,s,s,s,s,s], s:o}", "columns", "time_s", "group", "from", "to",
                     "exposed_ms", "lead_percent", "reason", "in_bin", "rows", rows);
}

json_t *course_json(const struct course *c, const char *policy, const struct layout *layouts,
                    int n_layouts)
{
    json_t *rows = json_array();
    for (int i = 0; i < c->n_bins; i++)
        json_array_append_new(rows, bin_row(c, i, n_layouts));
    json_t *o =
        json_pack("{s:o, s:i, s:o, s:o, s:o, s:o}", "bin_s", json_num(ps_to_s(c->bin_ps)), "groups",
                  c->n_groups, "columns", bin_columns(layouts, n_layouts), "rows", rows, "switches",
                  events(c, layouts, false), "refusals", events(c, layouts, true));
    json_object_set_new(o, "policy", json_string(policy)); /* fails where it is not UTF-8 */
    return o;
}
