/* SPDX-License-Identifier: Apache-2.0
 *
 * What traces say of themselves: prefix hits, info, findings and warnings.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "traces/trace.h"

#define PLAIN "arrived_at_s,input_tokens,output_tokens\n"

/* Load a trace from text; the file is gone afterwards. */
static int load(struct trace *t, const char *text, struct err *err)
{
    char path[] = "/tmp/test_trace_XXXXXX";
    int fd = mkstemp(path);
    size_t len = strlen(text);
    cr_assert(fd >= 0 && write(fd, text, len) == (ssize_t)len);
    close(fd);
    int rc = trace_load(t, path, &(struct trace_reading){0}, err);
    unlink(path);
    return rc;
}

static struct trace loaded(const char *text)
{
    struct trace t;
    struct err err = ERR_NONE;
    cr_assert(load(&t, text, &err) == 0, "%s", err.text);
    return t;
}

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

Test(info, prefix_hits_are_the_longest_known_run_from_the_front)
{
    struct trace t =
        loaded("{\"timestamp\":0,\"input_length\":1300,\"output_length\":1,\"hash_ids\":[1,2,3]}\n"
               "{\"timestamp\":1,\"input_length\":1400,\"output_length\":1,\"hash_ids\":[1,2,4]}\n"
               "{\"timestamp\":2,\"input_length\":1300,\"output_length\":1,\"hash_ids\":[1,2,3]}\n"
               "{\"timestamp\":3,\"input_length\":1000,\"output_length\":1,\"hash_ids\":[0,3]}\n");
    struct trace_prefix p = trace_prefix_max(&t);
    cr_expect_eq(p.hit_blocks, 0 + 2 + 3 + 0);
    cr_expect_eq(p.hit_tokens, 2 * 512 + 1300, "a full hit is capped at the prompt's length");
    cr_expect_eq(p.full_hits, 1);
    cr_expect_float_eq(trace_prefix_hit_frac_max(&t), 2324.0 / 5000, 1e-15);
    trace_release(&t);
}

Test(info, info_json_has_exact_percentiles)
{
    struct trace t = loaded(PLAIN "0,9,1\n1,2,1\n2,3,1\n3,4,1\n4,5,1\n5,6,1\n6,7,1\n7,8,1\n8,1,1\n"
                                  "10,10,11\n11,0,1\n");
    json_t *info = trace_info_json(&t);
    char *text = json_dumps(info, JSON_COMPACT | JSON_REAL_PRECISION(9));
    cr_expect_str_eq(text,
                     "{\"format\":\"plain\",\"requests\":10,\"skipped\":1,\"span_s\":10.0,"
                     "\"input_tokens\":{\"mean\":5.5,\"p50\":5,\"p90\":9,\"p99\":10,\"max\":10},"
                     "\"output_tokens\":{\"mean\":2.0,\"p50\":1,\"p90\":1,\"p99\":11,\"max\":11},"
                     "\"prefix_hit_frac_max\":0.0,\"sessions\":0}");
    free(text);
    json_decref(info);
    trace_release(&t);
}

static void print_to(char text[1024], void (*print)(const struct trace *, FILE *),
                     const struct trace *t)
{
    FILE *f = tmpfile();
    print(t, f);
    rewind(f);
    text[fread(text, 1, 1023, f)] = '\0';
    fclose(f);
}

Test(info, warns_of_sorting_and_skips_in_one_line_each)
{
    char text[1024], expected[1024];
    struct trace t = loaded(PLAIN "5,1,1\n4,1,1\n3,1,0\n2,0,1\n1,1,0\n");
    print_to(text, trace_warn, &t);
    snprintf(expected, sizeof expected,
             "wavetank: %s: rows earlier than the row before, now sorted by time: 1\n"
             "wavetank: %s: rows skipped: 3 (2 with zero output tokens, 1 with zero input "
             "tokens)\n",
             t.path, t.path);
    cr_expect_str_eq(text, expected);
    trace_release(&t);

    t = loaded(PLAIN "0,1,1\n1,2,1\n");
    print_to(text, trace_warn, &t);
    cr_expect_str_eq(text, "");
    trace_release(&t);
}

Test(info, check_names_each_finding_once)
{
    char text[1024];
    struct trace t = loaded(PLAIN "9000,1,1\n0,5,5\n0,5,5\n0,6,5\n3600,1048576,1\n1,1,0\n");
    print_to(text, trace_print_check, &t);
    cr_expect(has(text, ": rows earlier than the row before: 1\n"));
    cr_expect(has(text, ": rows skipped for zero output tokens: 1\n"));
    cr_expect(has(text, ": requests that arrive together with the one before: 2 of 5 (40.0%)\n"));
    cr_expect(has(text, ": requests that repeat another's time, lengths and hashes: 1\n"));
    cr_expect(has(text, ": gaps above 1 h between arrivals: 1, the longest 1.500 h\n"));
    cr_expect(has(text, ": contexts above 1048576 tokens: 1, the first at line 6\n"));
    trace_release(&t);

    t = loaded(PLAIN "0,1,1\n1,2,1\n");
    print_to(text, trace_print_check, &t);
    cr_expect_str_eq(text, "");
    trace_release(&t);
}

Test(info, info_names_format_begin_and_percentiles)
{
    char text[1024];
    struct trace t = loaded("TIMESTAMP,ContextTokens,GeneratedTokens\n"
                            "2023-11-16 18:17:03.9799600,4808,10\n");
    print_to(text, trace_print_info, &t);
    cr_expect(has(text, "format        azure\n"));
    cr_expect(has(text, "begins        2023-11-16 18:17:03 UTC\n"));
    cr_expect(has(text, "  input            4,808     4,808     4,808     4,808     4,808\n"));
    trace_release(&t);
}
