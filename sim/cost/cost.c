/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cost/cost.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "sim/cost/cost_internal.h"

enum { MEMO_SIZE = 4096 };

double roofline_s(double flop, double read)
{
    return flop > read ? flop : read;
}

struct work roofline(double flop, double read)
{
    return flop > read ? (struct work){flop, 0} : (struct work){read, read};
}

double flop_s(const struct cost *c, enum profile_stage stage, enum number_format format,
              double flop, double size)
{
    if (flop <= 0)
        return 0;
    double frac = efficiency_at(&c->profile->stage[stage].flop_frac, size < 1 ? 1 : size);
    return flop / (device_tflops(&c->cluster.device, format) * 1e12 * frac);
}

double read_s(const struct cost *c, enum profile_stage stage, double bytes, double size)
{
    if (bytes <= 0)
        return 0;
    double frac = efficiency_at(&c->profile->stage[stage].hbm_frac, size < 1 ? 1 : size);
    return bytes / (c->cluster.device.hbm_gb_per_s * 1e9 * frac);
}

double launch_s(const struct cost *c, enum profile_stage stage, double layers)
{
    return 1e-6 * layers * c->profile->stage[stage].launch_us;
}

int64_t round_ps(double seconds)
{
    return ps_from_s(seconds);
}

int cost_sub_batches(const struct layout *l, int64_t rows, int64_t prefill_rows)
{
    if (prefill_rows > 0)
        return 1;
    return rows < l->sub_batches ? (int)rows : l->sub_batches;
}

double cost_hiding_frac(const struct cost *c, int sub_batches)
{
    return sub_batches > 1 ? 1.0 / sub_batches : c->profile->overlap_frac;
}

static void compile_manifests(struct cost *c)
{
    for (int a = 0; a < c->n_layouts; a++)
        for (int b = 0; b < c->n_layouts; b++)
            if (a != b)
                c->manifest[a][b] =
                    manifest_new(&c->layout[a].layout, &c->layout[b].layout, &c->model);
}

/* The most tokens that fit both sides of a switch, evenly owned. */
static void full_pool(const struct cost *c, int from, int to, int64_t *ctx_tokens)
{
    int64_t most = INT64_MAX;
    for (int side = 0; side < 2; side++) {
        const struct layout_cost *l = &c->layout[side ? to : from];
        int64_t pools = l->layout.kv_owned ? l->layout.ranks : l->layout.kv_pos_shards;
        int64_t tokens = l->capacity.pages * c->page_tokens * pools;
        most = tokens < most ? tokens : most;
    }
    for (int r = 0; r < c->cluster.ranks; r++)
        ctx_tokens[r] = most / c->cluster.ranks;
}

/* Delta of Eq. 5: the largest layer in transit of any switch at a full pool. Pools are first sized
 * without it, which can only make it larger. */
static void compile_capacity(struct cost *c)
{
    double transit_bytes = 0;
    for (int l = 0; l < c->n_layouts; l++)
        c->layout[l].capacity =
            capacity_of(&c->model, &c->cluster, &c->layout[l].layout, c->page_tokens, 0);
    for (int a = 0; a < c->n_layouts; a++)
        for (int b = 0; b < c->n_layouts; b++) {
            int64_t tokens[RANKS_MAX];
            if (a == b)
                continue;
            full_pool(c, a, b, tokens);
            double bytes = manifest_transit_bytes(c->manifest[a][b], &c->model, tokens);
            transit_bytes = bytes > transit_bytes ? bytes : transit_bytes;
        }
    for (int l = 0; l < c->n_layouts; l++)
        c->layout[l].capacity = capacity_of(&c->model, &c->cluster, &c->layout[l].layout,
                                            c->page_tokens, transit_bytes);
}

void cost_set_profile(struct cost *c, const struct profile *p)
{
    c->profile = p;
    c->n_profiles++;
    for (int l = 0; l < c->n_layouts; l++)
        attention_compile(c, &c->layout[l].layout, &c->layout[l].attention);
}

struct cost *cost_new(const struct model *m, const struct cluster *cluster, const struct profile *p,
                      const struct layout *layouts, int n_layouts, int page_tokens)
{
    struct cost *c = xcalloc(1, sizeof *c);
    assert(n_layouts >= 1 && n_layouts <= LAYOUT_MAX);
    c->model = *m;
    c->cluster = *cluster;
    c->n_layouts = n_layouts;
    c->page_tokens = page_tokens;
    for (int l = 0; l < n_layouts; l++) {
        assert(layouts[l].ranks == cluster->ranks);
        c->layout[l].layout = layouts[l];
        c->layout[l].memo = xcalloc(MEMO_SIZE, sizeof(struct row_memo));
    }
    cost_set_profile(c, p);
    compile_manifests(c);
    compile_capacity(c);
    return c;
}

void cost_free(struct cost *c)
{
    if (c == NULL)
        return;
    for (int a = 0; a < c->n_layouts; a++) {
        free(c->layout[a].memo);
        for (int b = 0; b < c->n_layouts; b++)
            free(c->manifest[a][b]);
    }
    free(c);
}

