/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of sim/serve without sockets: the store, orders, parts of uploads, and the routes against
 * docs/openapi.json. The rest is tests/serve.sh and tests/browser.
 */
#include "sim/serve/jobs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "sim/serve/order.h"
#include "sim/web/asset.h"
#include "tests/site_world.h"

static struct site_world world;
static struct err err;

static void open_world(void)
{
    site_world_open(&world);
}

static void close_world(void)
{
    char command[128];
    site_world_close(&world);
    snprintf(command, sizeof command, "rm -r %s", world.data);
    if (system(command) != 0)
        perror(command);
}

TestSuite(serve, .init = open_world, .fini = close_world);

static const char json[] = "application/json", bytes[] = "application/octet-stream";

static int ask(const char *method, const char *path, const char *type, const char *body)
{
    struct ask a = {
        .method = method, .path = path, .type = type, .body = body, .len = strlen(body)};
    return site_world_ask(&world, &a);
}

static int get(const char *path)
{
    return ask("GET", path, NULL, "");
}

/* The id in the last answer. */
static const char *last_id(void)
{
    static char id[ID_SIZE];
    const char *at = strstr(world.text, "\"id\":\"");
    cr_assert_not_null(at, "%s", world.text);
    snprintf(id, sizeof id, "%s", at + 6);
    return id;
}

#define MACHINE "\"model\":\"deepseek-v3.2\",\"cluster\":\"b200x8\""
static const char good_run[] =
    "{\"trace\":\"sample:azure_2023_code.csv\",\"scenario\":{" MACHINE "}}";

static void add(const char *id, int state)
{
    struct job j = {.kind = JOB_RUN, .state = state, .name = "a", .order = "{}"};
    strcpy(j.id, id);
    cr_assert_eq(jobs_add(world.site.jobs, &j, &err), 0, "%s", err.text);
}

static const char one[] = "00000000000000000000000000000001";
static const char two[] = "00000000000000000000000000000002";

Test(serve, a_store_gives_the_job_that_waited_longest)
{
    struct job j;
    add(two, JOB_QUEUED);
    add(one, JOB_QUEUED);
    cr_assert_eq(jobs_next(world.site.jobs, &j, &err), 1);
    cr_expect_str_eq(j.id, two);
    job_release(&j);
    cr_assert_eq(jobs_move(world.site.jobs, two, JOB_RUNNING, NULL, &err), 0);
    cr_assert_eq(jobs_next(world.site.jobs, &j, &err), 1);
    cr_expect_str_eq(j.id, one);
    job_release(&j);
    cr_expect_eq(jobs_count(world.site.jobs, JOB_RUN, JOB_QUEUED), 1);
    cr_expect_eq(jobs_count(world.site.jobs, JOB_TRACE, JOB_QUEUED), 0);
}

Test(serve, a_store_opened_again_marks_what_was_running)
{
    struct job j;
    add(one, JOB_QUEUED);
    add(two, JOB_QUEUED);
    cr_assert_eq(jobs_move(world.site.jobs, one, JOB_RUNNING, NULL, &err), 0);
    site_world_close(&world);
    site_world_open(&world);
    cr_assert_eq(jobs_get(world.site.jobs, JOB_RUN, one, &j, &err), 1);
    cr_expect_eq(j.state, JOB_INTERRUPTED);
    job_release(&j);
    cr_assert_eq(jobs_get(world.site.jobs, JOB_RUN, two, &j, &err), 1);
    cr_expect_eq(j.state, JOB_QUEUED);
    job_release(&j);
}

Test(serve, a_job_of_another_kind_is_not_found)
{
    struct job j;
    add(one, JOB_QUEUED);
    cr_expect_eq(jobs_get(world.site.jobs, JOB_TRACE, one, &j, &err), 0);
}

Test(serve, ids_are_32_hex_digits_and_differ)
{
    char a[ID_SIZE], b[ID_SIZE];
    cr_assert_eq(id_make(a, &err), 0);
    cr_assert_eq(id_make(b, &err), 0);
    cr_expect(id_is(a) && id_is(b));
    cr_expect_str_neq(a, b);
    cr_expect_not(id_is("0000000000000000000000000000000G"));
    cr_expect_not(id_is("../../../../../../../etc/passwd0"));
    cr_expect_not(id_is(""));
}

