/* SPDX-License-Identifier: Apache-2.0
 *
 * hw: models, devices, clusters, profiles and the catalog. Faults are tried by changing one key of
 * a shipped file at a time.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "hw/catalog.h"
#include "hw/device.h"
#include "hw/profile.h"
#include "sim/base/units.h"

#define N(array) ((int)(sizeof(array) / sizeof *(array)))

static void assert_near(double got, double want)
{
    cr_assert(fabs(got - want) <= 1e-12 * fabs(want), "got %.17g, want %.17g", got, want);
}

/* Load a file of any JSON kind and drop it; its name goes to `name`. */
static int load(const char *kind, const char *name_or_path, char name[CATALOG_NAME_SIZE],
                struct err *err)
{
    static struct model m;
    static struct device d;
    static struct cluster c;
    static struct profile p;
    const char *loaded = NULL;
    int status;
    if (strcmp(kind, "models") == 0) {
        status = model_load(&m, name_or_path, err);
        loaded = m.name;
    } else if (strcmp(kind, "devices") == 0) {
        status = device_load(&d, name_or_path, err);
        loaded = d.name;
    } else if (strcmp(kind, "clusters") == 0) {
        status = cluster_load(&c, name_or_path, err);
        loaded = c.name;
    } else {
        status = profile_load(&p, name_or_path, err);
        loaded = p.name;
        if (status == 0)
            profile_release(&p);
    }
    snprintf(name, CATALOG_NAME_SIZE, "%s", loaded);
    return status;
}

Test(model, kv_bytes_per_token_are_exact)
{
    static const struct {
        const char *name;
        int kv_layers;
        double layer_bytes, token_bytes;
    } want[] = {
        {"deepseek-v3.2", 61, 788, 48068},
        {"glm-5.3", 78, 788, 61464},
        {"glm-5.3-flash", 11, 561, 6171},
        {"deepseek-r1", 61, 656, 40016},
        {"kimi-k2", 61, 656, 40016},
        {"llama-3.1-405b", 126, 2048, 258048},
        {"qwen3-235b-a22b", 94, 2048, 192512},
        {"tiny-mla", 4, 160, 640},
        {"tiny-gqa", 4, 256, 1024},
        {"tiny-moe", 4, 160, 640},
    };
    for (int i = 0; i < N(want); i++) {
        struct model m;
        struct err err = ERR_NONE;
        cr_assert_eq(model_load(&m, want[i].name, &err), 0, "%s", err.text);
        cr_assert_eq(model_kv_layers(&m), want[i].kv_layers, "%s", want[i].name);
        cr_assert_eq(model_kv_bytes_per_token_layer(&m), want[i].layer_bytes, "%s", want[i].name);
        cr_assert_eq(model_kv_bytes_per_token(&m), want[i].token_bytes, "%s", want[i].name);
    }
}

Test(model, linear_state_follows_from_the_dimensions)
{
    struct model m;
    struct err err = ERR_NONE;
    cr_assert_eq(model_load(&m, "glm-5.3-flash", &err), 0, "%s", err.text);
    /* 64 x 128 x 128 x 4 + 3 x 64 x 128 x 3 x 2 */
    cr_assert_eq(m.linear.state_bytes_per_layer, 4194304 + 147456);
    cr_assert_eq(m.linear.layers * m.linear.state_bytes_per_layer, 147619840);
    cr_assert_eq(m.max_context_tokens, INT64_MAX);
}

