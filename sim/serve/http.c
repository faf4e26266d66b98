/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/serve/http.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>

#include "sim/base/mem.h"
#include "sim/serve/conns.h"
#include "sim/serve/server.h"

enum { HEADER_BYTES_MAX = 8 << 10, BODY_BYTES_MAX = SERVE_PART_BYTES };

struct http {
    struct site *site;
    struct events *events;
    struct evhttp *evhttp;
    struct evhttp_bound_socket *socket;
    struct conns *conns;
};

/* Scripts and styles are files of ours; nothing else is loaded from anywhere, and no page frames
 * us. */
static const char *const headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
     "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cache-Control", "no-store"},
};

static const struct {
    enum evhttp_cmd_type type;
    const char *name;
} methods[] = {{EVHTTP_REQ_GET, "GET"},
               {EVHTTP_REQ_POST, "POST"},
               {EVHTTP_REQ_PUT, "PUT"},
               {EVHTTP_REQ_DELETE, "DELETE"}};

static const struct {
    int status;
    const char *reason;
} reasons[] = {
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {409, "Conflict"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {429, "Too Many Requests"},
};

static const char *reason_of(int status)
{
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Internal Server Error";
}

static const char *method_of(struct evhttp_request *req)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (methods[i].type == evhttp_request_get_command(req))
            return methods[i].name;
    return "";
}

/* The host without its port. */
static bool names_this_machine(const char *host)
{
    char name[64];
    size_t len = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    if (len >= sizeof name || len > strlen(host))
        return false;
    memcpy(name, host, len);
    name[len] = '\0';
    return strcmp(name, "[::1]") == 0 || server_is_loopback(name);
}

/* Without a token the browser's user is the only guard: no name that leads here by trickery (DNS
 * rebinding), and no request that another site's page made. */
static bool is_foreign(const struct http *h, const struct evkeyvalq *in)
{
    const char *host = evhttp_find_header(in, "Host");
    const char *site = evhttp_find_header(in, "Sec-Fetch-Site");
    const char *mode = evhttp_find_header(in, "Sec-Fetch-Mode");
    bool is_link = mode != NULL && strcmp(mode, "navigate") == 0;
    if (site != NULL && !is_link && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
        return true;
    return h->site->config->token[0] == '\0' && (host == NULL || !names_this_machine(host));
}

static void add_headers(struct evkeyvalq *out, const struct answer *r)
{
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        evhttp_add_header(out, headers[i][0], headers[i][1]);
    if (r->type != NULL)
        evhttp_add_header(out, "Content-Type", r->type);
    if (r->allow != NULL)
        evhttp_add_header(out, "Allow", r->allow);
    if (r->status == 429)
        evhttp_add_header(out, "Retry-After", "5");
    if (r->status == 401)
        evhttp_add_header(out, "WWW-Authenticate", "Bearer");
    if (r->name != NULL) {
        char *text = xasprintf("attachment; filename=\"%s\"", r->name);
        evhttp_add_header(out, "Content-Disposition", text);
        free(text);
    }
}

/* What a stream begins with waits in the answer's body. */
static void send_stream(struct http *h, struct evhttp_request *req, struct answer *r)
{
    events_watch(h->events, r->watch, req);
    evhttp_send_reply_chunk(req, r->body);
}

static void send_answer(struct http *h, struct evhttp_request *req, struct answer *r)
{
    add_headers(evhttp_request_get_output_headers(req), r);
    metrics_count_answer(h->site->metrics, r->status);
    if (r->watch[0] != '\0')
        send_stream(h, req, r);
    else
        evhttp_send_reply(req, r->status, reason_of(r->status), r->body);
}

/* The value of one key of a query, decoded; the caller frees. */
static char *query_value(const struct evhttp_uri *uri, const char *key)
{
    struct evkeyvalq query;
    const char *text = evhttp_uri_get_query(uri), *value;
    if (text == NULL || evhttp_parse_query_str(text, &query) < 0)
        return NULL;
    value = evhttp_find_header(&query, key);
    char *copy = value != NULL ? xstrdup(value) : NULL;
    evhttp_clear_headers(&query);
    return copy;
}

static void refuse_foreign(struct answer *r)
{
    static const char text[] = "{\"error\":\"the request comes through another site, or by a name "
                               "that is not this machine's\"}";
    r->status = 403;
    r->type = "application/json";
    evbuffer_add(r->body, text, strlen(text));
}

static void on_request(struct evhttp_request *req, void *http)
{
    struct http *h = http;
    struct evkeyvalq *in = evhttp_request_get_input_headers(req);
    struct evbuffer *body = evhttp_request_get_input_buffer(req);
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
    const char *path = uri != NULL ? evhttp_uri_get_path(uri) : NULL;
    char *ids = uri != NULL ? query_value(uri, "ids") : NULL;
    char *before = uri != NULL ? query_value(uri, "before") : NULL;
    struct answer r = {.body = evbuffer_new()};
    struct ask a = {.method = method_of(req),
                    .path = path != NULL ? path : "",
                    .ids = ids,
                    .before = before,
                    .type = evhttp_find_header(in, "Content-Type"),
                    .authorization = evhttp_find_header(in, "Authorization"),
                    .len = evbuffer_get_length(body)};
    a.body = a.len > 0 ? evbuffer_pullup(body, -1) : (unsigned char *)"";
    conns_asked(h->conns, req);
    h->site->metrics->connections = conns_count(h->conns);
    if (is_foreign(h, in))
        refuse_foreign(&r);
    else
        dispatch(h->site, &a, &r);
    send_answer(h, req, &r);
    evbuffer_free(r.body);
    free(ids);
    free(before);
}

struct http *http_new(struct event_base *base, struct site *site, struct events *events,
                      struct err *err)
{
    const struct serve_config *c = site->config;
    struct http *h = xcalloc(1, sizeof *h);
    *h = (struct http){.site = site, .events = events, .evhttp = evhttp_new(base)};
    evhttp_set_allowed_methods(h->evhttp, EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_PUT |
                                              EVHTTP_REQ_DELETE);
    evhttp_set_max_headers_size(h->evhttp, HEADER_BYTES_MAX);
    evhttp_set_max_body_size(h->evhttp, BODY_BYTES_MAX);
    evhttp_set_timeout(h->evhttp, (int)c->request_s);
    evhttp_set_gencb(h->evhttp, on_request, h);
    h->socket = evhttp_bind_socket_with_handle(h->evhttp, c->host, (ev_uint16_t)c->port);
    if (h->socket == NULL) {
        err_set(err, "--host %s --port %lld: cannot listen there: %s", c->host, (long long)c->port,
                strerror(errno));
        http_free(h);
        return NULL;
    }
    h->conns = conns_new(base, h->evhttp, h->socket, c->connections, c->request_s,
                         &site->metrics->dropped);
    return h;
}

void http_free(struct http *h)
{
    if (h == NULL)
        return;
    evhttp_free(h->evhttp);
    conns_free(h->conns);
    free(h);
}

int http_port(const struct http *h)
{
    struct sockaddr_storage at = {0};
    socklen_t len = sizeof at;
    if (getsockname(evhttp_bound_socket_get_fd(h->socket), (struct sockaddr *)&at, &len) < 0)
        return 0;
    return at.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&at)->sin6_port)
                                    : ntohs(((struct sockaddr_in *)&at)->sin_port);
}
