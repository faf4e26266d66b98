/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores as a whole: what one holds, and in what two differ.
 */
#include <criterion/criterion.h>

#include "sim/tune/ledger.h"
#include "tests/run_stores.h"

Test(ledger, counts_by_machine_and_trace)
{
    struct err err = ERR_NONE;
    struct ledger l;
    struct run_store *s = fresh(path_a);
    add(s, "a", "q", 2, 1);
    add(s, "b", "p", 5, 1);
    add(s, "c", "q", 1, 1);
    cr_assert_eq(ledger_read(&l, s, &err), 0);
    cr_assert_eq(l.n, 2);
    cr_expect_str_eq(l.entry[0].profile, "p");
    cr_expect_eq(l.entry[1].runs, 2);
    cr_expect(l.entry[1].first_seed == 1 && l.entry[1].last_seed == 2);
    cr_expect_eq(l.entry[1].wall_ns, 2000);
    ledger_release(&l);
    drop(s, path_a);
}

Test(ledger, compares_runs_of_one_name)
{
    struct err err = ERR_NONE;
    struct ledger_change c;
    struct run_store *a = fresh(path_a), *b = fresh(path_b);
    int e2e = metric_find("e2e_s_mean");
    add(a, "1", "p", 1, 2);
    add(a, "2", "p", 2, 4);
    add(a, "3", "p", 3, 1);
    add(b, "4", "q", 1, 3);
    add(b, "5", "q", 2, 4);
    add(b, "6", "q", 7, 1);
    cr_assert_eq(ledger_compare(&c, a, b, &err), 0);
    cr_expect(c.both == 2 && c.equal == 1 && c.only_a == 1 && c.only_b == 1);
    cr_expect_eq(c.metric[e2e].changed, 1);
    cr_expect_float_eq(c.metric[e2e].mean_frac, 0.25, 1e-12);
    cr_expect_float_eq(c.metric[e2e].most_frac, 0.5, 1e-12);
    cr_expect_eq(c.metric[metric_find("requests")].changed, 0);
    drop(a, path_a);
    drop(b, path_b);
}
