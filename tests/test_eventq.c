/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "sim/base/rng.h"
#include "sim/engine/eventq.h"

static bool comes_after(const struct event *a, const struct event *b)
{
    if (a->time_ps != b->time_ps)
        return a->time_ps > b->time_ps;
    if (a->kind != b->kind)
        return a->kind > b->kind;
    return a->sequence > b->sequence;
}

Test(eventq, ties_fall_by_kind_and_then_by_sequence)
{
    static const struct event pushed[] = {
        {5, EV_WAKE, 0, 0},    {5, EV_STEP_END, 1, 0}, {5, EV_ARRIVAL, 9, 0},
        {5, EV_ARRIVAL, 3, 0}, {4, EV_WAKE, 7, 0},     {5, EV_STEP_END, 0, 0},
    };
    static const int expected[] = {4, 3, 2, 5, 1, 0};
    struct eventq q = {0};
    for (int i = 0; i < 6; i++)
        eventq_push(&q, pushed[i]);
    for (int i = 0; i < 6; i++) {
        struct event e;
        cr_assert(eventq_pop(&q, &e));
        cr_expect_eq(e.kind, pushed[expected[i]].kind, "at %d", i);
        cr_expect_eq(e.sequence, pushed[expected[i]].sequence, "at %d", i);
    }
    struct event none;
    cr_assert_not(eventq_pop(&q, &none));
    eventq_release(&q);
}

Test(eventq, agrees_with_a_naive_array)
{
    enum { STEPS = 4000 };
    struct event array[STEPS];
    int n = 0;
    struct eventq q = {0};
    struct rng rng;
    rng_init(&rng, 7);
    for (int step = 0; step < STEPS; step++) {
        if (n == 0 || rng_range(&rng, 0, 2) > 0) {
            struct event e = {rng_range(&rng, 0, 20),
                              (enum event_kind)rng_range(&rng, 0, EV_COUNT - 1), step, 0};
            array[n++] = e;
            eventq_push(&q, e);
            continue;
        }
        int first = 0;
        for (int i = 1; i < n; i++)
            if (comes_after(&array[first], &array[i]))
                first = i;
        struct event got;
        cr_assert(eventq_pop(&q, &got));
        cr_assert_eq(got.sequence, array[first].sequence);
        array[first] = array[--n];
    }
    eventq_release(&q);
}
