/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of replay/control, client and launch with real processes: results, broadcasts, and every
 * way in which a rank can go wrong. No rank may be left afterwards.
 */
#include "replay/launch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "replay/roster.h"

enum { RANKS = 4, STEPS = 50 };

static const struct world WORLD = {.ranks = RANKS, .local_rank = -1, .host = "127.0.0.1"};

/* Shared with the ranks: who they are, and what the parent has gathered. */
struct scene {
    pid_t pid[RANKS];
    int steps;  /* delivered */
    int refuse; /* fail at this step */
    bool wrong;
};

static struct scene *scene_new(void)
{
    FILE *f = tmpfile();
    cr_assert(f != NULL && ftruncate(fileno(f), sizeof(struct scene)) == 0);
    struct scene *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
    cr_assert_neq(s, MAP_FAILED);
    fclose(f);
    s->refuse = -1;
    return s;
}

static int gather(void *arg, int step, const struct control_result *results, struct err *err)
{
    struct scene *s = arg;
    char want[32];
    s->wrong |= step != s->steps++;
    for (int r = 0; r < RANKS; r++) {
        size_t bytes = (size_t)snprintf(want, sizeof want, "rank %d step %d", r, step);
        s->wrong |= results[r].bytes != bytes || memcmp(results[r].data, want, bytes) != 0;
    }
    return step == s->refuse ? err_run(err, "disk full at step %d", step) : 0;
}

static void sleep_ms(long ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        continue;
}

static void begin(struct rank_context *ctx)
{
    struct scene *s = ctx->arg;
    s->pid[ctx->rank] = getpid();
}

static void send_result(struct rank_context *ctx, int step)
{
    char line[32];
    int bytes = snprintf(line, sizeof line, "rank %d step %d", ctx->rank, step);
    client_at_step(ctx->client, step);
    client_send_result(ctx->client, step, line, (size_t)bytes);
}

static int wait_for_all(struct rank_context *ctx, struct err *err)
{
    client_set_waits(ctx->client, true);
    int result = comm_barrier(&ctx->comm, err);
    client_set_waits(ctx->client, false);
    return result;
}

/* What is to hold of every run once it is over. */
static void expect_no_one_left(const struct scene *s)
{
    cr_expect(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "a child is left");
    for (int r = 0; r < RANKS; r++)
        if (s->pid[r] > 0)
            cr_expect(kill(s->pid[r], 0) < 0 && errno == ESRCH, "rank %d is left", r);
}

