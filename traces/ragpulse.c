/* SPDX-License-Identifier: Apache-2.0
 *
 * RAGPulse (flashserve/RAGPulse): JSON Lines, where a prompt is a list of components, whose lengths
 * stand in five tables beside the trace. Each component's tokens are taken as equal in all prompts,
 * and as in the order of the row; what a prompt has beyond them as its own, at its end.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"
#include "traces/hashes.h"
#include "traces/reader.h"

enum { BLOCK_TOKENS = 16, COMPONENTS = 5 };

static const struct component {
    const char *key, *file, *id;
} components[COMPONENTS] = {
    {"sys_prompt", "1_sys_prompt.jsonl", "sys_prompt_id"},
    {"passages_ids", "2_passages.jsonl", "passage_id"},
    {"history", "3_history.jsonl", "history_id"},
    {"web_search", "5_web_search.jsonl", "web_search_id"},
    {"user_input", "4_user_input.jsonl", "user_input_id"},
};

struct table {
    const struct component *of;
    struct names ids;
    int64_t *tokens;
    size_t cap;
};

struct rag {
    struct trace *t;
    bool has_tables;
    struct table table[COMPONENTS];
};

static bool detect(const struct trace_head *h)
{
    return h->line[strspn(h->line, " \t")] == '{' && strstr(h->line, "\"hash_ids\"") &&
           strstr(h->line, "\"sys_prompt\"") && strstr(h->line, "\"passages_ids\"");
}

static int add_entry(void *table, const struct row *r, struct err *err)
{
    struct table *b = table;
    char id[ROW_LABEL_BYTES];
    int64_t tokens = 0;
    size_t n = b->ids.n;
    if (row_label(r, b->of->id, true, id, err) < 0 ||
        row_tokens(r, "token_length", true, &tokens, err) < 0 || hashes_limit(r, tokens, err) < 0)
        return -1;
    if (tokens < 0)
        return row_fail(r, err, "\"token_length\" is negative (%lld)", (long long)tokens);
    if ((size_t)names_number(&b->ids, id) != n)
        return row_fail(r, err, "\"%s\": %s is there already", b->of->id, id);
    b->tokens = xgrow(b->tokens, &b->cap, n + 1, sizeof *b->tokens);
    b->tokens[n] = tokens;
    return 0;
}

static char *path_beside(const char *trace, const char *file)
{
    const char *slash = strrchr(trace, '/');
    return xasprintf("%.*s%s", slash == NULL ? 0 : (int)(slash + 1 - trace), trace, file);
}

static int load_table(struct table *b, const char *path, struct err *err)
{
    struct lines l;
    if (lines_open(&l, path, err) < 0)
        return -1;
    int rc = row_each(&l, add_entry, b, err);
    lines_close(&l);
    return rc;
}

/* All of them, or none when one is not there. */
static int load_tables(struct rag *g, struct err *err)
{
    char *path[COMPONENTS];
    int rc = 0;
    g->has_tables = true;
    for (int i = 0; i < COMPONENTS; i++) {
        path[i] = path_beside(g->t->path, components[i].file);
        g->has_tables &= access(path[i], R_OK) == 0;
        g->table[i].of = &components[i];
    }
    for (int i = 0; i < COMPONENTS; i++) {
        if (g->has_tables && rc == 0)
            rc = load_table(&g->table[i], path[i], err);
        free(path[i]);
    }
    return rc;
}

/* A prompt as it is cut into blocks, from the front. */
struct prompt {
    struct trace *t;
    int64_t left_tokens;
    uint64_t hash; /* of all so far */
    int64_t fill;  /* tokens of the last block */
};

static void add_piece(struct prompt *p, uint64_t what, int64_t tokens)
{
    int64_t end = min_i64(tokens, p->left_tokens);
    p->left_tokens -= end;
    for (int64_t at = 0, n; at < end; at += n) {
        n = min_i64(BLOCK_TOKENS - p->fill, end - at);
        p->hash = hash_after(hash_after(p->hash, what), (uint64_t)at);
        p->fill += n;
        if (p->fill == BLOCK_TOKENS) {
            trace_add_hash(p->t, p->hash);
            p->fill = 0;
        }
    }
}

static int find_entry(const struct table *b, const struct row *ids, size_t i, const json_t *id,
                      struct err *err)
{
    char buf[ROW_LABEL_BYTES];
    const char *label = row_label_of(id, buf);
    int entry = label == NULL ? -1 : names_find(&b->ids, label);
    if (entry < 0)
        row_fail(ids, err, "\"%s\"[%zu]: %.40s is not in %s", b->of->key, i,
                 label == NULL ? "it" : label, b->of->file);
    return entry;
}

static int add_component(struct prompt *p, const struct table *b, const struct row *ids,
                         struct err *err)
{
    json_t *list = NULL, *id;
    size_t i;
    if (row_array(ids, b->of->key, true, &list, err) < 0)
        return -1;
    json_array_foreach (list, i, id) {
        int entry = find_entry(b, ids, i, id, err);
        if (entry < 0)
            return -1;
        uint64_t what = hash_after((uint64_t)(b->of - components), (uint64_t)entry);
        add_piece(p, what, b->tokens[entry]);
    }
    return 0;
}

static int add_hashes(const struct rag *g, const struct row *ids, int64_t input_tokens,
                      struct err *err)
{
    struct prompt p = {.t = g->t, .left_tokens = input_tokens};
    for (int i = 0; i < COMPONENTS; i++)
        if (add_component(&p, &g->table[i], ids, err) < 0)
            return -1;
    add_piece(&p, hash_after(COMPONENTS, g->t->n), p.left_tokens);
    if (p.fill > 0)
        trace_add_hash(g->t, hash_after(p.hash, (uint64_t)p.fill));
    return 0;
}

static int add_row(void *rag, const struct row *r, struct err *err)
{
    struct rag *g = rag;
    __int128 at_ps = 0;
    int64_t input = 0, output = 0;
    char session[ROW_LABEL_BYTES];
    struct row ids = *r;
    if (row_time(r, "timestamp", ROW_S, true, &at_ps, err) < 0 ||
        row_tokens(r, "input_length", true, &input, err) < 0 ||
        row_tokens(r, "output_length", true, &output, err) < 0 ||
        row_label(r, "session_id", false, session, err) < 0 ||
        row_value(r, "hash_ids", true, &ids.object, err) < 0 || hashes_limit(r, input, err) < 0)
        return -1;
    if (!json_is_object(ids.object))
        return row_fail(r, err, "\"hash_ids\": expected an object of components");
    int added = trace_add(g->t, at_ps, input, output, row_line(r), err);
    if (added <= 0)
        return added;
    if (session[0] != '\0')
        trace_set_session(g->t, session);
    g->t->noted[NOTE_NO_TABLE] += !g->has_tables;
    return g->has_tables ? add_hashes(g, &ids, input, err) : 0;
}

static int read_rows(struct trace *t, struct lines *l, const struct trace_reading *reading,
                     struct err *err)
{
    struct rag g = {.t = t};
    (void)reading;
    int rc = load_tables(&g, err);
    if (rc == 0)
        rc = row_each(l, add_row, &g, err);
    if (g.has_tables)
        t->block_tokens = BLOCK_TOKENS;
    for (int i = 0; i < COMPONENTS; i++) {
        names_release(&g.table[i].ids);
        free(g.table[i].tokens);
    }
    return rc;
}

const struct trace_reader reader_ragpulse = {
    .name = "ragpulse",
    .what = "JSON Lines: timestamp (s), input_length, output_length, hash_ids of components",
    .detect = detect,
    .read = read_rows,
};