int cost_n_layouts(const struct cost *c)
{
    return c->n_layouts;
}

const struct layout *cost_layout(const struct cost *c, int layout)
{
    return &c->layout[layout].layout;
}

const struct model *cost_model(const struct cost *c)
{
    return &c->model;
}

int cost_ranks(const struct cost *c)
{
    return c->cluster.ranks;
}

const struct capacity *cost_capacity(const struct cost *c, int layout)
{
    return &c->layout[layout].capacity;
}

const struct manifest *cost_manifest(const struct cost *c, int from, int to)
{
    return c->manifest[from][to];
}

static struct row_times time_rows(const struct cost *c, const struct layout *l,
                                  const struct row_counts *n)
{
    struct exchange_sums exchange = exchange_sum(c, l, n);
    double wait_s;
    struct work proj = rows_proj(c, l, n), dense = rows_dense_ffn(c, n);
    struct work ffn = rows_ffn(c, n, &wait_s);
    return (struct row_times){
        .proj_ps = round_ps(proj.all_s),
        .ffn_ps = round_ps(ffn.all_s),
        .dense_ffn_ps = round_ps(dense.all_s),
        .proj_hbm_ps = round_ps(proj.hbm_s),
        .ffn_hbm_ps = round_ps(ffn.hbm_s),
        .dense_ffn_hbm_ps = round_ps(dense.hbm_s),
        .once_ps = round_ps(rows_once_s(c, n)),
        .latency_ps = round_ps(exchange.latency_s),
        .wait_ps = round_ps(wait_s),
        .link_ps = round_ps(exchange.link_s),
        .part_ps = round_ps(exchange.part_s),
    };
}

static struct row_times row_times(const struct cost *c, const struct layout_cost *l,
                                  const struct row_counts *n)
{
    uint64_t key = (uint64_t)n->rows * 0x9e3779b97f4a7c15 ^ (uint64_t)n->owner_rows * 0xc2b2ae3d ^
                   (uint64_t)n->sampled_rows * 0x165667b1;
    struct row_memo *memo = &l->memo[(key >> 32 ^ key) % MEMO_SIZE];
    if (memo->profile != c->n_profiles || memcmp(&memo->counts, n, sizeof *n) != 0) {
        memo->counts = *n;
        memo->profile = c->n_profiles;
        memo->times = time_rows(c, &l->layout, n);
    }
    return memo->times;
}

/* Sums of the roofline terms on one rank. */
struct load {
    struct seg flop, read, flop_hiding, read_hiding;
    struct dealt dealt;
};

struct sums {
    int sub_batches;
    struct row_counts rows;
    struct load load[RANKS_MAX]; /* by owner; [0] alone without owners */
    int n_loads;
    int64_t owner_rows[RANKS_MAX];
    int64_t decode_ctx_tokens, chunk_ctx_tokens;
};

static void add_to(struct seg *sum, struct seg x)
{
    sum->a_ps += x.a_ps;
    sum->b_ps += x.b_ps;
    sum->n = x.n < sum->n ? x.n : sum->n;
}

static void add_decode(const struct attention_curves *a, const struct roofline_curves *hiding,
                       const struct batch_item *i, struct load *load)
{
    add_to(&load->flop, curve_seg(&a->whole.flop, i->ctx_tokens));
    add_to(&load->read, curve_seg(&a->whole.read, i->ctx_tokens));
    if (hiding != NULL) {
        add_to(&load->flop_hiding, curve_seg(&hiding->flop, i->ctx_tokens));
        add_to(&load->read_hiding, curve_seg(&hiding->read, i->ctx_tokens));
    }
}

static void add_chunk(const struct cost *c, const struct layout *l, const struct batch_item *i,
                      struct load *load)
{
    double flop, read, eta = c->profile->overlap_frac;
    attention_chunk_s(c, l, i, &flop, &read);
    load->flop.a_ps += round_ps(flop);
    load->read.a_ps += round_ps(read);
    load->flop_hiding.a_ps += round_ps(flop * eta);
    load->read_hiding.a_ps += round_ps(read * eta);
}

static void deal(struct dealt *d, const struct batch_item *i)
{
    int64_t q = i->q;
    d->rows += q;
    d->tokens += q * i->ctx_tokens - q * (q - 1) / 2;
    d->longest_tokens = max_i64(d->longest_tokens, i->ctx_tokens);
}

static void sums_init(struct sums *s, const struct layout *l)
{
    const struct seg zero = seg_const(0);
    s->n_loads = l->kv_owned ? l->ranks : 1;
    s->rows = (struct row_counts){0};
    s->decode_ctx_tokens = s->chunk_ctx_tokens = 0;
    for (int r = 0; r < l->ranks; r++)
        s->owner_rows[r] = 0;
    for (int r = 0; r < s->n_loads; r++)
        s->load[r] = (struct load){zero, zero, zero, zero, {0}};
}

