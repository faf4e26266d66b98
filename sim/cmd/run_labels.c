/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cmd/run_labels.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "sim/cmd/version.h"

static const struct opt draw_options[] = {
    TRACE_READING_OPTS(offsetof(struct draw_options, reading)),
    TRACE_SELECT_OPTS(offsetof(struct draw_options, select)),
    {0},
};

/* Columns of their own, or known by content. */
static const char *const elsewhere[] = {"model", "cluster", "profile", "policy"};

void run_labels_init(struct run_labels *l, const struct tune_runs *t)
{
    const struct study *s = t->study;
    *l = (struct run_labels){.runs = t};
    l->draw = xcalloc((size_t)s->rungs * (size_t)t->draws->n, sizeof *l->draw);
    for (int r = 0; r < s->rungs; r++)
        for (int d = 0; d < t->draws->n; d++)
            l->draw[r * t->draws->n + d] = draw_digest(&t->draws->draw[d], study_cut(s, r));
}

void run_labels_release(struct run_labels *l)
{
    free(l->draw);
    free(l->machine_names);
    free(l->policy);
    free(l->settings);
}

/* Files are read again only when others are named. */
static int load_machine(struct run_labels *l, const struct setup_options *o, struct err *err)
{
    char *names = xasprintf("%s\n%s\n%s", o->model, o->cluster, o->profile ? o->profile : "");
    if (l->machine_names != NULL && strcmp(l->machine_names, names) == 0) {
        free(names);
        return 0;
    }
    free(l->machine_names);
    l->machine_names = names;
    return machine_load(&l->machine, o, err);
}

static char *settings_text(const struct run_settings *s, const struct draw_options *o)
{
    json_t *settings = opt_dump(tune_run_options, s), *selection = opt_dump(draw_options, o);
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        json_object_del(settings, elsewhere[i]);
    json_object_set_new(settings, "trace", selection);
    char *text = json_dumps(settings, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(9));
    json_decref(settings);
    return text;
}

/* Runs with one key are one run: whatever their result depends on goes in. */
static void write_key(struct run_row *row, const struct digest *machine, const struct digest *draw)
{
    struct digest d;
    char hex[DIGEST_HEX_SIZE];
    digest_init(&d);
    digest_text(&d, row->version);
    digest_text(&d, digest_hex(machine, hex));
    digest_text(&d, digest_hex(draw, hex));
    digest_u64(&d, (uint64_t)row->seed);
    digest_text(&d, row->policy);
    digest_text(&d, row->settings);
    digest_hex(&d, row->key);
}

int run_labels_make(void *labels, int64_t job, struct run_row *row, struct err *err)
{
    struct run_labels *l = labels;
    const struct tune_runs *t = l->runs;
    struct study_job j = study_job(t->study, job);
    const struct draw *d = &t->draws->draw[j.draw];
    struct run_setting r;
    if (run_setting_make(&r, t, j.setting, err) < 0)
        return -1;
    int rc = load_machine(l, &r.s.setup, err);
    free(l->policy);
    free(l->settings);
    l->policy = r.policy;
    l->settings = settings_text(&r.s, t->draw_options);
    *row = (struct run_row){
        .version = WAVETANK_VERSION,
        .model = l->machine.model,
        .cluster = l->machine.cluster,
        .profile = l->machine.profile,
        .trace = d->name,
        .policy = l->policy,
        .settings = l->settings,
        .seed = d->seed,
    };
    write_key(row, &l->machine.digest, &l->draw[j.rung * t->draws->n + j.draw]);
    return rc;
}
