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

void fit_output_profile(const struct profile *p, char **source, int n, FILE *out)
{
    profile_write(p, (const char *const *)source, n, out);
    for (int i = 0; i < n; i++)
        free(source[i]);
    free(source);
}
