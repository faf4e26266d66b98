/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/serve/metrics.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <event2/buffer.h>

void metrics_count_answer(struct metrics *m, int status)
{
    int class = status / 100;
    if (class > 0 && class < (int)(sizeof m->answers / sizeof *m->answers))
        m->answers[class]++;
}

static int64_t resident_bytes(void)
{
    long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f == NULL)
        return 0;
    if (fscanf(f, "%*s %lld", &pages) != 1)
        pages = 0;
    fclose(f);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

static void print_head(struct evbuffer *out, const char *name, const char *type, const char *help)
{
    evbuffer_add_printf(out, "# HELP wavetank_%s %s\n# TYPE wavetank_%s %s\n", name, help, name,
                        type);
}

static const struct plain {
    const char *name, *type, *help;
    size_t offset;
} plains[] = {
    {"upload_bytes_total", "counter", "Bytes of uploaded parts.",
     offsetof(struct metrics, upload_bytes)},
    {"connections_dropped_total", "counter", "Connections that took too long to ask.",
     offsetof(struct metrics, dropped)},
    {"connections", "gauge", "Open connections.", offsetof(struct metrics, connections)},
    {"watchers", "gauge", "Open streams of events.", offsetof(struct metrics, watchers)},
    {"workers", "gauge", "Jobs that run.", offsetof(struct metrics, workers)},
    {"queued", "gauge", "Jobs that wait for a worker.", offsetof(struct metrics, queued)},
};

void metrics_print(const struct metrics *m, struct evbuffer *out)
{
    print_head(out, "http_responses_total", "counter", "Answers, by class of status.");
    for (int i = 2; i < 6; i++)
        evbuffer_add_printf(out, "wavetank_http_responses_total{code=\"%dxx\"} %" PRId64 "\n", i,
                            m->answers[i]);
    print_head(out, "jobs_total", "counter", "Jobs that ended, by how.");
    for (int i = JOB_DONE; i <= JOB_CANCELLED; i++)
        evbuffer_add_printf(out, "wavetank_jobs_total{state=\"%s\"} %" PRId64 "\n",
                            job_state_names[i], m->ended[i]);
    for (size_t i = 0; i < sizeof plains / sizeof *plains; i++) {
        const struct plain *p = &plains[i];
        print_head(out, p->name, p->type, p->help);
        evbuffer_add_printf(out, "wavetank_%s %" PRId64 "\n", p->name,
                            *(const int64_t *)((const char *)m + p->offset));
    }
    print_head(out, "resident_bytes", "gauge", "Memory of the server itself.");
    evbuffer_add_printf(out, "wavetank_resident_bytes %" PRId64 "\n", resident_bytes());
}
