/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "sim/base/units.h"
#include "sim/engine/kv_link.h"

static void expect_sent(struct kv_link *l, int64_t from, int64_t to, double bytes, int64_t now_ps,
                        int64_t start_ps, int64_t end_ps)
{
    struct kv_transfer t = kv_link_send(l, from, to, bytes, now_ps);
    cr_expect_eq(t.start_ps, start_ps, "from %d to %d: starts at %lld", (int)from, (int)to,
                 (long long)t.start_ps);
    cr_expect_eq(t.end_ps, end_ps, "from %d to %d: ends at %lld", (int)from, (int)to,
                 (long long)t.end_ps);
}

/* 2 GB/s: 500 ps a byte. A transfer waits for both its ports, not for the latency. */
Test(kv_link, a_transfer_has_both_ports_to_itself)
{
    struct kv_link l;
    kv_link_init(&l, 2, 70, 4);
    expect_sent(&l, 2, 0, 10, 100, 100, 5170);  /* ports 2 and 0 until 5100 */
    expect_sent(&l, 3, 1, 4, 100, 100, 2170);   /* other ports: beside it; until 2100 */
    expect_sent(&l, 3, 0, 2, 200, 5100, 6170);  /* 0 receives; then 3 and 0 until 6100 */
    expect_sent(&l, 2, 1, 2, 200, 5100, 6170);  /* 2 sends until 5100 */
    expect_sent(&l, 2, 1, 1, 9000, 9000, 9570); /* all are free again */
    cr_expect_eq(kv_link_busiest_ps(&l), 10 * 500 + 2 * 500 + 500);
    kv_link_release(&l);
}

Test(kv_link, a_part_of_a_picosecond_counts_as_one)
{
    struct kv_link l;
    kv_link_init(&l, 3, 0, 2);
    expect_sent(&l, 1, 0, 1, 0, 0, 334);
    kv_link_release(&l);
    kv_link_init(&l, 1e6, 0, 2);
    expect_sent(&l, 1, 0, 1, 0, 0, 1);
    kv_link_release(&l);
}

/* A 400 Gbit/s card moves DeepSeek-V3.2's 48,068 bytes a token: 128K tokens in 126 ms. */
Test(kv_link, a_long_prompt_takes_its_bytes_time)
{
    struct kv_link l;
    kv_link_init(&l, 50, 10 * PS_PER_US, 2);
    expect_sent(&l, 1, 0, 48068.0 * 131072, 0, 0, 126007377920 + 10 * PS_PER_US);
    kv_link_release(&l);
}
