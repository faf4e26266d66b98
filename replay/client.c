/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/client.h"

#include "replay/frame.h"
#include "replay/roster.h"
#include "sim/base/mem.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/time.h>
#include <unistd.h>

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/thread.h>

static const double PATIENCE_S = 10;

struct client {
    int rank, ranks;
    atomic_int step;
    atomic_bool waits;
    struct event_base *base; /* runs in the thread */
    struct bufferevent *link;
    struct event *beat;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards what the thread hands to the main thread: */
    pthread_cond_t news;
    bool started;
    struct tcp_address *at; /* the caller's, filled by the start */
    struct evbuffer *broadcast;
};

static void say(struct client *c, enum frame_kind kind, int step, const void *data, size_t bytes)
{
    frame_add(bufferevent_get_output(c->link), (struct frame){kind, step, data, bytes});
}

static void on_beat(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    struct client *c = arg;
    say(c, atomic_load(&c->waits) ? FRAME_WAITING : FRAME_BUSY, atomic_load(&c->step), NULL, 0);
}

/* `why` is NULL when the coordinator says it for all. */
static _Noreturn void end(const struct client *c, const char *why)
{
    struct err err = ERR_NONE;
    if (why != NULL) {
        err_run(&err, "rank %d: %s", c->rank, why);
        err_report(&err, "wavetank-replay");
    }
    _exit(1);
}

/* Ranks that reached the coordinator by its loopback interface are where it is. */
static void start(struct client *c, const struct frame *f)
{
    struct tcp_address coordinator = tcp_peer(bufferevent_getfd(c->link));
    if (f->bytes != (size_t)c->ranks * sizeof *c->at)
        end(c, "the coordinator has another number of ranks");
    memcpy(c->at, f->data, f->bytes);
    for (int r = 0; r < c->ranks; r++)
        if (tcp_is_loopback(c->at[r].host))
            memcpy(c->at[r].host, coordinator.host, sizeof coordinator.host);
    c->started = true;
}

static void hear(struct client *c, const struct frame *f)
{
    pthread_mutex_lock(&c->mutex);
    switch (f->kind) {
    case FRAME_START: start(c, f); break;
    case FRAME_BROADCAST: evbuffer_add(c->broadcast, f->data, f->bytes); break;
    case FRAME_BYE: event_base_loopbreak(c->base); break;
    default: end(c, frame_text(f));
    }
    pthread_cond_signal(&c->news);
    pthread_mutex_unlock(&c->mutex);
}

static void on_read(struct bufferevent *link, void *arg)
{
    struct evbuffer *input = bufferevent_get_input(link);
    struct frame f;
    int found;
    while ((found = frame_peek(input, &f)) > 0) {
        hear(arg, &f);
        evbuffer_drain(input, frame_size(&f));
    }
    if (found < 0)
        end(arg, "what answered is not the coordinator");
}

static void on_lost(struct bufferevent *link, short what, void *arg)
{
    (void)link, (void)what;
    end(arg, "the coordinator is gone");
}

static void *run_loop(void *arg)
{
    struct client *c = arg;
    event_base_dispatch(c->base);
    return NULL;
}

static int connect_to(const struct world *w, struct err *err)
{
    struct err why = ERR_NONE;
    int fd = tcp_connect(w->host, w->port, PATIENCE_S, &why);
    if (fd < 0)
        return err_run(err, "rank %d finds no coordinator: %s: is rank 0 up, and is that its host?",
                       w->rank, why.text);
    tcp_set_prompt(fd);
    tcp_set_watched(fd);
    evutil_make_socket_nonblocking(fd);
    return fd;
}

/* Signals are the main thread's. SIGPIPE too: blocked here, a lost coordinator shows as an error.
 */
static int start_thread(struct client *c)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&c->thread, NULL, run_loop, c);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static void await_start(struct client *c)
{
    pthread_mutex_lock(&c->mutex);
    while (!c->started)
        pthread_cond_wait(&c->news, &c->mutex);
    pthread_mutex_unlock(&c->mutex);
}

static void client_free(struct client *c)
{
    event_free(c->beat);
    bufferevent_free(c->link);
    event_base_free(c->base);
    evbuffer_free(c->broadcast);
    pthread_cond_destroy(&c->news);
    pthread_mutex_destroy(&c->mutex);
    free(c);
}

struct client *client_new(const struct world *w, int listen_port, struct tcp_address *at,
                          struct err *err)
{
    static const struct timeval beat_period = {.tv_usec = 200000};
    int fd = connect_to(w, err);
    if (fd < 0)
        return NULL;
    evthread_use_pthreads();
    struct client *c = xcalloc(1, sizeof *c);
    c->rank = w->rank;
    c->ranks = w->ranks;
    c->at = at;
    atomic_init(&c->step, ROSTER_START_UP);
    pthread_mutex_init(&c->mutex, NULL);
    pthread_cond_init(&c->news, NULL);
    struct event_config *config = event_config_new();
    event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
    c->base = event_base_new_with_config(config);
    event_config_free(config);
    c->link = bufferevent_socket_new(c->base, fd, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_THREADSAFE);
    c->beat = event_new(c->base, -1, EV_PERSIST, on_beat, c);
    c->broadcast = evbuffer_new();
    bufferevent_setcb(c->link, on_read, NULL, on_lost, c);
    bufferevent_enable(c->link, EV_READ | EV_WRITE);
    event_add(c->beat, &beat_period);
    const struct tcp_address own = {.port = listen_port};
    say(c, FRAME_HELLO, w->rank, &own, sizeof own);
    int error = start_thread(c);
    if (error != 0) {
        err_run(err, "rank %d: starting the control thread: %s", w->rank, strerror(error));
        client_free(c);
        return NULL;
    }
    await_start(c);
    return c;
}

void client_at_step(struct client *c, int step)
{
    atomic_store(&c->waits, false);
    atomic_store(&c->step, step);
}

void client_set_waits(struct client *c, bool waits)
{
    atomic_store(&c->waits, waits);
}

void client_broadcast(struct client *c, void *data, size_t bytes)
{
    if (c->rank == 0) {
        say(c, FRAME_BROADCAST, atomic_load(&c->step), data, bytes);
        return;
    }
    pthread_mutex_lock(&c->mutex);
    while (evbuffer_get_length(c->broadcast) < bytes)
        pthread_cond_wait(&c->news, &c->mutex);
    evbuffer_remove(c->broadcast, data, bytes);
    pthread_mutex_unlock(&c->mutex);
}

void client_send_result(struct client *c, int step, const void *data, size_t bytes)
{
    say(c, FRAME_RESULT, step, data, bytes);
}

void client_leave(struct client *c)
{
    say(c, FRAME_BYE, atomic_load(&c->step), NULL, 0);
    pthread_join(c->thread, NULL);
    client_free(c);
}

void client_fail(struct client *c, const struct err *why)
{
    say(c, FRAME_FAILED, atomic_load(&c->step), why->text, strlen(why->text));
    pthread_join(c->thread, NULL);
    _exit(1);
}
