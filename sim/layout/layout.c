/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/layout/layout.h"

#include <assert.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "sim/base/opt.h"

const char *const layout_kind_names[LAYOUT_KIND_COUNT] = {
    [LAYOUT_TP] = "tp",   [LAYOUT_CP] = "cp",       [LAYOUT_DP] = "dp",
    [LAYOUT_DOP] = "dop", [LAYOUT_HELIX] = "helix",
};

/* What may follow the colon; fields of other kinds stay zero. */
struct variant {
    int storage, rows; /* 0 is the default: by position, replicated */
    double cache_frac;
    int64_t kvp, tpa, hopb;
};

static const struct opt no_options[] = {{0}};

static const struct opt cp_options[] = {
    {.name = "storage",
     .type = OPT_ENUM,
     .offset = offsetof(struct variant, storage),
     .def = "position",
     .choices = "position|layer",
     .help = "what a rank holds of every history"},
    {0},
};

static const struct opt dop_options[] = {
    {.name = "cache",
     .type = OPT_F64,
     .offset = offsetof(struct variant, cache_frac),
     .def = "0",
     .max = 1,
     .help = "share of layers that keep full projections"},
    {.name = "rows",
     .type = OPT_ENUM,
     .offset = offsetof(struct variant, rows),
     .def = "replicated",
     .choices = "replicated|owned",
     .help = "where hidden rows live between stages"},
    {0},
};

static const struct opt helix_options[] = {
    {.name = "kvp",
     .type = OPT_I64,
     .offset = offsetof(struct variant, kvp),
     .min = 1,
     .max = RANKS_MAX,
     .help = "ways that a history is split by position"},
    {.name = "tpa",
     .type = OPT_I64,
     .offset = offsetof(struct variant, tpa),
     .min = 1,
     .max = RANKS_MAX,
     .help = "ways that attention is split by KV head"},
    {.name = "hopb",
     .type = OPT_I64,
     .offset = offsetof(struct variant, hopb),
     .def = "1",
     .min = 1,
     .max = SUB_BATCHES_MAX,
     .help = "sub-batches of decode, exchanged beside attention (HOP-B)"},
    {0},
};

static const struct opt *const variant_options[LAYOUT_KIND_COUNT] = {
    [LAYOUT_TP] = no_options,   [LAYOUT_CP] = cp_options,       [LAYOUT_DP] = no_options,
    [LAYOUT_DOP] = dop_options, [LAYOUT_HELIX] = helix_options,
};

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

