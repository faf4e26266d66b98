/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cost/transition.h"

#include "sim/base/units.h"
#include "sim/cost/cost_internal.h"

const char *const mechanism_names[MECH_COUNT] = {
    [MECH_OVERLAPPED] = "overlapped", [MECH_BLOCKING] = "blocking", [MECH_DRAIN] = "drain",
    [MECH_RESTART] = "restart",       [MECH_FREE] = "free",
};

/* What of one layer moves, alone on the machine: weights, then KV or recurrent state. */
enum { MOVES_WEIGHTS, MOVES_KV, MOVES_COUNT };

/* Layers of a model fall into three sorts by what moves in them. */
struct layer_sort {
    int n;
    int64_t alone_ps[MOVES_COUNT];
};

enum { SORTS = 3 };

static double through_hbm_s(const struct cost *c, double bytes, double frac)
{
    return frac > 0 ? 2 * bytes / (c->cluster.device.hbm_gb_per_s * 1e9 * frac) : 0;
}

/* Over the network by its primitive, then through HBM into its new place. */
static double arrive_s(const struct cost *c, enum primitive primitive, double link_bytes,
                       double repack_bytes, double factor)
{
    int ranks = c->cluster.ranks;
    if (primitive == PRIM_KEEP || primitive == PRIM_DISCARD || link_bytes <= 0)
        return 0;
    enum collective op = primitive == PRIM_ALL_GATHER ? COLL_ALL_GATHER : COLL_ALL_TO_ALL;
    double size = link_bytes * ranks / (ranks - 1);
    return factor * collective_s(&c->profile->collectives, op, ranks, size) +
           through_hbm_s(c, repack_bytes, c->profile->transfer.repack_hbm_frac);
}

static int64_t weights_ps(const struct cost *c, const struct weights_move *mv)
{
    return round_ps(arrive_s(c, mv->primitive, mv->recv_bytes, mv->repack_bytes,
                             c->profile->transfer.weights_factor));
}

static int64_t state_ps(const struct cost *c, enum primitive primitive, const struct transfer *t)
{
    const struct profile *p = c->profile;
    return round_ps(arrive_s(c, primitive, t->link_bytes, t->repack_bytes, p->transfer.kv_factor) +
                    through_hbm_s(c, t->regroup_bytes, p->transfer.regroup_hbm_frac));
}

static void sort_layers(const struct cost *c, const struct manifest *mf, const struct transfer *kv,
                        const struct transfer *state, struct layer_sort s[SORTS])
{
    int kv_layers = model_kv_layers(&c->model);
    int moving = (int)(mf->weights.layers_frac * kv_layers + 0.5);
    int64_t kv_ps = state_ps(c, mf->kv.primitive, kv);
    s[0] = (struct layer_sort){moving, {weights_ps(c, &mf->weights), kv_ps}};
    s[1] = (struct layer_sort){kv_layers - moving, {0, kv_ps}};
    s[2] = (struct layer_sort){
        c->model.linear.layers,
        {weights_ps(c, &mf->linear_weights), state_ps(c, mf->state.primitive, state)}};
}

/* What a later layer adds that moves while `compute_ps` of the layer before is computed: as far as
 * it outlasts that, and as far as it slows it down. */
static double late_ps(const struct cost *c, const struct layer_sort *s, double compute_ps)
{
    const double speed = c->profile->transfer.beside_frac;
    const double slows[MOVES_COUNT] = {c->profile->transfer.weights_interference_frac,
                                       c->profile->transfer.kv_interference_frac};
    double left_ps = compute_ps, late_ps = 0;
    for (int m = 0; m < MOVES_COUNT; m++) {
        double beside_ps = (double)s->alone_ps[m] / speed, room_ps = left_ps * (1 + slows[m]);
        if (beside_ps <= room_ps) {
            double computed_ps = beside_ps / (1 + slows[m]);
            late_ps += beside_ps - computed_ps;
            left_ps -= computed_ps;
        } else {
            late_ps += left_ps * slows[m] + (double)s->alone_ps[m] - speed * room_ps;
            left_ps = 0;
        }
    }
    return late_ps;
}

/* What a layer computes, by whether its FFN is dense: those come first. */
struct compute {
    int n_dense;
    double dense_ps, other_ps;
};

static struct compute compute_of(const struct model *m, const struct step_cost *step)
{
    double all_ps = (double)(step->proj.a_ps + step->attn.a_ps + step->exchange.a_ps) / m->layers;
    double dense_ps = (double)step->dense_ffn_ps;
    int others = m->layers - m->dense_layers;
    double rest_ps = (double)step->ffn.a_ps - m->dense_layers * dense_ps;
    return (struct compute){m->dense_layers, all_ps + dense_ps,
                            all_ps + (others > 0 ? rest_ps / others : 0)};
}

static int n_common(int a, int a_end, int b, int b_end)
{
    int first = a > b ? a : b, end = a_end < b_end ? a_end : b_end;
    return end > first ? end - first : 0;
}

/* Eq. 7: the first layer's transfer shows whole, a later one as far as it is late. */
static void expose(const struct cost *c, const struct layer_sort sort[SORTS],
                   const struct compute *compute, struct transition *out)
{
    int layers = c->model.layers, at = 0;
    double late = 0;
    for (int i = 0; i < SORTS; i++) {
        const struct layer_sort *s = &sort[i];
        int64_t alone_ps = s->alone_ps[MOVES_WEIGHTS] + s->alone_ps[MOVES_KV];
        int end = at + s->n, after_dense = n_common(at, end, 1, compute->n_dense + 1);
        int after_others = n_common(at, end, compute->n_dense + 1, layers);
        out->blocking_ps += s->n * alone_ps;
        out->first_ps = at == 0 && s->n > 0 ? alone_ps : out->first_ps;
        late += after_dense * late_ps(c, s, compute->dense_ps);
        late += after_others * late_ps(c, s, compute->other_ps);
        at = end;
    }
    out->exposed_ps = out->first_ps + (int64_t)(late + 0.5);
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
    struct layer_sort sorts[SORTS];
    struct compute compute = compute_of(&c->model, step);
    sort_layers(c, mf, &kv, &state, sorts);
    expose(c, sorts, &compute, out);
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
