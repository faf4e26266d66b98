/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/study/bisection.h"

#include <assert.h>
#include <stdlib.h>

#include "sim/base/mem.h"

const char *const bisection_end_names[] = {
    [BISECTION_FOUND] = "found",
    [BISECTION_ALWAYS] = "always",
    [BISECTION_NEVER] = "never",
};

/* The trial at `at`, which is there already or made now; -1 on error. */
static int64_t try_at(const struct bisection *s, struct bisection_result *r, int64_t at,
                      struct err *err)
{
    struct bisection_trial t = {.at = at, .low = s->low, .high = s->high};
    for (size_t i = 0; i < r->n; i++)
        if (r->trial[i].at == at)
            return (int64_t)i;
    if (s->try(s->context, &t, err) < 0)
        return -1;
    r->trial = xgrow(r->trial, &r->cap, r->n + 1, sizeof *r->trial);
    r->trial[r->n] = t;
    return (int64_t)r->n++;
}

static void set_bracket(struct bisection_trial *t, int64_t holds, int64_t fails)
{
    t->low = holds < fails ? holds : fails;
    t->high = holds < fails ? fails : holds;
}

/* Of two ends of which the first holds and the second does not. */
static int bisect(const struct bisection *s, struct bisection_result *r, int64_t holds,
                  int64_t fails, struct err *err)
{
    while (llabs(holds - fails) > 1) {
        int64_t i = try_at(s, r, holds + (fails - holds) / 2, err);
        if (i < 0)
            return -1;
        struct bisection_trial *t = &r->trial[i];
        *(t->holds ? &holds : &fails) = t->at;
        r->answer = t->holds ? (size_t)i : r->answer;
        set_bracket(t, holds, fails);
    }
    return 0;
}

static int find_edge(const struct bisection *s, struct bisection_result *r, struct err *err)
{
    int64_t sooner = s->rising ? s->high : s->low, later = s->rising ? s->low : s->high;
    int64_t first = try_at(s, r, sooner, err);
    int64_t last = first < 0 ? -1 : try_at(s, r, later, err);
    if (last < 0)
        return -1;
    r->end = !r->trial[first].holds ? BISECTION_NEVER
             : r->trial[last].holds ? BISECTION_ALWAYS
                                    : BISECTION_FOUND;
    r->answer = (size_t)(r->end == BISECTION_ALWAYS ? last : first);
    return r->end == BISECTION_FOUND ? bisect(s, r, sooner, later, err) : 0;
}

/* Without an edge to look at, all over the range. */
static int try_spread(const struct bisection *s, struct bisection_result *r, struct err *err)
{
    for (int i = 1; i <= s->extra; i++)
        if (try_at(s, r, s->low + (s->high - s->low) * i / (s->extra + 1), err) < 0)
            return -1;
    return 0;
}

/* What is new next to the edge, on both sides in turn. */
static int try_near(const struct bisection *s, struct bisection_result *r, struct err *err)
{
    int64_t edge = r->trial[r->answer].at, reach = s->high - s->low;
    size_t enough = r->n + (size_t)s->extra;
    for (int64_t i = 2; i <= 2 * reach + 1 && r->n < enough; i++) {
        int64_t at = i % 2 == 0 ? edge + i / 2 : edge - i / 2;
        if (at >= s->low && at <= s->high && try_at(s, r, at, err) < 0)
            return -1;
    }
    return 0;
}

static int try_more(const struct bisection *s, struct bisection_result *r, struct err *err)
{
    size_t known = r->n;
    if ((r->end == BISECTION_FOUND ? try_near : try_spread)(s, r, err) < 0)
        return -1;
    for (size_t i = known; i < r->n; i++)
        set_bracket(&r->trial[i], r->trial[known - 1].low, r->trial[known - 1].high);
    return 0;
}

static bool should_hold_sooner(const struct bisection *s, const struct bisection_trial *a,
                               const struct bisection_trial *b)
{
    return s->rising ? a->at > b->at : a->at < b->at;
}

static void find_breach(const struct bisection *s, struct bisection_result *r)
{
    for (size_t i = 0; i < r->n; i++) {
        for (size_t k = 0; k < r->n; k++) {
            const struct bisection_trial *a = &r->trial[i], *b = &r->trial[k];
            if (a->holds && !b->holds && should_hold_sooner(s, b, a)) {
                r->breach = i;
                r->broken = k;
                return;
            }
        }
    }
}

int bisection_run(const struct bisection *s, struct bisection_result *r, struct err *err)
{
    assert(s->low <= s->high);
    *r = (struct bisection_result){0};
    if (find_edge(s, r, err) < 0 || try_more(s, r, err) < 0)
        return -1;
    find_breach(s, r);
    return 0;
}

bool bisection_is_monotone(const struct bisection_result *r)
{
    return r->breach == r->broken;
}

void bisection_result_release(struct bisection_result *r)
{
    free(r->trial);
    *r = (struct bisection_result){0};
}