static void sum_batch(const struct cost *c, const struct layout_cost *l, const struct batch *b,
                      struct sums *s)
{
    const struct attention_curves *a = &l->attention;
    bool owned = l->layout.kv_owned;
    sums_init(s, &l->layout);
    s->sub_batches = cost_sub_batches(&l->layout, b->n, b->n - b->n_decode);
    bool hides = cost_hiding_frac(c, s->sub_batches) > 0;
    for (int i = 0; i < b->n; i++) {
        const struct batch_item *item = &b->item[i];
        struct load *load = &s->load[owned ? item->owner : 0];
        deal(&load->dealt, item);
        s->owner_rows[item->owner] += item->q;
        s->rows.rows += item->q;
        if (i < b->n_decode) {
            s->decode_ctx_tokens += item->ctx_tokens;
            add_decode(a, hides ? &a->hiding[s->sub_batches - 1] : NULL, item, load);
        } else {
            s->chunk_ctx_tokens += item->ctx_tokens;
            add_chunk(c, &l->layout, item, load);
        }
    }
    s->rows.prefill_rows = s->rows.rows - b->n_decode;
    s->rows.sampled_rows = b->n;
    for (int r = 0; r < l->layout.ranks; r++)
        if (s->owner_rows[r] > s->rows.owner_rows)
            s->rows.owner_rows = s->owner_rows[r];
}

/* The busiest rank: every rank waits for it. */
static struct seg busiest(const struct cost *c, const struct layout *l, const struct sums *s,
                          bool hiding)
{
    struct seg most = seg_const(0);
    for (int r = 0; r < s->n_loads; r++) {
        const struct load *load = &s->load[r];
        most = seg_max(most, hiding ? seg_max(load->flop_hiding, load->read_hiding)
                                    : seg_add(seg_max(load->flop, load->read),
                                              attention_merge(c, l, &load->dealt)));
    }
    return most;
}

static int64_t attention_hbm_ps(const struct sums *s)
{
    int64_t most_ps = 0, hbm_ps = 0;
    for (int r = 0; r < s->n_loads; r++) {
        int64_t flop_ps = s->load[r].flop.a_ps, read_ps = s->load[r].read.a_ps;
        if (max_i64(flop_ps, read_ps) > most_ps) {
            most_ps = max_i64(flop_ps, read_ps);
            hbm_ps = read_ps >= flop_ps ? read_ps : 0;
        }
    }
    return hbm_ps;
}

static struct seg attention_of(const struct cost *c, const struct layout *l, const struct sums *s,
                               bool hiding)
{
    double launch = s->sub_batches * attention_launch_s(c, &s->rows);
    double fixed = hiding ? launch * cost_hiding_frac(c, s->sub_batches)
                          : launch + attention_combine_s(c, l, &s->rows);
    return seg_add(busiest(c, l, s, hiding), seg_const(round_ps(fixed)));
}

/* What shows of the sub-batches' exchange beside their attention. */
static struct seg exposed_parts(const struct cost *c, const struct layout *l, const struct sums *s,
                                int64_t part_ps)
{
    struct seg attn = attention_of(c, l, s, true);
    struct seg all = seg_pipeline(attn, seg_const(part_ps), s->sub_batches);
    return seg_excess(all, seg_scale(attn, s->sub_batches));
}

static struct seg exchange_of(const struct cost *c, const struct layout_cost *l,
                              const struct batch *b, const struct sums *s,
                              const struct row_times *times)
{
    int64_t per_token = l->attention.fetch_ps_per_token;
    double chunks = exchange_chunks_s(c, &l->layout, s->chunk_ctx_tokens, s->rows.prefill_rows);
    struct seg link = {times->link_ps + round_ps(chunks) + per_token * s->decode_ctx_tokens,
                       per_token * b->n_decode, SEG_FOREVER};
    if (s->sub_batches > 1)
        link = seg_add(link, exposed_parts(c, &l->layout, s, times->part_ps));
    else if (c->profile->overlap_frac > 0)
        link = seg_excess(link, attention_of(c, &l->layout, s, true));
    return seg_add(seg_const(times->latency_ps + times->wait_ps), link);
}

void cost_step(const struct cost *c, int layout, const struct batch *b, struct step_cost *out)
{
    const struct layout_cost *l = &c->layout[layout];
    struct sums sums;
    assert(b->n > 0);
    sum_batch(c, l, b, &sums);
    struct row_times times = row_times(c, l, &sums.rows);

    out->rows = sums.rows.rows;
    out->proj = seg_const(times.proj_ps);
    out->ffn = seg_const(times.ffn_ps);
    out->dense_ffn_ps = times.dense_ffn_ps;
    out->wait_ps = times.wait_ps;
    out->hbm_ps = times.proj_hbm_ps + attention_hbm_ps(&sums);
    out->ffn_hbm_ps = times.ffn_hbm_ps;
    out->dense_ffn_hbm_ps = times.dense_ffn_hbm_ps;
    out->attn = attention_of(c, &l->layout, &sums, false);
    out->exchange = exchange_of(c, l, b, &sums, &times);
    out->step = seg_add(seg_add(out->proj, out->attn),
                        seg_add(seg_add(out->exchange, out->ffn), seg_const(times.once_ps)));
    if (b->n > b->n_decode)
        out->attn.n = out->exchange.n = out->step.n = 1;
}