static double run(struct scene *s, int (*body)(struct rank_context *, struct err *),
                  struct err *err)
{
    struct launch l = {.world = WORLD, .stall_s = 1, .body = body, .on_step = gather, .arg = s};
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    int result = launch_run(&l, err);
    clock_gettime(CLOCK_MONOTONIC, &b);
    cr_expect_eq(result, err->set ? -1 : 0);
    expect_no_one_left(s);
    return (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
}

static int measure(struct rank_context *ctx, struct err *err)
{
    begin(ctx);
    char id[128] = "";
    if (ctx->rank == 0)
        memset(id, 'x', sizeof id);
    client_broadcast(ctx->client, id, sizeof id);
    client_broadcast(ctx->client, ctx->rank == 0 ? "abc" : id, 3);
    if (ctx->rank != 0 && memcmp(id, "abcx", 4) != 0)
        return err_run(err, "wrong broadcast");
    for (int step = 0; step < STEPS; step++) {
        sleep_ms((ctx->rank * 7 + step) % 3);
        send_result(ctx, step);
    }
    return 0;
}

Test(control, results_come_step_by_step_from_all_ranks, .timeout = 30)
{
    struct scene *s = scene_new();
    struct err err = ERR_NONE;
    run(s, measure, &err);
    cr_assert_not(err.set, "%s", err.text);
    cr_assert_eq(s->steps, STEPS);
    cr_assert_not(s->wrong);
}

Test(control, a_caller_that_cannot_take_a_step_ends_the_run, .timeout = 30)
{
    struct scene *s = scene_new();
    struct err err = ERR_NONE;
    s->refuse = 3;
    run(s, measure, &err);
    cr_assert_str_eq(err.text, "disk full at step 3");
    cr_assert_eq(s->steps, 4);
}

/* All deliver steps 0 and 1, then meet in step 17, where rank 2 goes wrong. */
static int meet(struct rank_context *ctx, struct err *err)
{
    begin(ctx);
    send_result(ctx, 0);
    send_result(ctx, 1);
    client_at_step(ctx->client, 17);
    sleep_ms(400); /* two heartbeats */
    return wait_for_all(ctx, err);
}

static int meet_killed(struct rank_context *ctx, struct err *err)
{
    if (ctx->rank == 2) {
        begin(ctx);
        send_result(ctx, 0);
        send_result(ctx, 1);
        client_at_step(ctx->client, 17);
        sleep_ms(700);
        kill(getpid(), SIGKILL);
    }
    return meet(ctx, err);
}

Test(control, a_killed_rank_is_named_and_results_are_kept, .timeout = 30)
{
    struct scene *s = scene_new();
    struct err err = ERR_NONE;
    double took_s = run(s, meet_killed, &err);
    cr_assert_str_eq(err.text, "rank 2 died (signal 9) in step 17");
    cr_assert_eq(err.kind, ERR_RUN);
    cr_assert_eq(s->steps, 2);
    cr_assert_not(s->wrong);
    cr_assert_lt(took_s, 5);
}

static int meet_hung(struct rank_context *ctx, struct err *err)
{
    if (ctx->rank == 2) {
        begin(ctx);
        client_at_step(ctx->client, 17);
        for (;;)
            sleep_ms(1000);
    }
    return meet(ctx, err);
}

Test(control, a_rank_that_hangs_is_blamed_not_those_that_wait, .timeout = 30)
{
    struct scene *s = scene_new();
    struct err err = ERR_NONE;
    double took_s = run(s, meet_hung, &err);
    cr_assert_str_eq(err.text, "rank 2 has been in step 17 for 1 s: stalled");
    cr_assert_lt(took_s, 5);
}

static int meet_stopped(struct rank_context *ctx, struct err *err)
{
    if (ctx->rank == 2) {
        begin(ctx);
        client_at_step(ctx->client, 17);
        client_set_waits(ctx->client, true);
        sleep_ms(400);
        kill(getpid(), SIGSTOP);
    }
    return meet(ctx, err);
}

Test(control, a_stopped_rank_is_killed, .timeout = 30)
{
    struct scene *s = scene_new();
    struct err err = ERR_NONE;
    double took_s = run(s, meet_stopped, &err);
    cr_assert_not_null(strstr(err.text, "in step 17 for 1 s: stalled"), "%s", err.text);
    cr_assert_lt(took_s, 6);
}

static int meet_failing(struct rank_context *ctx, struct err *err)
{
    if (ctx->rank == 1) {
        begin(ctx);
        client_at_step(ctx->client, 4);
        return err_set(err, "out of device memory");
    }
    return meet(ctx, err);
}

Test(control, a_rank_that_fails_has_its_text_reported, .timeout = 30)
{
    struct scene *s = scene_new();
    struct err err = ERR_NONE;
    double took_s = run(s, meet_failing, &err);
    cr_assert_str_eq(err.text, "rank 1, step 4: out of device memory");
    cr_assert_lt(took_s, 5);
}

static int meet_without(struct rank_context *ctx, struct err *err)
{
    begin(ctx);
    if (ctx->rank == 3)
        _exit(7);
    return wait_for_all(ctx, err);
}

Test(control, a_rank_that_exits_early_is_named, .timeout = 30)
{
    struct scene *s = scene_new();
    struct err err = ERR_NONE;
    run(s, meet_without, &err);
    cr_assert_str_eq(err.text, "rank 3 exited (status 7) in start-up");
}

Test(control, port_in_use_is_an_error_that_says_what_to_do, .timeout = 30)
{
    struct err err = ERR_NONE;
    int fd = tcp_listen(WORLD.host, 0, &err);
    cr_assert(fd >= 0, "%s", err.text);
    int port = tcp_own(fd).port;
    struct scene *s = scene_new();
    struct launch l = {.world = WORLD, .stall_s = 1, .body = measure, .arg = s};
    l.world.port = port;
    cr_assert_eq(tcp_listen(WORLD.host, port, &err), -1);
    cr_assert_not_null(strstr(err.text, "in use"), "%s", err.text);
    cr_assert_not_null(strstr(err.text, "--port"), "%s", err.text);
    err = ERR_NONE;
    cr_assert_eq(launch_run(&l, &err), -1);
    cr_assert_eq(s->pid[0], 0, "ranks were started");
    close(fd);
}

/* Two ranks that something else started; a stranger comes first, and rank 1 is killed. */
static pid_t start_foreign(int port, int rank)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct err err = ERR_NONE;
    struct tcp_address at[2];
    struct world w = {.rank = rank, .ranks = 2, .host = WORLD.host, .port = port};
    struct client *c = client_new(&w, 0, at, &err);
    client_at_step(c, 6);
    sleep_ms(400);
    if (rank == 1)
        kill(getpid(), SIGKILL);
    for (;;)
        sleep_ms(1000);
}