/* Every route outside the pages is in the document, and the other way round. */
static const char *lower(const char *method)
{
    static char text[16];
    for (size_t i = 0; i <= strlen(method); i++)
        text[i] = (char)(method[i] >= 'A' && method[i] <= 'Z' ? method[i] + 32 : method[i]);
    return text;
}

static bool is_page(const struct route *r)
{
    return r->is_open && strncmp(r->path, "/api", 4) != 0 && strcmp(r->path, "/healthz") != 0;
}

Test(serve, openapi_names_each_route_and_no_other)
{
    const struct asset *doc = asset_find("openapi.json");
    json_t *root = json_loadb((const char *)doc->data, doc->len, JSON_REJECT_DUPLICATES, NULL);
    json_t *paths = json_object_get(root, "paths"), *path, *operation;
    const char *name, *method;
    int named = 0, routes = 0;
    cr_assert_not_null(paths);
    for (const struct route *r = api_routes; r->method != NULL; r++) {
        if (is_page(r))
            continue;
        routes++;
        cr_expect_not_null(json_object_get(json_object_get(paths, r->path), lower(r->method)),
                           "%s %s", r->method, r->path);
    }
    json_object_foreach (paths, name, path)
        json_object_foreach (path, method, operation)
            named += strcmp(method, "parameters") != 0;
    cr_expect_eq(named, routes);
    json_decref(root);
}

Test(serve, a_run_is_taken_in_and_found)
{
    char path[64];
    cr_assert_eq(ask("POST", "/api/runs", json, good_run), 202, "%s", world.text);
    cr_expect_not_null(strstr(world.text, "\"state\":\"queued\""));
    snprintf(path, sizeof path, "/api/runs/%s", last_id());
    cr_expect_eq(get(path), 200);
    strcat(path, "/cancel");
    cr_expect_eq(ask("POST", path, json, ""), 202);
    cr_expect_not_null(strstr(world.text, "\"state\":\"cancelled\""));
    cr_expect_eq(ask("POST", path, json, ""), 409);
    *strrchr(path, '/') = '\0';
    cr_expect_eq(ask("DELETE", path, NULL, ""), 204);
    cr_expect_eq(get(path), 404);
}

Test(serve, a_full_queue_refuses)
{
    for (int i = 0; i < 3; i++)
        cr_expect_eq(ask("POST", "/api/runs", json, good_run), 202);
    cr_expect_eq(ask("POST", "/api/runs", json, good_run), 429);
}

static const struct refusal {
    const char *body, *because;
} refusals[] = {
    {"", "no JSON"},
    {"[]", "request"},
    {"{}", "trace"},
    {"{\"trace\":\"sample:azure_2023_code.csv\"}", "scenario"},
    {"{\"trace\":\"sample:azure_2023_code.csv\",\"scenario\":7}", "must be an object"},
    {"{\"trace\":\"sample:azure_2023_code.csv\",\"scenario\":{}}", ".scenario.model: missing"},
    {"{\"trace\":\"sample:azure_2023_cod.csv\",\"scenario\":{" MACHINE "}}", "did you mean"},
    {"{\"trace\":\"/etc/passwd\",\"scenario\":{" MACHINE "}}", "there is no trace"},
    {"{\"trace\":\"00000000000000000000000000000001\",\"scenario\":{" MACHINE "}}", "no trace"},
    {"{\"trace\":\"sample:azure_2023_code.csv\",\"scenario\":{" MACHINE ",\"json\":\"x\"}}",
     "no option that the server takes"},
    {"{\"trace\":\"sample:azure_2023_code.csv\",\"scenario\":{" MACHINE
     ",\"policy\":[\"./mine.so\"]}}",
     "no paths"},
    {"{\"trace\":\"sample:azure_2023_code.csv\",\"scenario\":{" MACHINE
     ",\"policy\":[\"mine.so\"]}}",
     "looks like a file"},
    {"{\"trace\":\"sample:azure_2023_code.csv\",\"scenario\":{" MACHINE ",\"policy\":[7]}}",
     "array of strings"},
    {"{\"trace\":\"sample:azure_2023_code.csv\",\"scenario\":{" MACHINE ",\"slo\":{\"ttft\":1}}}",
     ".scenario.slo"},
    {"{\"trace\":\"sample:azure_2023_code.csv\",\"scenario\":{" MACHINE "},\"more\":1}", "more"},
};

enum { N_REFUSALS = sizeof refusals / sizeof *refusals };

