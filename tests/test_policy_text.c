/* SPDX-License-Identifier: Apache-2.0
 *
 * One spelling for equal policies.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "sim/tune/policy_text.h"

static const struct {
    const char *text;
    int n;
    const char *added[2];
    const char *made;
} cases[] = {
    {"splash", 0, {0}, "splash"},
    {"splash", 2, {"margin=0.10", "dwell_ms=5"}, "splash:dwell_ms=5,margin=0.1"},
    {"splash:dwell-ms=50,margin=0.1", 0, {0}, "splash:dwell_ms=50,margin=0.1"},
    {"splash:margin=0.2,charge=1", 1, {"margin=0.3"}, "splash:charge=1,margin=0.3"},
    {"splash:margin.tp-dp=0.50", 1, {"margin=0"}, "splash:margin.tp-dp=0.5,margin=0"},
    {"splash:mechanism=blocking", 1, {"on-full=hold"}, "splash:mechanism=blocking,on_full=hold"},
    {"fixed:dop:cache=0.25", 0, {0}, "fixed:dop:cache=0.25"},
    {"fixed:helix:kvp=4,tpa=2", 0, {0}, "fixed:helix:kvp=4,tpa=2"},
    {"fixed:dp", 1, {"a=1"}, "fixed:dp,a=1"},
};

Test(policy_text, has_one_spelling)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *made = policy_text(cases[i].text, cases[i].added, cases[i].n);
        cr_expect_str_eq(made, cases[i].made);
        free(made);
    }
}
