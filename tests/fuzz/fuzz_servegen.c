/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer target: any bytes as the lengths of a ServeGen client whose windows of time are
 * these.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/mem.h"
#include "traces/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char rows[] = "0,0.05,1,Gamma,0.5,1\n600,0,0,,0,0\n21600,0.05,1,Weibull,0.5,1\n";

static char folder[] = "/tmp/fuzz_servegen_XXXXXX";
static char *trace_path, *dataset_path;

static void remove_files(void)
{
    unlink(trace_path);
    unlink(dataset_path);
    rmdir(folder);
    free(trace_path);
    free(dataset_path);
}

static void write_to(int fd, const void *data, size_t size)
{
    ssize_t written = pwrite(fd, data, size, 0);
    int truncated = ftruncate(fd, (off_t)size);
    assert(written == (ssize_t)size && truncated == 0);
}

/* The one for the lengths stays open. */
static int make_files(void)
{
    char *made = mkdtemp(folder);
    assert(made != NULL);
    trace_path = xasprintf("%s/a-trace.csv", folder);
    dataset_path = xasprintf("%s/a-dataset.json", folder);
    int fd = open(trace_path, O_WRONLY | O_CREAT, 0600);
    assert(fd >= 0);
    write_to(fd, rows, strlen(rows));
    close(fd);
    atexit(remove_files);
    return open(dataset_path, O_WRONLY | O_CREAT, 0600);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    struct trace t;
    struct err err = ERR_NONE;
    if (fd < 0)
        fd = make_files();
    write_to(fd, data, size);
    if (trace_load(&t, trace_path, &(struct trace_reading){.seed = 1}, &err) == 0) {
        assert(t.n > 0 && t.n <= 60 && t.noted[NOTE_DRAWN] == (int64_t)t.n);
        trace_release(&t);
    } else {
        assert(err.set && err.kind == ERR_INPUT);
    }
    return 0;
}
