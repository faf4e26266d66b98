/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer target: any bytes as a trace file. What loads must survive selection and the reports,
 * stay sorted and begin at zero.
 */
#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/base/units.h"
#include "traces/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[] = "/tmp/fuzz_trace_XXXXXX";

static void remove_file(void)
{
    unlink(path);
}

/* One file for all inputs: reading goes by path. */
static int open_file(void)
{
    int fd = mkstemp(path);
    assert(fd >= 0);
    atexit(remove_file);
    return fd;
}

static void check_order(const struct trace *t)
{
    assert(t->n > 0 && t->request[0].arrival_ps == 0);
    for (size_t i = 1; i < t->n; i++)
        assert(t->request[i].arrival_ps >= t->request[i - 1].arrival_ps);
    assert(t->request[t->n - 1].arrival_ps == t->last_ps && t->last_ps < TRACE_SPAN_MAX_PS);
}

static void use(struct trace *t, FILE *sink)
{
    struct err err = ERR_NONE;
    struct trace_select s = TRACE_SELECT_ALL;
    s.sample_frac = 0.9;
    s.rate = 0.5;
    s.spread_ps = 3 * PS_PER_S;
    check_order(t);
    double hit_frac = trace_prefix_hit_frac_max(t);
    assert(hit_frac >= 0 && hit_frac <= 1);
    trace_warn(t, sink);
    trace_print_check(t, sink);
    if (trace_select(t, &s, 1, &err) == 0) {
        check_order(t);
        trace_print_info(t, sink);
        json_decref(trace_info_json(t));
    }
    trace_release(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    static FILE *sink;
    struct trace t;
    struct err err = ERR_NONE;
    if (fd < 0) {
        fd = open_file();
        sink = fopen("/dev/null", "w");
    }
    ssize_t written = pwrite(fd, data, size, 0);
    int truncated = ftruncate(fd, (off_t)size);
    assert(written == (ssize_t)size && truncated == 0);
    if (trace_load(&t, path, &(struct trace_reading){.arrivals_per_s = 1}, &err) == 0)
        use(&t, sink);
    else
        assert(err.set && err.kind == ERR_INPUT);
    return 0;
}