static void call_as_stranger(int port)
{
    static const char words[] = "GET / HTTP/1.0\r\n\r\n";
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    cr_assert_eq(write(fd, words, sizeof words), sizeof words);
    close(fd);
}

Test(control, ranks_of_another_launcher_are_watched_by_their_connections, .timeout = 30)
{
    struct err err = ERR_NONE;
    int status[2], fd = tcp_listen(WORLD.host, 0, &err);
    int port = tcp_own(fd).port;
    call_as_stranger(port);
    pid_t pid[] = {start_foreign(port, 0), start_foreign(port, 1)};
    struct control_config config = {.ranks = 2, .stall_s = 5, .on_step = gather};
    cr_expect_eq(control_run(&config, fd, &err), -1);
    cr_expect_str_eq(err.text, "rank 1 lost its connection in step 6");
    for (int r = 0; r < 2; r++)
        cr_assert_eq(waitpid(pid[r], &status[r], 0), pid[r]);
    cr_expect(WIFEXITED(status[0]) && WEXITSTATUS(status[0]) == 1, "rank 0 was not told to exit");
}

static int terminate_coordinator(struct rank_context *ctx, struct err *err)
{
    begin(ctx);
    send_result(ctx, 0);
    client_at_step(ctx->client, 1);
    if (wait_for_all(ctx, err) < 0)
        return -1;
    if (ctx->rank == 1) {
        sleep_ms(300);
        kill(0, SIGTERM); /* as a launcher or a terminal does: the whole group */
    }
    for (;;)
        sleep_ms(1000);
}

Test(control, told_to_end_it_ends_the_ranks_and_keeps_results, .timeout = 30)
{
    struct scene *s = scene_new();
    struct err err = ERR_NONE;
    cr_assert(getpgrp() == getpid() || setpgid(0, 0) == 0);
    double took_s = run(s, terminate_coordinator, &err);
    cr_assert_str_eq(err.text, "told to end (signal 15)");
    cr_assert_eq(s->steps, 1);
    cr_assert_lt(took_s, 5);
}

/* The processes of a launcher: this one is rank 0's and so the coordinator. `ranks` of RANKS are
 * started, and then one of `twice` again, unless that is 0. Returns how many did not exit with
 * `status`. */
static int run_launched(struct scene *s, int (*body)(struct rank_context *, struct err *),
                        int ranks, int twice, int status, struct err *err)
{
    struct launch l = {.world = WORLD, .stall_s = 1, .body = body, .on_step = gather, .arg = s};
    pid_t pid[RANKS + 2] = {0}; /* ends with a zero */
    int fd = tcp_listen(WORLD.host, 0, err), bad = 0;
    l.world.launched = true;
    l.world.port = tcp_own(fd).port;
    close(fd); /* free again: the others try until the coordinator listens there */
    for (int r = 1; r < ranks + (twice > 0); r++) {
        l.world.rank = r < ranks ? r : twice;
        pid[r] = fork();
        if (pid[r] == 0)
            _exit(3 + (launch_run(&l, err) != 0)); /* no return but in rank 0 */
    }
    sleep_ms(200);
    l.world.rank = 0;
    cr_expect_eq(launch_run(&l, err), err->set ? -1 : 0);
    for (int r = 1; pid[r] > 0; r++) {
        int how = 0;
        cr_expect_eq(waitpid(pid[r], &how, 0), pid[r]);
        bad += !WIFEXITED(how) || WEXITSTATUS(how) != status;
    }
    expect_no_one_left(s);
    return bad;
}

