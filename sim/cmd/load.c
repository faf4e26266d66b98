/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cmd/load.h"

#include "sim/base/mem.h"

struct engine_request *load_requests(const struct trace *t)
{
    struct engine_request *request = xcalloc(t->n, sizeof *request);
    for (size_t i = 0; i < t->n; i++) {
        const struct trace_request *r = &t->request[i];
        request[i] = (struct engine_request){.arrival_ps = r->arrival_ps,
                                             .input_tokens = r->input_tokens,
                                             .output_tokens = r->output_tokens,
                                             .delay_ps = r->delay_ps,
                                             .after_at = r->after_at,
                                             .hash_at = r->hash_at,
                                             .n_after = r->n_after,
                                             .n_hashes = r->n_hashes,
                                             .session = (uint32_t)(r->session + 1)};
    }
    return request;
}

struct engine_input load_input(const struct trace *t, const struct engine_request *request)
{
    return (struct engine_input){
        .request = request,
        .n_requests = (int64_t)t->n,
        .after = t->after,
        .hash = t->hash,
        .block_tokens = t->block_tokens,
    };
}

/* Prefix affinity goes by what the trace knows of prompts. */
static int check_router(const struct trace *t, const struct engine_config *c, struct err *err)
{
    if (c->router == ROUTE_PREFIX_AFFINITY && t->n_hashes == 0 && t->session.n == 0)
        return err_set(err,
                       "%s: has neither hashes of prompts nor sessions, by which "
                       "--router prefix-affinity goes; use least-loaded",
                       t->path);
    return 0;
}

static int check_prefix_cache(const struct trace *t, const struct engine_config *c,
                              const struct model *m, struct err *err)
{
    if (!c->prefix_cache)
        return c->owners == OWNER_PREFIX ? err_set(err, "--owners prefix: needs --prefix-cache")
                                         : 0;
    if (t->n_hashes == 0)
        return err_set(err,
                       "--prefix-cache: %s (%s) has no hashes of prompt blocks; docs/formats.md "
                       "says which formats have",
                       t->path, t->format);
    if (m->linear.layers > 0)
        return err_set(err,
                       "--prefix-cache: %s has layers of linear attention, whose state at the end "
                       "of a prefix no block keeps",
                       m->name);
    return 0;
}

int load_check(const struct trace *t, const struct engine_config *c, const struct model *m,
               struct err *err)
{
    return check_router(t, c, err) < 0 ? -1 : check_prefix_cache(t, c, m, err);
}

int load_slo(struct engine_config *c, const char *text, struct err *err)
{
    static const struct opt limits[] = {
        {.name = "ttft", .type = OPT_TIME, .offset = offsetof(struct engine_config, slo_ttft_ps)},
        {.name = "tpot", .type = OPT_TIME, .offset = offsetof(struct engine_config, slo_tpot_ps)},
        {.name = "e2e", .type = OPT_TIME, .offset = offsetof(struct engine_config, slo_e2e_ps)},
        {0},
    };
    return opt_parse_list(limits, c, "--slo", text, err);
}
