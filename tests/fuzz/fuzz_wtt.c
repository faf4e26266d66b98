/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer target: any bytes as a .wtt under a checksum that fits. What loads must be in order,
 * survive selection and every form of writing, and come back to the byte.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "sim/base/mem.h"
#include "traces/convert.h"
#include "traces/wtt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CRC_BYTES = 4 };

static char path[] = "/tmp/fuzz_wtt_XXXXXX";

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

static void write_file(const void *data, size_t size)
{
    static int fd = -1;
    if (fd < 0)
        fd = open_file();
    ssize_t written = pwrite(fd, data, size, 0);
    int truncated = ftruncate(fd, (off_t)size);
    assert(written == (ssize_t)size && truncated == 0);
}

static void seal(uint8_t *data, size_t size)
{
    uint32_t crc = (uint32_t)crc32_z(0, data, size - CRC_BYTES);
    memcpy(data + size - CRC_BYTES, &crc, CRC_BYTES);
}

static char *print(const struct trace *t, size_t *size)
{
    char *text;
    FILE *f = open_memstream(&text, size);
    wtt_write(t, f);
    fclose(f);
    return text;
}

static void check_round_trip(const struct trace *t)
{
    struct trace again;
    struct err err = ERR_NONE;
    size_t size, size_again;
    char *text = print(t, &size);
    write_file(text, size);
    int rc = wtt_load(&again, path, &err);
    assert(rc == 0);
    char *text_again = print(&again, &size_again);
    assert(size == size_again && memcmp(text, text_again, size) == 0);
    trace_release(&again);
    free(text);
    free(text_again);
}

static void use(struct trace *t)
{
    static const char *const names[] = {".jsonl", ".csv"};
    static FILE *sink;
    struct trace_select s = TRACE_SELECT_ALL;
    if (sink == NULL)
        sink = fopen("/dev/null", "w");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct err err = ERR_NONE;
        const struct trace_form *form = trace_form_of(names[i], &err);
        trace_convert(t, form, "/dev/null", sink, &err);
    }
    trace_print_check(t, sink);
    trace_warn(t, sink);
    s.sample_frac = 0.9;
    s.rate = 0.5;
    struct err err = ERR_NONE;
    if (trace_select(t, &s, 1, &err) == 0) {
        trace_print_info(t, sink);
        check_round_trip(t);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trace t;
    struct err err = ERR_NONE;
    if (size < CRC_BYTES)
        return 0;
    uint8_t *sealed = xmalloc(size);
    memcpy(sealed, data, size);
    seal(sealed, size);
    write_file(sealed, size);
    free(sealed);
    if (wtt_load(&t, path, &err) == 0) {
        check_round_trip(&t);
        use(&t);
        trace_release(&t);
    } else {
        assert(err.set && err.kind == ERR_INPUT);
    }
    return 0;
}
