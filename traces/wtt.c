/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/wtt.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "sim/base/ints.h"
#include "sim/base/mem.h"
#include "traces/reader.h"

/* Of rows of one kind. */
#define COUNT_MAX  (1LL << 53)
#define ORIGIN_MAX ((__int128)1000000000000000000 * 1000000000000000000)

enum {
    VERSION_OLDEST = 1,
    VERSION = 2,
    BLOCK_TOKENS_MAX = 1 << 20,
    FIRST_TEXTS = 2,
    FORMAT_BYTES_MAX = 32
};

static const unsigned char magic[8] = {0x89, 'W', 'T', 'T', '\r', '\n', 0x1A, '\n'};

/* The file is a head, n requests, hashes, counts (skipped, then noted), lists of what requests wait
 * for, texts (format, path, session names), and the checksum of all that. */
struct head {
    unsigned char magic[8];
    uint32_t version, block_tokens;
    uint64_t n, n_hashes, n_after, n_sessions, text_bytes;
    uint64_t origin_low_ps, origin_high_ps;
    int64_t out_of_order;
    uint32_t n_skips, n_notes;
    uint64_t calendar;
};

/* In a record, since version 2: what it waits for is the list of the request before. */
static const uint32_t same_list = UINT32_MAX;

/* Its hashes and what it waits for follow those of the request before. */
struct record {
    int64_t arrival_ps, delay_ps, input_tokens, output_tokens, line;
    uint32_t n_hashes, n_after;
    int64_t session;
};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a .wtt is little-endian, as is memory");
_Static_assert(sizeof(struct head) == 96 && sizeof(struct record) == 56, "no padding");

struct sink {
    FILE *out;
    uLong crc;
};

static void put(struct sink *s, const void *data, size_t size)
{
    if (size == 0)
        return;
    s->crc = crc32_z(s->crc, data, size);
    fwrite(data, 1, size, s->out);
}

static void put_text(struct sink *s, const char *text)
{
    put(s, text, strlen(text) + 1);
}

static struct head head_of(const struct trace *t)
{
    struct head h = {
        .version = VERSION,
        .block_tokens = (uint32_t)t->block_tokens,
        .n = t->n,
        .n_sessions = t->session.n,
        .text_bytes = strlen(t->format) + strlen(t->path) + FIRST_TEXTS,
        .origin_low_ps = (uint64_t)t->origin_ps,
        .origin_high_ps = (uint64_t)(t->origin_ps >> 64),
        .out_of_order = t->out_of_order,
        .n_skips = SKIP_COUNT,
        .n_notes = NOTE_COUNT,
        .calendar = t->calendar,
    };
    memcpy(h.magic, magic, sizeof magic);
    for (size_t i = 0; i < t->n; i++) {
        h.n_hashes += t->request[i].n_hashes;
        h.n_after += trace_waits_alike(t, i) ? 0 : t->request[i].n_after;
    }
    for (size_t i = 0; i < t->session.n; i++)
        h.text_bytes += strlen(t->session.name[i]) + 1;
    return h;
}

static struct record record_of(const struct trace *t, size_t at)
{
    const struct trace_request *r = &t->request[at];
    return (struct record){
        .arrival_ps = r->arrival_ps,
        .delay_ps = r->delay_ps,
        .input_tokens = r->input_tokens,
        .output_tokens = r->output_tokens,
        .line = r->line,
        .n_hashes = r->n_hashes,
        .n_after = trace_waits_alike(t, at) ? same_list : r->n_after,
        .session = r->session,
    };
}

static void put_requests(struct sink *s, const struct trace *t)
{
    for (size_t i = 0; i < t->n; i++) {
        struct record record = record_of(t, i);
        put(s, &record, sizeof record);
    }
    for (size_t i = 0; i < t->n; i++) {
        const struct trace_request *r = &t->request[i];
        if (r->n_hashes > 0)
            put(s, &t->hash[r->hash_at], r->n_hashes * sizeof *t->hash);
    }
}

static void put_lists(struct sink *s, const struct trace *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct trace_request *r = &t->request[i];
        if (r->n_after > 0 && !trace_waits_alike(t, i))
            put(s, &t->after[r->after_at], r->n_after * sizeof *t->after);
    }
}

