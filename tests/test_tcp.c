/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of replay/tcp on this host's interfaces.
 */
#include "replay/tcp.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "sim/base/progress.h"

Test(tcp, loopback_is_told_by_the_text)
{
    static const char *const yes[] = {"127.0.0.1", "127.1.2.3", "::1", "localhost"};
    static const char *const no[] = {"128.0.0.1", "::", "0.0.0.0", "localhost.example", "127", ""};
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++)
        cr_expect(tcp_is_loopback(yes[i]), "%s", yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
        cr_expect_not(tcp_is_loopback(no[i]), "%s", no[i]);
}

/* Listen for `host`, then connect to `to`. */
static void meet(const char *host, const char *to)
{
    struct err err = ERR_NONE;
    int listen_fd = tcp_listen(host, 0, &err);
    cr_assert(listen_fd >= 0, "%s: %s", host, err.text);
    int port = tcp_own(listen_fd).port;
    int fd = tcp_connect(to, port, 0, &err);
    cr_assert(fd >= 0, "%s: %s", host, err.text);
    int other = accept(listen_fd, NULL, NULL);
    struct tcp_address here = tcp_own(fd), there = tcp_peer(other);
    cr_expect_eq(tcp_peer(fd).port, port);
    cr_expect_str_eq(tcp_peer(fd).host, to);
    cr_expect_str_eq(here.host, there.host, "an IPv4 host has one name");
    cr_expect_eq(here.port, there.port);
    close(other);
    close(fd);
    close(listen_fd);
}

Test(tcp, both_ends_know_each_other, .timeout = 10)
{
    meet("127.0.0.1", "127.0.0.1");
    meet("a-name-is-any-interface", "127.0.0.1");
}

Test(tcp, who_listens_on_loopback_is_not_elsewhere, .timeout = 10)
{
    struct err err = ERR_NONE;
    int fd = tcp_listen("127.0.0.2", 0, &err);
    int port = tcp_own(fd).port;
    cr_assert_str_eq(tcp_own(fd).host, "127.0.0.2");
    cr_assert_eq(tcp_connect("127.0.0.3", port, 0, &err), -1);
    close(fd);
}

/* A child listens 300 ms later on a port that is free until then. */
Test(tcp, connecting_waits_for_who_listens_late, .timeout = 10)
{
    struct err err = ERR_NONE;
    int fd = tcp_listen("127.0.0.1", 0, &err);
    int port = tcp_own(fd).port;
    close(fd);
    pid_t pid = fork();
    if (pid == 0) {
        nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
        fd = tcp_listen("127.0.0.1", port, &err);
        _exit(fd < 0 || accept(fd, NULL, NULL) < 0);
    }
    fd = tcp_connect("127.0.0.1", port, 5, &err);
    cr_expect(fd >= 0, "%s", err.text);
    int status = 1;
    waitpid(pid, &status, 0);
    cr_assert_eq(status, 0);
    close(fd);
}

Test(tcp, patience_ends, .timeout = 10)
{
    struct err err = ERR_NONE;
    int fd = tcp_listen("127.0.0.1", 0, &err);
    int port = tcp_own(fd).port;
    close(fd);
    uint64_t before_ns = wall_ns();
    cr_assert_eq(tcp_connect("127.0.0.1", port, 0.3, &err), -1);
    double took_s = 1e-9 * (double)(wall_ns() - before_ns);
    cr_expect(took_s >= 0.3 && took_s < 2, "%g s", took_s);
    cr_expect_not_null(strstr(err.text, "of 127.0.0.1: Connection refused"), "%s", err.text);
}

/* Trying a free port until the kernel gives it to the one that tries, and connects that to itself.
 * Linux gives even ports to those that connect, odd ones to those that listen. */
Test(tcp, a_socket_does_not_meet_itself, .timeout = 20)
{
    struct err err = ERR_NONE;
    int fd = tcp_listen("127.0.0.1", 0, &err);
    int port = tcp_own(fd).port & ~1;
    close(fd);
    for (int i = 0; i < 60000; i++)
        cr_assert_lt(tcp_connect("127.0.0.1", port, 0, &err), 0, "attempt %d", i);
}
