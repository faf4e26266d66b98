/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "sim/engine/router.h"

enum { REPLICAS = 3 };

static const uint64_t hashes[] = {1, 2, 3, 1, 2, 4, 1, 5, 9, 2, 3};

/* Prompts 1 2 3, 1 2 4, 1 5, 9 and 2 3: the last shares no prefix with the first. */
static const struct engine_request requests[] = {
    {.n_hashes = 3, .hash_at = 0}, {.n_hashes = 3, .hash_at = 3}, {.n_hashes = 2, .hash_at = 6},
    {.n_hashes = 1, .hash_at = 8}, {.n_hashes = 2, .hash_at = 9},
};

static const struct engine_request turns[] = {{.session = 1}, {.session = 2}, {.session = 1},
                                              {.session = 2}, {.session = 0}, {.session = 0}};

/* The same, of sessions: by hashes they go, where there are any. */
static void init(struct router *r, int rule, double factor, const struct engine_request *request,
                 int64_t n)
{
    struct engine_config config = {.affinity_factor = factor};
    struct engine_input in = {
        .request = request, .n_requests = n, .hash = hashes, .config = &config};
    router_init(r, &in, rule, REPLICAS);
}

static void expect_chosen(struct router *r, uint32_t req, int64_t a, int64_t b, int64_t c,
                          int64_t expected)
{
    int64_t load[REPLICAS] = {a, b, c};
    int64_t chosen = router_choose(r, req, load);
    cr_expect_eq(chosen, expected, "request %u went to %d", req, (int)chosen);
}

Test(router, round_robin_goes_by_the_request_not_by_load)
{
    struct router r;
    init(&r, ROUTE_ROUND_ROBIN, 2, requests, 5);
    expect_chosen(&r, 4, 0, 9, 0, 1);
    expect_chosen(&r, 2, 0, 0, 9, 2);
    cr_expect_eq(router_choose(&r, 3, NULL), 0);
    router_release(&r);
}

Test(router, least_loaded_takes_the_first_of_the_least)
{
    struct router r;
    init(&r, ROUTE_LEAST_LOADED, 2, requests, 5);
    expect_chosen(&r, 0, 5, 5, 5, 0);
    expect_chosen(&r, 0, 5, 4, 4, 1);
    expect_chosen(&r, 0, 5, 4, 3, 2);
    router_release(&r);
}

Test(router, a_prefix_goes_where_its_longest_part_went_last)
{
    struct router r;
    init(&r, ROUTE_PREFIX_AFFINITY, 2, requests, 5);
    expect_chosen(&r, 0, 9, 9, 8, 2);  /* 1 2 3: unknown, the least loaded */
    expect_chosen(&r, 1, 6, 9, 12, 2); /* 1 2: at 2, with just twice the least load */
    expect_chosen(&r, 2, 5, 9, 12, 0); /* 1: at 2, over twice the least load; now it is at 0 */
    expect_chosen(&r, 2, 9, 5, 9, 0);  /* 1 5 */
    expect_chosen(&r, 0, 9, 5, 9, 2);  /* 1 was sent to 0, but 1 2 3 to 2 */
    expect_chosen(&r, 3, 9, 5, 9, 1);  /* 9 */
    expect_chosen(&r, 4, 9, 5, 9, 1);  /* 2 3 begins elsewhere than 1 2 3 does */
    router_release(&r);
}

Test(router, without_hashes_a_session_keeps_its_replica)
{
    struct router r;
    init(&r, ROUTE_PREFIX_AFFINITY, 1.5, turns, 6);
    expect_chosen(&r, 0, 4, 3, 4, 1);
    expect_chosen(&r, 1, 3, 4, 4, 0);
    expect_chosen(&r, 2, 2, 3, 2, 1);
    expect_chosen(&r, 3, 5, 4, 3, 2); /* 5 > 1.5 x 3: it moves for good */
    expect_chosen(&r, 3, 4, 3, 4, 2);
    expect_chosen(&r, 4, 4, 3, 4, 1); /* no session: the least loaded, each time */
    expect_chosen(&r, 5, 3, 4, 4, 0);
    router_release(&r);
}

/* More prefixes than the table begins with. */
Test(router, many_prefixes_are_all_remembered)
{
    enum { MANY = 5000 };
    static uint64_t hash[MANY];
    static struct engine_request request[MANY];
    struct router r;
    struct engine_config config = {.affinity_factor = 100};
    struct engine_input in = {
        .request = request, .n_requests = MANY, .hash = hash, .config = &config};
    for (uint32_t i = 0; i < MANY; i++) {
        hash[i] = i;
        request[i] = (struct engine_request){.n_hashes = 1, .hash_at = i};
    }
    router_init(&r, &in, ROUTE_PREFIX_AFFINITY, REPLICAS);
    for (uint32_t i = 0; i < MANY; i++)
        expect_chosen(&r, i, 9 - (i % 3 == 0), 9 - (i % 3 == 1), 9 - (i % 3 == 2), i % 3);
    for (uint32_t i = 0; i < MANY; i++)
        expect_chosen(&r, i, 5, 5, 5, i % 3);
    router_release(&r);
}
