/* SPDX-License-Identifier: Apache-2.0
 *
 * A request trace in memory: what arrived when, what waited for what, and how long it was. Sorted
 * by arrival, re-based to the first one, ties in file order. Formats are told from content; see
 * docs/formats.md.
 */
#ifndef TRACES_TRACE_H
#define TRACES_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "sim/base/err.h"
#include "sim/base/opt.h"
#include "traces/names.h"

#define TRACE_SPAN_MAX_PS 8640000000000000000LL /* 100 days; int64 holds 106 */
#define TRACE_TOKENS_MAX  (1LL << 40)
/* Blocks of all prompts, where these have block_tokens: 4 GiB of hashes, little when fuzzing. */
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#define TRACE_BLOCKS_MAX (1LL << 16)
#else
#define TRACE_BLOCKS_MAX (1LL << 29)
#endif

/* A request comes at a time of its own, or some time after the last of those that it waits for has
 * ended (a closed loop: the next turn, the work that sub-agents were sent for). */
struct trace_request {
    int64_t arrival_ps;    /* where it waits, the earliest: as if what it waits for took no time */
    int64_t delay_ps;      /* where it waits, from the end of the last of those; else 0 */
    int64_t input_tokens;  /* the whole prompt, >= 1 */
    int64_t output_tokens; /* >= 1 */
    long line;             /* in the file, for messages */
    size_t hash_at;        /* first of n_hashes in trace.hash */
    size_t after_at;       /* first of n_after in trace.after: maybe other requests' too */
    uint32_t n_hashes;     /* one per block of the prompt; 0 when the format has none */
    uint32_t n_after;      /* requests that it waits for */
    int32_t session;       /* trace.session, -1: of none */
};

enum { TRACE_NO_SESSION = -1 };

/* Rows that are left out. */
enum trace_skip {
    SKIP_NO_OUTPUT,
    SKIP_NO_INPUT,
    SKIP_FAILED,    /* the log says that it failed */
    SKIP_NO_LENGTH, /* token counts are not there */
    SKIP_OTHER,     /* no request to a language model */
    SKIP_DUPLICATE, /* a session that is there already */
    SKIP_COUNT
};
extern const char *const trace_skip_names[SKIP_COUNT]; /* "zero output tokens", ... */

/* What is kept and worth saying. */
enum trace_note {
    NOTE_SHRUNK,     /* a prompt shorter than that of the turn before: context was compacted */
    NOTE_NO_PARENT,  /* waits for one that is not in the file: comes at its own time */
    NOTE_NO_TIME,    /* a wait that the file does not know: taken as 0 */
    NOTE_WENT_BACK,  /* earlier than the turn before: taken as at the same time */
    NOTE_CACHED_CUT, /* more cached than prompt tokens: taken as all of them */
    NOTE_DRAWN,      /* drawn by lot: arrival or lengths */
    NOTE_DELAY,      /* a delay before or after its turn: the file does not tell which */
    NOTE_NO_TABLE,   /* hashes need a file that does not lie beside the trace */
    NOTE_NO_START,   /* a session that begins at a time that the file does not know: at 0 */
    NOTE_NEW_PREFIX, /* more cached than the file has before it: the rest is taken as new */
    NOTE_COUNT
};
extern const char *const trace_note_names[NOTE_COUNT];

struct trace {
    char *path;         /* as messages name it: "standard input" for "-" */
    const char *format; /* reader's name: "mooncake", "azure", ...; or a generator's */
    char *own_format;   /* the same where no reader has it and it came from a file; or NULL */
    size_t n, cap;
    struct trace_request *request;
    size_t n_hashes, cap_hashes;
    uint64_t *hash;
    int block_tokens; /* tokens per hash, 0 without hashes */
    size_t n_after, cap_after;
    uint32_t *after; /* positions in `request`, each before the request's own */
    struct names session;
    int64_t skipped[SKIP_COUNT];
    int64_t noted[NOTE_COUNT];
    int64_t waits_capped; /* by --wait-cap */
    int64_t out_of_order; /* rows that came earlier than the row before; sorted, with one warning */

    __int128 origin_ps;        /* arrivals count from here: the first one, by the file's clock */
    bool has_origin;           /* while reading */
    uint64_t n_own_blocks;     /* of trace_share_prompt() */
    struct names contents;     /* while reading: digests of sessions, to see duplicates */
    bool calendar;             /* the file's clock counts from 1970-01-01 UTC */
    int64_t first_ps, last_ps; /* earliest and latest arrival: 0 and the span once loaded */
};

