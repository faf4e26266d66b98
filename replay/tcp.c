/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/tcp.h"

#include "sim/base/progress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static const struct timeval DIAL_TIMEOUT = {.tv_sec = 5};
static const struct timespec DIAL_PAUSE = {.tv_nsec = 50000000};

bool tcp_is_loopback(const char *host)
{
    struct in6_addr in6;
    struct in_addr in;
    if (inet_pton(AF_INET, host, &in) == 1)
        return ntohl(in.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, host, &in6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&in6);
    return strcmp(host, "localhost") == 0;
}

static int resolve(const char *host, int port, struct addrinfo **list)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    return getaddrinfo(host, service, &hints, list);
}

static const char *reason(int gai)
{
    return gai == EAI_SYSTEM ? strerror(errno) : gai_strerror(gai);
}

int tcp_check_host(const char *host, const char *what, struct err *err)
{
    struct addrinfo *list;
    int gai = resolve(host, 0, &list);
    if (gai != 0)
        return err_set(err, "%s: no host \"%s\": %s", what, host, reason(gai));
    freeaddrinfo(list);
    return 0;
}

/* Close a socket that did not work out, keeping errno. Returns -1. */
static int give_up(int fd)
{
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return -1;
}

static int listen_on(const struct addrinfo *a)
{
    int fd = socket(a->ai_family, SOCK_STREAM, 0), on = 1, off = 0;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        (a->ai_family == AF_INET6 &&
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) < 0) ||
        bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, SOMAXCONN) < 0)
        return give_up(fd);
    return fd;
}

/* Connecting obeys the timeout of sending. Trying a free port of this host again and again, a
 * socket may be given that port itself, and then meets itself. */
static int dial(const struct addrinfo *a)
{
    int fd = socket(a->ai_family, SOCK_STREAM, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &DIAL_TIMEOUT, sizeof DIAL_TIMEOUT) < 0 ||
        connect(fd, a->ai_addr, a->ai_addrlen) < 0) {
        errno = errno == EINPROGRESS ? ETIMEDOUT : errno;
        return give_up(fd);
    }
    struct tcp_address own = tcp_own(fd), peer = tcp_peer(fd);
    if (own.port == peer.port && strcmp(own.host, peer.host) == 0) {
        errno = ECONNREFUSED;
        return give_up(fd);
    }
    return fd;
}

/* The first of the host's addresses that works. Returns its socket, or -1 and the last reason. */
static int open_first(const char *host, int port, int (*open)(const struct addrinfo *),
                      const char **why)
{
    struct addrinfo *list;
    int fd = -1, gai = resolve(host, port, &list);
    if (gai != 0) {
        *why = reason(gai);
        return -1;
    }
    for (const struct addrinfo *a = list; a != NULL && fd < 0; a = a->ai_next)
        fd = open(a);
    *why = strerror(errno);
    freeaddrinfo(list);
    return fd;
}

int tcp_listen(const char *host, int port, struct err *err)
{
    const char *why = "";
    bool loopback = tcp_is_loopback(host);
    int fd = open_first(loopback ? host : "::", port, listen_on, &why);
    if (fd < 0 && !loopback) /* a host without IPv6 */
        fd = open_first("0.0.0.0", port, listen_on, &why);
    if (fd < 0)
        err_run(err, "port %d: %s%s", port, why, port != 0 ? ": choose another with --port" : "");
    return fd;
}

int tcp_connect(const char *host, int port, double patience_s, struct err *err)
{
    uint64_t until_ns = wall_ns() + (uint64_t)(patience_s * 1e9);
    const char *why = "";
    int fd;
    while ((fd = open_first(host, port, dial, &why)) < 0 && wall_ns() < until_ns)
        nanosleep(&DIAL_PAUSE, NULL);
    if (fd < 0)
        err_run(err, "port %d of %s: %s", port, host, why);
    return fd;
}

static struct tcp_address address(const struct sockaddr_storage *s, socklen_t size)
{
    static const char mapped[] = "::ffff:"; /* how an IPv4 host looks to an IPv6 socket */
    struct tcp_address a = {.host = "?"};
    char host[sizeof a.host], service[16];
    if (getnameinfo((const struct sockaddr *)s, size, host, sizeof host, service, sizeof service,
                    NI_NUMERICHOST | NI_NUMERICSERV) == 0) {
        bool is_mapped = strncmp(host, mapped, strlen(mapped)) == 0 && strchr(host, '.') != NULL;
        snprintf(a.host, sizeof a.host, "%s", is_mapped ? host + strlen(mapped) : host);
        a.port = atoi(service);
    }
    return a;
}

struct tcp_address tcp_own(int fd)
{
    struct sockaddr_storage s = {0};
    socklen_t size = sizeof s;
    getsockname(fd, (struct sockaddr *)&s, &size);
    return address(&s, size);
}

struct tcp_address tcp_peer(int fd)
{
    struct sockaddr_storage s = {0};
    socklen_t size = sizeof s;
    getpeername(fd, (struct sockaddr *)&s, &size);
    return address(&s, size);
}

void tcp_set_prompt(int fd)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void tcp_set_watched(int fd)
{
    /* the probes are for who only reads, the limit for who has sent and waits for the answer */
    int on = 1, idle_s = 2, probes = 3, limit_ms = 8000;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof limit_ms);
}
