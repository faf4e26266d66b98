/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/exchange.h"

#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

enum { RANKS = 4 };

typedef int (*body_fn)(struct comm *c, const struct slice *s, const struct layout *l);

/* Fork the ranks; each body returns 0 when all is right and leaves Criterion, whose channel is the
 * parent's, alone. */
static void run_ranks(body_fn body, const char *layout)
{
    struct err err = ERR_NONE;
    struct slice s = {.layers = 1};
    struct layout l;
    int loaded = model_load(&s.model, "tiny-gqa", &err);
    cr_assert_eq(loaded, 0, "%s", err.text);
    int parsed = layout_parse(&l, layout, &s.model, RANKS, &err);
    cr_assert_eq(parsed, 0, "%s", err.text);
    int fd[RANKS * RANKS], failed = 0;
    pid_t pid[RANKS];
    int rc = comm_make_pairs(RANKS, fd, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    for (int r = 0; r < RANKS; r++) {
        pid[r] = fork();
        if (pid[r] == 0) {
            struct comm c;
            comm_adopt(&c, r, RANKS, fd);
            _exit(body(&c, &s, &l) != 0);
        }
    }
    comm_close_pairs(RANKS, fd);
    for (int r = 0; r < RANKS; r++) {
        int status;
        waitpid(pid[r], &status, 0);
        failed += status != 0;
    }
    cr_assert_eq(failed, 0, "%d ranks failed", failed);
}

/* Rows of owners 0, 2 and 2: ranks 1 and 3 have none. */
static struct share_row row[] = {{0, 0, 5}, {1, 2, 7}, {1, 2, 8}};
static const struct share_rows rows = {row, 3};

/* Ranks 0 and 1 have KV head 0, ranks 2 and 3 head 1; one of each pair sends. */
static int give_kv_to_owners(struct comm *c, const struct slice *s, const struct layout *l)
{
    struct err err = ERR_NONE;
    struct exchange e = {s, l, &rows, SHARE_KV, SHARE_STORE, 2, 1, exchange_replace};
    double send[6], recv[6];
    for (int i = 0; i < 6; i++) {
        bool made_here = i % 2 == c->rank / 2;
        send[i] = made_here ? 10 + i : NAN;
        recv[i] = -1;
    }
    if (exchange_run(&e, send, recv, c, &err) < 0)
        return 1;
    for (int i = 0; i < 6; i++) {
        if (recv[i] != (row[i / 2].owner == c->rank ? 10 + i : -1))
            return 1;
    }
    /* rank 0 lacks head 1 of one row, rank 2 head 0 of two */
    static const int64_t want[RANKS] = {8, 0, 16, 0};
    return c->received_bytes != want[c->rank];
}

Test(exchange, one_of_the_ranks_that_share_a_kv_head_sends_it, .timeout = 20)
{
    run_ranks(give_kv_to_owners, "dop");
}

/* Every rank saw as many equal positions as its number; rank 0 none. */
static int combine_partials(struct comm *c, const struct slice *s, const struct layout *l)
{
    struct err err = ERR_NONE;
    struct exchange e = {s, l, &rows, SHARE_ATTEND, SHARE_OUT, 8, 2, exchange_combine};
    double send[3 * 8 * 2], recv[3 * 8 * 2];
    for (int i = 0; i < 3 * 8; i++) {
        send[2 * i] = c->rank;
        send[2 * i + 1] = log(c->rank);
        recv[2 * i] = 0;
        recv[2 * i + 1] = -INFINITY;
    }
    if (exchange_run(&e, send, recv, c, &err) < 0)
        return 1;
    for (int i = 0; i < 3 * 8; i++) { /* (1 + 4 + 9) / 6 at row mod 4, untouched elsewhere */
        bool here = i / 8 == c->rank;
        if (here && (fabs(recv[2 * i] - 14.0 / 6) > 1e-15 * 8 ||
                     fabs(recv[2 * i + 1] - log(6)) > 1e-15 * 8))
            return 1;
        if (!here && recv[2 * i] != 0)
            return 1;
    }
    return 0;
}

Test(exchange, partial_outputs_meet_where_the_row_is_combined, .timeout = 20)
{
    run_ranks(combine_partials, "cp");
}

static int gather(struct comm *c, const struct slice *s, const struct layout *l)
{
    (void)s;
    struct err err = ERR_NONE;
    double x[6];
    for (int i = 0; i < 6; i++)
        x[i] = row[i / 2].owner == c->rank ? i : NAN;
    int rc = exchange_gather_rows(&rows, share_home(l), x, 2, c, &err);
    for (int i = 0; i < 6; i++)
        rc += x[i] != i;
    return rc;
}

Test(exchange, hidden_rows_return_in_the_order_of_the_step, .timeout = 20)
{
    run_ranks(gather, "dp");
}

Test(exchange, combines_by_lse)
{
    double at[] = {2, 0}; /* weight 1 */
    const double piece[] = {5, log(3)}, empty[] = {0, -INFINITY};
    exchange_combine(at, piece, 2); /* (1 * 2 + 3 * 5) / 4 */
    cr_assert_float_eq(at[0], 4.25, 1e-15);
    cr_assert_float_eq(at[1], log(4), 1e-15);
    exchange_combine(at, empty, 2);
    cr_assert_float_eq(at[0], 4.25, 1e-15);
    double none[] = {0, -INFINITY};
    exchange_combine(none, empty, 2);
    cr_assert(none[0] == 0 && none[1] == -INFINITY);
}
