/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/origin.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* What follows "KEY:" in a file of the kernel's, without the blanks around it. */
static bool read_value(const char *path, const char *key, char *out, size_t size)
{
    char line[256];
    FILE *f = fopen(path, "r");
    bool found = false;
    while (f != NULL && !found && fgets(line, sizeof line, f) != NULL) {
        char *at = strchr(line, ':');
        if (strncmp(line, key, strlen(key)) != 0 || at == NULL)
            continue;
        at += 1 + strspn(at + 1, " \t");
        at[strcspn(at, "\n")] = '\0';
        snprintf(out, size, "%.*s", (int)size - 1, at);
        found = true;
    }
    if (f != NULL)
        fclose(f);
    return found;
}

/* The driver says it without CUDA, which the process that forks ranks must not touch. */
static void find_gpu(char *out, size_t size)
{
    glob_t found;
    snprintf(out, size, "GPU");
    if (glob("/proc/driver/nvidia/gpus/*/information", 0, NULL, &found) == 0)
        read_value(found.gl_pathv[0], "Model", out, size);
    globfree(&found);
}

static void join_command(char *out, size_t size, int argc, char *const *argv)
{
    size_t at = 0;
    out[0] = '\0';
    for (int i = 0; i < argc && at < size; i++) {
        const char *word = argv[i];
        if (i == 0 && strrchr(word, '/') != NULL)
            word = strrchr(word, '/') + 1;
        int n = snprintf(out + at, size - at, "%s%s", i > 0 ? " " : "", word);
        at += n > 0 ? (size_t)n : 0;
    }
}

struct plan_origin origin_of(const struct backend *b, const struct backend_options *o, int argc,
                             char *const *argv)
{
    static const char *const transports[] = {"nccl", "direct"};
    struct plan_origin origin = {.repeats = 1};
    time_t now = time(NULL);
    struct tm day;
    if (b == &backend_cuda) {
        find_gpu(origin.device, sizeof origin.device);
        snprintf(origin.transport, sizeof origin.transport, "%s", transports[o->transport]);
        origin.repeats = (int)o->repeats;
    } else if (!read_value("/proc/cpuinfo", "model name", origin.device, sizeof origin.device)) {
        snprintf(origin.device, sizeof origin.device, "CPU");
    }
    if (localtime_r(&now, &day) != NULL)
        strftime(origin.date, sizeof origin.date, "%Y-%m-%d", &day);
    join_command(origin.command, sizeof origin.command, argc, argv);
    return origin;
}
