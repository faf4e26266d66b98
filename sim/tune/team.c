/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/tune/team.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "sim/base/mem.h"

/* Another process has a second job at hand, so that it need not wait for the answer to its first.
 * MPI has no way of waiting for threads as well, so both are looked after by turns. */
enum { REMOTE_JOBS = 2, POLL_NS = 500000 };

static const int64_t dismissal = -1;

enum seat_state { SEAT_FREE, SEAT_TAKEN, SEAT_DONE, SEAT_CLOSED };

/* A thread and what passes between it and the leader. */
struct seat {
    struct team *team;
    pthread_t thread;
    enum seat_state state;
    int64_t job;
    struct outcome out;
};

struct team {
    const struct ranks *ranks;
    const struct team_task *task;
    pthread_mutex_t lock;
    pthread_cond_t for_seats, for_leader;
    int n_seats;
    struct seat *seat;
    int *remote; /* jobs that each rank has */
    int64_t out; /* jobs under way */
};

struct reply {
    int64_t job;
    struct outcome out;
};

static void *sit(void *argument)
{
    struct seat *seat = argument;
    struct team *t = seat->team;
    void *worker = t->task->worker_new(t->task->context);
    pthread_mutex_lock(&t->lock);
    for (;;) {
        while (seat->state == SEAT_FREE || seat->state == SEAT_DONE)
            pthread_cond_wait(&t->for_seats, &t->lock);
        if (seat->state == SEAT_CLOSED)
            break;
        pthread_mutex_unlock(&t->lock);
        seat->out.err = ERR_NONE;
        t->task->work(worker, seat->job, &seat->out);
        pthread_mutex_lock(&t->lock);
        seat->state = SEAT_DONE;
        pthread_cond_signal(&t->for_leader);
    }
    pthread_mutex_unlock(&t->lock);
    t->task->worker_free(worker);
    return NULL;
}

struct team *team_new(const struct ranks *ranks, int threads, const struct team_task *task)
{
    struct team *t = xcalloc(1, sizeof *t);
    t->ranks = ranks;
    t->task = task;
    t->seat = xcalloc((size_t)threads, sizeof *t->seat);
    t->remote = xcalloc((size_t)ranks->n, sizeof *t->remote);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->for_seats, NULL);
    pthread_cond_init(&t->for_leader, NULL);
    /* As many as the system gives, and one in any case. */
    for (; t->n_seats < threads; t->n_seats++) {
        t->seat[t->n_seats].team = t;
        if (pthread_create(&t->seat[t->n_seats].thread, NULL, sit, &t->seat[t->n_seats]) != 0)
            break;
    }
    assert(t->n_seats > 0);
    return t;
}

void team_free(struct team *t)
{
    pthread_mutex_lock(&t->lock);
    for (int i = 0; i < t->n_seats; i++)
        t->seat[i].state = SEAT_CLOSED;
    pthread_cond_broadcast(&t->for_seats);
    pthread_mutex_unlock(&t->lock);
    for (int i = 0; i < t->n_seats; i++)
        pthread_join(t->seat[i].thread, NULL);
    pthread_cond_destroy(&t->for_seats);
    pthread_cond_destroy(&t->for_leader);
    pthread_mutex_destroy(&t->lock);
    free(t->remote);
    free(t->seat);
    free(t);
}

int team_size(const struct team *t)
{
    return t->n_seats + t->ranks->n - 1;
}

/* One run of team_lead(). */
struct lead {
    struct team *team;
    const struct team_flow *flow;
    struct err *err;
    bool dry; /* next() has no more */
};

static bool next_job(struct lead *l, int64_t *job)
{
    if (l->dry || l->err->set)
        return false;
    l->dry = l->flow->next(l->flow->context, job, l->err) != 1;
    l->team->out += !l->dry;
    return !l->dry;
}

static void take_result(struct lead *l, int64_t job, const struct outcome *out)
{
    l->team->out--;
    if (l->err->set)
        return;
    if (out->err.set)
        *l->err = out->err;
    else
        l->flow->done(l->flow->context, job, out, l->err);
}

/* Returns whether the seat had something to say. The seat is the leader's while it is free or
 * done, so the lock is let go meanwhile. */
static bool serve_seat(struct lead *l, struct seat *seat)
{
    struct team *t = l->team;
    pthread_mutex_lock(&t->lock);
    enum seat_state state = seat->state;
    pthread_mutex_unlock(&t->lock);
    if (state == SEAT_TAKEN)
        return false;
    if (state == SEAT_DONE)
        take_result(l, seat->job, &seat->out);
    bool more = next_job(l, &seat->job);
    pthread_mutex_lock(&t->lock);
    seat->state = more ? SEAT_TAKEN : SEAT_FREE;
    pthread_cond_broadcast(&t->for_seats);
    pthread_mutex_unlock(&t->lock);
    return more || state == SEAT_DONE;
}

static void fill_rank(struct lead *l, int rank)
{
    int64_t job;
    while (l->team->remote[rank] < REMOTE_JOBS && next_job(l, &job)) {
        ranks_send(rank, &job, sizeof job);
        l->team->remote[rank]++;
    }
}

static bool serve_ranks(struct lead *l)
{
    struct reply reply;
    int from;
    bool any = false;
    while (ranks_poll(&from, &reply, sizeof reply)) {
        l->team->remote[from]--;
        take_result(l, reply.job, &reply.out);
        fill_rank(l, from);
        any = true;
    }
    return any;
}

static bool is_any_done(const struct team *t)
{
    for (int i = 0; i < t->n_seats; i++)
        if (t->seat[i].state == SEAT_DONE)
            return true;
    return false;
}

/* Until a seat is done or, where other processes may have sent something, for a moment. */
static void wait_a_while(struct team *t)
{
    struct timespec until;
    if (t->ranks->n > 1) {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += POLL_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
    }
    pthread_mutex_lock(&t->lock);
    if (t->ranks->n > 1 && !is_any_done(t))
        pthread_cond_timedwait(&t->for_leader, &t->lock, &until);
    while (t->ranks->n == 1 && !is_any_done(t))
        pthread_cond_wait(&t->for_leader, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

int team_lead(struct team *t, const struct team_flow *flow, struct err *err)
{
    struct lead l = {.team = t, .flow = flow, .err = err};
    for (int rank = 1; rank < t->ranks->n; rank++)
        fill_rank(&l, rank);
    do {
        bool any = serve_ranks(&l);
        for (int i = 0; i < t->n_seats; i++)
            any = serve_seat(&l, &t->seat[i]) || any;
        if (!any && t->out > 0)
            wait_a_while(t);
    } while (t->out > 0);
    return err->set ? -1 : 0;
}

void team_dismiss(struct team *t)
{
    for (int rank = 1; rank < t->ranks->n; rank++)
        ranks_send(rank, &dismissal, sizeof dismissal);
}

void team_follow(const struct team_task *task)
{
    void *worker = task->worker_new(task->context);
    struct reply reply = {0};
    for (;;) {
        ranks_receive(0, &reply.job, sizeof reply.job);
        if (reply.job == dismissal)
            break;
        reply.out.err = ERR_NONE;
        task->work(worker, reply.job, &reply.out);
        ranks_send(0, &reply, sizeof reply);
    }
    task->worker_free(worker);
}
