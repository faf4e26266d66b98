/* SPDX-License-Identifier: Apache-2.0
 *
 * Qwen-Bailian traces (alibaba-edu/qwen-bailian-usagetraces-anon): JSON Lines much like Mooncake's,
 * but with seconds and blocks of 16 tokens. Rows name the chat they continue; each has its recorded
 * time, so these links only say what is one session.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "traces/hashes.h"
#include "traces/reader.h"

enum { NO_PARENT = -1 };

/* Chats, numbered by first mention, as a forest; that of a set of linked ones has its root on top.
 */
struct chats {
    struct trace *t;
    struct block_sizes sizes;
    struct names ids;
    uint32_t *up; /* a chat of the same session, nearer to the root; a root: itself */
    bool *known;  /* the chat is in the file */
    size_t cap_up, cap_known;
    uint32_t *of; /* of each request added: its chat */
    size_t n, cap;
    uint32_t *parent; /* each that is named, once per row */
    size_t n_parents, cap_parents;
};

static bool detect(const struct trace_head *h)
{
    return h->line[strspn(h->line, " \t")] == '{' && strstr(h->line, "\"chat_id\"") &&
           strstr(h->line, "\"parent_chat_id\"");
}

static uint32_t find_chat(struct chats *c, int64_t id)
{
    char name[24];
    snprintf(name, sizeof name, "%lld", (long long)id);
    size_t n = c->ids.n;
    uint32_t chat = (uint32_t)names_number(&c->ids, name);
    if (c->ids.n > n) {
        c->up = xgrow(c->up, &c->cap_up, n + 1, sizeof *c->up);
        c->known = xgrow(c->known, &c->cap_known, n + 1, sizeof *c->known);
        c->up[chat] = chat;
        c->known[chat] = false;
    }
    return chat;
}

static uint32_t root_of(const struct chats *c, uint32_t chat)
{
    while (c->up[chat] != chat) {
        c->up[chat] = c->up[c->up[chat]];
        chat = c->up[chat];
    }
    return chat;
}

/* Rows that are their own ancestors are one session all the same. */
static void link_parent(struct chats *c, uint32_t chat, int64_t parent_id)
{
    if (parent_id == NO_PARENT)
        return;
    uint32_t parent = find_chat(c, parent_id);
    c->up[root_of(c, chat)] = root_of(c, parent);
    c->parent = xgrow(c->parent, &c->cap_parents, c->n_parents + 1, sizeof *c->parent);
    c->parent[c->n_parents++] = parent;
}

static int add_row(void *chats, const struct row *r, struct err *err)
{
    struct chats *c = chats;
    __int128 at_ps = 0;
    int64_t input = 0, output = 0, id = 0, parent_id = NO_PARENT;
    if (row_time(r, "timestamp", ROW_S, true, &at_ps, err) < 0 ||
        row_tokens(r, "input_length", true, &input, err) < 0 ||
        row_tokens(r, "output_length", true, &output, err) < 0 ||
        row_whole(r, "chat_id", true, &id, err) < 0 ||
        row_whole(r, "parent_chat_id", false, &parent_id, err) < 0)
        return -1;
    uint32_t chat = find_chat(c, id);
    if (c->known[chat])
        return row_fail(r, err, "\"chat_id\": %lld is there already", (long long)id);
    c->known[chat] = true;
    int added = trace_add(c->t, at_ps, input, output, row_line(r), err);
    if (added < 0 || hashes_check(r, &c->sizes, input, err) < 0)
        return -1;
    link_parent(c, chat, parent_id);
    if (added == 0)
        return 0;
    hashes_add(c->t, r, &c->sizes);
    c->of = xgrow(c->of, &c->cap, c->n + 1, sizeof *c->of);
    c->of[c->n++] = chat;
    return 0;
}

static void set_sessions(const struct chats *c, size_t first)
{
    struct trace *t = c->t;
    for (size_t i = 0; i < c->n; i++)
        t->request[first + i].session =
            names_number(&t->session, c->ids.name[root_of(c, c->of[i])]);
    for (size_t i = 0; i < c->n_parents; i++)
        t->noted[NOTE_NO_PARENT] += !c->known[c->parent[i]];
}

static int read_rows(struct trace *t, struct lines *l, const struct trace_reading *reading,
                     struct err *err)
{
    static const struct block_sizes usual = {1, {16}};
    struct chats c = {.t = t, .sizes = block_sizes_begin(t, reading, usual)};
    size_t first = t->n;
    int rc = row_each(l, add_row, &c, err);
    if (rc == 0)
        set_sessions(&c, first);
    names_release(&c.ids);
    free(c.up);
    free(c.known);
    free(c.of);
    free(c.parent);
    return rc;
}

const struct trace_reader reader_qwen = {
    .name = "qwen-bailian",
    .what = "JSON Lines: timestamp (s), input_length, output_length, chat_id, parent_chat_id",
    .detect = detect,
    .read = read_rows,
};
