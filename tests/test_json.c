/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of sim/base/json: typed reads, key paths in messages, unknown and missing keys.
 */
#include "sim/base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

static const char *const layouts[] = {"tp", "cp", "dop"};

static const char document[] =
    "{\"stages\": {\"proj\": {\"hbm_frac\": 3}}, \"list\": [{\"a\": 1}, 2],"
    " \"n\": 7, \"whole\": 1e6, \"part\": 1.5, \"big\": 3000000000,"
    " \"on\": true, \"name\": \"dop\", \"nil\": null}";

static json_t *open_document(struct jobj *o)
{
    struct err err = ERR_NONE;
    json_t *root = json_loads(document, 0, NULL);
    cr_assert_eq(jobj_root(o, "x.json", root, &err), 0);
    return root;
}

Test(json, reads_every_type)
{
    struct err err = ERR_NONE;
    struct jobj o;
    json_t *root = open_document(&o), *array;
    int64_t n = 0;
    int small = 0, layout = -1;
    double x = 0;
    bool on = false;
    const char *name = NULL;
    cr_assert_eq(jobj_i64(&o, "n", true, 0, 7, &n, &err), 0);
    cr_assert_eq(n, 7);
    cr_assert_eq(jobj_i64(&o, "whole", true, 0, INT64_MAX, &n, &err), 0);
    cr_assert_eq(n, 1000000);
    cr_assert_eq(jobj_int(&o, "n", true, 7, 7, &small, &err), 0);
    cr_assert_eq(small, 7);
    cr_assert_eq(jobj_f64(&o, "n", true, 0, 10, &x, &err), 0);
    cr_assert_eq(x, 7.0);
    cr_assert_eq(jobj_bool(&o, "on", true, &on, &err), 0);
    cr_assert(on);
    cr_assert_eq(jobj_str(&o, "name", true, &name, &err), 0);
    cr_assert_str_eq(name, "dop");
    cr_assert_eq(jobj_enum(&o, "name", true, layouts, 3, &layout, &err), 0);
    cr_assert_eq(layout, 2);
    cr_assert_eq(jobj_array(&o, "list", true, &array, &err), 0);
    cr_assert_eq(json_array_size(array), 2);
    cr_assert_not(err.set);
    json_decref(root);
}

Test(json, absent_optional_key_leaves_the_value_alone)
{
    struct err err = ERR_NONE;
    struct jobj o, inner;
    json_t *root = open_document(&o), *any = root;
    int64_t n = 42;
    int layout = 1;
    double x = 0.5;
    cr_assert_eq(jobj_i64(&o, "no", false, 0, 1, &n, &err), 0);
    cr_assert_eq(jobj_f64(&o, "no", false, 0, 0.1, &x, &err), 0);
    cr_assert_eq(jobj_enum(&o, "no", false, layouts, 3, &layout, &err), 0);
    cr_assert_eq(jobj_open(&inner, &o, "no", false, &err), 0);
    cr_assert(n == 42 && x == 0.5 && layout == 1);
    cr_assert_eq(jobj_any(&o, "no", false, &any, &err), 0);
    cr_assert_null(any);
    json_decref(root);
}

Test(json, error_names_the_path_of_the_key)
{
    struct err err = ERR_NONE, element = ERR_NONE;
    struct jobj o, stages, proj, first, second;
    json_t *root = open_document(&o);
    double x = -1;
    int64_t n;
    cr_assert_eq(jobj_open(&stages, &o, "stages", true, &err), 1);
    cr_assert_eq(jobj_open(&proj, &stages, "proj", true, &err), 1);
    cr_assert_eq(jobj_f64(&proj, "hbm_frac", true, 0, 1, &x, &err), -1);
    cr_assert_str_eq(err.text, "x.json: .stages.proj.hbm_frac: must be in [0, 1], got 3");
    cr_assert_eq(x, -1.0);
    cr_assert_eq(jobj_open_at(&first, &o, "list", 0, &element), 0);
    cr_assert_eq(jobj_i64(&first, "a", true, 2, INT64_MAX, &n, &element), -1);
    cr_assert_str_eq(element.text, "x.json: .list[0].a: must be at least 2, got 1");
    element = ERR_NONE;
    cr_assert_eq(jobj_open_at(&second, &o, "list", 1, &element), -1);
    cr_assert_str_eq(element.text, "x.json: .list[1]: must be an object, got a number");
    element = ERR_NONE;
    cr_assert_eq(jobj_open_at(&second, &o, "list", 2, &element), -1);
    cr_assert_str_eq(element.text, "x.json: .list: has 2 elements, needs at least 3");
    json_decref(root);
}

Test(json, wrong_types_are_refused)
{
    struct jobj o;
    json_t *root = open_document(&o), *array;
    struct err e[8];
    memset(e, 0, sizeof e);
    int64_t n;
    int i;
    bool on;
    double x;
    const char *s;
    cr_assert_eq(jobj_f64(&o, "name", true, 0, 1, &x, &e[0]), -1);
    cr_assert_str_eq(e[0].text, "x.json: .name: must be a number, got a string");
    cr_assert_eq(jobj_i64(&o, "part", true, 0, 9, &n, &e[1]), -1);
    cr_assert_str_eq(e[1].text, "x.json: .part: must be a whole number, got 1.5");
    cr_assert_eq(jobj_i64(&o, "nil", true, 0, 9, &n, &e[2]), -1);
    cr_assert_str_eq(e[2].text, "x.json: .nil: must be a whole number, got null");
    cr_assert_eq(jobj_int(&o, "big", true, 0, INT32_MAX, &i, &e[3]), -1);
    cr_assert_str_eq(e[3].text, "x.json: .big: must be in [0, 2147483647], got 3000000000");
    cr_assert_eq(jobj_bool(&o, "n", true, &on, &e[4]), -1);
    cr_assert_eq(jobj_str(&o, "on", true, &s, &e[5]), -1);
    cr_assert_str_eq(e[5].text, "x.json: .on: must be a string, got true");
    cr_assert_eq(jobj_array(&o, "stages", true, &array, &e[6]), -1);
    cr_assert_eq(jobj_enum(&o, "name", true, layouts, 2, &i, &e[7]), -1);
    cr_assert_str_eq(e[7].text, "x.json: .name: must be one of tp, cp, got \"dop\"");
    json_decref(root);
}

