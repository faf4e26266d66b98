/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/reproduce/traffic.h"

#include <assert.h>
#include <stdlib.h>

#include "sim/base/mem.h"
#include "sim/base/rng.h"
#include "sim/base/units.h"

enum { SEED = 20260922, K_TOKENS = 1024, BATCH = 256 };
enum { SESSIONS = 32, TURNS = 16, TURN_TOKENS = 8 * K_TOKENS, BLOCK_TOKENS = K_TOKENS };
enum { SESSION_BLOCKS = TURNS * TURN_TOKENS / BLOCK_TOKENS, TURN_BLOCKS = SESSION_BLOCKS / TURNS };
enum { LENGTHS = 8 };

static const int64_t pause_ps = 2 * PS_PER_S;

static void make(struct traffic *t, const char *name, int64_t n)
{
    *t = (struct traffic){.name = name, .n = n, .request = xcalloc((size_t)n, sizeof *t->request)};
}

/* Owners take requests in turn: no order of lengths may favour one of them. */
static void shuffle(struct traffic *t)
{
    struct rng rng;
    rng_init(&rng, SEED);
    for (int64_t i = t->n - 1; i > 0; i--) {
        int64_t j = rng_range(&rng, 0, i);
        struct engine_request other = t->request[j];
        t->request[j] = t->request[i];
        t->request[i] = other;
    }
}

/* Half of the batch has one unit of output, a quarter two, ..., one has eight and one nine. */
static void make_rollout(struct traffic *t, const char *name, int64_t k_tokens)
{
    int64_t input_tokens = k_tokens * K_TOKENS, output_tokens = 0;
    make(t, name, BATCH);
    for (int64_t i = 0, left = BATCH; i < BATCH; i++) {
        if (BATCH - i <= left) {
            left /= 2;
            output_tokens += K_TOKENS;
        }
        t->request[i] =
            (struct engine_request){.input_tokens = input_tokens, .output_tokens = output_tokens};
    }
    shuffle(t);
}

/* Turn by turn, so that what one waits for comes before it. */
static void make_agentic(struct traffic *t)
{
    make(t, "agentic", (int64_t)SESSIONS * TURNS);
    t->after = xcalloc((size_t)t->n, sizeof *t->after);
    t->hash = xcalloc((size_t)SESSIONS * SESSION_BLOCKS, sizeof *t->hash);
    t->block_tokens = BLOCK_TOKENS;
    for (uint32_t i = 0; i < SESSIONS * SESSION_BLOCKS; i++)
        t->hash[i] = i + 1;
    for (uint32_t i = 0; i < SESSIONS * TURNS; i++) {
        uint32_t session = i % SESSIONS, turn = i / SESSIONS;
        t->request[i] = (struct engine_request){
            .input_tokens = (int64_t)TURN_TOKENS * (turn + 1),
            .output_tokens = K_TOKENS / 2,
            .delay_ps = turn > 0 ? pause_ps : 0,
            .after_at = i,
            .n_after = turn > 0,
            .hash_at = (size_t)session * SESSION_BLOCKS,
            .n_hashes = TURN_BLOCKS * (turn + 1),
            .session = session + 1,
        };
        t->after[i] = turn > 0 ? i - SESSIONS : 0;
    }
}

static void make_mixed(struct traffic *t)
{
    make(t, "mixed", BATCH);
    for (int64_t i = 0; i < BATCH; i++)
        t->request[i] = (struct engine_request){.input_tokens = K_TOKENS << i % LENGTHS,
                                                .output_tokens = K_TOKENS};
    shuffle(t);
}

void traffic_make(struct traffic *t, int kind)
{
    assert(kind >= 0 && kind < TRAFFIC_KINDS);
    switch (kind) {
    case 0: make_rollout(t, "rollout_64k", 64); break;
    case 1: make_rollout(t, "rollout_128k", 128); break;
    case 2: make_agentic(t); break;
    default: make_mixed(t);
    }
}

void traffic_release(struct traffic *t)
{
    free(t->request);
    free(t->after);
    free(t->hash);
    *t = (struct traffic){0};
}