Test(model, mla_fields_are_read)
{
    struct model m;
    struct err err = ERR_NONE;
    cr_assert_eq(model_load(&m, "glm-5.3", &err), 0, "%s", err.text);
    cr_assert_eq(m.attention, ATTN_MLA);
    cr_assert_eq(m.kv_heads, 1);
    cr_assert_eq(m.dense_layers, 3);
    cr_assert_eq(m.indexer.layers, 21);
    cr_assert_eq(m.max_context_tokens, 1048576);
    cr_assert_eq(m.activations, FMT_BF16);
    cr_assert_eq(m.attention_weights.format, FMT_FP8);
    cr_assert_eq(m.attention_weights.bytes_per_param, 1 + 4.0 / (128 * 128));
    cr_assert_eq(m.embedding_weights.bytes_per_param, 2);
    cr_assert_eq(m.router_weights.bytes_per_param, 4);
    /* Eq. 9: Q-B + KV-B + O in FP8 with scales, 142.0347 MiB */
    double params = (double)m.q_lora * m.heads * (m.nope_dim + m.rope_dim) +
                    (double)m.kv_lora * m.heads * (m.nope_dim + m.v_dim) +
                    (double)m.heads * m.v_dim * m.hidden;
    assert_near(params * m.attention_weights.bytes_per_param / MIB, 142 * (1 + 1.0 / 4096));
}

Test(model, gqa_fields_are_read)
{
    struct model m;
    struct err err = ERR_NONE;
    cr_assert_eq(model_load(&m, "llama-3.1-405b", &err), 0, "%s", err.text);
    cr_assert_eq(m.attention, ATTN_GQA);
    cr_assert_eq(m.kv_heads, 8);
    cr_assert_eq(m.nope_dim, 128);
    cr_assert_eq(m.v_dim, 128);
    cr_assert_eq(m.rope_dim, 0);
    cr_assert_eq(m.moe.experts, 0);
    cr_assert_eq(m.dense_layers, 126);
    cr_assert_eq(m.indexer.heads, 0);
}

Test(device, formats_without_hardware_run_wider)
{
    static const struct {
        const char *device;
        enum number_format format;
        double tflops;
    } want[] = {
        {"bw1000", FMT_BF16, 480}, {"bw1000", FMT_FP8, 480}, {"bw1000", FMT_INT8, 480},
        {"bw1000", FMT_FP4, 480},  {"bw1000", FMT_FP32, 60}, {"h200", FMT_FP4, 1978},
        {"h200", FMT_INT8, 1978},  {"b200", FMT_FP4, 9000},  {"b200", FMT_FP8, 4500},
    };
    for (int i = 0; i < N(want); i++) {
        struct device d;
        struct err err = ERR_NONE;
        cr_assert_eq(device_load(&d, want[i].device, &err), 0, "%s", err.text);
        cr_assert_eq(device_tflops(&d, want[i].format), want[i].tflops, "%s %s", want[i].device,
                     number_format_names[want[i].format]);
    }
}

Test(cluster, shipped_ones_have_their_device_ranks_and_profile)
{
    static const struct {
        const char *name, *device, *table;
        int ranks;
        double memory_frac;
    } want[] = {
        {"b200x8", "b200", "b200", 8, 0.85},       {"h200x8", "h200", "h200", 8, 0.90},
        {"h200x2", "h200", "h200", 2, 0.90},       {"h100x8", "h100", "h100", 8, 0.90},
        {"bw1000x8", "bw1000", "bw1000", 8, 0.85}, {"gb200-nvl72", "gb200", "gb200", 64, 0.90},
    };
    for (int i = 0; i < N(want); i++) {
        struct cluster c;
        struct profile p;
        struct collective_table t;
        struct err err = ERR_NONE;
        cr_assert_eq(cluster_load(&c, want[i].name, &err), 0, "%s", err.text);
        cr_assert_str_eq(c.device.name, want[i].device);
        cr_assert_eq(c.ranks, want[i].ranks);
        cr_assert_eq(c.memory_frac, want[i].memory_frac);
        cr_assert_eq(c.reserve_bytes, (i == 4 ? 2 : 4) * GIB);
        cr_assert_eq(profile_load(&p, c.profile, &err), 0, "%s", err.text);
        cr_assert_str_eq(p.kind, "analytic");
        cr_assert_eq(collective_load(&t, want[i].table, &err), 0, "%s", err.text);
        cr_assert_eq(collective_s(&p.collectives, COLL_ALL_GATHER, c.ranks, 3e6),
                     collective_s(&t, COLL_ALL_GATHER, c.ranks, 3e6));
        collective_release(&t);
        profile_release(&p);
    }
}

