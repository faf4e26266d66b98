/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cmd/manual.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/mem.h"
#include "sim/cmd/version.h"

/* Each line behind `first`, or from the second on behind `next`. */
static void print_lines(const char *text, const char *first, const char *next, FILE *out)
{
    for (const char *start = first; *text != '\0'; start = next) {
        size_t len = strcspn(text, "\n");
        fprintf(out, "%s%.*s\n", start, (int)len, text);
        text += len + (text[len] == '\n');
    }
}

void manual_print(const struct manual *m, FILE *out)
{
    print_lines(m->synopsis, "usage: wavetank ", "       wavetank ", out);
    fprintf(out, "\n%s\n", m->text);
    fputc('\n', out);
    if (m->more != NULL) {
        m->more(out);
        fputc('\n', out);
    }
    if (m->options != NULL) {
        opt_help(m->options, out);
        fputc('\n', out);
    }
    fputs("Examples:\n", out);
    print_lines(m->examples, "  ", "  ", out);
    fprintf(out, "\nSee also: %s\n", m->see_also);
}

void manual_page_name(const struct manual *m, char *name, size_t size)
{
    snprintf(name, size, "wavetank%s%s", m->name[0] != '\0' ? "-" : "", m->name);
    for (char *c = name; *c != '\0'; c++)
        if (*c == ' ')
            *c = '-';
}

/* Text as roff takes it: nothing in it is a request or an escape. */
static void roff_text(const char *text, FILE *out)
{
    bool at_start = true;
    for (const char *c = text; *c != '\0'; c++) {
        if (at_start && (*c == '.' || *c == '\''))
            fputs("\\&", out);
        if (*c == '\\')
            fputs("\\e", out);
        else if (*c == '-')
            fputs("\\-", out);
        else
            fputc(*c, out);
        at_start = *c == '\n';
    }
}

static void print_kept(const char *text, FILE *out)
{
    fputs(".nf\n", out);
    roff_text(text, out);
    fputs("\n.fi\n", out);
}

static void print_paragraphs(const char *text, FILE *out)
{
    while (*text != '\0') {
        const char *end = strstr(text, "\n\n");
        size_t len = end != NULL ? (size_t)(end - text) : strlen(text);
        char *one = xasprintf("%.*s", (int)len, text);
        if (strstr(one, "  ") != NULL) {
            print_kept(one, out);
        } else {
            roff_text(one, out);
            fputc('\n', out);
        }
        free(one);
        text += len + (end != NULL ? 2 : 0);
        if (*text != '\0')
            fputs(".PP\n", out);
    }
}

static void print_option(const struct opt *o, FILE *out)
{
    char *text = opt_describe(o);
    fputs(".TP\n", out);
    if (o->letter != 0)
        fprintf(out, "\\fB\\-%c\\fR, ", o->letter);
    fputs("\\fB\\-\\-", out);
    roff_text(o->name, out);
    fprintf(out, "\\fR%s%s%s\n", o->arg != NULL ? " \\fI" : "", o->arg != NULL ? o->arg : "",
            o->arg != NULL ? "\\fR" : "");
    roff_text(text, out);
    fputc('\n', out);
    free(text);
}

static void print_synopsis(const char *synopsis, FILE *out)
{
    fputs(".SH SYNOPSIS\n.nf\n", out);
    while (*synopsis != '\0') {
        size_t len = strcspn(synopsis, "\n");
        char *line = xasprintf("%.*s", (int)len, synopsis);
        fputs("\\fBwavetank\\fR ", out);
        roff_text(line, out);
        fputc('\n', out);
        free(line);
        synopsis += len + (synopsis[len] == '\n');
    }
    fputs(".fi\n", out);
}

static void print_more(const struct manual *m, FILE *out)
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    m->more(f);
    fclose(f);
    print_kept(text, out);
    free(text);
}

void manual_print_roff(const struct manual *m, FILE *out)
{
    char name[64];
    manual_page_name(m, name, sizeof name);
    fprintf(out, ".TH \"%s\" 1 \"\" \"wavetank " WAVETANK_VERSION "\"\n.SH NAME\n", name);
    roff_text(name, out);
    fputs(" \\- ", out);
    roff_text(m->what, out);
    fputc('\n', out);
    print_synopsis(m->synopsis, out);
    fputs(".SH DESCRIPTION\n", out);
    print_paragraphs(m->text, out);
    if (m->more != NULL)
        print_more(m, out);
    if (m->options != NULL && m->options->name != NULL)
        fputs(".SH OPTIONS\n", out);
    for (const struct opt *o = m->options; o != NULL && o->name != NULL; o++)
        print_option(o, out);
    fputs(".SH EXAMPLES\n", out);
    print_kept(m->examples, out);
    fputs(".SH SEE ALSO\n", out);
    roff_text(m->see_also, out);
    fputc('\n', out);
}
