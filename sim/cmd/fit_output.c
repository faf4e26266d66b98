/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cmd/fit_output.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/file.h"
#include "sim/base/mem.h"

int fit_output_name(const char *name, const char *output, char out[CATALOG_NAME_SIZE],
                    struct err *err)
{
    const char *slash = strrchr(output, '/');
    const char *text = name != NULL ? name : slash != NULL ? slash + 1 : output;
    size_t len = strlen(text);
    if (name == NULL && len > 5 && strcmp(text + len - 5, ".json") == 0)
        len -= 5;
    if (len == 0 || len >= CATALOG_NAME_SIZE || memchr(text, '/', len) != NULL)
        return err_set(err, "--name: must have 1 to %d characters and no '/', got \"%.64s\"",
                       CATALOG_NAME_SIZE - 1, text);
    snprintf(out, CATALOG_NAME_SIZE, "%.*s", (int)len, text);
    return 0;
}

bool fit_output_moves_collectives(const struct profile *base)
{
    const char *name = base->collectives_name;
    size_t len = strlen(name);
    return strchr(name, '/') != NULL || (len > 4 && strcmp(name + len - 4, ".csv") == 0);
}

int fit_output_collectives(struct profile *p, const char *output, const char *head, struct err *err)
{
    const char *slash = strrchr(output, '/');
    int folder = slash != NULL ? (int)(slash - output) + 1 : 0;
    struct outfile o;
    snprintf(p->collectives_name, sizeof p->collectives_name, "%s.csv", p->name);
    char *path = xasprintf("%.*s%s", folder, output, p->collectives_name);
    int rc = outfile_open(&o, path, err);
    if (rc == 0) {
        fputs(head, o.f);
        collective_write(&p->collectives, o.f);
        rc = outfile_commit(&o, err);
    }
    free(path);
    return rc;
}

static void write_page(const struct fit_destination *to, char **source, int n, const char *text,
                       const struct fit_pairs *pairs)
{
    struct page_about about = to->about;
    json_t *lines = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(lines, json_string(source[i]));
    about.profile_source = lines;
    fit_html(&about, text, pairs, to->page);
    json_decref(lines);
}

static int print(const char *text, struct err *err)
{
    struct outfile o;
    if (outfile_open(&o, "-", err) < 0)
        return -1;
    fputs(text, o.f);
    return outfile_commit(&o, err);
}

int fit_output_write(const struct fit_destination *to, const struct profile *p, char **source,
                     int n, const char *text, const struct fit_pairs *pairs, struct err *err)
{
    profile_write(p, (const char *const *)source, n, to->profile);
    if (to->page != NULL)
        write_page(to, source, n, text, pairs);
    for (int i = 0; i < n; i++)
        free(source[i]);
    free(source);
    return to->page_is_stdout ? 0 : print(text, err);
}
