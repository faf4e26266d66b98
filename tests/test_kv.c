/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include <criterion/criterion.h>

#include "sim/base/rng.h"
#include "sim/engine/kv.h"

enum { REQUESTS = 40, RANKS = 4, N_LAYOUTS = 3 };

struct held {
    bool on;
    int owner;
    int64_t tokens;
};

/* One pool for all, positions cut four ways, and owners. */
static void make(struct kv *kv)
{
    static const struct kv_pool pool[N_LAYOUTS] = {
        {.pages = 300, .page_tokens = 16, .pos_shards = 1},
        {.pages = 90, .page_tokens = 16, .pos_shards = 4},
        {.pages = 80, .page_tokens = 16, .pos_shards = 1, .extra_pages = 2, .owned = true},
    };
    *kv = (struct kv){.n_layouts = N_LAYOUTS, .ranks = RANKS};
    for (int l = 0; l < N_LAYOUTS; l++)
        kv->pool[l] = pool[l];
}

/* Pages by counting tokens one by one. */
static int64_t pages_slowly(const struct kv_pool *p, int64_t tokens)
{
    int64_t on_rank = 0, pages = p->extra_pages;
    for (int64_t t = 0; t < tokens; t += p->pos_shards)
        pages += on_rank++ % p->page_tokens == 0;
    return pages;
}

static int64_t used_slowly(const struct kv *kv, int layout, int owner, const struct held *h)
{
    int64_t used = 0;
    for (int i = 0; i < REQUESTS; i++)
        if (h[i].on && (!kv->pool[layout].owned || h[i].owner == owner))
            used += pages_slowly(&kv->pool[layout], h[i].tokens);
    return used;
}

static void random_step(struct kv *kv, struct held *h, struct rng *rng)
{
    struct held *r = &h[rng_range(rng, 0, REQUESTS - 1)];
    if (!r->on) {
        *r = (struct held){true, (int)rng_range(rng, 0, RANKS - 1), rng_range(rng, 1, 400)};
        kv_add(kv, r->owner, r->tokens);
    } else if (rng_range(rng, 0, 1)) {
        kv_remove(kv, r->owner, r->tokens);
        r->on = false;
    } else {
        int64_t grown = r->tokens + rng_range(rng, 1, 100);
        kv_grow(kv, r->owner, r->tokens, grown);
        r->tokens = grown;
    }
}

Test(kv, counts_what_a_naive_count_counts)
{
    struct kv kv;
    struct held h[REQUESTS] = {0};
    struct rng rng;
    make(&kv);
    rng_init(&rng, 4);
    for (int step = 0; step < 3000; step++) {
        random_step(&kv, h, &rng);
        for (int l = 0; l < N_LAYOUTS; l++) {
            int64_t most = 0;
            for (int r = 0; r < RANKS; r++) {
                int64_t used = used_slowly(&kv, l, r, h);
                cr_assert_eq(kv_used(&kv, l, r), used, "layout %d rank %d step %d", l, r, step);
                most = used > most ? used : most;
            }
            cr_assert_eq(kv_busiest(&kv, l), most);
            cr_assert_eq(kv_fits(&kv, l), most <= kv.pool[l].pages);
        }
    }
}

Test(kv, growing_for_the_safe_steps_changes_no_verdict)
{
    struct rng rng;
    rng_init(&rng, 9);
    for (int round = 0; round < 500; round++) {
        struct kv kv;
        struct held h[REQUESTS] = {0};
        int n_of_owner[RANKS] = {0}, n = (int)rng_range(&rng, 1, 30);
        bool fits[N_LAYOUTS];
        make(&kv);
        for (int i = 0; i < n; i++) {
            h[i] = (struct held){true, (int)rng_range(&rng, 0, RANKS - 1), rng_range(&rng, 1, 200)};
            kv_add(&kv, h[i].owner, h[i].tokens);
            n_of_owner[h[i].owner]++;
        }
        for (int l = 0; l < N_LAYOUTS; l++)
            fits[l] = kv_fits(&kv, l);
        int64_t safe = kv_safe_steps(&kv, n_of_owner, n);
        if (safe == SEG_FOREVER)
            continue;
        for (int i = 0; i < n; i++)
            kv_grow(&kv, h[i].owner, h[i].tokens, h[i].tokens + safe);
        for (int l = 0; l < N_LAYOUTS; l++)
            cr_assert_eq(kv_fits(&kv, l), fits[l], "layout %d round %d", l, round);
    }
}

/* 80 pages of 16 tokens, two of them state: 78 x 16 = 1248 tokens fit an owner, one more does not.
 */
Test(kv, room_ends_at_the_last_token_of_the_last_page)
{
    struct kv kv;
    make(&kv);
    cr_expect(kv_has_room(&kv, 2, 1, 1248));
    cr_expect_not(kv_has_room(&kv, 2, 1, 1249));
    cr_expect(kv_could_hold(&kv, 1, 90 * 16 * 4));
    cr_expect_not(kv_could_hold(&kv, 1, 90 * 16 * 4 + 1));
    kv_add(&kv, 1, 1248);
    cr_expect_not(kv_has_room(&kv, 2, 1, 1));
    cr_expect(kv_has_room(&kv, 2, 0, 1248));
}
