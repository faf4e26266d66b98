/* SPDX-License-Identifier: Apache-2.0
 *
 * wavetank: a model basin for LLM serving. Finds the subcommand and runs it.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/err.h"
#include "sim/base/file.h"
#include "sim/cmd/cmd.h"
#include "sim/cmd/version.h"

static const struct command {
    const char *name, *what;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"sim", "replay a trace under layout policies and compare them", cmd_sim},
    {"explain", "show one batch: memory, step time and switches by layout", cmd_explain},
    {"trace", "show what a trace holds, or check it", cmd_trace},
    {"gen", "draw a trace from published statistics", cmd_gen},
    {"plan", "show or check a plan, or make one that puts the simulator on trial", cmd_plan},
    {"fit", "fit a profile to measured plans", cmd_fit},
    {"validate", "compare a plan's predictions with its measurement", cmd_validate},
    {"reproduce", "set the SPLASH paper's numbers beside ours", cmd_reproduce},
    {"list", "list models, clusters, profiles or policies", cmd_list},
};

enum { N_COMMANDS = sizeof commands / sizeof *commands };

static const struct command *find_command(const char *name)
{
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int fail_unknown(const char *name)
{
    struct err err = ERR_NONE;
    const char *names[N_COMMANDS];
    for (int i = 0; i < N_COMMANDS; i++)
        names[i] = commands[i].name;
    const char *near = err_nearest(name, names, N_COMMANDS);
    err_set(&err, "unknown command \"%s\"%s%s%s; see \"wavetank --help\"", name,
            near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
    return err_report(&err, "wavetank");
}

static void print_help(FILE *out)
{
    fputs("usage: wavetank COMMAND [argument]... [option]...\n"
          "\n"
          "Simulates LLM serving on a recorded load and scores policies that switch the\n"
          "attention layout while it runs.\n"
          "\n",
          out);
    for (int i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].what);
    fputs("\n"
          "\"wavetank help COMMAND\" lists a command's options. A first run:\n"
          "\n"
          "  wavetank sim traces/samples/azure_2023_code.csv \\\n"
          "      --model deepseek-v3.2 --cluster b200x8\n",
          out);
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
        print_help(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("wavetank " WAVETANK_VERSION);
        return 0;
    }
    if (is_help(argv[1]) && argc > 2)
        return run_help(argv[2]);
    if (is_help(argv[1])) {
        print_help(stdout);
        return 0;
    }
    const struct command *command = find_command(argv[1]);
    return command != NULL ? command->run(argc - 1, argv + 1) : fail_unknown(argv[1]);
}
