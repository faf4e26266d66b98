/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "sim/base/rng.h"
#include "sim/engine/prefix.h"

/* Two owners; a block is a page of 16 tokens. */
enum { TP, DP, PAGE = 16 };

static void make_kv(struct kv *kv, int ranks, int64_t tp_pages, int64_t dp_pages)
{
    *kv = (struct kv){.n_layouts = 2, .ranks = ranks};
    kv->pool[TP] = (struct kv_pool){.pages = tp_pages, .page_tokens = PAGE, .pos_shards = 1};
    kv->pool[DP] =
        (struct kv_pool){.pages = dp_pages, .page_tokens = PAGE, .pos_shards = 1, .owned = true};
}

/* "ab": a prompt of blocks a and b. */
static void start(struct prefix *p, int owner, const char *prompt)
{
    kv_add(p->kv, owner, (int64_t)strlen(prompt) * PAGE);
    for (const char *c = prompt; *c != '\0'; c++)
        prefix_take(p, owner, (uint64_t)*c);
}

static void stop(struct prefix *p, int owner, const char *prompt)
{
    for (size_t i = strlen(prompt); i-- > 0;)
        prefix_drop(p, owner, (uint64_t)prompt[i]);
}

static void expect_at(const struct prefix *p, int place, const char *blocks)
{
    for (char c = 'a'; c <= 'z'; c++)
        cr_expect_eq(prefix_has(p, place, (uint64_t)c), strchr(blocks, c) != NULL,
                     "block %c at place %d", c, place);
}

static void expect_tokens(const struct prefix *p, int to, int64_t first, int64_t second)
{
    int64_t tokens[RANKS_MAX] = {0};
    prefix_add_tokens(p, to, tokens);
    cr_expect_eq(tokens[0], first);
    cr_expect_eq(tokens[1], second);
}

Test(prefix, two_owners_go_from_dp_to_tp_and_back)
{
    struct kv kv;
    struct prefix p;
    make_kv(&kv, 2, 4, 2);
    prefix_init(&p, &kv, PAGE);

    /* dp: both compute a, each for itself; under tp it would be there once. */
    start(&p, 0, "ab");
    start(&p, 1, "ac");
    cr_expect_eq(kv_used(&kv, DP, 0), 2);
    cr_expect_eq(kv_used(&kv, DP, 1), 2);
    cr_expect_eq(kv_used(&kv, TP, 0), 3);
    stop(&p, 0, "ab");
    stop(&p, 1, "ac");
    prefix_trim(&p, DP);
    expect_at(&p, 0, "ab");
    expect_at(&p, 1, "ac");
    expect_tokens(&p, TP, 2 * PAGE, PAGE); /* a, b | c */

    /* tp: the copies are one. Owner 0 finds c too, and has no room for b. */
    prefix_trim(&p, TP);
    expect_at(&p, KV_COMMON, "abc");
    start(&p, 0, "acd");
    kv_add(&kv, 0, PAGE);
    cr_expect_eq(kv_used(&kv, TP, 0), 4);
    prefix_trim(&p, TP);
    expect_at(&p, KV_COMMON, "acd");
    expect_at(&p, 0, "acd");
    expect_at(&p, 1, "ac");
    kv_remove(&kv, 0, PAGE);
    stop(&p, 0, "acd");

    /* dp again: each has its own back, as far as two pages go; only owner 0 had d. */
    expect_tokens(&p, DP, 2 * PAGE, 2 * PAGE);
    prefix_trim(&p, DP);
    expect_at(&p, 0, "ac");
    expect_at(&p, 1, "ac");
    expect_at(&p, KV_COMMON, "ac");

    /* One page less at owner 1 takes its c, not that of owner 0. */
    kv_add(&kv, 1, PAGE);
    prefix_trim(&p, DP);
    expect_at(&p, 0, "ac");
    expect_at(&p, 1, "a");
    expect_at(&p, KV_COMMON, "ac");
    cr_expect_eq(p.evicted, 3); /* b, d, c of owner 1 */
    kv_remove(&kv, 1, PAGE);
    prefix_release(&p);
}

