/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cmd/fit_speeds.h"

#include <stdlib.h>

#include "sim/base/file.h"
#include "sim/base/mem.h"
#include "sim/cmd/fit_output.h"
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

static int print(const struct speed_fit *f, const struct speeds *s, struct err *err)
{
    struct outfile o;
    if (outfile_open(&o, "-", err) < 0)
        return -1;
    speed_text_print(f, s, o.f);
    return outfile_commit(&o, err);
}

int fit_speeds(const struct speeds *s, const struct profile *base, const char *name,
               const char *output, FILE *out, struct err *err)
{
    struct speed_fit f;
    speed_fit_run(&f, s, base);
    snprintf(f.profile.name, sizeof f.profile.name, "%s", name);
    snprintf(f.profile.kind, sizeof f.profile.kind, "fitted");
    int rc = write_collectives(&f, base, output, err);
    if (rc == 0) {
        int n;
        char **source = speed_fit_sources(&f, s, base, &n);
        fit_output_profile(&f.profile, source, n, out);
        rc = print(&f, s, err);
    }
    speed_fit_release(&f);
    return rc;
}
