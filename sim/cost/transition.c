/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cost/transition.h"

#include "sim/base/units.h"
#include "sim/cost/cost_internal.h"

const char *const mechanism_names[MECH_COUNT] = {
    [MECH_OVERLAPPED] = "overlapped", [MECH_BLOCKING] = "blocking", [MECH_DRAIN] = "drain",
    [MECH_RESTART] = "restart",       [MECH_FREE] = "free",
};

/* One state of one layer: over the network by its primitive, then through HBM into its new place.
 */
static int64_t move_ps(const struct cost *c, enum primitive primitive, double link_bytes,
                       double repack_bytes, double factor)
{
    int ranks = c->cluster.ranks;
    if (primitive == PRIM_KEEP || primitive == PRIM_DISCARD || link_bytes <= 0)
        return 0;
    enum collective op = primitive == PRIM_ALL_GATHER ? COLL_ALL_GATHER : COLL_ALL_TO_ALL;
    double size = link_bytes * ranks / (ranks - 1);
    double bandwidth = c->cluster.device.hbm_gb_per_s * 1e9 * c->profile->transfer.repack_hbm_frac;
    return round_ps(factor * collective_s(&c->profile->collectives, op, ranks, size) +
                    2 * repack_bytes / bandwidth);
}

/* Layers of a model fall into three sorts by what moves in them. */
struct layer_sorts {
    int n[3];
    int64_t transfer_ps[3];
};

static void sort_layers(const struct cost *c, const struct manifest *mf, const struct transfer *kv,
                        const struct transfer *state, struct layer_sorts *s)
{
    const struct profile *p = c->profile;
    int64_t weights_ps = move_ps(c, mf->weights.primitive, mf->weights.recv_bytes,
                                 mf->weights.repack_bytes, p->transfer.weights_factor);
    int64_t kv_ps =
        move_ps(c, mf->kv.primitive, kv->link_bytes, kv->repack_bytes, p->transfer.kv_factor);
    int64_t linear_ps = move_ps(c, mf->linear_weights.primitive, mf->linear_weights.recv_bytes,
                                mf->linear_weights.repack_bytes, p->transfer.weights_factor) +
                        move_ps(c, mf->state.primitive, state->link_bytes, state->repack_bytes,
                                p->transfer.kv_factor);
    int kv_layers = model_kv_layers(&c->model);
    int moving = (int)(mf->weights.layers_frac * kv_layers + 0.5);
    *s = (struct layer_sorts){
        .n = {moving, kv_layers - moving, c->model.linear.layers},
        .transfer_ps = {weights_ps + kv_ps, kv_ps, linear_ps},
    };
}

/* Eq. 7: the first layer's transfer shows whole, a later one as far as it outlasts the layer
 * before, which it slows by a share of the time beside it. */
static void expose(const struct layer_sorts *s, int64_t compute_ps, double interference_frac,
                   struct transition *out)
{
    bool first = true;
    for (int sort = 0; sort < 3; sort++) {
        int64_t x = s->transfer_ps[sort], beside = x < compute_ps ? x : compute_ps;
        if (s->n[sort] == 0)
            continue;
        int64_t late = x - beside + (int64_t)(interference_frac * (double)beside + 0.5);
        out->blocking_ps += s->n[sort] * x;
        out->exposed_ps += first ? x + (s->n[sort] - 1) * late : s->n[sort] * late;
        first = false;
    }
}

/* Over all ranks, in the mean layer: every rank receives alike. */
static double moved_weights(const struct manifest *mf, const struct weights_move *mv)
{
    return mf->ranks * mv->layers_frac * mv->recv_bytes;
}

/* One request for each owner that has tokens. */
static struct transfer state_transfer(const struct cost *c, const struct manifest *mf,
                                      const int64_t *ctx_tokens)
{
    int64_t requests[RANKS_MAX];
    for (int r = 0; r < mf->ranks; r++)
        requests[r] = ctx_tokens[r] > 0;
    return manifest_state_transfer(mf, &c->model, requests);
}

void transition_cost(const struct cost *c, int from, int to, const int64_t *ctx_tokens,
                     const struct step_cost *step, struct transition *out)
{
    *out = (struct transition){0};
    if (from == to)
        return;
    const struct manifest *mf = cost_manifest(c, from, to);
    struct transfer kv = manifest_kv_transfer(mf, &c->model, ctx_tokens);
    struct transfer state = state_transfer(c, mf, ctx_tokens);
    struct layer_sorts sorts;
    sort_layers(c, mf, &kv, &state, &sorts);
    int64_t compute_ps =
        (step->proj.a_ps + step->attn.a_ps + step->exchange.a_ps + step->ffn.a_ps) /
        c->model.layers;
    expose(&sorts, compute_ps, c->profile->transfer.interference_frac, out);
    out->layer_ps = sorts.transfer_ps[sorts.n[0] > 0 ? 0 : 1];
    out->weights_recv_bytes_per_layer = mf->weights.recv_bytes;
    out->kv_recv_bytes_per_layer = kv.recv_bytes;
    out->moved_bytes =
        model_kv_layers(&c->model) * (kv.moved_bytes + moved_weights(mf, &mf->weights)) +
        c->model.linear.layers * (state.moved_bytes + moved_weights(mf, &mf->linear_weights));
}

static int64_t reload_ps(const struct cost *c, int layout)
{
    const struct capacity *cap = cost_capacity(c, layout);
    double rate = c->cluster.device.host_load_gb_per_s * 1e9;
    return round_ps((cap->common_bytes + cap->weights_bytes) / rate);
}

int64_t transition_charge_ps(const struct cost *c, int to, const struct transition *t,
                             enum mechanism m)
{
    switch (m) {
    case MECH_OVERLAPPED: return t->exposed_ps;
    case MECH_BLOCKING:
    case MECH_DRAIN: return t->blocking_ps;
    case MECH_RESTART: return reload_ps(c, to);
    default: return 0;
    }
}