void wtt_write(const struct trace *t, FILE *out)
{
    struct sink s = {out, 0};
    struct head h = head_of(t);
    put(&s, &h, sizeof h);
    put_requests(&s, t);
    put(&s, t->skipped, sizeof t->skipped);
    put(&s, t->noted, sizeof t->noted);
    put_lists(&s, t);
    put_text(&s, t->format);
    put_text(&s, t->path);
    for (size_t i = 0; i < t->session.n; i++)
        put_text(&s, t->session.name[i]);
    uint32_t crc = (uint32_t)s.crc;
    fwrite(&crc, 1, sizeof crc, out);
}

bool wtt_is(const char *path)
{
    unsigned char begin[sizeof magic];
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) /* of a pipe nothing could be given back */
        return false;
    FILE *f = fopen(path, "rb");
    bool is = f != NULL && fread(begin, 1, sizeof begin, f) == sizeof begin &&
              memcmp(begin, magic, sizeof magic) == 0;
    if (f != NULL)
        fclose(f);
    return is;
}

/* A file as it is read: into memory of our own, since a mapped file may change, or shrink, between
 * its check and its use. */
struct body {
    const char *path;
    FILE *f;
    struct head head;
    struct record *record;
    uint64_t *hash;
    int64_t *count;
    uint32_t *after;
    char *text;
    uLong crc;
    bool cut;
};

static int fail(const struct body *b, struct err *err, const char *fault)
{
    return err_set(err, "%s: %s; convert the original again", b->path, fault);
}

static int fail_request(const struct body *b, size_t i, struct err *err, const char *fault)
{
    return err_set(err, "%s: request %zu %s; convert the original again", b->path, i, fault);
}

static void *take(struct body *b, uint64_t n, size_t size)
{
    char *data = xmalloc(n * size); /* cannot wrap: the file is as large */
    b->cut = b->cut || fread(data, size, n, b->f) != n;
    if (!b->cut && n > 0)
        b->crc = crc32_z(b->crc, (const Bytef *)data, n * size);
    return data;
}

static unsigned __int128 size_of(const struct head *h)
{
    typedef unsigned __int128 wide;
    return sizeof *h + (wide)h->n * sizeof(struct record) + (wide)h->n_hashes * sizeof(uint64_t) +
           ((wide)h->n_skips + h->n_notes) * sizeof(int64_t) + (wide)h->n_after * sizeof(uint32_t) +
           h->text_bytes + sizeof(uint32_t);
}

static int read_head(struct body *b, struct err *err)
{
    struct head *h = &b->head;
    struct stat st;
    if (fstat(fileno(b->f), &st) != 0 || fread(h, sizeof *h, 1, b->f) != 1)
        return fail(b, err, "is cut off in its head");
    if (h->version < VERSION_OLDEST || h->version > VERSION)
        return err_set(err,
                       "%s: is a .wtt of version %u, this program reads versions %d to %d; use the "
                       "program that wrote it, or convert the original again",
                       b->path, h->version, VERSION_OLDEST, VERSION);
    if (size_of(h) != (unsigned __int128)st.st_size)
        return fail(b, err, "is not as long as its head says: damaged or cut off");
    b->crc = crc32_z(0, (const Bytef *)h, sizeof *h);
    return 0;
}

static int read_body(struct body *b, struct err *err)
{
    const struct head *h = &b->head;
    uint32_t crc = 0;
    b->record = take(b, h->n, sizeof *b->record);
    b->hash = take(b, h->n_hashes, sizeof *b->hash);
    b->count = take(b, (uint64_t)h->n_skips + h->n_notes, sizeof *b->count);
    b->after = take(b, h->n_after, sizeof *b->after);
    b->text = take(b, h->text_bytes, 1);
    if (b->cut || fread(&crc, sizeof crc, 1, b->f) != 1)
        return err_set(err, "%s: cannot read: %s", b->path,
                       ferror(b->f) ? strerror(errno) : "it shrinks while it is read");
    if (crc != b->crc)
        return fail(b, err, "is damaged: its checksum does not fit");
    return 0;
}

