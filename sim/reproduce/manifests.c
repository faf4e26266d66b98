/* SPDX-License-Identifier: Apache-2.0
 *
 * What the manifests say of the twelve directions, on every platform.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/base/units.h"
#include "sim/reproduce/paper.h"
#include "sim/reproduce/platform.h"
#include "sim/reproduce/rows.h"

/* The paper has no word for a discard of nothing. */
static const char *word_of(enum primitive p)
{
    return primitive_names[p == PRIM_KEEP ? PRIM_DISCARD : p];
}

/* "7/64" */
static double fraction(const char *text)
{
    char *end;
    double above = strtod(text, &end);
    return *end == '/' ? above / strtod(end + 1, NULL) : above;
}

static void compare_mib(struct reproduction *r, double paper_bytes, double our_bytes,
                        const char *id)
{
    char paper[24];
    snprintf(paper, sizeof paper, "%.4f", paper_bytes / MIB);
    rows_exact(r, paper, our_bytes / MIB, "%s", id);
}

static void compare_direction(struct reproduction *r, const struct paper *p, int row,
                              const struct platform *on)
{
    const char *src = paper_text(p, row, 0), *dst = paper_text(p, row, 1);
    const struct manifest *mf =
        cost_manifest(on->cost, platform_layout(on, src), platform_layout(on, dst));
    struct transfer kv = manifest_kv_transfer(mf, &on->model, on->owned_tokens);
    struct projection_bytes projections = footprint_projections(&on->model);
    double all_weights = projections.in_bytes + projections.out_bytes;
    double all_kv =
        SWITCH_BATCH * (double)on->ctx_tokens * model_kv_bytes_per_token_layer(&on->model);
    char id[64];
    rows_exact_text(r, paper_text(p, row, 2), word_of(mf->weights.primitive),
                    "manifest.%s.%s-%s.weights", on->name, src, dst);
    rows_exact_text(r, paper_text(p, row, 3), word_of(mf->kv.primitive), "manifest.%s.%s-%s.kv",
                    on->name, src, dst);
    snprintf(id, sizeof id, "manifest.%s.%s-%s.weights_mib", on->name, src, dst);
    compare_mib(r, fraction(paper_text(p, row, 4)) * all_weights, mf->weights.recv_bytes, id);
    snprintf(id, sizeof id, "manifest.%s.%s-%s.kv_mib", on->name, src, dst);
    compare_mib(r, fraction(paper_text(p, row, 5)) * all_kv, kv.recv_bytes, id);
}

int reproduce_manifest(struct reproduction *r, struct err *err)
{
    struct paper p;
    int rc = 0;
    if (paper_load(&p, "directions", "src,dst,weights,kv,weights_recv,kv_recv", err) < 0)
        return -1;
    for (int i = 0; i < PLATFORMS && rc == 0; i++) {
        struct platform on;
        rc = platform_load(&on, i, err);
        if (rc < 0)
            break;
        for (int row = 0; row < p.rows; row++)
            compare_direction(r, &p, row, &on);
        platform_release(&on);
    }
    paper_release(&p);
    return rc;
}