Test(cluster, reserve_is_read_in_gib)
{
    struct cluster c;
    struct err err = ERR_NONE;
    cr_assert_eq(cluster_load(&c, "h200x8", &err), 0, "%s", err.text);
    cr_assert_eq(c.reserve_bytes, 4294967296.0);
    cr_assert_eq(c.device.memory_bytes, 143771 * MIB);
}

Test(profile, efficiency_is_linear_in_log2_and_flat_outside)
{
    struct efficiency e = {.n = 3, .size = {1, 16, 64}, .frac = {0.25, 0.75, 0.5}};
    efficiency_init(&e);
    cr_assert_eq(efficiency_at(&e, 0), 0.25);
    cr_assert_eq(efficiency_at(&e, 0.5), 0.25);
    cr_assert_eq(efficiency_at(&e, 1), 0.25);
    assert_near(efficiency_at(&e, sqrt(2)), 0.3125);
    cr_assert_eq(efficiency_at(&e, 2), 0.375);
    cr_assert_eq(efficiency_at(&e, 4), 0.5);
    cr_assert_eq(efficiency_at(&e, 16), 0.75);
    cr_assert_eq(efficiency_at(&e, 32), 0.625);
    cr_assert_eq(efficiency_at(&e, 64), 0.5);
    cr_assert_eq(efficiency_at(&e, 1e9), 0.5);
}

Test(profile, one_point_holds_everywhere)
{
    static const struct efficiency e = {.n = 1, .size = {100}, .frac = {0.8}};
    cr_assert_eq(efficiency_at(&e, 1), 0.8);
    cr_assert_eq(efficiency_at(&e, 100), 0.8);
    cr_assert_eq(efficiency_at(&e, 1e6), 0.8);
}

Test(catalog, every_shipped_file_loads_under_its_own_name)
{
    static const char *const kinds[] = {"models", "devices", "clusters", "profiles"};
    static const int at_least[] = {10, 5, 6, 5};
    for (int k = 0; k < N(kinds); k++) {
        int n;
        char **names = catalog_names(kinds[k], &n);
        cr_assert_geq(n, at_least[k], "%s", kinds[k]);
        for (int i = 0; i < n; i++) {
            struct err err = ERR_NONE;
            char name[CATALOG_NAME_SIZE];
            cr_assert_eq(load(kinds[k], names[i], name, &err), 0, "%s", err.text);
            cr_assert_str_eq(name, names[i]);
            cr_assert(i == 0 || strcmp(names[i - 1], names[i]) < 0, "not sorted: %s", names[i]);
        }
        catalog_free(names, n);
    }
}

Test(catalog, unknown_name_lists_and_suggests)
{
    struct model m;
    struct err err = ERR_NONE;
    cr_assert_eq(model_load(&m, "deepsek-v3.2", &err), -1);
    cr_assert_eq(err.kind, ERR_INPUT);
    cr_assert(strstr(err.text, "unknown model \"deepsek-v3.2\" (did you mean \"deepseek-v3.2\"?); "
                               "models: deepseek-r1, deepseek-r1-slice, deepseek-r1-slice12, "
                               "deepseek-v3.2, glm-5.3, ") == err.text,
              "%s", err.text);
}

Test(catalog, names_far_from_all_get_no_suggestion)
{
    char path[64];
    struct err err = ERR_NONE;
    cr_assert_eq(catalog_path("nccl", "zzzzzzzzzz", path, sizeof path, &err), -1);
    cr_assert(strstr(err.text, "unknown nccl table \"zzzzzzzzzz\"; nccl: b200, ") == err.text, "%s",
              err.text);
}

Test(catalog, paths_pass_through)
{
    static const char *const paths[] = {"./mine", "mine.json", "dir/h200", "t.csv"};
    for (int i = 0; i < N(paths); i++) {
        char path[16] = "";
        struct err err = ERR_NONE;
        cr_assert_eq(catalog_path("models", paths[i], path, sizeof path, &err), 0);
        cr_assert_str_eq(path, paths[i]);
    }
}

