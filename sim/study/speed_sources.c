/* SPDX-License-Identifier: Apache-2.0
 *
 * What a profile that was fitted to speeds says of itself.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "sim/study/speed_fit.h"

enum { LINES = 4 };

/* "text" becomes "text, word". */
static void append(char **text, char *word, bool first)
{
    char *longer = xasprintf("%s%s%s", *text, first ? " " : ", ", word);
    free(*text);
    free(word);
    *text = longer;
}

static char *describe_table(const struct speeds *s)
{
    const char *slash = strrchr(s->path, '/');
    char *line = xasprintf("%s: %s on %s, %d rows of %d shapes, layouts",
                           slash != NULL ? slash + 1 : s->path, s->model->name, s->cluster->name,
                           s->n, s->n_shapes);
    bool first = true;
    for (int l = 0; l < s->n_layouts; l++) {
        bool is_measured = false;
        for (int i = 0; i < s->n && !is_measured; i++)
            is_measured = s->row[i].layout == l;
        if (!is_measured)
            continue;
        append(&line, xstrdup(s->layout[l].name), first);
        first = false;
    }
    if (s->decode_layout >= 0)
        append(&line, xasprintf("bursts decode in %s", s->layout[s->decode_layout].name), false);
    return line;
}

/* All parameters of a state, behind what is said of them; NULL when there are none. */
static char *describe_params(const struct speed_fit *f, enum fit_state state, const char *what)
{
    char *line = xstrdup(what);
    bool first = true;
    for (int k = 0; k < SPEED_PARTS; k++) {
        const struct fit_param *q = &f->param[k];
        if (q->state != state)
            continue;
        append(&line,
               state == FIT_FITTED ? xasprintf("%s %.4g (sigma %.2g)", q->name, q->value, q->sigma)
                                   : xstrdup(q->name),
               first);
        first = false;
    }
    if (!first)
        return line;
    free(line);
    return NULL;
}

char **speed_fit_sources(const struct speed_fit *f, const struct speeds *s,
                         const struct profile *base, int *n)
{
    char **line = xcalloc(LINES, sizeof *line), *kept, *fitted, *what;
    *n = 0;
    line[(*n)++] = describe_table(s);
    what = xasprintf("fitted to it, times of %s:", base->name);
    fitted = describe_params(f, FIT_FITTED, what);
    if (fitted != NULL)
        line[(*n)++] = fitted;
    free(what);
    what = xasprintf("assumed: as in %s, the table does not tell:", base->name);
    kept = describe_params(f, FIT_KEPT, what);
    if (kept != NULL)
        line[(*n)++] = kept;
    free(what);
    line[(*n)++] = xasprintf("assumed: all else as in %s", base->name);
    return line;
}
