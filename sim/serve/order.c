/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/serve/order.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sim/base/file.h"
#include "sim/base/json.h"
#include "sim/base/mem.h"
#include "sim/serve/folder.h"

enum { NAME_CHARS_MAX = 200, POLICIES_MAX = 16, TEXT_CHARS_MAX = 200, COUNT_MAX = 20000 };

static const char sample_prefix[] = "sample:";

/* No option that names a file is here, nor will one that `sim` gets later. */
const char *const order_scenario_keys[] = {
    "model",
    "cluster",
    "profile",
    "layouts",
    "policy",
    "prefill_policy",
    "seed",
    "slo",
    "arrivals",
    "block_tokens",
    "delay",
    "from",
    "to",
    "sample",
    "limit",
    "rate",
    "spread",
    "wait_cap",
    "token_budget",
    "max_running",
    "page_tokens",
    "kv_tokens",
    "kv_blocks",
    "admission",
    "owners",
    "prefix_cache",
    "replicas",
    "deadline",
    "failed_session",
    "exact",
    "router",
    "affinity_factor",
    "prefill_replicas",
    "kv_link_gb_per_s",
    "kv_link_latency",
    NULL,
};

/* From which list the values of some come. */
static const struct {
    const char *key, *list;
} listed[] = {{"model", "models"}, {"cluster", "clusters"}, {"profile", "profiles"}};

static bool is_known(const char *key)
{
    for (int i = 0; order_scenario_keys[i] != NULL; i++)
        if (strcmp(order_scenario_keys[i], key) == 0)
            return true;
    return false;
}

static int check_text(const struct choices *c, const char *key, const char *text, struct err *err)
{
    struct err why = ERR_NONE;
    if (strlen(text) > TEXT_CHARS_MAX)
        return err_set(err, ".scenario.%s: has more than %d characters", key, TEXT_CHARS_MAX);
    for (size_t i = 0; i < sizeof listed / sizeof *listed; i++)
        if (strcmp(listed[i].key, key) == 0)
            return choices_check(c, listed[i].list, text, &why) < 0
                       ? err_set(err, ".scenario.%s: %s", key, why.text)
                       : 0;
    return choices_check_text(key, text, &why) < 0 ? err_set(err, ".scenario%s", why.text) : 0;
}

static int check_policies(const struct choices *c, const char *key, json_t *value, struct err *err)
{
    size_t i;
    json_t *item;
    if (strcmp(key, "policy") != 0)
        return err_set(err, ".scenario.%s: must be text, a number, true or false", key);
    if (json_array_size(value) > POLICIES_MAX)
        return err_set(err, ".scenario.policy: names more than %d policies", POLICIES_MAX);
    json_array_foreach (value, i, item) {
        if (!json_is_string(item))
            return err_set(err, ".scenario.policy: must be an array of strings");
        if (check_text(c, key, json_string_value(item), err) < 0)
            return -1;
    }
    return 0;
}