Test(prefix, what_is_in_use_stays_and_takes_its_pages_once)
{
    struct kv kv;
    struct prefix p;
    make_kv(&kv, 2, 4, 4);
    prefix_init(&p, &kv, PAGE);
    start(&p, 0, "ab");
    start(&p, 0, "abc");
    cr_expect_eq(kv_used(&kv, TP, 0), 3);
    cr_expect_eq(kv_used(&kv, DP, 0), 3);
    cr_expect_eq(kv_used(&kv, DP, 1), 0);
    stop(&p, 0, "abc");
    cr_expect_eq(kv_used(&kv, DP, 0), 2);
    cr_expect(prefix_is_used(&p, 0, 'b'));
    cr_expect_not(prefix_is_used(&p, 0, 'c'));
    cr_expect_not(prefix_is_used(&p, 1, 'a'));
    kv_add(&kv, 1, 3 * PAGE); /* five pages of four: c goes, and no more */
    prefix_trim(&p, TP);
    expect_at(&p, KV_COMMON, "ab");
    kv_remove(&kv, 1, 3 * PAGE);
    stop(&p, 0, "ab");
    cr_expect_eq(kv_used(&kv, TP, 0), 0);
    prefix_clear(&p);
    expect_at(&p, KV_COMMON, "");
    expect_at(&p, 0, "");
    prefix_release(&p);
}

/* The same by arrays: prompts are paths down a tree, three ways at each of three blocks. */
enum { RANKS = 3, DEPTH = 3, WAYS = 3, BLOCKS = 64, RUNNING = 8 };

struct slow {
    int users[KV_PLACES][BLOCKS];
    int64_t let_go[KV_PLACES][BLOCKS]; /* when; -1: not there */
    int64_t clock;
};

struct runner {
    bool on;
    int owner, depth;
    uint64_t path[DEPTH];
};

static void slow_evict(struct slow *s, int place, int block)
{
    bool copies = false;
    s->let_go[place][block] = -1;
    for (int r = 0; r < RANKS; r++) {
        if (place == KV_COMMON)
            s->let_go[r][block] = -1;
        copies = copies || s->let_go[r][block] >= 0;
    }
    if (!copies)
        s->let_go[KV_COMMON][block] = -1;
}

static int slow_oldest(const struct slow *s, int place)
{
    int oldest = -1;
    for (int b = 0; b < BLOCKS; b++)
        if (s->let_go[place][b] >= 0 && s->users[place][b] == 0 &&
            (oldest < 0 || s->let_go[place][b] < s->let_go[place][oldest]))
            oldest = b;
    return oldest;
}

static int slow_used(const struct slow *s, int place)
{
    int n = 0;
    for (int b = 0; b < BLOCKS; b++)
        n += s->users[place][b] > 0;
    return n;
}

static int slow_held(const struct slow *s, int place)
{
    int n = 0;
    for (int b = 0; b < BLOCKS; b++)
        n += s->let_go[place][b] >= 0;
    return n;
}

static void slow_trim(struct slow *s, const struct kv *kv, int layout)
{
    for (int r = 0; r < (layout == DP ? RANKS : 1); r++) {
        int place = layout == DP ? r : KV_COMMON, oldest;
        while (slow_held(s, place) > kv->pool[layout].pages &&
               (oldest = slow_oldest(s, place)) >= 0)
            slow_evict(s, place, oldest);
    }
}

static void slow_use(struct slow *s, const struct runner *r, int by)
{
    for (int i = by > 0 ? 0 : r->depth - 1; i >= 0 && i < r->depth; i += by) {
        s->users[r->owner][r->path[i]] += by;
        s->users[KV_COMMON][r->path[i]] += by;
        s->let_go[r->owner][r->path[i]] = s->clock;
        s->let_go[KV_COMMON][r->path[i]] = s->clock++;
    }
}