ParameterizedTestParameters(serve, runs_are_refused_with_a_reason)
{
    static size_t index[N_REFUSALS];
    for (size_t i = 0; i < N_REFUSALS; i++)
        index[i] = i;
    return cr_make_param_array(size_t, index, N_REFUSALS);
}

ParameterizedTest(size_t *i, serve, runs_are_refused_with_a_reason)
{
    cr_expect_eq(ask("POST", "/api/runs", json, refusals[*i].body), 400);
    cr_expect_not_null(strstr(world.text, refusals[*i].because), "%s: %s", refusals[*i].body,
                       world.text);
}

static int put(const char *id, const char *part, size_t len)
{
    static char mib[SERVE_PART_BYTES + 1];
    char path[128];
    snprintf(path, sizeof path, "/api/traces/%s/parts/%s", id, part);
    struct ask a = {.method = "PUT", .path = path, .type = bytes, .body = mib, .len = len};
    return site_world_ask(&world, &a);
}

Test(serve, parts_come_in_order_and_within_the_limit)
{
    char id[ID_SIZE];
    cr_assert_eq(ask("POST", "/api/traces", json, "{\"name\":\"x\"}"), 201);
    strcpy(id, last_id());
    cr_expect_eq(put(id, "1", 5), 400, "a gap");
    cr_expect_eq(put(id, "0", SERVE_PART_BYTES + 1), 413);
    cr_expect_eq(put(id, "0", SERVE_PART_BYTES), 200);
    cr_expect_eq(put(id, "0", SERVE_PART_BYTES), 200, "again");
    cr_expect_eq(put(id, "1", 5), 200);
    cr_expect_eq(folder_trace_bytes(world.config.folder, id), SERVE_PART_BYTES + 5);
    cr_expect_eq(put(id, "2", 5), 400, "2 MiB at most");
    cr_expect_eq(put(id, "-1", 5), 400);
    cr_expect_eq(put(id, "1x", 5), 400);
    cr_expect_eq(world.metrics.upload_bytes, 2 * SERVE_PART_BYTES + 5);
}

Test(serve, paths_lead_nowhere_else)
{
    cr_expect_eq(get("/assets/../sim/web/page.js"), 404);
    cr_expect_eq(get("/assets/"), 404);
    cr_expect_eq(get("/assets/page.js"), 200);
    cr_expect_eq(get("//"), 404);
    cr_expect_eq(get(""), 404);
    cr_expect_eq(get("/api/runs/"), 404);
    cr_expect_eq(get("/api/runs/x/files/../../jobs.db"), 404);
}

Test(serve, a_token_guards_all_but_pages_and_what_an_id_leads_to)
{
    struct ask a = {.method = "GET", .path = "/api/runs", .body = ""};
    strcpy(world.config.token, "0123456789abcdef");
    cr_expect_eq(site_world_ask(&world, &a), 401);
    a.authorization = "Bearer 0123456789abcde";
    cr_expect_eq(site_world_ask(&world, &a), 401);
    a.authorization = "Bearer ";
    cr_expect_eq(site_world_ask(&world, &a), 401);
    a.authorization = "Bearer 0123456789abcdef";
    cr_expect_eq(site_world_ask(&world, &a), 200);
    cr_expect_eq(get("/"), 200);
    cr_expect_eq(get("/api/runs/00000000000000000000000000000001"), 404);
    cr_expect_eq(ask("POST", "/api/runs", json, good_run), 401);
}

Test(serve, bodies_have_their_type_and_methods_their_path)
{
    cr_expect_eq(ask("POST", "/api/runs", "text/plain", good_run), 415);
    cr_expect_eq(ask("POST", "/api/runs", NULL, good_run), 415);
    cr_expect_eq(ask("POST", "/api/runs", "application/jsonx", good_run), 415);
    cr_expect_eq(ask("POST", "/api/runs", "application/json; charset=utf-8", good_run), 202);
    cr_expect_eq(ask("PUT", "/healthz", NULL, ""), 405);
    cr_expect_str_eq(world.last.allow, "GET");
}

Test(serve, metrics_count)
{
    metrics_count_answer(&world.metrics, 200);
    metrics_count_answer(&world.metrics, 404);
    metrics_count_answer(&world.metrics, 429);
    cr_assert_eq(get("/metrics"), 200);
    cr_expect_not_null(strstr(world.text, "wavetank_http_responses_total{code=\"4xx\"} 2\n"));
    cr_expect_not_null(strstr(world.text, "wavetank_http_responses_total{code=\"2xx\"} 1\n"));
}
