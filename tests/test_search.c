/* SPDX-License-Identifier: Apache-2.0
 *
 * The search: what it skips changes nothing, nor do threads, nor the order of chunks.
 */
#include "sim/pareto/search.h"

#include <string.h>

#include <criterion/criterion.h>

#include "sim/pareto/study.h"

enum { ALL = (1 << FAMILY_COUNT) - 1 };

static const struct searchers alone = {{0, 1}, 1}, two = {{0, 1}, 2};

struct fixture {
    struct model model;
    struct cluster cluster;
    struct profile profile;
    struct decode_machine machine;
};

static void load(struct fixture *f, const char *model, bool ideal)
{
    struct err err = ERR_NONE;
    cr_assert_eq(model_load(&f->model, model, &err), 0, "%s", err.text);
    cr_assert_eq(cluster_load(&f->cluster, "gb200-nvl72", &err), 0, "%s", err.text);
    cr_assert_eq(profile_load(&f->profile, "gb200-analytic", &err), 0, "%s", err.text);
    decode_set_format(&f->model, FMT_FP4);
    f->machine = (struct decode_machine){.model = &f->model,
                                         .cluster = &f->cluster,
                                         .profile = ideal ? NULL : &f->profile,
                                         .arithmetic = FMT_FP4,
                                         .link_gb_per_s = ideal ? 100 : 900,
                                         .collective_us = 1};
}

static void space(struct search *s, const struct fixture *f, int64_t context)
{
    static const int gpus[] = {4, 8, 12, 16};
    search_init(s, &f->machine, ALL, gpus, 4);
    s->context_tokens = context;
    s->max_batch = 80;
}

static void assert_same(const struct search_result *a, const struct search_result *b)
{
    for (int i = 0; i < SEARCH_SETS; i++) {
        cr_assert_eq(a->set[i].n, b->set[i].n, "set %d", i);
        for (size_t k = 0; k < a->set[i].n; k++) {
            const struct pareto_point *p = &a->set[i].point[k], *q = &b->set[i].point[k];
            cr_assert(p->number == q->number && p->batch == q->batch &&
                      p->mapping.hopb == q->mapping.hopb && p->tok_s_user == q->tok_s_user &&
                      p->tok_s_gpu == q->tok_s_gpu);
        }
    }
}

/* What the search may leave out, against a search that leaves nothing out. */
Test(search, what_is_skipped_is_on_no_frontier)
{
    static const char *const models[] = {"deepseek-r1", "llama-3.1-405b"};
    struct fixture f;
    struct search s;
    struct search_result pruned, whole;
    int64_t skipped = 0;
    for (int i = 0; i < 4; i++) {
        load(&f, models[i / 2], i % 2 == 0);
        space(&s, &f, 300000);
        search_run(&s, &alone, NULL, &pruned);
        s.all = true;
        search_run(&s, &alone, NULL, &whole);
        assert_same(&pruned, &whole);
        cr_assert_eq(whole.skipped, 0);
        cr_assert_eq(whole.configs, pruned.configs + pruned.skipped);
        skipped += pruned.skipped;
        search_result_release(&pruned);
        search_result_release(&whole);
        search_release(&s);
        profile_release(&f.profile);
    }
    cr_assert_gt(skipped, 1000);
}

Test(search, threads_change_nothing)
{
    struct fixture f;
    struct search s;
    struct search_result one, many;
    load(&f, "deepseek-r1", false);
    space(&s, &f, 1000000);
    search_run(&s, &alone, NULL, &one);
    for (int threads = 2; threads <= 5; threads++) {
        search_run(&s, &(struct searchers){{0, 1}, threads}, NULL, &many);
        assert_same(&one, &many);
        cr_assert_eq(one.configs, many.configs);
        cr_assert_eq(one.skipped, many.skipped);
        search_result_release(&many);
    }
    search_result_release(&one);
    search_release(&s);
    profile_release(&f.profile);
}

