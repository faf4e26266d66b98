/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/workload.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"

const struct workload *const workloads[] = {&workload_agentic, &workload_rollout, &workload_longdoc,
                                            NULL};

enum { N_WORKLOADS = sizeof workloads / sizeof *workloads - 1 };

static void name_all(const char *names[N_WORKLOADS])
{
    for (int i = 0; i < N_WORKLOADS; i++)
        names[i] = workloads[i]->name;
}

const struct workload *workload_find(const char *name, struct err *err)
{
    const char *names[N_WORKLOADS];
    for (int i = 0; i < N_WORKLOADS; i++)
        if (strcmp(workloads[i]->name, name) == 0)
            return workloads[i];
    name_all(names);
    const char *near = err_nearest(name, names, N_WORKLOADS);
    err_set(err, "gen: unknown workload \"%.64s\"%s%s%s; try agentic, rollout or longdoc", name,
            near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
    return NULL;
}

static int check_preset(const struct workload *w, struct jobj *preset, struct err *err)
{
    const char *names[N_WORKLOADS];
    int which;
    name_all(names);
    if (jobj_enum(preset, "workload", true, names, N_WORKLOADS, &which, err) < 0)
        return -1;
    if (workloads[which] != w)
        return jobj_fail(preset, "workload", err, "is a preset of %s, not of %s", names[which],
                         w->name);
    return 0;
}

int workload_make(struct trace *t, const struct workload *w, const char *name, struct jobj *preset,
                  const struct workload_ask *ask, struct err *err)
{
    struct trace made = {
        .path = xstrdup(name), .format = w->name, .block_tokens = (int)ask->block_tokens};
    int rc = check_preset(w, preset, err);
    rc = rc == 0 ? w->generate(&made, preset, ask, err) : rc;
    rc = rc == 0 ? trace_finish(&made, err) : rc;
    if (rc < 0)
        trace_release(&made);
    else
        *t = made;
    return rc;
}

void workload_stream(struct rng *r, const struct workload *w, const char *purpose, uint64_t seed)
{
    char *name = xasprintf("gen %s %s", w->name, purpose);
    rng_stream(r, seed, name);
    free(name);
}

int workload_check_size(struct workload_size *size, const struct trace *t, struct err *err)
{
    for (; size->n < t->n; size->n++)
        size->n_hashes += t->request[size->n].n_hashes;
    if (t->n > WORKLOAD_REQUESTS_MAX)
        return err_set(err, "gen: more than %lld requests; ask for fewer", WORKLOAD_REQUESTS_MAX);
    if (size->n_hashes > WORKLOAD_HASHES_MAX)
        return err_set(
            err,
            "gen: more than 2^29 block hashes (4 GiB) after %zu requests; ask for fewer, "
            "for larger blocks (--block-tokens 512), or for none (--block-tokens 0)",
            t->n);
    return 0;
}
