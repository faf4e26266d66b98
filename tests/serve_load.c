/* SPDX-License-Identifier: Apache-2.0
 *
 * Many clients of wavetank serve at once: serve_load PORT CLIENTS SECONDS. Each keeps its
 * connection and asks about twice a second: one in four asks whether the server is well, the others
 * list what there is and ask for runs. Fails on any answer but 2xx and 429,
 * when the 99th percentile of /healthz is 50 ms or more, or when the server's memory grows by a
 * quarter in the second half: in the first its caches fill.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>

#include "sim/base/hist.h"
#include "sim/base/mem.h"
#include "sim/base/progress.h"
#include "sim/base/rng.h"

enum { PERIOD_MS = 500 };

static const double P99_MS_MAX = 50;

static const char run_order[] =
    "{\"trace\":\"sample:azure_2023_code.csv\",\"scenario\":{\"model\":\"deepseek-v3.2\","
    "\"cluster\":\"b200x8\",\"limit\":20,\"policy\":[\"fixed:tp\"]}}";

static const struct {
    enum evhttp_cmd_type type;
    const char *path, *body;
} asks[] = {
    {EVHTTP_REQ_GET, "/healthz", NULL},
    {EVHTTP_REQ_GET, "/api/choices", NULL},
    {EVHTTP_REQ_GET, "/api/runs", NULL},
    {EVHTTP_REQ_POST, "/api/runs", run_order},
};

enum { N_ASKS = sizeof asks / sizeof *asks };

struct load {
    struct event_base *base;
    struct hist health_ns;
    uint64_t end_ns;
    long answers, refused, faults;
    double early_bytes, late_bytes; /* the server's memory */
    struct rng rng;
    int port;
};

struct client {
    struct load *load;
    struct evhttp_connection *conn;
    struct event *next;
    uint64_t asked_ns;
    int ask;
};

static void schedule(struct client *c)
{
    int ms = (int)rng_range(&c->load->rng, PERIOD_MS / 2, 3 * PERIOD_MS / 2);
    struct timeval in = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    if (wall_ns() < c->load->end_ns)
        event_add(c->next, &in);
}

static void on_answer(struct evhttp_request *req, void *client)
{
    struct client *c = client;
    struct load *l = c->load;
    int status = req != NULL ? evhttp_request_get_response_code(req) : 0;
    l->answers++;
    if (status == 429)
        l->refused++;
    else if (status / 100 != 2 && l->faults++ < 5)
        fprintf(stderr, "%s: %d\n", asks[c->ask].path, status);
    if (c->ask == 0)
        hist_add(&l->health_ns, (int64_t)(wall_ns() - c->asked_ns), 1);
    schedule(c);
}

static void send_ask(struct evhttp_connection *conn, struct evhttp_request *req, int ask)
{
    struct evkeyvalq *out = evhttp_request_get_output_headers(req);
    evhttp_add_header(out, "Host", "127.0.0.1");
    if (asks[ask].body != NULL) {
        evhttp_add_header(out, "Content-Type", "application/json");
        evbuffer_add(evhttp_request_get_output_buffer(req), asks[ask].body, strlen(asks[ask].body));
    }
    evhttp_make_request(conn, req, asks[ask].type, asks[ask].path);
}

static void on_next(evutil_socket_t fd, short what, void *client)
{
    (void)fd, (void)what;
    struct client *c = client;
    c->ask = (int)rng_range(&c->load->rng, 0, N_ASKS - 1);
    c->asked_ns = wall_ns();
    send_ask(c->conn, evhttp_request_new(on_answer, c), c->ask);
}

static void on_metrics(struct evhttp_request *req, void *bytes)
{
    static const char name[] = "\nwavetank_resident_bytes ";
    struct evbuffer *body = req != NULL ? evhttp_request_get_input_buffer(req) : NULL;
    if (body == NULL)
        return;
    evbuffer_add(body, "", 1);
    const char *at = strstr((const char *)evbuffer_pullup(body, -1), name);
    *(double *)bytes = at != NULL ? atof(at + strlen(name)) : 0;
}

static struct evhttp_connection *connect_to(struct load *l)
{
    return evhttp_connection_base_new(l->base, NULL, "127.0.0.1", (unsigned short)l->port);
}

static void read_memory(struct load *l, double *bytes)
{
    struct evhttp_connection *conn = connect_to(l);
    struct evhttp_request *req = evhttp_request_new(on_metrics, bytes);
    evhttp_add_header(evhttp_request_get_output_headers(req), "Host", "127.0.0.1");
    evhttp_connection_free_on_completion(conn);
    evhttp_make_request(conn, req, EVHTTP_REQ_GET, "/metrics");
}

static void on_early(evutil_socket_t fd, short what, void *load)
{
    (void)fd, (void)what;
    read_memory(load, &((struct load *)load)->early_bytes);
}

static void start_clients(struct load *l, struct client *client, int n)
{
    for (int i = 0; i < n; i++) {
        client[i] = (struct client){.load = l, .conn = connect_to(l)};
        client[i].next = event_new(l->base, -1, 0, on_next, &client[i]);
        schedule(&client[i]);
    }
}

static int report(const struct load *l, int clients, int seconds)
{
    double p50_ms = (double)hist_quantile(&l->health_ns, 0.5) * 1e-6;
    double p99_ms = (double)hist_quantile(&l->health_ns, 0.99) * 1e-6;
    printf("%d clients, %d s: %ld answers, %ld of them 429, %ld faults; /healthz p50 %.2f ms, "
           "p99 %.2f ms, worst %.1f ms; memory %.1f then %.1f MiB\n",
           clients, seconds, l->answers, l->refused, l->faults, p50_ms, p99_ms,
           (double)l->health_ns.max * 1e-6, l->early_bytes / 1048576, l->late_bytes / 1048576);
    bool flat = l->early_bytes > 0 && l->late_bytes < 1.25 * l->early_bytes;
    return l->faults == 0 && l->answers > 0 && p99_ms < P99_MS_MAX && flat ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct load l = {.port = argc == 4 ? atoi(argv[1]) : 0};
    int clients = argc == 4 ? atoi(argv[2]) : 0, seconds = argc == 4 ? atoi(argv[3]) : 0;
    struct rlimit files;
    struct timeval early = {.tv_sec = seconds / 2, .tv_usec = seconds % 2 * 500000};
    if (clients < 1 || seconds < 1) {
        fputs("usage: serve_load PORT CLIENTS SECONDS\n", stderr);
        return 2;
    }
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    l.base = event_base_new();
    l.end_ns = wall_ns() + (uint64_t)seconds * 1000000000u;
    hist_init(&l.health_ns);
    rng_init(&l.rng, 1);
    struct client *client = xcalloc((size_t)clients, sizeof *client);
    start_clients(&l, client, clients);
    event_base_once(l.base, -1, EV_TIMEOUT, on_early, &l, &early);
    event_base_dispatch(l.base);
    read_memory(&l, &l.late_bytes);
    event_base_dispatch(l.base);
    int rc = report(&l, clients, seconds);
    for (int i = 0; i < clients; i++) {
        event_free(client[i].next);
        evhttp_connection_free(client[i].conn);
    }
    event_base_free(l.base);
    hist_release(&l.health_ns);
    free(client);
    return rc;
}