/* Selections, applied in this order: from/to, sample, limit, rate, spread. */
struct trace_select {
    int64_t from_ps, to_ps; /* keep arrivals in [from, to) after re-basing; to = 0: no end */
    double sample_frac;     /* keep each request with this probability (stream "sample") */
    int64_t limit;          /* keep the first so many; 0: all */
    double rate;            /* time warp: arrivals at `rate` times the recorded rate */
    int64_t spread_ps;      /* spread equal arrivals uniformly over so long (stream "spread") */
    int64_t wait_cap_ps;    /* cut longer waits to so long; 0: none */
};

/* Keeps everything as it is; the options' defaults. */
#define TRACE_SELECT_ALL ((struct trace_select){.sample_frac = 1, .rate = 1})

/* The option rows for these, to be pasted into a command's table at its settings' offset. */
/* clang-format off */
#define TRACE_SELECT_OPTS(base)                                                                    \
    {"from", 0, OPT_TIME, (base) + offsetof(struct trace_select, from_ps),                         \
     "TIME", "0s", 0, 0, NULL, "skip arrivals before this time of the trace"},                     \
    {"to", 0, OPT_TIME, (base) + offsetof(struct trace_select, to_ps),                             \
     "TIME", "0s", 0, 0, NULL, "stop at this time of the trace (0: its end)"},                     \
    {"sample", 0, OPT_F64, (base) + offsetof(struct trace_select, sample_frac),                    \
     "FRAC", "1", 0, 1, NULL, "keep this share of the requests, drawn by seed"},                   \
    {"limit", 0, OPT_I64, (base) + offsetof(struct trace_select, limit),                           \
     "N", "0", 0, 1e12, NULL, "keep the first N requests (0: all)"},                               \
    {"rate", 0, OPT_F64, (base) + offsetof(struct trace_select, rate),                             \
     "X", "1", 1e-6, 1e6, NULL, "replay at X times the recorded rate"},                            \
    {"spread", 0, OPT_TIME, (base) + offsetof(struct trace_select, spread_ps),                     \
     "TIME", "0s", 0, 0, NULL,                                                                     \
     "spread requests that share a timestamp over so long (3s for Mooncake)"},                     \
    {"wait-cap", 0, OPT_TIME, (base) + offsetof(struct trace_select, wait_cap_ps),                 \
     "TIME", "0s", 0, 0, NULL,                                                                     \
     "cut waits between turns of a session to so long (0: none)"}
/* clang-format on */

/* What the file does not say by itself. */
struct trace_reading {
    int64_t seed;          /* of what is drawn (streams that begin with "trace") */
    double arrivals_per_s; /* where the file has no times: of a Poisson process; 0: refuse */
    int64_t block_tokens;  /* per hash, where rows have hashes but no size; 0: by their number */
    int delay;             /* enum trace_delay: what a turn's "delay" is */
};

enum trace_delay { DELAY_TOLD, DELAY_BEFORE, DELAY_AFTER };

/* The option rows for these, but for the seed. */
/* clang-format off */
#define TRACE_READING_OPTS(base)                                                                   \
    {"arrivals", 0, OPT_F64, (base) + offsetof(struct trace_reading, arrivals_per_s),              \
     "X", "0", 0, 1e6, NULL,                                                                       \
     "a table of lengths, or sessions without a start: let X a second arrive, at random"},         \
    {"block-tokens", 0, OPT_I64, (base) + offsetof(struct trace_reading, block_tokens),            \
     "N", "0", 0, 1e6, NULL, "prompt tokens for each of a row's hash_ids (0: by their number)"},   \
    {"delay", 0, OPT_ENUM, (base) + offsetof(struct trace_reading, delay),                         \
     "WHEN", "told", 0, 0, "told|before|after",                                                    \
     "a turn's delay: before it, or after it (told: as the file's sessions show)"}
/* clang-format on */

/* Read a file, a .gz, a .wtt, "-", or a folder whose files each hold one session. Strict: a
 * malformed row fails with FILE:LINE. Rows that cannot be replayed are skipped and counted; an
 * empty result is an error. */
int trace_load(struct trace *t, const char *path, const struct trace_reading *reading,
               struct err *err);
