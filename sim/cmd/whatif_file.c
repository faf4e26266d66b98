/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cmd/whatif_file.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/mem.h"
#include "sim/base/units.h"

#define FIELD(name) offsetof(struct whatif_options, name)

static const struct opt options[] = {
    {"trace", 0, OPT_STR, FIELD(trace), "FILE", NULL, 0, 0, NULL, "trace to replay"},
    {"slo-attained-frac", 0, OPT_F64, FIELD(slo_attained_frac), "FRAC", "0.99", 0, 1, NULL,
     "share of all requests that must be within the SLO"},
    {"price-per-gpu-hour", 0, OPT_F64, FIELD(price_per_gpu_hour), "X", "0", 0, 1e6, NULL,
     "what a GPU costs in an hour"},
    SETUP_MACHINE_OPTS(FIELD(run.setup)),
    SETUP_LAYOUTS_OPT(FIELD(run.setup)),
    SCENARIO_OPTS(FIELD(run)),
    PLAN_OPTS(FIELD(plan)),
    TRACE_READING_OPTS(FIELD(run.reading)),
    TRACE_SELECT_OPTS(FIELD(run.select)),
    ENGINE_OPTS(FIELD(run.engine)),
    {0},
};

/* "2x" is a multiple of the base's rate: a new object with the rate that this is, or `set` again.
 */
static json_t *resolve_rate(json_t *set, double base_rate, const char *place, struct err *err)
{
    const char *text = json_string_value(json_object_get(set, "rate"));
    size_t len = text != NULL ? strlen(text) : 0;
    double times = 0;
    if (len == 0 || text[len - 1] != 'x')
        return json_incref(set);
    char *number = xasprintf("%.*s", (int)(len - 1), text), *where = xasprintf("%s: .rate", place);
    int rc = units_parse_f64(number, where, 1e-6, 1e6, &times, err);
    free(number);
    free(where);
    if (rc < 0)
        return NULL;
    json_t *resolved = json_copy(set);
    json_object_set_new(resolved, "rate", json_num(times * base_rate));
    return resolved;
}

/* What `set` says over what is there; policies named there replace those. */
static int apply(struct whatif_options *o, json_t *set, const char *place, struct err *err)
{
    if (json_object_get(set, "policy") != NULL)
        opt_release(options, o);
    json_t *resolved = resolve_rate(set, o->run.select.rate, place, err);
    int rc = resolved != NULL ? opt_parse_json(options, o, place, resolved, err) : -1;
    json_decref(resolved);
    return rc;
}

static int check(struct whatif_options *o, const char *place, struct err *err)
{
    const struct opt_list *policies = &o->run.policies;
    struct err fault = ERR_NONE;
    if (o->trace == NULL)
        return err_set(err, "%s: .trace: missing; name the trace to replay", place);
    if (strcmp(o->trace, "-") == 0)
        return err_set(err, "%s: .trace: is read anew for each run; name a file", place);
    if (policies->n == 0)
        opt_set(options, o, "policy", "splash", err);
    if (policies->n != 1 || strcmp(policies->item[0], "best-fixed") == 0)
        return err_set(err,
                       "%s: .policy: a case runs one policy, and not best-fixed; make a "
                       "variation of each",
                       place);
    return scenario_check(&o->run, &fault) < 0 ? err_set(err, "%s: %s", place, fault.text) : 0;
}

static int read_base(struct whatif_case *c, json_t *base, const char *path, struct err *err)
{
    char *place = xasprintf("%s: .base", path);
    *c = (struct whatif_case){.name = "base"};
    opt_defaults(options, &c->options);
    int rc = apply(&c->options, base, place, err);
    rc = rc == 0 ? check(&c->options, place, err) : rc;
    free(place);
    return rc;
}

static int check_name(const struct whatif_file *f, const struct jobj *o, const char *name,
                      struct err *err)
{
    if (name[0] == '\0')
        return jobj_fail(o, "name", err, "is empty");
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->item[i].name, name) == 0)
            return jobj_fail(o, "name", err, "\"%s\" is there already; choose another", name);
    return 0;
}

/* The case is counted as soon as it holds something. */
static int read_variation(struct whatif_file *f, struct jobj *o, json_t *base, struct err *err)
{
    struct whatif_case *c = &f->item[f->n];
    struct jobj set;
    if (jobj_str(o, "name", true, &c->name, err) < 0 || check_name(f, o, c->name, err) < 0 ||
        jobj_open(&set, o, "set", true, err) < 0 || jobj_done(o, err) < 0)
        return -1;
    char *base_place = xasprintf("%s: .base", o->file);
    char *place = xasprintf("%s: .variations[%d].set", o->file, o->index);
    f->n++;
    c->set = set.obj;
    opt_defaults(options, &c->options);
    int rc = apply(&c->options, base, base_place, err);
    rc = rc == 0 ? apply(&c->options, c->set, place, err) : rc;
    rc = rc == 0 ? check(&c->options, place, err) : rc;
    free(base_place);
    free(place);
    return rc;
}

int whatif_file_load(struct whatif_file *f, const char *path, struct err *err)
{
    struct jobj root, base, variation;
    json_t *variations = NULL;
    *f = (struct whatif_file){.document = json_load_path(path, err)};
    if (f->document == NULL || jobj_root(&root, path, f->document, err) < 0 ||
        jobj_open(&base, &root, "base", true, err) < 0 ||
        jobj_array(&root, "variations", false, &variations, err) < 0 || jobj_done(&root, err) < 0)
        return -1;
    f->item = xcalloc(1 + json_array_size(variations), sizeof *f->item);
    f->n = 1;
    if (read_base(&f->item[0], base.obj, path, err) < 0)
        return -1;
    for (size_t i = 0; i < json_array_size(variations); i++)
        if (jobj_open_at(&variation, &root, "variations", i, err) < 0 ||
            read_variation(f, &variation, base.obj, err) < 0)
            return -1;
    return 0;
}

void whatif_file_release(struct whatif_file *f)
{
    for (int i = 0; i < f->n; i++)
        opt_release(options, &f->item[i].options);
    free(f->item);
    json_decref(f->document);
    *f = (struct whatif_file){0};
}

json_t *whatif_options_dump(const struct whatif_options *o)
{
    return opt_dump(options, o);
}
