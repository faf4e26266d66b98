/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/trace_events.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "sim/base/units.h"

enum { BUFFER_BYTES = 64 << 10, TIME_BYTES = 32 };

static bool ends_in_gz(const char *path)
{
    size_t len = strlen(path);
    return len > 3 && strcmp(path + len - 3, ".gz") == 0;
}

int trace_events_open(struct trace_events *t, const char *path, const char *about, struct err *err)
{
    *t = (struct trace_events){0};
    if (outfile_open(&t->file, path, err) < 0)
        return -1;
    int fd = dup(fileno(t->file.f));
    t->gz = fd >= 0 ? gzdopen(fd, ends_in_gz(path) ? "wb" : "wbT") : NULL;
    if (t->gz == NULL) {
        err_set(err, "%s: cannot write: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        outfile_abort(&t->file);
        return -1;
    }
    gzbuffer(t->gz, BUFFER_BYTES); /* also the longest event */
    gzprintf(t->gz, "{\"displayTimeUnit\":\"ms\",\"otherData\":%s,\"traceEvents\":[", about);
    return 0;
}

int trace_events_commit(struct trace_events *t, struct err *err)
{
    const char *path = t->file.path != NULL ? t->file.path : "standard output";
    errno = 0;
    gzputs(t->gz, "\n]}\n");
    int code = gzclose(t->gz);
    t->gz = NULL;
    if (code == Z_OK)
        return outfile_commit(&t->file, err);
    err_set(err, "%s: cannot write: %s", path, errno != 0 ? strerror(errno) : "no room");
    outfile_abort(&t->file);
    return -1;
}

void trace_events_abort(struct trace_events *t)
{
    if (t->gz != NULL)
        gzclose(t->gz);
    outfile_abort(&t->file);
    *t = (struct trace_events){0};
}

/* One event: its members, then `args` if there are any. */
__attribute__((format(printf, 3, 4))) static void put(struct trace_events *t, const char *args,
                                                      const char *fmt, ...)
{
    va_list values;
    gzputs(t->gz, t->any ? ",\n{" : "\n{");
    t->any = true;
    va_start(values, fmt);
    gzvprintf(t->gz, fmt, values);
    va_end(values);
    if (args != NULL)
        gzprintf(t->gz, ",\"args\":%s", args);
    gzputs(t->gz, "}");
}

/* Rounded alike everywhere, so that what begins where another ends still does. */
static int64_t to_ns(int64_t ps)
{
    assert(ps >= 0);
    return (ps + PS_PER_NS / 2) / PS_PER_NS;
}

/* As microseconds: "12.345". */
static char *micros(int64_t ns, char text[TIME_BYTES])
{
    snprintf(text, TIME_BYTES, "%lld.%03d", (long long)(ns / 1000), (int)(ns % 1000));
    return text;
}

static char *stamp(int64_t ps, char text[TIME_BYTES])
{
    return micros(to_ns(ps), text);
}

/* Of a process, or with a tid of a thread: its name and its place among others. */
static void put_name(struct trace_events *t, const char *what, struct track at, const char *name)
{
    char tid[32] = "", args[256];
    if (at.tid > 0)
        snprintf(tid, sizeof tid, "\"tid\":%d,", at.tid);
    snprintf(args, sizeof args, "{\"name\":\"%s\"}", name);
    put(t, args, "\"ph\":\"M\",\"pid\":%d,%s\"name\":\"%s_name\"", at.pid, tid, what);
    snprintf(args, sizeof args, "{\"sort_index\":%d}", at.tid > 0 ? at.tid : at.pid);
    put(t, args, "\"ph\":\"M\",\"pid\":%d,%s\"name\":\"%s_sort_index\"", at.pid, tid, what);
}

void trace_events_process(struct trace_events *t, int pid, const char *name)
{
    put_name(t, "process", (struct track){pid, 0}, name);
}

void trace_events_thread(struct trace_events *t, struct track at, const char *name)
{
    put_name(t, "thread", at, name);
}

void trace_events_slice(struct trace_events *t, struct track at, const char *name, int64_t start_ps,
                        int64_t end_ps, const char *args)
{
    char ts[TIME_BYTES], dur[TIME_BYTES];
    put(t, args, "\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%s,\"dur\":%s,\"name\":\"%s\"", at.pid,
        at.tid, stamp(start_ps, ts), micros(to_ns(end_ps) - to_ns(start_ps), dur), name);
}

void trace_events_instant(struct trace_events *t, struct track at, const char *name, int64_t at_ps,
                          const char *args)
{
    char ts[TIME_BYTES];
    put(t, args, "\"ph\":\"i\",\"s\":\"t\",\"pid\":%d,\"tid\":%d,\"ts\":%s,\"name\":\"%s\"", at.pid,
        at.tid, stamp(at_ps, ts), name);
}

void trace_events_counter(struct trace_events *t, int pid, const char *name, int64_t at_ps,
                          const char *args)
{
    char ts[TIME_BYTES];
    put(t, args, "\"ph\":\"C\",\"pid\":%d,\"ts\":%s,\"name\":\"%s\"", pid, stamp(at_ps, ts), name);
}

static void put_flow(struct trace_events *t, const char *phase, struct track at, const char *name,
                     int64_t at_ps)
{
    char ts[TIME_BYTES];
    put(t, NULL,
        "\"ph\":%s,\"pid\":%d,\"tid\":%d,\"ts\":%s,\"cat\":\"flow\",\"name\":\"%s\",\"id\":%lld",
        phase, at.pid, at.tid, stamp(at_ps, ts), name, (long long)t->n_flows);
}

void trace_events_flow(struct trace_events *t, struct track at, const char *name, int64_t from_ps,
                       int64_t to_ps)
{
    put_flow(t, "\"s\"", at, name, from_ps);
    put_flow(t, "\"f\",\"bp\":\"e\"", at, name, to_ps);
    t->n_flows++;
}

static void put_async(struct trace_events *t, char phase, int pid, const char *name, int64_t id,
                      int64_t at_ps, const char *args)
{
    char ts[TIME_BYTES];
    put(t, args,
        "\"ph\":\"%c\",\"pid\":%d,\"ts\":%s,\"cat\":\"async\",\"name\":\"%s\",\"id\":\"%lld\"",
        phase, pid, stamp(at_ps, ts), name, (long long)id);
}

void trace_events_begin(struct trace_events *t, int pid, const char *name, int64_t id,
                        int64_t at_ps, const char *args)
{
    put_async(t, 'b', pid, name, id, at_ps, args);
}

void trace_events_end(struct trace_events *t, int pid, const char *name, int64_t id, int64_t at_ps)
{
    put_async(t, 'e', pid, name, id, at_ps, NULL);
}
