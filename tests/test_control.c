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

static double run(struct scene *s, int (*body)(struct rank_context *, struct err *),
                  struct err *err)
{
    struct launch l = {.ranks = RANKS, .stall_s = 1, .body = body, .on_step = gather, .arg = s};
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    int result = launch_run(&l, err);
    clock_gettime(CLOCK_MONOTONIC, &b);
    cr_expect_eq(result, err->set ? -1 : 0);
    cr_expect(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "a child is left");
    for (int r = 0; r < RANKS; r++)
        if (s->pid[r] > 0)
            cr_expect(kill(s->pid[r], 0) < 0 && errno == ESRCH, "rank %d is left", r);
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
    int port = 0, other = 0;
    int fd = control_listen(0, &port, &err);
    cr_assert(fd >= 0 && port > 0, "%s", err.text);
    struct scene *s = scene_new();
    struct launch l = {.ranks = RANKS, .port = port, .stall_s = 1, .body = measure, .arg = s};
    cr_assert_eq(control_listen(port, &other, &err), -1);
    cr_assert_not_null(strstr(err.text, "in use"), "%s", err.text);
    cr_assert_not_null(strstr(err.text, "--port"), "%s", err.text);
    cr_assert_eq(other, 0);
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
    struct client *c = client_new(port, rank, &err);
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
    int port = 0, status[2];
    int fd = control_listen(0, &port, &err);
    call_as_stranger(port);
    pid_t pid[] = {start_foreign(port, 0), start_foreign(port, 1)};
    struct control_config config = {.ranks = 2, .stall_s = 5, .on_step = gather};
    cr_expect_eq(control_run(&config, fd, &err), -1);
    cr_expect_str_eq(err.text, "rank 1 lost its connection in step 6");
    for (int r = 0; r < 2; r++)
        cr_assert_eq(waitpid(pid[r], &status[r], 0), pid[r]);
    cr_expect(WIFEXITED(status[0]) && WEXITSTATUS(status[0]) == 1, "rank 0 was not told to exit");
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
