/* SPDX-License-Identifier: Apache-2.0
 *
 * wavetank man: the manual as man pages, from the tables that parse the options.
 */
#include <stdlib.h>

#include "sim/base/file.h"
#include "sim/base/mem.h"
#include "sim/cmd/cmd.h"

struct settings {
    const char *folder;
};

static const struct opt options[] = {
    {"folder", 0, OPT_STR, offsetof(struct settings, folder), "FOLDER", NULL, 0, 0, NULL,
     "write every page into FOLDER, which is there, as NAME.1"},
    {0},
};

static int write_page(const struct manual *m, const char *path, struct err *err)
{
    struct outfile o;
    if (outfile_open(&o, path, err) < 0)
        return -1;
    manual_print_roff(m, o.f);
    return outfile_commit(&o, err);
}

static int write_into(const struct manual *m, const char *folder, struct err *err)
{
    char name[64];
    manual_page_name(m, name, sizeof name);
    char *path = xasprintf("%s/%s.1", folder, name);
    int rc = write_page(m, path, err);
    free(path);
    for (const struct manual *const *a = m->actions; rc == 0 && a != NULL && *a != NULL; a++)
        rc = write_into(*a, folder, err);
    return rc;
}

static int write_all(const char *folder, struct err *err)
{
    int rc = write_into(&wavetank_manual, folder, err);
    for (int i = 0; rc == 0 && i < n_commands; i++)
        rc = write_into(commands[i].manual, folder, err);
    return rc;
}

static int run(void *settings, int n_args, char **args, struct err *err)
{
    const struct settings *s = settings;
    if (n_args > 2 || (s->folder != NULL && n_args > 0))
        return err_set(err, "man: expected a command, or --folder alone (see --help)");
    if (s->folder != NULL)
        return write_all(s->folder, err);
    if (n_args == 0)
        return write_page(&wavetank_manual, "-", err);
    char *name = xasprintf("%s%s%s", args[0], n_args > 1 ? " " : "", n_args > 1 ? args[1] : "");
    const struct manual *m = find_manual(name);
    int rc = m != NULL ? write_page(m, "-", err)
                       : err_set(err, "man: \"%s\" is no command; see \"wavetank --help\"", name);
    free(name);
    return rc;
}

const struct manual man_manual = {
    .name = "man",
    .what = "write the manual as man pages",
    .synopsis = "man [COMMAND [ACTION]]\nman --folder FOLDER",
    .text = "Writes what --help says as a man page: of the program, of a command, or of an\n"
            "action that has options of its own. \"make install\" installs them all.",
    .options = options,
    .examples = "wavetank man sim | man -l -\nwavetank man --folder /usr/local/share/man/man1",
    .see_also = "\"wavetank help COMMAND\"",
};

int cmd_man(int argc, char **argv)
{
    struct settings settings = {0};
    return cmd_main(&man_manual, &settings, run, argc, argv);
}