static int parse_kind(const char *text, size_t len, enum layout_kind *kind, struct err *err)
{
    for (int k = 0; k < LAYOUT_KIND_COUNT; k++) {
        if (strlen(layout_kind_names[k]) == len && memcmp(layout_kind_names[k], text, len) == 0) {
            *kind = (enum layout_kind)k;
            return 0;
        }
    }
    char *word = xasprintf("%.*s", (int)len, text);
    const char *near = err_nearest(word, layout_kind_names, LAYOUT_KIND_COUNT);
    err_set(err, "unknown layout \"%s\"%s%s%s; there are tp, cp, dp, dop and helix:kvp=P,tpa=A",
            word, near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
    free(word);
    return -1;
}

/* The only place that knows what a name means. */
static struct layout place(enum layout_kind kind, const struct variant *v, const struct model *m,
                           int ranks)
{
    struct layout l = {.kind = kind,
                       .ranks = ranks,
                       .in_shards = 1,
                       .out_shards = 1,
                       .kv_head_shards = 1,
                       .kv_pos_shards = 1,
                       .kv_layer_shards = 1,
                       .attn_head_shards = 1,
                       .attn_pos_shards = 1,
                       .sub_batches = 1};
    switch (kind) {
    case LAYOUT_TP:
        l.in_shards = l.out_shards = l.attn_head_shards = ranks;
        l.kv_head_shards = min_int(ranks, m->kv_heads);
        break;
    case LAYOUT_CP:
        l.attn_pos_shards = ranks;
        *(v->storage ? &l.kv_layer_shards : &l.kv_pos_shards) = ranks;
        break;
    case LAYOUT_DP: l.kv_owned = l.rows_owned = true; break;
    case LAYOUT_DOP:
        l.in_shards = l.out_shards = ranks;
        l.full_weights_frac = v->cache_frac;
        l.kv_owned = true;
        l.rows_owned = v->rows;
        break;
    case LAYOUT_HELIX:
        l.out_shards = ranks;
        l.in_shards = l.kv_head_shards = l.attn_head_shards = (int)v->tpa;
        l.kv_pos_shards = l.attn_pos_shards = (int)v->kvp;
        l.sub_batches = (int)v->hopb;
        break;
    case LAYOUT_KIND_COUNT: assert(false);
    }
    bool by_kv_head = m->attention == ATTN_GQA;
    l.kv_in_shards = by_kv_head ? min_int(l.in_shards, m->kv_heads) : l.in_shards;
    return l;
}

__attribute__((format(printf, 2, 3))) static void name_add(struct layout *l, const char *fmt, ...)
{
    size_t used = strlen(l->name);
    l->name[used] = strchr(l->name, ':') == NULL ? ':' : ',';
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(l->name + used + 1, sizeof l->name - used - 1, fmt, ap);
    va_end(ap);
    assert(n > 0 && used + 1 + (size_t)n < sizeof l->name);
}

/* One name for one layout, so that equal names mean equal layouts. */
static void set_name(struct layout *l, const struct variant *v)
{
    snprintf(l->name, sizeof l->name, "%s", layout_kind_names[l->kind]);
    if (v->storage)
        name_add(l, "storage=layer");
    if (v->cache_frac > 0)
        name_add(l, "cache=%g", v->cache_frac);
    if (v->rows)
        name_add(l, "rows=owned");
    if (v->kvp > 0)
        name_add(l, "kvp=%d", (int)v->kvp);
    if (v->tpa > 0)
        name_add(l, "tpa=%d", (int)v->tpa);
    if (v->hopb > 1)
        name_add(l, "hopb=%d", (int)v->hopb);
}

static int check_variant(enum layout_kind kind, const struct variant *v, const char *text,
                         const struct model *m, int ranks, struct err *err)
{
    if (kind != LAYOUT_HELIX)
        return 0;
    if (v->kvp == 0 || v->tpa == 0)
        return err_set(err, "layout \"%s\": give both, as in helix:kvp=%d,tpa=1", text, ranks);
    if (v->kvp * v->tpa != ranks)
        return err_set(err, "layout \"%s\": kvp * tpa is %d, but there are %d ranks", text,
                       (int)(v->kvp * v->tpa), ranks);
    if (v->tpa > m->kv_heads)
        return err_set(err,
                       "layout \"%s\": tpa may not exceed the %d KV head%s of %s, or KV would be "
                       "held twice",
                       text, m->kv_heads, m->kv_heads == 1 ? "" : "s", m->name);
    if (v->hopb > 1 && v->kvp == 1)
        return err_set(err,
                       "layout \"%s\": hopb overlaps the exchange of partial results, and kvp=1 "
                       "has none: leave it out",
                       text);
    return 0;
}

static int check_heads(const struct layout *l, const char *text, const struct model *m,
                       struct err *err)
{
    const int shards[] = {l->in_shards, l->out_shards};
    for (int i = 0; i < 2; i++) {
        if (m->heads % shards[i] != 0)
            return err_set(err, "layout \"%s\": the %d heads of %s cannot be split %d ways", text,
                           m->heads, m->name, shards[i]);
    }
    bool by_kv_head = m->attention == ATTN_GQA;
    if (by_kv_head && (m->kv_heads % l->kv_in_shards != 0 || l->in_shards % l->kv_in_shards != 0))
        return err_set(err,
                       "layout \"%s\": the %d KV heads of %s can be neither split nor shared "
                       "evenly by %d ranks",
                       text, m->kv_heads, m->name, l->in_shards);
    return 0;
}

int layout_parse(struct layout *l, const char *text, const struct model *m, int ranks,
                 struct err *err)
{
    if (ranks < 1 || ranks > RANKS_MAX)
        return err_set(err, "a group has 1 to %d ranks, not %d", RANKS_MAX, ranks);
    enum layout_kind kind;
    size_t len = strcspn(text, ":");
    if (parse_kind(text, len, &kind, err) < 0)
        return -1;
    struct variant v = {0};
    char what[24];
    snprintf(what, sizeof what, "layout %s", layout_kind_names[kind]);
    opt_defaults(variant_options[kind], &v);
    if (text[len] == ':' &&
        opt_parse_list(variant_options[kind], &v, what, text + len + 1, err) < 0)
        return -1;
    if (check_variant(kind, &v, text, m, ranks, err) < 0)
        return -1;
    struct layout placed = place(kind, &v, m, ranks);
    if (check_heads(&placed, text, m, err) < 0)
        return -1;
    set_name(&placed, &v);
    *l = placed;
    return 0;
}

/* Length of the first item: a "key=value" after a comma still belongs to it. */
static size_t item_length(const char *text)
{
    size_t len = strcspn(text, ",");
    while (text[len] == ',') {
        const char *next = text + len + 1;
        if (next[strcspn(next, "=:,")] != '=')
            break;
        len += 1 + strcspn(next, ",");
    }
    return len;
}

static int parse_item(struct layout *list, int n, const char *item, const struct model *m,
                      int ranks, struct err *err)
{
    if (n == LAYOUT_MAX)
        return err_set(err, "more than %d layouts: drop some from \"%s\" on", LAYOUT_MAX, item);
    if (layout_parse(&list[n], item, m, ranks, err) < 0)
        return -1;
    for (int i = 0; i < n; i++) {
        if (strcmp(list[i].name, list[n].name) == 0)
            return err_set(err, "layout \"%s\" is named twice: drop one", item);
    }
    return 0;
}

int layout_parse_list(struct layout out[LAYOUT_MAX], const char *text, const struct model *m,
                      int ranks, struct err *err)
{
    struct layout list[LAYOUT_MAX];
    int n = 0;
    for (bool more = true; more; n++) {
        size_t len = item_length(text);
        char *item = xasprintf("%.*s", (int)len, text);
        int rc = parse_item(list, n, item, m, ranks, err);
        free(item);
        if (rc < 0)
            return -1;
        more = text[len] == ',';
        text += len + 1;
    }
    memcpy(out, list, (size_t)n * sizeof list[0]);
    return n;
}

struct layout layout_of_cached(const struct layout *l)
{
    struct layout full = *l;
    full.in_shards = full.kv_in_shards = full.out_shards = 1;
    full.full_weights_frac = 0;
    return full;
}

struct layout layout_of_linear(const struct layout *l)
{
    return l->kv_owned ? layout_of_cached(l) : *l;
}

bool layout_cuts_kv_alike(const struct layout *a, const struct layout *b)
{
    return a->kv_pos_shards == b->kv_pos_shards && a->kv_head_shards == b->kv_head_shards;
}