Test(catalog, too_long_a_path_is_refused)
{
    char path[8] = "keep";
    struct err err = ERR_NONE;
    cr_assert_eq(catalog_path("models", "./seven", path, 7, &err), -1);
    cr_assert(strstr(err.text, "too long") != NULL, "%s", err.text);
    cr_assert_str_eq(path, "keep");
    err = ERR_NONE;
    cr_assert_eq(catalog_path("models", "./seven", path, 8, &err), 0);
}

Test(catalog, data_folder_that_is_none_is_named)
{
    struct model m;
    int n = -1;
    struct err err = ERR_NONE;
    setenv("WAVETANK_DATA", "/nonexistent", 1);
    cr_assert_eq(model_load(&m, "tiny-mla", &err), -1);
    cr_assert(strstr(err.text, "WAVETANK_DATA: /nonexistent") == err.text, "%s", err.text);
    cr_assert_null(catalog_names("models", &n));
    cr_assert_eq(n, 0);
}

static void write_temp(char path[32], const char *text)
{
    strcpy(path, "/tmp/test_hw_XXXXXX");
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* A change to a shipped file, and what the error must say. `key` is a path such as "kv.format";
 * value NULL deletes it. */
struct fault {
    const char *key, *value, *want;
};

static void apply(json_t *object, const struct fault *f)
{
    char key[64];
    snprintf(key, sizeof key, "%s", f->key);
    char *part = key;
    for (char *dot; (dot = strchr(part, '.')) != NULL; part = dot + 1) {
        *dot = '\0';
        object = json_object_get(object, part);
        cr_assert_not_null(object, "%s", f->key);
    }
    if (f->value == NULL)
        cr_assert_eq(json_object_del(object, part), 0, "%s", f->key);
    else
        json_object_set_new(object, part, json_loads(f->value, JSON_DECODE_ANY, NULL));
}

static void check_faults(const char *kind, const char *base, const struct fault *fault, int n)
{
    char shipped[512], path[32], name[CATALOG_NAME_SIZE];
    struct err err = ERR_NONE;
    cr_assert_eq(catalog_path(kind, base, shipped, sizeof shipped, &err), 0, "%s", err.text);
    for (int i = 0; i < n; i++) {
        json_t *json = json_load_file(shipped, 0, NULL);
        cr_assert_not_null(json);
        apply(json, &fault[i]);
        char *text = json_dumps(json, 0);
        write_temp(path, text);
        err = ERR_NONE;
        cr_assert_eq(load(kind, path, name, &err), -1, "%s: %s", fault[i].key, fault[i].value);
        cr_assert(strstr(err.text, fault[i].want) != NULL, "%s: %s", fault[i].key, err.text);
        unlink(path);
        free(text);
        json_decref(json);
    }
}

Test(model, faults_name_the_key)
{
    static const struct fault faults[] = {
        {"model", "2", ": .model: must be in [1, 1]"},
        {"name", "\"\"", ": .name: must have 1 to 47 bytes"},
        {"source", "[]", ": .source: must list"},
        {"source", "[3]", ": .source: must list"},
        {"hidden", NULL, ": .hidden: required key is missing"},
        {"hiden", "256", ": .hiden: unknown key (did you mean \"hidden\"?)"},
        {"layers", "0", ": .layers: must be in [1, "},
        {"layers", "-4", ": .layers: must be in [1, "},
        {"layers", "2.5", ": .layers: must be a whole number"},
        {"layers", "\"4\"", ": .layers: must be a whole number"},
        {"dense_layers", "4", ": .dense_layers: must be in [0, 3]"},
        {"dense_layers", NULL, ": .dense_layers: required"},
        {"dense_inter", NULL, ": .dense_inter: required"},
        {"moe.topk", "17", ": .moe: topk (17) must not exceed experts (16)"},
        {"moe.router", "1", ": .moe.router: unknown key"},
        {"attention.kind", "\"mha\"", ": .attention.kind: must be one of mla, gqa"},
        {"attention.kv_heads", "2", ": .attention.kv_heads: unknown key"},
        {"attention.rope_dim", "-1", ": .attention.rope_dim: must be in [0, "},
        {"weights.ffn.format", "\"fp9\"", ": .weights.ffn.format: must be one of fp32, bf16"},
        {"weights.ffn.bytes_per_param", "1", ": .weights.ffn.bytes_per_param: must be in [2, 4]"},
        {"weights.router", NULL, ": .weights.router: required"},
        {"activations", "null", ": .activations: must be a string"},
        {"kv.latent_bytes", "64", ": .kv.latent_bytes: must be in [128, "},
        {"kv.rope_bytes", NULL, ": .kv.rope_bytes: required"},
        {"kv.indexer_bytes", "132", ": .kv.indexer_bytes: must be in [0, 0]"},
        {"kv.head_bytes", "128", ": .kv.head_bytes: unknown key"},
        {"linear", "{\"layers\":4,\"heads\":1,\"dim\":1,\"conv\":1}", ": .linear: layers must be"},
        {"indexer", "{\"heads\":1,\"dim\":8,\"topk\":8,\"layers\":5,\"pool\":1}",
         ": .indexer: layers must not exceed the 4"},
        {"max_context_tokens", "0", ": .max_context_tokens: must be"},
    };
    check_faults("models", "tiny-moe", faults, N(faults));
}

Test(model, gqa_faults_name_the_key)
{
    static const struct fault faults[] = {
        {"attention.kv_heads", "3", ": .attention.kv_heads: must divide heads (8), got 3"},
        {"kv.head_bytes", "127", ": .kv.head_bytes: must be in [128, "},
        {"dense_layers", "3", ": .dense_layers: must be in [4, 4]"},
        {"indexer", "{\"heads\":1,\"dim\":8,\"topk\":8,\"layers\":4,\"pool\":1}",
         ": .indexer: works on MLA"},
    };
    check_faults("models", "tiny-gqa", faults, N(faults));
}

Test(device, faults_name_the_key)
{
    static const struct fault faults[] = {
        {"device", NULL, ": .device: required"},
        {"memory_bytes", "0", ": .memory_bytes: must be in [1, "},
        {"hbm_gb_per_s", "-1", ": .hbm_gb_per_s: must be in"},
        {"hbm_gbs", "4800", ": .hbm_gbs: unknown key"},
        {"tflops.bf16", "0", ": .tflops.bf16: must be in"},
        {"tflops.fp16", "989", ": .tflops.fp16: unknown key (did you mean"},
        {"link_gb_per_s", "[]", ": .link_gb_per_s: must be a number"},
        {"host_load_gb_per_s", NULL, ": .host_load_gb_per_s: required"},
    };
    check_faults("devices", "h200", faults, N(faults));
}

Test(cluster, faults_name_the_key)
{
    static const struct fault faults[] = {
        {"device", "\"h20\"", "unknown device \"h20\" (did you mean \"h200\"?)"},
        {"ranks", "0", ": .ranks: must be in [1, "},
        {"memory_frac", "1.01", ": .memory_frac: must be in [0.01, 1]"},
        {"reserve_gib", "-1", ": .reserve_gib: must be in [0, "},
        {"reserve_gib", "127", ": .reserve_gib: leaves nothing of the 126.4 GiB per rank"},
        {"profile", NULL, ": .profile: required"},
        {"profle", "\"x\"", ": .profle: unknown key (did you mean \"profile\"?)"},
    };
    check_faults("clusters", "h200x8", faults, N(faults));
}

Test(profile, faults_name_the_key)
{
    static const struct fault faults[] = {
        {"kind", "\"guess\"", ": .kind: must be one of analytic, measured, fitted"},
        {"stages.head", NULL, ": .stages.head: required"},
        {"stages.rope", "{}", ": .stages.rope: unknown key"},
        {"stages.ffn.flop_frac", "[]", ": .stages.ffn.flop_frac: must have 1 to 24 points, got 0"},
        {"stages.ffn.flop_frac", "[[1]]", ": point 0 must be [size, fraction]"},
        {"stages.ffn.flop_frac", "[3]", ": point 0 must be [size, fraction]"},
        {"stages.ffn.flop_frac", "[[1, \"x\"]]", ": point 0 must be [size, fraction]"},
        {"stages.ffn.hbm_frac", "[[0, 0.5]]", ": point 0: sizes must be positive"},
        {"stages.ffn.hbm_frac", "[[2, 0.5], [2, 0.6]]", ": point 1: sizes must be positive"},
        {"stages.ffn.hbm_frac", "[[1, 0.5], [2, 0]]", ": point 1: the fraction must be above 0"},
        {"stages.ffn.hbm_frac", "[[1, 1.6]]", ": point 0: the fraction must be above 0"},
        {"stages.proj.launch_us", "-1", ": .stages.proj.launch_us: must be in [0, "},
        {"stages.proj.launch_ms", "1", ": .stages.proj.launch_ms: unknown key (did you mean"},
        {"attention", "{\"mla_prefill\": \"eager\"}",
         ": .attention.mla_prefill: must be one of expanded, absorbed"},
        {"attention", "{\"positions\": \"whole\"}",
         ": .attention.positions: must be one of split, partial"},
        {"attention", "{\"row_tokens\": -1}", ": .attention.row_tokens: must be in [0, "},
        {"attention", "{\"merge_ms\": 1}", ": .attention.merge_ms: unknown key (did you mean"},
        {"layer_launch_us", "-1", ": .layer_launch_us: must be in [0, "},
        {"overlap_frac", "1.5", ": .overlap_frac: must be in [0, 1]"},
        {"expert_imbalance", "0.9", ": .expert_imbalance: must be in [1, "},
        {"transfer.kv_factor", "0", ": .transfer.kv_factor: must be in [0.01, "},
        {"transfer.beside_frac", "1.1", ": .transfer.beside_frac: must be in [0.001, 1]"},
        {"transfer.regroup_hbm_frac", "0", ": .transfer.regroup_hbm_frac: must be in [0.001, "},
        {"transfer.factor", "1", ": .transfer.factor: unknown key"},
        {"collectives", "\"h201\"", "unknown nccl table \"h201\" (did you mean \"h"},
    };
    check_faults("profiles", "h200-analytic", faults, N(faults));
}

Test(profile, more_points_than_fit_are_refused)
{
    char points[512] = "[";
    for (int i = 1; i <= PROFILE_POINTS_MAX + 1; i++)
        sprintf(points + strlen(points), "%s[%d, 0.5]", i > 1 ? "," : "", i);
    strcat(points, "]");
    const struct fault fault = {"stages.proj.hbm_frac", points, "must have 1 to 24 points, got 25"};
    check_faults("profiles", "h200-analytic", &fault, 1);
}

Test(model, text_that_is_no_model_is_refused)
{
    static const struct {
        const char *text, *want;
    } bad[] = {
        {"{\"model\": NaN}", ":1: "},
        {"{\"model\": 1e999}", ":1: "},
        {"", "is empty"},
        {"[1]", "must be a JSON object"},
        {"{\"model\":1,\"model\":1}", ":1: "},
        {"{\"device\":1}", ".model: required"},
    };
    for (int i = 0; i < N(bad); i++) {
        char path[32];
        struct model m;
        struct err err = ERR_NONE;
        write_temp(path, bad[i].text);
        cr_assert_eq(model_load(&m, path, &err), -1, "%s", bad[i].text);
        cr_assert(strstr(err.text, bad[i].want) != NULL, "%s", err.text);
        unlink(path);
    }
}

Test(model, failed_load_leaves_the_output_alone)
{
    struct model m;
    struct err err = ERR_NONE;
    memset(&m, 0x5a, sizeof m);
    cr_assert_eq(model_load(&m, "./no-such-file.json", &err), -1);
    for (size_t i = 0; i < sizeof m; i++)
        cr_assert_eq(((unsigned char *)&m)[i], 0x5a);
}
