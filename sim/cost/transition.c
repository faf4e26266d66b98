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
    double taken_ps[MOVES_COUNT]; /* of HBM's time, from what it paces */
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

static double taken_ps(const struct cost *c, double link_bytes, double regroup_bytes)
{
    const struct profile *p = c->profile;
    return 1e12 * (p->transfer.link_interference * through_hbm_s(c, link_bytes, 1) +
                   p->transfer.regroup_interference * through_hbm_s(c, regroup_bytes, 1));
}

static struct layer_sort sort_of(const struct cost *c, int n, const struct weights_move *weights,
                                 enum primitive primitive, const struct transfer *state)
{
    struct layer_sort s = {n, {0, state_ps(c, primitive, state)}, {0}};
    s.taken_ps[MOVES_KV] = taken_ps(c, state->link_bytes, state->regroup_bytes);
    if (weights != NULL) {
        s.alone_ps[MOVES_WEIGHTS] = weights_ps(c, weights);
        s.taken_ps[MOVES_WEIGHTS] = taken_ps(c, weights->recv_bytes, 0);
    }
    return s;
}

static void sort_layers(const struct cost *c, const struct manifest *mf, const struct transfer *kv,
                        const struct transfer *state, struct layer_sort s[SORTS])
{
    int kv_layers = model_kv_layers(&c->model);
    int moving = (int)(mf->weights.layers_frac * kv_layers + 0.5);
    s[0] = sort_of(c, moving, &mf->weights, mf->kv.primitive, kv);
    s[1] = sort_of(c, kv_layers - moving, NULL, mf->kv.primitive, kv);
    s[2] = sort_of(c, c->model.linear.layers, &mf->linear_weights, mf->state.primitive, state);
}

/* A layer's computation, and how much of it HBM paces. */
struct computed {
    double all_ps, hbm_ps;
};

/* By how much computation takes longer beside a transfer: that keeps HBM busy for a part of its
 * time, and what HBM paces stands still meanwhile. */
static double slows_by(const struct computed *l, double beside_ps, double taken_ps)
{
    const double most = 0.9;
    if (beside_ps <= 0 || l->all_ps <= 0)
        return 0;
    double lost = taken_ps / beside_ps * l->hbm_ps / l->all_ps;
    return lost < most ? lost / (1 - lost) : most / (1 - most);
}

/* What a later layer adds that moves while the layer before is computed: as far as it outlasts
 * that, and as far as it slows it down. */
static double late_ps(const struct cost *c, const struct layer_sort *s, const struct computed *l)
{
    const double speed = c->profile->transfer.beside_frac;
    double left_ps = l->all_ps, late_ps = 0;
    for (int m = 0; m < MOVES_COUNT; m++) {
        double beside_ps = (double)s->alone_ps[m] / speed;
        double slows = slows_by(l, beside_ps, s->taken_ps[m]), room_ps = left_ps * (1 + slows);
        if (beside_ps <= room_ps) {
            double computed_ps = beside_ps / (1 + slows);
            late_ps += beside_ps - computed_ps;
            left_ps -= computed_ps;
        } else {
            late_ps += left_ps * slows + (double)s->alone_ps[m] - speed * room_ps;
            left_ps = 0;
        }
    }
    return late_ps;
}

/* What a layer computes, by whether its FFN is dense: those come first. */
struct compute {
    int n_dense;
    struct computed dense, other;
};

static struct compute compute_of(const struct model *m, const struct step_cost *step)
{
    int others = m->layers - m->dense_layers;
    double all_ps = (double)(step->proj.a_ps + step->attn.a_ps + step->exchange.a_ps) / m->layers;
    double hbm_ps = (double)step->hbm_ps / m->layers;
    double dense_ps = (double)step->dense_ffn_ps, dense_hbm_ps = (double)step->dense_ffn_hbm_ps;
    struct compute c = {
        m->dense_layers, {all_ps + dense_ps, hbm_ps + dense_hbm_ps}, {all_ps, hbm_ps}};
    if (others > 0) {
        c.other.all_ps += ((double)step->ffn.a_ps - m->dense_layers * dense_ps) / others;
        c.other.hbm_ps += ((double)step->ffn_hbm_ps - m->dense_layers * dense_hbm_ps) / others;
    }
    return c;
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
        late += after_dense * late_ps(c, s, &compute->dense);
        late += after_others * late_ps(c, s, &compute->other);
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
