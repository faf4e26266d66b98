/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cmd/cmd.h"

#include <string.h>

const struct command commands[] = {
    {&sim_manual, cmd_sim},
    {&explain_manual, cmd_explain},
    {&pareto_manual, cmd_pareto},
    {&trace_manual, cmd_trace},
    {&gen_manual, cmd_gen},
    {&plan_manual, cmd_plan},
    {&fit_manual, cmd_fit},
    {&validate_manual, cmd_validate},
    {&reproduce_manual, cmd_reproduce},
    {&tune_manual, cmd_tune},
    {&db_manual, cmd_db},
    {&whatif_manual, cmd_whatif},
    {&serve_manual, cmd_serve},
    {&list_manual, cmd_list},
    {&completion_manual, cmd_completion},
    {&man_manual, cmd_man},
};

const int n_commands = sizeof commands / sizeof *commands;

static void list_commands(FILE *out)
{
    for (int i = 0; i < n_commands; i++)
        fprintf(out, "  %-11s%s\n", commands[i].manual->name, commands[i].manual->what);
}

const struct manual wavetank_manual = {
    .name = "",
    .what = "a model basin for LLM serving",
    .synopsis = "COMMAND [argument]... [option]...",
    .text = "Simulates LLM serving on a recorded load and scores policies that switch the\n"
            "attention layout while it runs.",
    .more = list_commands,
    .examples = "wavetank sim traces/samples/azure_2023_code.csv \\\n"
                "    --model deepseek-v3.2 --cluster b200x8\n"
                "wavetank help sim",
    .see_also = "\"wavetank help COMMAND\" lists a command's options; README.md",
};

const struct manual *find_manual(const char *name)
{
    for (int i = 0; i < n_commands; i++) {
        const struct manual *m = commands[i].manual;
        if (strcmp(m->name, name) == 0)
            return m;
        for (const struct manual *const *a = m->actions; a != NULL && *a != NULL; a++)
            if (strcmp((*a)->name, name) == 0)
                return *a;
    }
    return NULL;
}

int cmd_main(const struct manual *manual, void *settings, cmd_run_fn *run, int argc, char **argv)
{
    struct err err = ERR_NONE;
    bool help = false;
    int n_args = 0;
    opt_defaults(manual->options, settings);
    if (opt_parse_argv(manual->options, settings, argc, argv, &n_args, &help, &err) < 0)
        return err_report(&err, "wavetank");
    if (help) {
        manual_print(manual, stdout);
        return 0;
    }
    return run(settings, n_args, argv + 1, &err) < 0 ? err_report(&err, "wavetank") : 0;
}