/* Apply selections; what is left is re-based to its first arrival. What waits goes where the first
 * of its chain goes, a session where its first request does; delays are not warped. Fails, leaving
 * a trace that is only good for release, when nothing is left or the arrivals would spread over 100
 * days. */
int trace_select(struct trace *t, const struct trace_select *s, uint64_t seed, struct err *err);
void trace_release(struct trace *t);

/* Append one request (a reader's way in); the arrival is by the file's own clock. Refuses negative
 * values, more than TRACE_TOKENS_MAX or TRACE_BLOCKS_MAX and a span of TRACE_SPAN_MAX_PS with
 * FILE:LINE. Returns 1 when added, 0 when skipped and counted for having no tokens, -1 on error. */
int trace_add(struct trace *t, __int128 arrival_ps, int64_t input_tokens, int64_t output_tokens,
              long line, struct err *err);
/* The same for one that waits: trace_wait_for() must follow when it was added. */
int trace_add_waiting(struct trace *t, __int128 delay_ps, int64_t input_tokens,
                      int64_t output_tokens, long line, struct err *err);
/* Of the last request added: it waits for the `request`th added (from 0), which may come later in
 * the file. */
void trace_wait_for(struct trace *t, size_t request);
/* The same for the `waiting`th added: all that it waits for is told in one go. */
void trace_wait_later(struct trace *t, size_t waiting, size_t request);
/* Of the last request added, which waits for none yet: for all that the `request`th waits for,
 * whose list it shares. */
void trace_wait_like(struct trace *t, size_t request);
/* Does it share its list with the one before? Such requests need one look at the list. */
bool trace_waits_alike(const struct trace *t, size_t request);
/* What requests wait for gets new positions: new_at[old]. */
void trace_rename_waits(struct trace *t, const uint32_t *new_at);
/* Attach a prompt-block hash to the last request added. */
void trace_add_hash(struct trace *t, uint64_t hash);
/* Where a format tells how much of a prompt it shares, but no hashes: the last request added has
 * the first shared_tokens of the prompt of `before` (by number of addition; none where shared is
 * 0), whole blocks of t->block_tokens, and blocks of its own behind them, the last one as far as it
 * goes; no blocks at all above 2^24 tokens, since a few bytes of a file must not cost gigabytes. Of
 * prompts made so, equal hashes mean equal blocks after equal ones. */
void trace_share_prompt(struct trace *t, size_t before, int64_t shared_tokens);
/* The same for prompts of whole blocks: what does not fill a block has no hash. Where all blocks of
 * `before` are shared and no hash was added since its last, they are kept once: a chain of growing
 * prompts takes the memory of its last one. */
void trace_grow_prompt(struct trace *t, size_t before, int64_t shared_tokens);
/* The session of this name to the last request added. */
void trace_set_session(struct trace *t, const char *name);
/* When all are added without a file: the trace becomes as trace_load() leaves one. Fails where
 * requests wait for themselves or spread over 100 days. */
int trace_finish(struct trace *t, struct err *err);

/* What an unbounded prefix cache would have served: per request the longest run of known block
 * hashes from the front, its tokens capped at the prompt's length. Zero without hashes. */
struct trace_prefix {
    int64_t hit_blocks, hit_tokens;
    int64_t full_hits; /* requests whose every block was known */
};
struct trace_prefix trace_prefix_max(const struct trace *t);
/* hit_tokens as a share of all prompt tokens. */
double trace_prefix_hit_frac_max(const struct trace *t);

/* What belongs together and what waits. */
struct trace_sessions {
    int64_t sessions;             /* that have requests */
    int64_t turns_p50, turns_max; /* requests of one */
    int64_t waiting;              /* requests that wait for others */
    int64_t chain_max; /* most requests of which each waits for the one before; 0: none */
};
struct trace_sessions trace_sessions(const struct trace *t);

int64_t trace_count_skips(const struct trace *t);
/* "3 (2 with zero output tokens, 1 with zero input tokens)" or "0", to be freed. */
char *trace_describe_skips(const struct trace *t);

/* `trace info`: a table on `out`; or the JSON object of design section 8. */
void trace_print_info(const struct trace *t, FILE *out);
json_t *trace_info_json(const struct trace *t);
/* `trace check`: one line for each thing that is legal but may surprise. */
void trace_print_check(const struct trace *t, FILE *out);
/* For every command that reads a trace: one line when rows were sorted, one when some were skipped,
 * one for each note, each with "wavetank: " in front. */
void trace_warn(const struct trace *t, FILE *out);

#endif
