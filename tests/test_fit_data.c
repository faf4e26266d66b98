/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "sim/study/fit.h"

/* A file of these lines is refused with this message. */
static void expect_refused(const char *text, const char *message)
{
    char path[] = "/tmp/test_fit_XXXXXX";
    struct model m;
    struct cluster c;
    struct fit_data d;
    struct err err = ERR_NONE;
    FILE *out = fdopen(mkstemp(path), "w");
    fputs(text, out);
    fclose(out);
    cr_assert_eq(model_load(&m, "tiny-mla", &err), 0);
    cr_assert_eq(cluster_load(&c, "h200x2", &err), 0);
    fit_data_init(&d, &m, &c);
    cr_expect_eq(fit_data_load(&d, path, &err), -1, "%s", text);
    cr_expect(strstr(err.text, message) != NULL, "%s", err.text);
    fit_data_release(&d);
    unlink(path);
}

#define HEADER(model, ranks, layers)                                                               \
    "{\"plan\":1,\"model\":\"" model "\",\"cluster\":\"h200x2\",\"ranks\":" ranks                  \
    ",\"layers\":" layers ",\"seed\":0}\n"
#define TIMES                                                                                      \
    "{\"step_ns\":9,\"proj_ns\":1,\"attn_ns\":1,\"exchange_ns\":1,\"ffn_ns\":1,"                   \
    "\"switch_exposed_ns\":0}"
#define STEP(layout, ctx, q)                                                                       \
    "{\"step\":0,\"at_ns\":0,\"layout\":\"" layout                                                 \
    "\",\"rows\":[{\"req\":0,\"owner\":0,\"ctx\":" ctx ",\"q\":" q "}],\"pred\":" TIMES
#define MEASURED ",\"meas\":{\"p50\":" TIMES ",\"p95\":" TIMES "},\"check\":0}\n"

Test(fit_data, refuses_what_it_cannot_be_fitted_to)
{
    expect_refused(HEADER("tiny-gqa", "2", "4") STEP("tp", "9", "1") MEASURED,
                   "measured with model \"tiny-gqa\", not \"tiny-mla\"");
    expect_refused(HEADER("tiny-mla", "4", "4") STEP("tp", "9", "1") MEASURED,
                   "measured on 4 ranks, h200x2 has 2");
    expect_refused(HEADER("tiny-mla", "2", "2") STEP("tp", "9", "1") MEASURED,
                   "measured with 2 layers, tiny-mla has 4");
    expect_refused(HEADER("tiny-mla", "2", "4") STEP("tp", "9", "1") "}\n", "no step is measured");
    expect_refused(HEADER("tiny-mla", "2", "4") STEP("helix:kvp=4,tpa=1", "9", "1") MEASURED,
                   "helix");
    expect_refused(HEADER("tiny-mla", "2", "4") STEP("tp", "99999999", "1") MEASURED,
                   "step 0: more than 1048576 query rows, or a context above 16777216");
    expect_refused(HEADER("tiny-mla", "2", "4") STEP("tp", "1099511627776", "1099511627776")
                       MEASURED,
                   "step 0: more than");
}
