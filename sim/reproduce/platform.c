/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/reproduce/platform.h"

#include <assert.h>
#include <string.h>

static const struct platform platforms[PLATFORMS] = {
    {.name = "b200",
     .model_name = "glm-5.3",
     .cluster_name = "b200x8",
     .primitives_table = "figure5",
     .switches_table = "table1",
     .throughput_table = "table4",
     .ctx_tokens = 262144,
     .overhead_max_frac = 0.0051},
    {.name = "dcu",
     .model_name = "glm-5.3-flash",
     .cluster_name = "bw1000x8",
     .primitives_table = "figure9",
     .switches_table = "table7",
     .throughput_table = "table5",
     .ctx_tokens = 131072,
     .overhead_max_frac = 0.018},
    {.name = "h200",
     .model_name = "deepseek-v3.2",
     .cluster_name = "h200x8",
     .primitives_table = "figure11",
     .switches_table = "table8",
     .throughput_table = "table6",
     .ctx_tokens = 131072,
     .overhead_max_frac = 0.0139},
};

int platform_load(struct platform *p, int i, struct err *err)
{
    assert(i >= 0 && i < PLATFORMS);
    *p = platforms[i];
    if (model_load(&p->model, p->model_name, err) < 0 ||
        cluster_load(&p->cluster, p->cluster_name, err) < 0 ||
        layout_parse_list(p->layout, "tp,cp,dp,dop", &p->model, p->cluster.ranks, err) < 0 ||
        profile_load(&p->profile, p->cluster.profile, err) < 0)
        return -1;
    p->cost = cost_new(&p->model, &p->cluster, &p->profile, p->layout, PLATFORM_LAYOUTS, 64);
    platform_deal(p, SWITCH_BATCH, p->ctx_tokens, p->owned_tokens);
    return 0;
}

void platform_keep_kv_layers(struct platform *p)
{
    p->model.layers = model_kv_layers(&p->model);
    p->model.linear.layers = 0;
    cost_free(p->cost);
    p->cost = cost_new(&p->model, &p->cluster, &p->profile, p->layout, PLATFORM_LAYOUTS, 64);
}

void platform_release(struct platform *p)
{
    cost_free(p->cost);
    profile_release(&p->profile);
}

void platform_deal(const struct platform *p, int requests, int64_t ctx_tokens,
                   int64_t owned_tokens[RANKS_MAX])
{
    int ranks = p->cluster.ranks;
    for (int rank = 0; rank < RANKS_MAX; rank++)
        owned_tokens[rank] = rank < ranks ? (requests + ranks - 1 - rank) / ranks * ctx_tokens : 0;
}

int platform_layout(const struct platform *p, const char *name)
{
    int l = 0;
    while (l < PLATFORM_LAYOUTS && strcmp(p->layout[l].name, name) != 0)
        l++;
    assert(l < PLATFORM_LAYOUTS);
    return l;
}
