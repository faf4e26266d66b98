/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "sim/engine/queue.h"

Test(queue, keeps_order_while_it_wraps_and_grows)
{
    struct queue q = {0};
    uint32_t next_in = 0, next_out = 0;
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < 3; i++)
            queue_push_back(&q, next_in++);
        for (int i = 0; i < 2; i++)
            cr_assert_eq(queue_pop_front(&q), next_out++);
    }
    while (q.n > 0)
        cr_assert_eq(queue_pop_front(&q), next_out++);
    cr_assert_eq(next_out, next_in);
    queue_release(&q);
}

Test(queue, serves_what_was_given_back_first)
{
    struct queue q = {0};
    queue_push_back(&q, 1);
    queue_push_back(&q, 2);
    queue_push_front(&q, 9);
    cr_expect_eq(queue_pop_front(&q), 9);
    cr_expect_eq(queue_pop_front(&q), 1);
    cr_expect_eq(queue_pop_front(&q), 2);
    cr_expect_eq(q.n, 0);
    queue_release(&q);
}

Test(queue, gives_up_what_is_taken_out_of_its_middle)
{
    struct queue q = {0};
    for (uint32_t i = 0; i < 60; i++)
        queue_push_back(&q, i);
    for (uint32_t i = 0; i < 50; i++)
        queue_pop_front(&q);
    for (uint32_t i = 60; i < 80; i++) /* it wraps */
        queue_push_back(&q, i);
    cr_expect(queue_remove(&q, 50));
    cr_expect(queue_remove(&q, 70));
    cr_expect(queue_remove(&q, 79));
    cr_expect_not(queue_remove(&q, 70));
    cr_expect_not(queue_remove(&q, 3));
    cr_expect_eq(q.n, 27);
    for (uint32_t i = 51; i < 79; i++)
        if (i != 70)
            cr_expect_eq(queue_pop_front(&q), i);
    cr_expect_eq(q.n, 0);
    queue_release(&q);
}
