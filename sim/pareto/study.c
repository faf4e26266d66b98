/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/pareto/study.h"

void pareto_study_run(struct pareto_study *s, const struct search *search, unsigned families,
                      unsigned baseline, const struct searchers *by)
{
    struct progress progress;
    uint64_t start_ns = wall_ns();
    *s = (struct pareto_study){.search = search, .families = families, .baseline = baseline};
    progress_begin(&progress, "mappings",
                   by->ranks.rank == 0 ? search_share(search, &by->ranks) : 0);
    search_run(search, by, &progress, &s->result);
    progress_end(&progress);
    s->wall_s = (double)(wall_ns() - start_ns) / 1e9;
    search_union(&s->result, families, &s->all);
    search_union(&s->result, baseline, &s->base);
    search_union(&s->result, baseline | (families & 1u << FAMILY_HELIX), &s->helix);
    s->gain = gain_of(&s->helix, &s->base);
    gain_decompose(&s->result, s->step);
}

void pareto_study_release(struct pareto_study *s)
{
    search_result_release(&s->result);
    frontier_release(&s->all);
    frontier_release(&s->base);
    frontier_release(&s->helix);
}