static const char *check_head(const struct head *h)
{
    if (h->n == 0 || h->n >= UINT32_MAX || h->n_after >= UINT32_MAX || h->n_sessions > INT32_MAX)
        return "holds no requests, or too many";
    if (h->n_skips > SKIP_COUNT || h->n_notes > NOTE_COUNT)
        return "tells of rows in ways that this program does not know";
    if (h->block_tokens > BLOCK_TOKENS_MAX || (h->n_hashes > 0 && h->block_tokens == 0))
        return "has hashes of blocks without a size that makes sense";
    if (h->calendar > 1 || h->out_of_order < 0 || h->out_of_order > COUNT_MAX ||
        h->origin_high_ps > INT64_MAX)
        return "has facts that make no sense";
    return NULL;
}

static const char *unpack_facts(struct trace *t, const struct body *b)
{
    const struct head *h = &b->head;
    __int128 origin_ps = (__int128)h->origin_high_ps << 64 | h->origin_low_ps;
    if (origin_ps > ORIGIN_MAX)
        return "has facts that make no sense";
    for (uint32_t i = 0; i < h->n_skips + h->n_notes; i++) {
        if (b->count[i] < 0 || b->count[i] > COUNT_MAX)
            return "has facts that make no sense";
        *(i < h->n_skips ? &t->skipped[i] : &t->noted[i - h->n_skips]) = b->count[i];
    }
    t->block_tokens = (int)h->block_tokens;
    t->out_of_order = h->out_of_order;
    t->origin_ps = origin_ps;
    t->has_origin = true;
    t->calendar = h->calendar;
    return NULL;
}

static bool is_printable(const char *text)
{
    size_t n = 0;
    while (text[n] >= ' ' && text[n] <= '~')
        n++;
    return text[n] == '\0' && n >= 1 && n <= FORMAT_BYTES_MAX;
}

/* A reader's, or one that this program need not know. */
static void set_format(struct trace *t, const char *name)
{
    const struct trace_reader *const *r = trace_readers;
    while (*r != NULL && strcmp((*r)->name, name) != 0)
        r++;
    t->own_format = *r != NULL ? NULL : xstrdup(name);
    t->format = *r != NULL ? (*r)->name : t->own_format;
}

/* The next text, NULL when there is none that ends. */
static const char *next_text(const struct body *b, uint64_t *at)
{
    const char *text = b->text + *at;
    const char *end = memchr(text, '\0', b->head.text_bytes - *at);
    if (end != NULL)
        *at += (uint64_t)(end - text) + 1;
    return end != NULL ? text : NULL;
}

static const char *unpack_texts(struct trace *t, const struct body *b)
{
    uint64_t at = 0;
    const char *format = next_text(b, &at), *path = next_text(b, &at);
    if (format == NULL || path == NULL)
        return "has no format and path of an original";
    if (!is_printable(format))
        return "is of a format without a name that can be printed";
    set_format(t, format);
    t->path = xstrdup(path);
    for (uint64_t i = 0; i < b->head.n_sessions; i++) {
        const char *name = next_text(b, &at);
        if (name == NULL || names_number(&t->session, name) != (int32_t)i)
            return "has fewer names of sessions than sessions, or one twice";
    }
    return at == b->head.text_bytes ? NULL : "has texts that are nobody's";
}

static bool is_of_tokens(int64_t n)
{
    return n >= 1 && n <= TRACE_TOKENS_MAX;
}

/* The last arrival of those that it waits for, or -1 when one of them is not before it. */
static int64_t waited_until_ps(const struct trace *t, size_t i)
{
    const struct trace_request *r = &t->request[i];
    int64_t ended_ps = 0;
    if (trace_waits_alike(t, i))
        return r[-1].arrival_ps - r[-1].delay_ps;
    for (uint32_t k = 0; k < r->n_after; k++) {
        uint32_t other = t->after[r->after_at + k];
        if (other >= i)
            return -1;
        ended_ps = max_i64(ended_ps, t->request[other].arrival_ps);
    }
    return ended_ps;
}