Test(json, unknown_key_is_refused_with_a_suggestion)
{
    struct err err = ERR_NONE;
    struct jobj o;
    json_t *root = json_loads("{\"hbm_gbs\": 1}", 0, NULL);
    double x;
    cr_assert_eq(jobj_root(&o, "x.json", root, &err), 0);
    cr_assert_eq(jobj_f64(&o, "hbm_gb_per_s", false, 0, 1, &x, &err), 0);
    cr_assert_eq(jobj_done(&o, &err), -1);
    cr_assert_str_eq(err.text, "x.json: .hbm_gbs: unknown key (did you mean \"hbm_gb_per_s\"?)");
    json_decref(root);
}

Test(json, missing_key_names_its_misspelling)
{
    struct err near = ERR_NONE, far = ERR_NONE;
    struct jobj o;
    json_t *root = json_loads("{\"hbm_gbs\": 1}", 0, NULL);
    double x;
    cr_assert_eq(jobj_root(&o, "x.json", root, &near), 0);
    cr_assert_eq(jobj_f64(&o, "hbm_gb_per_s", true, 0, 1, &x, &near), -1);
    cr_assert_str_eq(near.text, "x.json: .hbm_gb_per_s: required key is missing (is it misspelt as "
                                "\"hbm_gbs\"?)");
    cr_assert_eq(jobj_f64(&o, "name", true, 0, 1, &x, &far), -1);
    cr_assert_str_eq(far.text, "x.json: .name: required key is missing");
    json_decref(root);
}

Test(json, done_accepts_when_all_keys_were_asked)
{
    struct err err = ERR_NONE;
    struct jobj o;
    json_t *root = json_loads("{\"a\": 1, \"b\": 2}", 0, NULL), *any;
    cr_assert_eq(jobj_root(&o, "x.json", root, &err), 0);
    for (int i = 0; i < 2 * JOBJ_KEYS_MAX; i++) /* asking again costs no slot */
        cr_assert_eq(jobj_any(&o, i % 2 ? "a" : "b", true, &any, &err), 0);
    cr_assert_eq(jobj_done(&o, &err), 0);
    json_decref(root);
}

static const struct {
    const char *text, *message;
} bad_file[] = {
    {"", "is empty"},
    {"{\"a\": 1,\n\"a\": 2}", ":2: duplicate object key"},
    {"{\n\n\"a\" 1}", ":3: "},
    {"{\"a\": 1} x", ":1: "},
    {"{\"a\": 1e999}", ":1: real number overflow"},
    {"{\"a\": NaN}", ":1: "},
};

ParameterizedTestParameters(json, file_error_has_the_line)
{
    static size_t row[sizeof bad_file / sizeof *bad_file];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        row[i] = i;
    return cr_make_param_array(size_t, row, sizeof row / sizeof *row);
}

ParameterizedTest(size_t *i, json, file_error_has_the_line)
{
    struct err err = ERR_NONE;
    char path[] = "/tmp/test_json_XXXXXX";
    FILE *f = fdopen(mkstemp(path), "w");
    fputs(bad_file[*i].text, f);
    fclose(f);
    json_t *root = json_load_path(path, &err);
    unlink(path);
    cr_assert_null(root);
    cr_assert_eq(strncmp(err.text, path, strlen(path)), 0, "%s", err.text);
    cr_assert_not_null(strstr(err.text, bad_file[*i].message), "%s", err.text);
}

Test(json, directory_and_missing_file_are_refused)
{
    struct err dir = ERR_NONE, none = ERR_NONE;
    cr_assert_null(json_load_path("/tmp", &dir));
    cr_assert_str_eq(dir.text, "/tmp: is a directory, expected a JSON file");
    cr_assert_null(json_load_path("/tmp/no/such.json", &none));
    cr_assert_str_eq(none.text, "/tmp/no/such.json: cannot open: No such file or directory");
}

Test(json, root_must_be_an_object)
{
    struct err err = ERR_NONE;
    struct jobj o;
    json_t *root = json_array();
    cr_assert_eq(jobj_root(&o, "x.json", root, &err), -1);
    cr_assert_str_eq(err.text, "x.json: must be a JSON object, got an array");
    json_decref(root);
}

Test(json, output_numbers_have_nine_digits)
{
    static const struct {
        double x;
        const char *text;
    } row[] = {{1.0 / 3, "0.333333333"}, {0.1, "0.1"},   {-0.0, "0.0"},
               {2e9, "2000000000.0"},    {1e-7, "1e-7"}, {123456789.123, "123456789.0"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        json_t *value = json_num(row[i].x);
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
        cr_expect_eq(json_real_value(value), strtod(row[i].text, NULL), "%s", row[i].text);
        cr_expect_eq(signbit(json_real_value(value)), 0);
        cr_expect_eq(strtod(text, NULL), strtod(row[i].text, NULL), "%s", text);
        cr_expect_leq(strlen(text), 15, "%s", text);
        free(text);
        json_decref(value);
    }
}
