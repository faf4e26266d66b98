/* SPDX-License-Identifier: Apache-2.0
 *
 * Stream sockets between processes of one host or many, over IPv4 or IPv6. Who means to meet on the
 * loopback interface is not reachable from elsewhere.
 */
#ifndef REPLAY_TCP_H
#define REPLAY_TCP_H

#include <stdbool.h>

#include "sim/base/err.h"

struct tcp_address {
    char host[64]; /* numeric */
    int port;
};

/* Whether this is "localhost" or a numeric loopback address. By its text alone: the name of a host
 * often resolves to 127.0.1.1 on that host, and nowhere else. */
bool tcp_is_loopback(const char *host);

/* Refuse a host that does not resolve; `what` says in the message where it comes from. */
int tcp_check_host(const char *host, const char *what, struct err *err);

/* Listen on a port (0: any free one) of the loopback interface when `host` names that, else of all
 * interfaces. Returns the socket. */
int tcp_listen(const char *host, int port, struct err *err);

/* Connect, trying again for patience_s when nothing answers yet. Returns the socket, blocking. */
int tcp_connect(const char *host, int port, double patience_s, struct err *err);

/* Where a socket is, and where its other end is. */
struct tcp_address tcp_own(int fd);
struct tcp_address tcp_peer(int fd);

/* Send small messages at once. */
void tcp_set_prompt(int fd);

/* Have the connection fail when the other host has not answered for 8 s. For connections that are
 * always read: one that is not looks the same. */
void tcp_set_watched(int fd);

#endif
