/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cmd/setup.h"

#include <string.h>

#include "sim/base/units.h"

static int load_parts(struct setup *s, const struct setup_options *o, struct err *err)
{
    if (o->model == NULL)
        return err_set(err, "--model: missing; see \"wavetank list models\"");
    if (o->cluster == NULL)
        return err_set(err, "--cluster: missing; see \"wavetank list clusters\"");
    if (model_load(&s->model, o->model, err) < 0 || cluster_load(&s->cluster, o->cluster, err) < 0)
        return -1;
    s->n_layouts = layout_parse_list(s->layout, o->layouts, &s->model, s->cluster.ranks, err);
    if (s->n_layouts < 0)
        return -1;
    return profile_load(&s->profile, o->profile ? o->profile : s->cluster.profile, err);
}

int setup_load(struct setup *s, const struct setup_options *o, int64_t page_tokens, struct err *err)
{
    memset(s, 0, sizeof *s);
    if (load_parts(s, o, err) < 0)
        return -1;
    s->cost =
        cost_new(&s->model, &s->cluster, &s->profile, s->layout, s->n_layouts, (int)page_tokens);
    return 0;
}

void setup_release(struct setup *s)
{
    if (s->cost == NULL)
        return;
    cost_free(s->cost);
    profile_release(&s->profile);
    s->cost = NULL;
}

void setup_print(const struct setup *s, FILE *out)
{
    char memory[32];
    bool assumed = strcmp(s->profile.kind, "analytic") == 0;
    fprintf(out, "model    %s\n", s->model.name);
    fprintf(out, "cluster  %s: %d x %s, %s each\n", s->cluster.name, s->cluster.ranks,
            s->cluster.device.name,
            units_bytes(s->cluster.device.memory_bytes, memory, sizeof memory));
    fprintf(out, "profile  %s%s%s\n", s->profile.name, assumed ? "" : ": ",
            assumed ? ": efficiencies assumed, not measured" : s->profile.kind);
}
