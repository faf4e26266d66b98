/* SPDX-License-Identifier: Apache-2.0
 *
 * wavetank completion bash|zsh: what a shell completes commands and options by, from the tables
 * that parse them. Anything else is completed as a file's name.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/base/file.h"
#include "sim/cmd/cmd.h"

static const struct opt options[] = {{0}};

/* Choices and words, which are apart by `from` in the table, apart by blanks. */
static void print_words(const char *words, char from, FILE *out)
{
    for (const char *c = words; *c != '\0'; c++)
        fputc(*c == from ? ' ' : *c, out);
}

static void print_commands(FILE *out)
{
    for (int i = 0; i < n_commands; i++)
        fprintf(out, "%s%s", i > 0 ? " " : "", commands[i].manual->name);
}

/* One branch of a `case` over "COMMAND ACTION". */
static void bash_branch(const struct manual *m, FILE *out)
{
    bool is_action = strchr(m->name, ' ') != NULL;
    fprintf(out, "    \"%s\"%s)\n        options=\"--help", m->name, is_action ? "" : "\\ *");
    for (const struct opt *o = m->options; o->name != NULL; o++)
        fprintf(out, " --%s", o->name);
    fprintf(out, "\"\n        words=\"%s\"\n", m->words != NULL ? m->words : "");
    fputs("        case $before in\n", out);
    for (const struct opt *o = m->options; o->name != NULL; o++) {
        if (o->type != OPT_ENUM)
            continue;
        fprintf(out, "        --%s) choices=\"", o->name);
        print_words(o->choices, '|', out);
        fputs("\" ;;\n", out);
    }
    fputs("        esac\n        ;;\n", out);
}

static void print_bash(FILE *out)
{
    fputs("# bash completion for wavetank: source it, or put it where bash-completion looks.\n"
          "_wavetank() {\n"
          "    local current=$2 before=$3 options= words= choices=\n"
          "    case \"${COMP_WORDS[1]} ${COMP_WORDS[2]-}\" in\n",
          out);
    for (int i = 0; i < n_commands; i++) {
        const struct manual *m = commands[i].manual;
        for (const struct manual *const *a = m->actions; a != NULL && *a != NULL; a++)
            bash_branch(*a, out);
        bash_branch(m, out);
    }
    fputs("    esac\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        choices=\"help ",
          out);
    print_commands(out);
    fputs("\"\n"
          "    elif [ \"${COMP_WORDS[1]}\" = help ]; then\n"
          "        choices=\"",
          out);
    print_commands(out);
    fputs("\"\n"
          "    elif [[ $current == -* ]]; then\n"
          "        choices=$options\n"
          "    elif [ \"$COMP_CWORD\" -eq 2 ]; then\n"
          "        choices=$words\n"
          "    fi\n"
          "    COMPREPLY=($(compgen -W \"$choices\" -- \"$current\"))\n"
          "}\n"
          "complete -o default -F _wavetank wavetank\n",
          out);
}

/* Inside '...[...]' of _arguments. */
static void zsh_text(const char *text, FILE *out)
{
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\'')
            fputs("'\\''", out);
        else if (strchr("[]:\\", *c) != NULL)
            fprintf(out, "\\%c", *c);
        else
            fputc(*c, out);
    }
}

static void zsh_option(const struct opt *o, FILE *out)
{
    fprintf(out, " \\\n            '%s--%s[", o->type == OPT_LIST ? "*" : "", o->name);
    zsh_text(o->help, out);
    fputc(']', out);
    if (o->arg != NULL)
        fprintf(out, ":%s:", o->arg);
    if (o->type == OPT_ENUM) {
        fputc('(', out);
        print_words(o->choices, '|', out);
        fputc(')', out);
    } else if (o->arg != NULL) {
        fputs("_files", out);
    }
    fputc('\'', out);
}

static void zsh_branch(const struct manual *m, FILE *out)
{
    bool is_action = strchr(m->name, ' ') != NULL;
    fprintf(out, "    %s%s%s)\n        _arguments '--help[print the help]'", is_action ? "'" : "",
            m->name, is_action ? "'" : "\\ *");
    for (const struct opt *o = m->options; o->name != NULL; o++)
        zsh_option(o, out);
    if (m->words != NULL)
        fprintf(out, " \\\n            '1:action:(%s)'", m->words);
    fputs(" \\\n            '*:file:_files'\n        ;;\n", out);
}

static void print_zsh(FILE *out)
{
    fputs("#compdef wavetank\n"
          "# zsh completion for wavetank: put it as _wavetank into a folder of $fpath.\n"
          "_wavetank() {\n"
          "    local -a commands=(\n",
          out);
    for (int i = 0; i < n_commands; i++) {
        fprintf(out, "        '%s:", commands[i].manual->name);
        zsh_text(commands[i].manual->what, out);
        fputs("'\n", out);
    }
    fputs("    )\n"
          "    if ((CURRENT == 2)) || [[ $words[2] == help ]]; then\n"
          "        _describe command commands\n"
          "        return\n"
          "    fi\n"
          "    shift words\n"
          "    ((CURRENT--))\n"
          "    case \"$words[1] $words[2]\" in\n",
          out);
    for (int i = 0; i < n_commands; i++) {
        const struct manual *m = commands[i].manual;
        for (const struct manual *const *a = m->actions; a != NULL && *a != NULL; a++)
            zsh_branch(*a, out);
        zsh_branch(m, out);
    }
    fputs("    esac\n}\n_wavetank \"$@\"\n", out);
}

static const struct shell {
    const char *name;
    void (*print)(FILE *out);
} shells[] = {{"bash", print_bash}, {"zsh", print_zsh}};

static int run(void *settings, int n_args, char **args, struct err *err)
{
    struct outfile o;
    (void)settings;
    for (size_t i = 0; n_args == 1 && i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(args[0], shells[i].name) != 0)
            continue;
        if (outfile_open(&o, "-", err) < 0)
            return -1;
        shells[i].print(o.f);
        return outfile_commit(&o, err);
    }
    return err_set(err, "completion: expected a shell, bash or zsh (see --help)");
}

const struct manual completion_manual = {
    .name = "completion",
    .what = "write what bash or zsh completes commands and options by",
    .synopsis = "completion bash|zsh",
    .text = "Writes a script on standard output. \"make install\" installs both.",
    .options = options,
    .words = "bash zsh",
    .examples = "source <(wavetank completion bash)\n"
                "wavetank completion zsh >~/.zfunc/_wavetank",
    .see_also = "\"wavetank man\"",
};

int cmd_completion(int argc, char **argv)
{
    return cmd_main(&completion_manual, NULL, run, argc, argv);
}
