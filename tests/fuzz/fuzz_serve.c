/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer target: any request to wavetank serve, behind HTTP's own parsing. The input is lines of
 * method, path, query's ids and content type, then the body. Every request is answered, with a
 * status that the server knows, and nothing is written outside its folder.
 */
#include <assert.h>
#include <unistd.h>

#include "tests/site_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD_LINES = 4, JOBS_MAX = 64 };

static struct site_world world;

static void remove_folder(void)
{
    char command[128];
    site_world_close(&world);
    snprintf(command, sizeof command, "rm -r %s", world.data);
    if (system(command) != 0)
        perror(command);
}

/* So that the folder stays small: all jobs, when there are many. */
static void forget_jobs(void)
{
    struct err err = ERR_NONE;
    struct job job[JOBS_MAX];
    for (int kind = 0; kind < JOB_KIND_COUNT; kind++) {
        int n = jobs_list(world.site.jobs, (enum job_kind)kind, NULL, job, JOBS_MAX, &err);
        for (int i = 0; i < n; i++) {
            jobs_remove(world.site.jobs, job[i].id, &err);
            folder_remove(world.config.folder, &job[i]);
            job_release(&job[i]);
        }
    }
}

/* Cuts the first line off; "" when there is none. */
static char *take_line(char **rest)
{
    char *line = *rest, *end = strchr(line, '\n');
    *rest = end != NULL ? end + 1 : line + strlen(line);
    if (end != NULL)
        *end = '\0';
    return line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int asked;
    char *text = malloc(size + 1), *rest = text, *line[HEAD_LINES];
    if (world.base == NULL) {
        site_world_open(&world);
        atexit(remove_folder);
    }
    memcpy(text, data, size);
    text[size] = '\0';
    for (int i = 0; i < HEAD_LINES; i++)
        line[i] = take_line(&rest);
    struct ask a = {.method = line[0],
                    .path = line[1],
                    .ids = line[2],
                    .before = line[2],
                    .type = line[3],
                    .body = rest,
                    .len = size - (size_t)(rest - text)};
    int status = site_world_ask(&world, &a);
    assert(status >= 200 && status < 600 && status != 500);
    assert(status == 204 || world.text[0] != '\0' || world.last.type != NULL);
    if (++asked % JOBS_MAX == 0)
        forget_jobs();
    free(text);
    return 0;
}