/* As machines would: every third chunk, from the last, and the parts merged in any order. */
Test(search, chunks_merge_in_any_order)
{
    struct fixture f;
    struct search s;
    struct search_result whole, part[3], merged = {0};
    memset(part, 0, sizeof part);
    load(&f, "llama-3.1-405b", true);
    space(&s, &f, 500000);
    search_run(&s, &two, NULL, &whole);
    for (size_t i = s.n; i-- > 0;)
        search_chunk(&s, i, &part[i % 3], NULL, NULL);
    for (int k = 2; k >= 0; k--) {
        search_result_merge(&merged, &part[k]);
        search_result_release(&part[k]);
    }
    assert_same(&whole, &merged);
    cr_assert_eq(whole.configs, merged.configs);
    search_result_release(&whole);
    search_result_release(&merged);
    search_release(&s);
    profile_release(&f.profile);
}

static void check_visit(void *arg, const struct pareto_point *p, const struct decode_step *t)
{
    uint64_t *last = arg;
    cr_assert(*last == UINT64_MAX || p->number > *last);
    cr_assert_float_eq(p->tok_s_user * t->ttl_s, 1, 1e-12);
    cr_assert_float_eq(p->tok_s_gpu * mapping_gpus(&p->mapping), (double)p->batch * p->tok_s_user,
                       1e-6);
    *last = p->number;
}

Test(search, every_configuration_is_shown_in_order)
{
    struct fixture f;
    struct search s;
    struct search_result r = {0};
    uint64_t last = UINT64_MAX;
    load(&f, "deepseek-r1", true);
    space(&s, &f, 1000000);
    for (size_t i = 0; i < s.n; i++)
        search_chunk(&s, i, &r, check_visit, &last);
    cr_assert_gt(r.configs, 1000);
    search_result_release(&r);
    search_release(&s);
    profile_release(&f.profile);
}

Test(search, batches_are_every_one_and_then_128_a_doubling)
{
    int64_t n = 0, b = 1;
    for (; b < 256; b = search_next_batch(b))
        n++;
    cr_assert_eq(n, 255);
    cr_assert_eq(b, 256);
    for (n = 0; b < 4096; b = search_next_batch(b))
        n++;
    cr_assert_eq(n, 4 * 128);
    cr_assert_eq(b, 4096);
}

/* Ten chunks by four: 0 4 8, 1 5 9, 2 6, 3 7. */
Test(search, processes_share_all_chunks)
{
    static const int64_t expected[] = {3, 3, 2, 2};
    struct search s = {.n = 10};
    for (int rank = 0; rank < 4; rank++)
        cr_assert_eq(search_share(&s, &(struct ranks){rank, 4}), expected[rank]);
    s.n = 2;
    cr_assert_eq(search_share(&s, &(struct ranks){3, 4}), 0);
}

/* Beyond what the paper shows: at its assumptions Helix's frontier is never under the baseline's,
 * and the gain is in what it says it is in. */
Test(search, helix_gains_by_both_choices_together)
{
    static const int gpus[] = {8, 16, 32, 64};
    struct fixture f;
    struct search s;
    struct pareto_study study;
    load(&f, "deepseek-r1", true);
    f.machine.link_gb_per_s = 900;
    search_init(&s, &f.machine, ALL, gpus, 4);
    s.context_tokens = 1000000;
    pareto_study_run(&study, &s, ALL, 1u << FAMILY_TP | 1u << FAMILY_PP | 1u << FAMILY_EP, &alone);
    cr_assert_geq(study.gain.fastest_ratio, 1.5);
    cr_assert_geq(study.gain.concurrency.ratio, 16);
    cr_assert_geq(study.gain.interactivity_median, 1);
    cr_assert_geq(study.step[GAIN_HOPB].fastest_ratio, study.step[GAIN_BOTH].fastest_ratio);
    cr_assert_gt(study.step[GAIN_BOTH].fastest_ratio, study.step[GAIN_KVP].fastest_ratio);
    cr_assert_gt(study.step[GAIN_BOTH].fastest_ratio, study.step[GAIN_FFN].fastest_ratio);
    pareto_study_release(&study);
    search_release(&s);
    profile_release(&f.profile);
}