static int check_scenario(const struct choices *c, json_t *scenario, struct err *err)
{
    static const char *const needed[] = {"model", "cluster"};
    const char *key;
    json_t *value;
    int rc = 0;
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!json_is_string(json_object_get(scenario, needed[i])))
            return err_set(err, ".scenario.%s: missing; GET /api/choices lists them", needed[i]);
    json_object_foreach (scenario, key, value) {
        if (!is_known(key))
            return err_set(err, ".scenario.%.64s: is no option that the server takes", key);
        if (json_is_string(value))
            rc = check_text(c, key, json_string_value(value), err);
        else if (json_is_array(value) || json_is_object(value))
            rc = check_policies(c, key, value, err);
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* Writes its name for people, which the caller frees. */
static int check_trace(const char *trace, const struct choices *c, struct jobs *s, char **name,
                       struct err *err)
{
    struct job j = {0};
    if (strncmp(trace, sample_prefix, strlen(sample_prefix)) == 0) {
        if (choices_check(c, "samples", trace + strlen(sample_prefix), err) < 0)
            return -1;
        *name = xstrdup(trace + strlen(sample_prefix));
        return 0;
    }
    int found = id_is(trace) ? jobs_get(s, JOB_TRACE, trace, &j, err) : 0;
    bool ready = found > 0 && j.state == JOB_DONE;
    if (ready)
        *name = xstrdup(j.name);
    if (found > 0)
        job_release(&j);
    if (found == 0)
        return err_set(err, ".trace: there is no trace \"%.64s\"; GET /api/traces lists them",
                       trace);
    if (found > 0 && !ready)
        return err_set(err, ".trace: that trace is not ready yet, or was refused");
    return ready ? 0 : -1;
}

/* A name for people: the client's, or what the job is about. */
static int read_name(struct job *out, struct jobj *o, const char *otherwise, struct err *err)
{
    const char *name = otherwise;
    if (jobj_str(o, "name", false, &name, err) < 0)
        return -1;
    if (strlen(name) > NAME_CHARS_MAX)
        return jobj_fail(o, "name", err, "has more than %d bytes", NAME_CHARS_MAX);
    out->name = xstrdup(name);
    return 0;
}

/* Which of the files that not every run has. */
static int read_files(json_t *order, struct jobj *o, struct err *err)
{
    for (const struct run_file *f = run_files; f->name != NULL; f++) {
        bool wanted = false;
        if (f->key == NULL)
            continue;
        if (jobj_bool(o, f->key, false, &wanted, err) < 0)
            return -1;
        if (wanted)
            json_object_set_new(order, f->key, json_true());
    }
    return 0;
}

int order_read_run(struct job *out, json_t *body, const struct choices *c, struct jobs *s,
                   struct err *err)
{
    struct jobj o;
    const char *trace;
    char *trace_name = NULL;
    json_t *scenario;
    if (jobj_root(&o, "request", body, err) < 0 || jobj_str(&o, "trace", true, &trace, err) < 0 ||
        jobj_any(&o, "scenario", true, &scenario, err) < 0)
        return -1;
    if (!json_is_object(scenario))
        return jobj_fail(&o, "scenario", err, "must be an object of options");
    if (check_scenario(c, scenario, err) < 0 || check_trace(trace, c, s, &trace_name, err) < 0)
        return -1;
    char *name = xasprintf("%s on %s, %s", json_string_value(json_object_get(scenario, "model")),
                           json_string_value(json_object_get(scenario, "cluster")), trace_name);
    json_t *order = json_pack("{s:s, s:s, s:O}", "trace", trace, "trace_name", trace_name,
                              "scenario", scenario);
    int rc = read_name(out, &o, name, err) < 0 || read_files(order, &o, err) < 0 ||
                     jobj_done(&o, err) < 0
                 ? -1
                 : 0;
    out->order = json_dumps(order, JSON_COMPACT);
    json_decref(order);
    free(name);
    free(trace_name);
    return rc;
}

int order_read_trace(struct job *out, json_t *body, const struct choices *c, struct err *err)
{
    struct jobj o;
    const char *preset = NULL;
    int64_t count = 0, seed = 0;
    if (jobj_root(&o, "request", body, err) < 0 || jobj_str(&o, "preset", false, &preset, err) < 0)
        return -1;
    if (preset == NULL) {
        if (read_name(out, &o, "upload", err) < 0 || jobj_done(&o, err) < 0)
            return -1;
        out->order = xstrdup("{\"upload\":true}");
        return 0;
    }
    if (choices_check(c, "presets", preset, err) < 0 ||
        jobj_i64(&o, "count", false, 0, COUNT_MAX, &count, err) < 0 ||
        jobj_i64(&o, "seed", false, 0, INT64_MAX / 2, &seed, err) < 0 ||
        read_name(out, &o, preset, err) < 0 || jobj_done(&o, err) < 0)
        return -1;
    json_t *order = json_pack("{s:s, s:I, s:I}", "preset", preset, "count", (json_int_t)count,
                              "seed", (json_int_t)seed);
    out->order = json_dumps(order, JSON_COMPACT);
    json_decref(order);
    return 0;
}

static void add(struct command *cmd, char *arg)
{
    assert(cmd->n < ORDER_ARGS - 1);
    cmd->arg[cmd->n++] = arg;
}

static void add_words(struct command *cmd, const char *const *words)
{
    for (; *words != NULL; words++)
        add(cmd, xstrdup(*words));
}

static int write_scenario(const json_t *scenario, const char *path, struct err *err)
{
    struct outfile o;
    if (outfile_open(&o, path, err) < 0)
        return -1;
    json_dumpf(scenario, o.f, JSON_INDENT(2));
    return outfile_commit(&o, err);
}

/* A sample, a drawn trace or an upload. The caller frees. */
static char *trace_path(const char *trace, const char *folder, const char *samples)
{
    if (strncmp(trace, sample_prefix, strlen(sample_prefix)) == 0)
        return xasprintf("%s/%s", samples, trace + strlen(sample_prefix));
    char *drawn = folder_trace(folder, trace, ".wtt");
    struct stat st;
    if (stat(drawn, &st) == 0)
        return drawn;
    free(drawn);
    return folder_trace(folder, trace, "");
}

static void add_files(struct command *cmd, const struct job *j, const json_t *order,
                      const char *folder)
{
    for (const struct run_file *f = run_files; f->name != NULL; f++) {
        if (!run_file_is_wanted(f, order))
            continue;
        if (f->option == NULL) {
            cmd->out = folder_run(folder, j->id, f->name);
            continue;
        }
        add(cmd, xstrdup(f->option));
        add(cmd, xstrdup(f->name));
    }
}

/* The worker runs in the run's folder: results name no paths, and a page's command is one that its
 * reader can type. */
static int prepare_run(struct command *cmd, const struct job *j, const json_t *order,
                       const struct serve_config *config, const struct choices *c, struct err *err)
{
    static const char *const words[] = {"wavetank", "sim", NULL};
    const char *folder = config->folder;
    const char *trace = json_string_value(json_object_get(order, "trace"));
    char *scenario = folder_run(folder, j->id, "scenario.json");
    char *path = trace_path(trace, folder, c->samples);
    int rc = folder_make_run(folder, j->id, path, err);
    if (rc == 0)
        rc = write_scenario(json_object_get(order, "scenario"), scenario, err);
    add_words(cmd, words);
    add(cmd, xstrdup(strrchr(path, '/') + 1));
    add_files(cmd, j, order, folder);
    cmd->folder = folder_run(folder, j->id, NULL);
    cmd->log = folder_run(folder, j->id, "log.txt");
    free(scenario);
    free(path);
    return rc;
}

static void prepare_trace(struct command *cmd, const struct job *j, const json_t *order,
                          const struct serve_config *config, const struct choices *c)
{
    static const char *const check[] = {"wavetank", "trace", "check", NULL};
    static const char *const draw[] = {"wavetank", "gen", NULL};
    const char *preset = json_string_value(json_object_get(order, "preset"));
    add_words(cmd, preset != NULL ? draw : check);
    if (preset != NULL) {
        const char *workload = choices_workload(c, preset);
        add(cmd, xstrdup(workload != NULL ? workload : "unknown"));
        add(cmd, xasprintf("--preset=%s", preset));
        add(cmd, xasprintf("--count=%lld",
                           (long long)json_integer_value(json_object_get(order, "count"))));
        add(cmd, xasprintf("--seed=%lld",
                           (long long)json_integer_value(json_object_get(order, "seed"))));
        add(cmd, xasprintf("--out=%s.wtt", j->id));
    } else {
        add(cmd, xstrdup(j->id));
    }
    cmd->folder = xasprintf("%s/traces", config->folder);
    cmd->out = folder_trace(config->folder, j->id, ".out");
    cmd->log = folder_trace(config->folder, j->id, ".log");
}

int order_prepare(struct command *cmd, const struct job *j, const struct serve_config *config,
                  const struct choices *c, struct err *err)
{
    int rc = 0;
    *cmd = (struct command){0};
    json_t *order = json_loads(j->order, 0, NULL);
    if (order == NULL)
        return err_run(err, "the job's order is damaged");
    if (j->kind == JOB_RUN)
        rc = prepare_run(cmd, j, order, config, c, err);
    else
        prepare_trace(cmd, j, order, config, c);
    json_decref(order);
    return rc;
}

void command_release(struct command *cmd)
{
    for (int i = 0; i < cmd->n; i++)
        free(cmd->arg[i]);
    free(cmd->folder);
    free(cmd->out);
    free(cmd->log);
    *cmd = (struct command){0};
}
