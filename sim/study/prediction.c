/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/study/prediction.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "sim/base/units.h"
#include "sim/cost/cost.h"

/* Beyond these a time may pass what the clock can count. */
static const int64_t rows_max = 1 << 20, tokens_max = 1LL << 40;

static int find_layout(const struct cost *c, const char *name)
{
    int l = cost_n_layouts(c) - 1;
    while (l >= 0 && strcmp(cost_layout(c, l)->name, name) != 0)
        l--;
    return l;
}

static bool is_countable(const struct plan_step *s)
{
    int64_t rows = 0, tokens = 0;
    for (int i = 0; i < s->n_rows && tokens <= tokens_max; i++) {
        rows += s->row[i].q < rows_max ? s->row[i].q : rows_max;
        tokens += s->row[i].ctx_tokens;
    }
    return rows <= rows_max && tokens <= tokens_max;
}

/* Plans list decoding requests first, as a batch wants them. */
static struct batch make_batch(const struct plan_step *s, struct batch_item *item)
{
    struct batch b = {.n = s->n_rows, .item = item};
    for (int i = 0; i < s->n_rows; i++) {
        const struct plan_row *r = &s->row[i];
        item[i] = (struct batch_item){r->ctx_tokens, (int32_t)r->q, r->owner};
        b.n_decode += r->q == 1 && b.n_decode == i;
    }
    return b;
}

static bool is_time(const struct seg *predicted, int64_t ns)
{
    return (predicted->a_ps + PS_PER_NS / 2) / PS_PER_NS == ns;
}

static bool matches(const struct cost *c, const struct plan_step *s)
{
    int layout = find_layout(c, s->layout);
    if (layout < 0 || !is_countable(s))
        return false;
    struct batch_item *item = xcalloc((size_t)s->n_rows, sizeof *item);
    struct batch batch = make_batch(s, item);
    struct step_cost cost;
    cost_step(c, layout, &batch, &cost);
    free(item);
    return is_time(&cost.proj, s->pred.proj_ns) && is_time(&cost.attn, s->pred.attn_ns) &&
           is_time(&cost.exchange, s->pred.exchange_ns) && is_time(&cost.ffn, s->pred.ffn_ns);
}

int prediction_matches(const struct cost *c, const struct plan *p)
{
    int n = 0;
    if (p->header.ranks != cost_ranks(c) || p->header.layers != cost_model(c)->layers)
        return 0;
    for (int i = 0; i < p->n; i++)
        n += matches(c, &p->step[i]);
    return n;
}
