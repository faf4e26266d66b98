/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer target: any bytes as a plan. It loads or is refused with a message; what loads, saved,
 * loads again and then saves as the same bytes.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/plan/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[] = "/tmp/fuzz_plan_XXXXXX";

static void remove_file(void)
{
    unlink(path);
}

/* One file for all inputs, since reading goes by path. It stays open: ext4 flushes a file that is
 * truncated to nothing and closed, which is 100 times slower. */
static void write_file(const void *data, size_t size)
{
    static int fd = -1;
    if (fd < 0) {
        fd = mkstemp(path);
        assert(fd >= 0);
        atexit(remove_file);
    }
    ssize_t written = pwrite(fd, data, size, 0);
    int truncated = ftruncate(fd, (off_t)size);
    assert(written == (ssize_t)size && truncated == 0);
}

/* The plan as text, owned by the caller. */
static char *print(const struct plan *p, size_t *len)
{
    char *text;
    FILE *f = open_memstream(&text, len);
    assert(f != NULL);
    plan_write_header(f, &p->header);
    for (int i = 0; i < p->n; i++)
        plan_write_step(f, &p->step[i]);
    fclose(f);
    return text;
}

static void check_round_trip(const struct plan *p)
{
    struct plan again;
    struct err err = ERR_NONE;
    size_t len, len_again;
    char *text = print(p, &len);
    write_file(text, len);
    int rc = plan_load(&again, path, &err);
    assert(rc == 0);
    char *text_again = print(&again, &len_again);
    assert(len == len_again && memcmp(text, text_again, len) == 0);
    plan_release(&again);
    free(text);
    free(text_again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plan p;
    struct err err = ERR_NONE;
    write_file(data, size);
    if (plan_load(&p, path, &err) == 0) {
        check_round_trip(&p);
        plan_release(&p);
    } else {
        assert(err.set && err.kind == ERR_INPUT);
    }
    return 0;
}
