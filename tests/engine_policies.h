/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts of policies for random worlds.
 */
#ifndef TESTS_ENGINE_POLICIES_H
#define TESTS_ENGINE_POLICIES_H

/* The last N_UNFORKED hold what a fork cannot take along. */
static const char *const any_policy[] = {
    "fixed:tp",
    "fixed:cp",
    "fixed:dp",
    "fixed:dop",
    "greedy",
    "splash",
    "splash:margin=0",
    "splash:margin=0.1,return_margin=0.1",
    "splash:margin=0.02,dwell_ms=2",
    "splash:margin=0.01,persist=3",
    "splash:margin=0.02,charge=1",
    "splash:margin=0.05,margin.dp-tp=0.2,margin.tp-dop=0",
    "splash:margin=0,mechanism=blocking",
    "splash:margin=0,mechanism=drain",
    "splash:margin=0,mechanism=restart",
    "splash:margin=0,mechanism=free",
    "splash:margin=0,on_full=hold",
    "greedy:on_full=hold,mechanism=blocking",
    "flying:margin=0.01",
    "shift:threshold=32",
    "loong:margin=0",
    "drain-restart:margin=0,dwell_ms=1",
    "docs/policies/splash.lua:margin=0.02,persist=2",
    "tests/policies/moody.lua",
    "tests/policies/moody.lua:mechanism=drain,seed=7",
    "tests/policies/moody.lua:on_full=hold,seed=8",
    "tests/policies/patient.lua",
    "oracle:horizon_s=0.01,every_ms=3",
    "oracle:horizon_s=0,every_ms=0,depth=2,beam=1,base_margin=1,budget=100,mechanism=drain",
};
enum { N_POLICIES = sizeof any_policy / sizeof *any_policy, N_UNFORKED = 7 };

#endif
