/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/control.h"

#include "replay/frame.h"
#include "replay/roster.h"
#include "replay/tcp.h"
#include "sim/base/mem.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <event2/bufferevent.h>
#include <event2/event.h>

/* Why a run ends early; the first of these that holds is the one to report. */
enum cause { CAUSE_DIED, CAUSE_LOST, CAUSE_FAILED, CAUSE_STALLED, CAUSE_TOLD, CAUSE_COUNT };

static const struct timeval CHECK_PERIOD = {.tv_usec = 200000};
static const struct timeval VERDICT_DELAY = {.tv_usec = 200000}; /* for a death to show */
static const struct timeval KILL_DELAY = {.tv_sec = 2};

struct seat {
    struct peer *peer;        /* NULL before its hello */
    struct evbuffer *results; /* frames of steps that others have yet to deliver */
};

struct control {
    const struct control_config *config;
    struct roster roster;
    struct event_base *base;
    struct event *accept, *child, *interrupt, *terminate, *check, *verdict, *kill;
    struct peer *peers; /* all connections ever made */
    struct seat *seats; /* one per rank */
    struct err cause[CAUSE_COUNT];
    struct err *err; /* the verdict */
    bool stopping, killed;
};

struct peer {
    struct control *control;
    struct bufferevent *link; /* NULL once closed */
    int rank;                 /* -1 before its hello */
    struct tcp_address at;    /* where other ranks find it */
    struct peer *next;
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void tell(struct peer *p, enum frame_kind kind, const void *data, size_t bytes)
{
    if (p != NULL && p->link != NULL)
        frame_add(bufferevent_get_output(p->link), (struct frame){kind, 0, data, bytes});
}

static void tell_all(struct control *c, enum frame_kind kind, const void *data, size_t bytes)
{
    for (int r = 0; r < c->config->ranks; r++)
        tell(c->seats[r].peer, kind, data, bytes);
}

static void finish_if_over(struct control *c)
{
    if (roster_all_ended(&c->roster))
        event_base_loopbreak(c->base);
}

/* What comes to light later is a consequence: the first verdict stays. */
static void conclude(struct control *c)
{
    for (int i = 0; i < CAUSE_COUNT; i++)
        if (c->cause[i].set)
            err_run(c->err, "%s", c->cause[i].text);
}

static void stop(struct control *c)
{
    if (c->stopping)
        return;
    c->stopping = true;
    conclude(c);
    tell_all(c, FRAME_ABORT, NULL, 0);
    event_add(c->kill, &KILL_DELAY);
}

/* The verdict waits a moment: when a rank is killed, the errors of its peers can arrive first. */
static void consider(struct control *c)
{
    if (!c->stopping && !event_pending(c->verdict, EV_TIMEOUT, NULL))
        event_add(c->verdict, &VERDICT_DELAY);
}

static void on_verdict(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    stop(arg);
}

static void on_kill(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    struct control *c = arg;
    if (c->killed || c->config->pid == NULL)
        event_base_loopbreak(c->base);
    roster_kill(&c->roster);
    c->killed = true;
    event_add(c->kill, &KILL_DELAY);
}

static void on_child(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    struct control *c = arg;
    if (roster_reap(&c->roster, &c->cause[CAUSE_DIED]) < 0)
        stop(c);
    finish_if_over(c);
}

static void on_told(evutil_socket_t number, short what, void *arg)
{
    (void)what;
    struct control *c = arg;
    err_run(&c->cause[CAUSE_TOLD], "told to end (signal %d)", (int)number);
    consider(c);
}

static void on_check(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    struct control *c = arg;
    if (!c->stopping &&
        roster_check_stall(&c->roster, c->config->stall_s, now_s(), &c->cause[CAUSE_STALLED]) < 0)
        stop(c);
}

/* Hand over every step that all ranks have delivered. */
static void deliver(struct control *c, struct err *err)
{
    int ranks = c->config->ranks;
    struct frame *f = xcalloc((size_t)ranks, sizeof *f);
    struct control_result *results = xcalloc((size_t)ranks, sizeof *results);
    while (!err->set) {
        int ready = 0;
        while (ready < ranks && frame_peek(c->seats[ready].results, &f[ready]) > 0)
            ready++;
        if (ready < ranks)
            break;
        for (int r = 0; r < ranks; r++) {
            results[r] = (struct control_result){f[r].data, f[r].bytes};
            if (f[r].step != f[0].step)
                err_run(err, "rank %d delivered step %d when rank 0 delivered step %d", r,
                        f[r].step, f[0].step);
        }
        if (!err->set && c->config->on_step(c->config->arg, f[0].step, results, err) < 0)
            break;
        for (int r = 0; r < ranks; r++)
            evbuffer_drain(c->seats[r].results, frame_size(&f[r]));
    }
    free(results);
    free(f);
    if (err->set)
        consider(c);
}

static void fail(struct peer *p, const struct frame *f)
{
    struct control *c = p->control;
    char buf[32];
    roster_hear(&c->roster, p->rank, f->step, false, now_s());
    err_run(&c->cause[CAUSE_FAILED], "rank %d, %s: %.*s", p->rank,
            roster_place(&c->roster, p->rank, buf, sizeof buf), (int)f->bytes,
            (const char *)f->data);
    consider(c);
}

static void close_peer(struct peer *p)
{
    bufferevent_free(p->link);
    p->link = NULL;
}

static void lose(struct peer *p, const char *how)
{
    struct control *c = p->control;
    close_peer(p);
    if (p->rank < 0)
        return;
    struct member *m = &c->roster.member[p->rank];
    if (m->pid == 0)
        m->ended = true;
    if (!m->done && !c->stopping) {
        char buf[32];
        err_run(&c->cause[CAUSE_LOST], "rank %d %s in %s", p->rank, how,
                roster_place(&c->roster, p->rank, buf, sizeof buf));
        consider(c);
    }
    finish_if_over(c);
}

static void start(struct control *c)
{
    size_t ranks = (size_t)c->config->ranks;
    struct tcp_address *at = xcalloc(ranks, sizeof *at);
    for (size_t r = 0; r < ranks; r++)
        at[r] = c->seats[r].peer->at;
    tell_all(c, FRAME_START, at, ranks * sizeof *at);
    free(at);
}

/* Send a rank away. It closes the connection: before that it has to have read why. */
static void refuse(struct peer *p, const char *why)
{
    tell(p, FRAME_ABORT, why, strlen(why) + 1);
}

/* Deal with the first frame of a connection. Strangers are hung up on. */
static void join(struct peer *p, const struct frame *f)
{
    struct control *c = p->control;
    struct tcp_address at;
    int rank = f->step;
    if (f->kind != FRAME_HELLO || f->bytes != sizeof at) {
        close_peer(p);
    } else if (rank < 0 || rank >= c->config->ranks) {
        refuse(p, "refused: the run has fewer ranks");
    } else if (c->seats[rank].peer != NULL) {
        refuse(p, "refused: there is one already");
    } else if (c->stopping) {
        refuse(p, "refused: the run is ending");
    } else {
        memcpy(&at, f->data, sizeof at);
        p->at.port = at.port;
        p->rank = rank;
        c->seats[rank].peer = p;
        roster_join(&c->roster, rank, now_s());
        if (roster_all_joined(&c->roster))
            start(c);
    }
}

/* Deal with a frame of a rank that has joined. */
static void hear(struct peer *p, const struct frame *f)
{
    struct control *c = p->control;
    switch (f->kind) {
    case FRAME_BUSY:
    case FRAME_WAITING:
        roster_hear(&c->roster, p->rank, f->step, f->kind == FRAME_WAITING, now_s());
        break;
    case FRAME_BROADCAST:
        for (int r = 0; r < c->config->ranks; r++)
            if (r != p->rank)
                tell(c->seats[r].peer, FRAME_BROADCAST, f->data, f->bytes);
        break;
    case FRAME_RESULT:
        frame_add(c->seats[p->rank].results, *f);
        deliver(c, &c->cause[CAUSE_FAILED]);
        break;
    case FRAME_FAILED: fail(p, f); break;
    case FRAME_BYE:
        roster_finish(&c->roster, p->rank, now_s());
        tell(p, FRAME_BYE, NULL, 0);
        break;
    default: lose(p, "sent what no rank sends");
    }
}

static void on_read(struct bufferevent *link, void *arg)
{
    struct peer *p = arg;
    struct evbuffer *input = bufferevent_get_input(link);
    struct frame f;
    int found = 0;
    while (p->link != NULL && (found = frame_peek(input, &f)) > 0) {
        if (p->rank >= 0)
            hear(p, &f);
        else
            join(p, &f);
        if (p->link != NULL)
            evbuffer_drain(input, frame_size(&f));
    }
    if (p->link != NULL && found < 0)
        lose(p, "sent what no rank sends");
}

static void on_lost(struct bufferevent *link, short what, void *arg)
{
    (void)link, (void)what;
    lose(arg, "lost its connection");
}

static void on_accept(evutil_socket_t listen_fd, short what, void *arg)
{
    (void)what;
    struct control *c = arg;
    int fd = accept(listen_fd, NULL, NULL);
    if (fd < 0)
        return; /* it went away before we came to it */
    evutil_make_socket_nonblocking(fd);
    tcp_set_watched(fd);
    struct peer *p = xcalloc(1, sizeof *p);
    *p = (struct peer){.control = c, .rank = -1, .at = tcp_peer(fd), .next = c->peers};
    c->peers = p;
    p->link = bufferevent_socket_new(c->base, fd, BEV_OPT_CLOSE_ON_FREE);
    bufferevent_setcb(p->link, on_read, NULL, on_lost, p);
    bufferevent_enable(p->link, EV_READ | EV_WRITE);
}

static void control_init(struct control *c, const struct control_config *config, int listen_fd)
{
    size_t ranks = (size_t)config->ranks;
    *c = (struct control){.config = config, .base = event_base_new()};
    roster_init(&c->roster, config->ranks, config->pid, now_s());
    c->seats = xcalloc(ranks, sizeof *c->seats);
    for (size_t r = 0; r < ranks; r++)
        c->seats[r].results = evbuffer_new();
    evutil_make_socket_nonblocking(listen_fd);
    c->accept = event_new(c->base, listen_fd, EV_READ | EV_PERSIST, on_accept, c);
    c->child = evsignal_new(c->base, SIGCHLD, on_child, c);
    c->interrupt = evsignal_new(c->base, SIGINT, on_told, c);
    c->terminate = evsignal_new(c->base, SIGTERM, on_told, c);
    c->check = event_new(c->base, -1, EV_PERSIST, on_check, c);
    c->verdict = evtimer_new(c->base, on_verdict, c);
    c->kill = evtimer_new(c->base, on_kill, c);
    event_add(c->accept, NULL);
    event_add(c->child, NULL);
    event_add(c->interrupt, NULL);
    event_add(c->terminate, NULL);
    event_add(c->check, &CHECK_PERIOD);
}

static void control_release(struct control *c)
{
    while (c->peers != NULL) {
        struct peer *p = c->peers;
        c->peers = p->next;
        if (p->link != NULL)
            close_peer(p);
        free(p);
    }
    event_free(c->kill);
    event_free(c->verdict);
    event_free(c->check);
    event_free(c->terminate);
    event_free(c->interrupt);
    event_free(c->child);
    event_free(c->accept);
    for (int r = 0; r < c->config->ranks; r++)
        evbuffer_free(c->seats[r].results);
    free(c->seats);
    roster_release(&c->roster);
    event_base_free(c->base);
}

int control_run(const struct control_config *config, int listen_fd, struct err *err)
{
    struct control c;
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    sigaction(SIGPIPE, &ignore, &before); /* a lost rank shows as an error of its connection */
    control_init(&c, config, listen_fd);
    c.err = err;
    event_active(c.child, EV_SIGNAL, 1); /* for one that ended before the handler was there */
    event_base_dispatch(c.base);
    conclude(&c);
    control_release(&c);
    sigaction(SIGPIPE, &before, NULL);
    close(listen_fd);
    return err->set ? -1 : 0;
}