static int measure_launched(struct rank_context *ctx, struct err *err)
{
    double sum = 1 << ctx->rank;
    if (comm_all_reduce(&ctx->comm, &sum, 1, err) < 0)
        return -1;
    if (sum != (1 << RANKS) - 1 || ctx->local_rank != ctx->rank)
        return err_run(err, "sum %g, local rank %d", sum, ctx->local_rank);
    return measure(ctx, err);
}

Test(control, launched_ranks_meet_and_measure, .timeout = 30)
{
    struct scene *s = scene_new();
    struct err err = ERR_NONE;
    cr_expect_eq(run_launched(s, measure_launched, RANKS, 0, 0, &err), 0);
    cr_assert_not(err.set, "%s", err.text);
    cr_assert_eq(s->steps, STEPS);
    cr_assert_not(s->wrong);
}

Test(control, a_launched_rank_that_is_there_twice_is_refused, .timeout = 30)
{
    struct scene *s = scene_new();
    struct err err = ERR_NONE;
    cr_expect_eq(run_launched(s, measure_launched, RANKS, 2, 0, &err), 1, "one is refused");
    cr_assert_not(err.set, "%s", err.text);
    cr_assert_eq(s->steps, STEPS);
}

Test(control, a_killed_launched_rank_ends_all, .timeout = 30)
{
    struct scene *s = scene_new();
    struct err err = ERR_NONE;
    cr_expect_eq(run_launched(s, meet_killed, RANKS, 0, 1, &err), 1, "ranks 1 and 3 exit with 1");
    cr_assert_str_eq(err.text, "rank 2 lost its connection in step 17");
    cr_assert_eq(s->steps, 2);
}

Test(control, launched_ranks_that_never_come_are_named, .timeout = 30)
{
    struct scene *s = scene_new();
    struct err err = ERR_NONE;
    cr_expect_eq(run_launched(s, measure_launched, RANKS - 1, 0, 1, &err), 0);
    cr_assert_str_eq(
        err.text,
        "rank 3 of 4 did not come within 1 s: were they started, with this MASTER_ADDR and port?");
    cr_assert_eq(s->steps, 0);
}

Test(control, missing_ranks_are_listed)
{
    static const pid_t pid[10] = {1};
    struct roster r;
    struct err err = ERR_NONE;
    roster_init(&r, 10, pid, 0);
    roster_join(&r, 2, 9);
    roster_join(&r, 6, 9);
    roster_join(&r, 0, 9);
    cr_assert_eq(roster_check_stall(&r, 10, 9.9, &err), 0);
    cr_assert_eq(roster_check_stall(&r, 10, 10, &err), -1);
    cr_assert_str_eq(err.text, "ranks 1, 3-5, 7-9 of 10 did not come within 10 s: were they "
                               "started, with this MASTER_ADDR and port?");
    roster_release(&r);
}

static void roster_at(struct roster *r, int rank, int step, bool waits, double now_s)
{
    roster_join(r, rank, now_s);
    roster_hear(r, rank, step, waits, now_s);
}

Test(control, blame_prefers_who_works_then_who_is_silent_then_who_is_behind)
{
    struct roster r;
    struct err err = ERR_NONE;
    roster_init(&r, 3, NULL, 0);
    for (int rank = 0; rank < 3; rank++)
        roster_at(&r, rank, 5 - rank, true, 1);
    for (int rank = 0; rank < 3; rank++)
        roster_hear(&r, rank, 5 - rank, true, 10.9);
    cr_assert_eq(roster_check_stall(&r, 10, 10.9, &err), 0);
    cr_assert_eq(roster_check_stall(&r, 10, 11, &err), -1);
    cr_expect_str_eq(err.text, "rank 2 has been in step 3 for 10 s: stalled"); /* behind */
    err = ERR_NONE;
    roster_hear(&r, 1, 4, true, 12.5);
    roster_hear(&r, 2, 3, true, 12.5);
    roster_check_stall(&r, 10, 13, &err);
    cr_expect_str_eq(err.text, "rank 0 has been in step 5 for 12 s: stalled"); /* silent */
    err = ERR_NONE;
    roster_hear(&r, 0, 5, true, 12.5);
    roster_hear(&r, 1, 4, false, 12.5);
    roster_check_stall(&r, 10, 13, &err);
    cr_expect_str_eq(err.text, "rank 1 has been in step 4 for 12 s: stalled"); /* works */
    roster_release(&r);
}
