/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cmd/fit_speeds.h"

#include <stdlib.h>

#include "sim/base/mem.h"
#include "sim/report/speed_text.h"

static int write_collectives(struct speed_fit *f, const struct profile *base, const char *output,
                             struct err *err)
{
    if (!f->fits_collectives && !fit_output_moves_collectives(base))
        return 0;
    char *head = xasprintf("# Collective times for the profile %s: those of %s times %.4g.\n"
                           "# How that was fitted: the profile's \"source\".\n",
                           f->profile.name, base->collectives_name, f->param[SPEED_EXCHANGE].value);
    int rc = fit_output_collectives(&f->profile, output, head, err);
    free(head);
    return rc;
}

static int write_all(const struct speed_fit *f, const struct speeds *s, const struct profile *base,
                     const struct fit_destination *to, struct err *err)
{
    int n;
    size_t size;
    char **source = speed_fit_sources(f, s, base, &n), *text;
    struct fit_pairs pairs;
    FILE *tables = open_memstream(&text, &size);
    speed_text_print(f, s, tables);
    fclose(tables);
    fit_pairs_of_speeds(&pairs, f, s);
    int rc = fit_output_write(to, &f->profile, source, n, text, &pairs, err);
    fit_pairs_release(&pairs);
    free(text);
    return rc;
}

int fit_speeds(const struct speeds *s, const struct profile *base, const struct fit_destination *to,
               struct err *err)
{
    struct speed_fit f;
    speed_fit_run(&f, s, base);
    snprintf(f.profile.name, sizeof f.profile.name, "%s", to->name);
    snprintf(f.profile.kind, sizeof f.profile.kind, "fitted");
    int rc = write_collectives(&f, base, to->path, err);
    if (rc == 0)
        rc = write_all(&f, s, base, to, err);
    speed_fit_release(&f);
    return rc;
}
