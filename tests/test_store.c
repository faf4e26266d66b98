/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/store.h"

#include <math.h>

#include "replay/values.h"

#include <criterion/criterion.h>

static struct slice load_slice(const char *name)
{
    struct err err = ERR_NONE;
    struct slice s = {.layers = 4, .seed = 7};
    int rc = model_load(&s.model, name, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    return s;
}

static struct layout parse(const char *text, const struct slice *s, int ranks)
{
    struct err err = ERR_NONE;
    struct layout l;
    int rc = layout_parse(&l, text, &s->model, ranks, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    return l;
}

/* tiny-mla: 8 heads; Q-B 32 + 16 rows a head of 96; O 256 rows, 32 columns a head. */
Test(store, holds_its_heads_and_nan_elsewhere)
{
    struct slice s = load_slice("tiny-mla");
    struct layout l = parse("tp", &s, 2);
    struct store st;
    store_init(&st, &s, &l, 1);
    const double *q_b = store_weight(&st, 2, MAT_Q_B), *o = store_weight(&st, 2, MAT_O);
    int half = 4 * 48 * 96;
    cr_assert(isnan(q_b[0]) && isnan(q_b[half - 1]));
    cr_assert_eq(q_b[half], slice_weight(&s, 2, MAT_Q_B, 4 * 48, 0));
    cr_assert_eq(q_b[2 * half - 1], slice_weight(&s, 2, MAT_Q_B, 8 * 48 - 1, 95));
    cr_assert(isnan(o[3 * 256 + 127]));
    cr_assert_eq(o[3 * 256 + 128], slice_weight(&s, 2, MAT_O, 3, 128));
    store_release(&st);
}

Test(store, keeps_full_projections_in_the_first_layers_of_a_cached_layout)
{
    struct slice s = load_slice("tiny-mla");
    struct layout l = parse("dop:cache=0.5", &s, 4);
    struct store st;
    store_init(&st, &s, &l, 3);
    for (int layer = 0; layer < 4; layer++)
        cr_assert_eq(!isnan(store_weight(&st, layer, MAT_K_B)[0]), layer < 2, "layer %d", layer);
    store_release(&st);
}

/* 16 experts on 3 ranks: 5, 5, 6; rank 1 starts with expert 5. */
Test(store, cuts_experts_that_ranks_do_not_divide)
{
    struct slice s = load_slice("tiny-moe");
    struct layout l = parse("dp", &s, 3);
    struct store_span last = store_span_of(16, 2, 3);
    struct store st;
    store_init(&st, &s, &l, 1);
    cr_assert_eq(store_weight(&st, 3, MAT_GATE)[0], slice_weight(&s, 3, MAT_GATE, 5 * 128, 0));
    cr_assert_eq(store_weight(&st, 3, MAT_DOWN)[0], slice_weight(&s, 3, MAT_DOWN, 5 * 256, 0));
    cr_assert(last.first == 10 && last.end == 16);
    store_release(&st);
}

/* Rank 3 of 4: KV head 1, odd blocks. */
Test(store, places_blocks_of_16_positions_round_robin)
{
    static const struct {
        int position, head;
        bool held;
    } at[] = {{15, 1, false}, {16, 1, true},  {31, 1, true}, {32, 1, false},
              {48, 1, true},  {16, 0, false}, {31, 0, false}};
    struct slice s = load_slice("tiny-gqa");
    struct layout l = parse("helix:kvp=2,tpa=2", &s, 4);
    struct store st;
    store_init(&st, &s, &l, 3);
    int request = store_add(&st, &l, 9, 0, 50);
    const double *kv = st.request[request].kv[1];
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        int column = at[i].head * 64; /* K and V of a head are 2 * 32 */
        double x = kv[at[i].position * 128 + column];
        if (at[i].held)
            cr_assert_eq(x, value_at(7, VALUE_HISTORY, 9, at[i].position, 1, column));
        else
            cr_assert(isnan(x), "position %d, head %d", at[i].position, at[i].head);
    }
    store_release(&st);
}

Test(store, keeps_what_it_holds_when_a_context_grows_and_others_go)
{
    struct slice s = load_slice("tiny-gqa");
    struct layout l = parse("dp", &s, 2);
    struct store st;
    store_init(&st, &s, &l, 0);
    store_add(&st, &l, 1, 0, 3);
    store_add(&st, &l, 2, 0, 3);
    store_remove(&st, store_find(&st, 1));
    int request = store_find(&st, 2);
    cr_assert_eq(request, 0);
    cr_assert_eq(store_find(&st, 1), -1);
    store_extend(&st, request, 100);
    const double *kv = st.request[request].kv[0];
    cr_assert_eq(kv[2 * 128], value_at(7, VALUE_HISTORY, 2, 2, 0, 0));
    cr_assert(isnan(kv[3 * 128]));
    store_release(&st);
}
