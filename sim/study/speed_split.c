/* SPDX-License-Identifier: Apache-2.0
 *
 * A row's steps, priced stage by stage.
 */
#include <stdlib.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "sim/study/prefill.h"
#include "sim/study/speed_internal.h"

/* `k` steps of a segment. Waiting for the rank with most experts' work grows with the FFN. */
static void add_steps(struct speed_split *s, const struct step_cost *c, int64_t k, int attention)
{
    double wait_s = (double)k * ps_to_s(c->wait_ps), once_s;
    double proj_s = ps_to_s(seg_sum(c->proj, k)), attn_s = ps_to_s(seg_sum(c->attn, k));
    double ffn_s = ps_to_s(seg_sum(c->ffn, k)), exchange_s = ps_to_s(seg_sum(c->exchange, k));
    once_s = ps_to_s(seg_sum(c->step, k)) - proj_s - attn_s - ffn_s - exchange_s;
    s->part_s[SPEED_PROJ] += proj_s;
    s->part_s[attention] += attn_s;
    s->part_s[SPEED_FFN] += ffn_s + wait_s;
    s->part_s[SPEED_EXCHANGE] += exchange_s - wait_s;
    s->part_s[SPEED_LAUNCH] += 1e-6 * (double)k;
    s->rest_s += once_s;
}

static void add_prefill_step(void *split, const struct step_cost *step)
{
    add_steps(split, step, 1, SPEED_ATTN_PREFILL);
}

/* All requests alike, dealt out to owners in turn. */
static struct batch_item *items_of(const struct speed *r, int ranks, int64_t ctx_tokens, int64_t q)
{
    struct batch_item *item = xcalloc((size_t)r->batch, sizeof *item);
    for (int i = 0; i < r->batch; i++)
        item[i] = (struct batch_item){ctx_tokens, (int32_t)q, i % ranks};
    return item;
}

/* `steps` steps, the first with contexts of `ctx_tokens`. */
static void add_decode(struct speed_split *s, const struct cost *c, int layout,
                       const struct speed *r, int64_t ctx_tokens, int64_t steps)
{
    struct batch_item *item = items_of(r, cost_ranks(c), ctx_tokens, 1);
    struct batch b = {r->batch, r->batch, item};
    while (steps > 0) {
        struct step_cost cost;
        cost_step(c, layout, &b, &cost);
        int64_t k = min_i64(steps, cost.step.n);
        add_steps(s, &cost, k, SPEED_ATTN_DECODE);
        for (int i = 0; i < r->batch; i++)
            item[i].ctx_tokens += k;
        steps -= k;
    }
    free(item);
}

static void add_whole_prompts(struct speed_split *s, const struct cost *c, const struct speed *r)
{
    struct batch_item *item = items_of(r, cost_ranks(c), r->input_tokens, r->input_tokens);
    struct batch b = {0, r->batch, item};
    struct step_cost cost;
    cost_step(c, r->layout, &b, &cost);
    add_prefill_step(s, &cost);
    free(item);
}

struct speed_split speed_predict(const struct cost *c, const struct speeds *s,
                                 const struct speed *r, double step_launch_us)
{
    struct speed_split split = {0};
    if (r->is_step && r->output_tokens == 0) {
        add_whole_prompts(&split, c, r);
    } else if (r->is_step) {
        add_decode(&split, c, r->layout, r, r->input_tokens + r->output_tokens, 1);
    } else {
        int decode = s->decode_layout >= 0 ? s->decode_layout : r->layout;
        prefill_steps(c, r->layout, r->batch, r->input_tokens, add_prefill_step, &split);
        add_decode(&split, c, decode, r, r->input_tokens + 1, r->output_tokens - 1);
    }
    split.rest_s -= step_launch_us * split.part_s[SPEED_LAUNCH];
    return split;
}

double speed_split_s(const struct speed_split *split, double step_launch_us)
{
    double sum_s = split->rest_s + step_launch_us * split->part_s[SPEED_LAUNCH];
    for (int k = 0; k < SPEED_LAUNCH; k++)
        sum_s += split->part_s[k];
    return sum_s;
}
