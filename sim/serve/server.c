/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/serve/server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <event2/event.h>

#include "sim/base/file.h"
#include "sim/serve/folder.h"
#include "sim/serve/http.h"

enum { OTHER_FILES = 256, TOKEN_CHARS_MIN = 16 };

/* Everything that one server holds. */
struct server {
    struct event_base *base;
    struct event *stop[2];
    struct choices choices;
    struct metrics metrics;
    struct jobs *jobs;
    struct events *events;
    struct queue *queue;
    struct site site;
    struct http *http;
};

bool server_is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strcmp(host, "127.0.0.1") == 0 ||
           strcmp(host, "::1") == 0;
}

static int read_token(struct serve_config *config, struct err *err)
{
    struct lines l;
    const char *path = config->token_file;
    if (path == NULL)
        return server_is_loopback(config->host)
                   ? 0
                   : err_set(err,
                             "--host %s: others can reach that address; give a --token-file that "
                             "holds what they must know",
                             config->host);
    if (lines_open(&l, path, err) < 0)
        return -1;
    int got = lines_next(&l, err);
    if (got == 0 || (got > 0 && (l.len < TOKEN_CHARS_MIN || l.len >= sizeof config->token)))
        got = err_set(err, "%s: its first line must be a token of %d to %zu characters", path,
                      TOKEN_CHARS_MIN, sizeof config->token - 1);
    if (got > 0)
        memcpy(config->token, l.line, l.len + 1);
    lines_close(&l);
    return got > 0 ? 0 : -1;
}

/* Room for every connection beside what else is open. */
static int raise_file_limit(const struct serve_config *config, struct err *err)
{
    struct rlimit r;
    rlim_t wanted = (rlim_t)config->connections + OTHER_FILES;
    if (getrlimit(RLIMIT_NOFILE, &r) < 0 || r.rlim_cur >= wanted)
        return 0;
    r.rlim_cur = wanted;
    if (r.rlim_max != RLIM_INFINITY && wanted > r.rlim_max)
        return err_set(err,
                       "--connections %lld: the system lets a process open %llu files; ask for "
                       "fewer, or raise that (ulimit -n)",
                       (long long)config->connections, (unsigned long long)r.rlim_max);
    return setrlimit(RLIMIT_NOFILE, &r) < 0
               ? err_run(err, "--connections: cannot raise the limit of open files: %s",
                         strerror(errno))
               : 0;
}

static void on_stop(evutil_socket_t number, short what, void *base)
{
    (void)number, (void)what;
    event_base_loopbreak(base);
}

static void catch_signals(struct server *s)
{
    static const int numbers[] = {SIGINT, SIGTERM};
    signal(SIGPIPE, SIG_IGN); /* a client that is gone ends its connection only */
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        s->stop[i] = evsignal_new(s->base, numbers[i], on_stop, s->base);
        event_add(s->stop[i], NULL);
    }
}

static int open_jobs(struct server *s, const struct serve_config *config, struct err *err)
{
    char *path = folder_jobs(config->folder);
    s->jobs = jobs_open(path, err);
    free(path);
    return s->jobs != NULL ? 0 : -1;
}

static int start(struct server *s, struct serve_config *config, struct err *err)
{
    if (read_token(config, err) < 0 || raise_file_limit(config, err) < 0 ||
        choices_load(&s->choices, err) < 0 || folder_open(config, err) < 0 ||
        open_jobs(s, config, err) < 0)
        return -1;
    s->base = event_base_new();
    s->events = events_new(s->base);
    catch_signals(s);
    s->site = (struct site){
        .config = config, .choices = &s->choices, .jobs = s->jobs, .metrics = &s->metrics};
    s->http = http_new(s->base, &s->site, s->events, err);
    if (s->http == NULL)
        return -1;
    struct queue_parts parts = {s->base, s->jobs, s->events, &s->metrics, config, &s->choices};
    s->queue = s->site.queue = queue_new(&parts, err);
    return s->queue != NULL ? 0 : -1;
}

static void stop(struct server *s)
{
    site_release(&s->site);
    queue_free(s->queue);
    events_free(s->events);
    http_free(s->http);
    for (size_t i = 0; i < sizeof s->stop / sizeof *s->stop; i++)
        if (s->stop[i] != NULL)
            event_free(s->stop[i]);
    if (s->base != NULL)
        event_base_free(s->base);
    jobs_close(s->jobs);
    choices_release(&s->choices);
}

int server_run(struct serve_config *config, struct err *err)
{
    struct server s = {0};
    int rc = start(&s, config, err);
    if (rc == 0) {
        printf("http://%s:%d/  (data in %s)\n", config->host, http_port(s.http), config->folder);
        fflush(stdout);
        event_base_dispatch(s.base);
    }
    stop(&s);
    return rc;
}