static void random_step(struct prefix *p, struct slow *s, struct runner *r, struct rng *rng)
{
    if (!r->on) {
        uint64_t at = 0;
        r->owner = (int)rng_range(rng, 0, RANKS - 1);
        r->depth = (int)rng_range(rng, 1, DEPTH);
        for (int i = 0; i < r->depth; i++)
            r->path[i] = at = WAYS * at + (uint64_t)rng_range(rng, 1, WAYS);
        kv_add(p->kv, r->owner, r->depth * PAGE);
        for (int i = 0; i < r->depth; i++)
            prefix_take(p, r->owner, r->path[i]);
    } else {
        for (int i = r->depth - 1; i >= 0; i--)
            prefix_drop(p, r->owner, r->path[i]);
    }
    slow_use(s, r, r->on ? -1 : 1);
    r->on = !r->on;
}

static void expect_same(const struct prefix *p, const struct slow *s, int step)
{
    static const int place[] = {0, 1, 2, KV_COMMON};
    for (size_t i = 0; i < sizeof place / sizeof *place; i++) {
        for (int b = 0; b < BLOCKS; b++) {
            cr_assert_eq(prefix_has(p, place[i], (uint64_t)b), s->let_go[place[i]][b] >= 0,
                         "step %d, block %d at %d", step, b, place[i]);
            cr_assert_eq(prefix_is_used(p, place[i], (uint64_t)b), s->users[place[i]][b] > 0);
        }
        int layout = place[i] == KV_COMMON ? TP : DP;
        cr_assert_eq(kv_used(p->kv, layout, place[i]), slow_used(s, place[i]));
    }
}

static void expect_same_tokens(const struct prefix *p, const struct slow *s)
{
    int64_t tokens[RANKS_MAX] = {0}, all = 0;
    struct slow after = *s;
    prefix_add_tokens(p, DP, tokens);
    slow_trim(&after, p->kv, DP);
    for (int r = 0; r < RANKS; r++)
        cr_assert_eq(tokens[r], slow_held(&after, r) * PAGE);
    after = *s;
    memset(tokens, 0, sizeof tokens);
    prefix_add_tokens(p, TP, tokens);
    slow_trim(&after, p->kv, TP);
    for (int r = 0; r < RANKS; r++) {
        cr_assert_geq(tokens[r], 0);
        all += tokens[r];
    }
    cr_assert_eq(all, slow_held(&after, KV_COMMON) * PAGE);
}

Test(prefix, does_what_arrays_do)
{
    struct rng rng;
    struct kv kv;
    struct prefix p;
    static struct slow slow;
    struct runner runner[RUNNING] = {0};
    rng_init(&rng, 11);
    make_kv(&kv, RANKS, 12, 6);
    prefix_init(&p, &kv, PAGE);
    memset(slow.let_go, 0xff, sizeof slow.let_go);
    for (int step = 0; step < 4000; step++) {
        int layout = (int)rng_range(&rng, TP, DP);
        random_step(&p, &slow, &runner[rng_range(&rng, 0, RUNNING - 1)], &rng);
        expect_same_tokens(&p, &slow);
        if (rng_range(&rng, 0, 1)) {
            prefix_trim(&p, layout);
            slow_trim(&slow, &kv, layout);
        }
        expect_same(&p, &slow, step);
    }
    cr_expect_gt(p.evicted, 100);
    prefix_release(&p);
}

Test(prefix, keeps_a_great_many)
{
    enum { MANY = 100000 };
    struct kv kv;
    struct prefix p;
    make_kv(&kv, 1, MANY / 2, MANY);
    prefix_init(&p, &kv, PAGE);
    for (uint64_t b = 0; b < MANY; b++) {
        kv_add(&kv, 0, PAGE);
        prefix_take(&p, 0, b << 32);
        prefix_drop(&p, 0, b << 32);
    }
    prefix_trim(&p, TP);
    cr_expect_eq(p.n_blocks, MANY / 2);
    cr_expect_eq(p.evicted, MANY / 2);
    for (uint64_t b = 0; b < MANY; b++)
        cr_assert_eq(prefix_has(&p, KV_COMMON, b << 32), b >= MANY / 2);
    prefix_clear(&p);
    cr_expect_eq(p.n_blocks, 0);
    prefix_release(&p);
}