static const char *check_request(const struct trace *t, size_t i)
{
    const struct trace_request *r = &t->request[i];
    int64_t before_ps = i > 0 ? r[-1].arrival_ps : 0;
    if (r->arrival_ps < before_ps || r->arrival_ps >= TRACE_SPAN_MAX_PS ||
        (i == 0 && r->arrival_ps > 0))
        return "is not in the order of time";
    if (!is_of_tokens(r->input_tokens) || !is_of_tokens(r->output_tokens) || r->line < 0)
        return "has no lengths that make sense";
    int64_t ended_ps = waited_until_ps(t, i);
    if (ended_ps < 0)
        return "waits for one that is not before it";
    if (r->delay_ps < 0 || r->delay_ps > r->arrival_ps ||
        (r->n_after == 0 ? r->delay_ps > 0 : r->arrival_ps - r->delay_ps != ended_ps))
        return "comes at another time than what it waits for tells";
    return NULL;
}

static struct trace_request request_of(const struct record *record)
{
    return (struct trace_request){
        .arrival_ps = record->arrival_ps,
        .delay_ps = record->delay_ps,
        .input_tokens = record->input_tokens,
        .output_tokens = record->output_tokens,
        .line = record->line,
        .n_hashes = record->n_hashes,
        .n_after = record->n_after,
        .session = (int32_t)record->session,
    };
}

/* Where a request's hashes and waits are; *hash_at and *after_at are behind those before it. */
static const char *find_lists(struct trace *t, size_t i, size_t *hash_at, size_t *after_at)
{
    struct trace_request *r = &t->request[i];
    bool shares = r->n_after == same_list;
    if (shares && (i == 0 || r[-1].n_after == 0))
        return "shares what one waits for that waits for nothing";
    if (r->n_hashes > t->n_hashes - *hash_at || (!shares && r->n_after > t->n_after - *after_at))
        return "has more hashes or waits than are there";
    r->hash_at = *hash_at;
    r->after_at = shares ? r[-1].after_at : *after_at;
    r->n_after = shares ? r[-1].n_after : r->n_after;
    *hash_at += r->n_hashes;
    *after_at += shares ? 0 : r->n_after;
    return NULL;
}

static int unpack_requests(struct trace *t, const struct body *b, struct err *err)
{
    size_t hash_at = 0, after_at = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct record *record = &b->record[i];
        t->request[i] = request_of(record);
        const char *fault = find_lists(t, i, &hash_at, &after_at);
        if (fault == NULL &&
            (record->session < TRACE_NO_SESSION || record->session >= (int64_t)t->session.n))
            fault = "is of a session that does not exist";
        if (fault == NULL)
            fault = check_request(t, i);
        if (fault != NULL)
            return fail_request(b, i, err, fault);
    }
    if (hash_at < t->n_hashes || after_at < t->n_after)
        return fail(b, err, "has hashes or waits that are no request's");
    t->last_ps = t->request[t->n - 1].arrival_ps;
    return 0;
}

/* The trace takes the arrays that are its own in the file too. */
static int unpack(struct trace *t, struct body *b, struct err *err)
{
    const struct head *h = &b->head;
    const char *fault = check_head(h);
    if (fault == NULL)
        fault = unpack_facts(t, b);
    if (fault == NULL)
        fault = unpack_texts(t, b);
    if (fault != NULL)
        return fail(b, err, fault);
    t->n = t->cap = h->n;
    t->request = xcalloc(t->n, sizeof *t->request);
    t->n_hashes = t->cap_hashes = h->n_hashes;
    t->hash = b->hash;
    t->n_after = t->cap_after = h->n_after;
    t->after = b->after;
    b->hash = NULL;
    b->after = NULL;
    return unpack_requests(t, b, err);
}

int wtt_load(struct trace *t, const char *path, struct err *err)
{
    struct trace loaded = {0};
    struct body b = {.path = path, .f = fopen(path, "rb")};
    int rc = -1;
    if (b.f == NULL)
        return err_set(err, "%s: cannot open: %s", path, strerror(errno));
    if (read_head(&b, err) == 0 && read_body(&b, err) == 0)
        rc = unpack(&loaded, &b, err);
    if (rc < 0)
        trace_release(&loaded);
    else
        *t = loaded;
    fclose(b.f);
    free(b.record);
    free(b.hash);
    free(b.count);
    free(b.after);
    free(b.text);
    return rc;
}
