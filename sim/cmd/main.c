/* SPDX-License-Identifier: Apache-2.0
 *
 * wavetank: a model basin for LLM serving. Finds the subcommand and runs it.
 */
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/err.h"
#include "sim/base/file.h"
#include "sim/cmd/cmd.h"
#include "sim/cmd/version.h"

enum { COMMANDS_MAX = 32 };

static const struct command *find_command(const char *name)
{
    for (int i = 0; i < n_commands; i++)
        if (strcmp(commands[i].manual->name, name) == 0)
            return &commands[i];
    return NULL;
}

static int fail_unknown(const char *name)
{
    struct err err = ERR_NONE;
    const char *names[COMMANDS_MAX];
    assert(n_commands <= COMMANDS_MAX);
    for (int i = 0; i < n_commands; i++)
        names[i] = commands[i].manual->name;
    const char *near = err_nearest(name, names, n_commands);
    err_set(&err, "unknown command \"%s\"%s%s%s; see \"wavetank --help\"", name,
            near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
    return err_report(&err, "wavetank");
}

static int run_help(char *name)
{
    char help[] = "--help", *argv[] = {name, help, NULL};
    const struct command *command = find_command(name);
    return command != NULL ? command->run(2, argv) : fail_unknown(name);
}

static void on_signal(int number)
{
    outfile_abort_all();
    _exit(128 + number);
}

/* However a run is stopped, no temporary file stays behind. */
static void catch_signals(void)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGPIPE, SIGTERM};
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

static bool is_help(const char *word)
{
    return strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

int main(int argc, char **argv)
{
    catch_signals();
    if (argc < 2) {
        manual_print(&wavetank_manual, stderr);
        return 2;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("wavetank " WAVETANK_VERSION);
        return 0;
    }
    if (is_help(argv[1]) && argc > 2)
        return run_help(argv[2]);
    if (is_help(argv[1])) {
        manual_print(&wavetank_manual, stdout);
        return 0;
    }
    const struct command *command = find_command(argv[1]);
    return command != NULL ? command->run(argc - 1, argv + 1) : fail_unknown(argv[1]);
}
