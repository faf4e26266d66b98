/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/page.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/html.h"
#include "sim/web/asset.h"

static void write_options(const json_t *options, FILE *out)
{
    static const char *const head[] = {"option", "value", NULL};
    const char *key;
    json_t *value;
    if (options == NULL)
        return;
    fputs("<details><summary>All options</summary>\n", out);
    html_table_begin(out, "options", head);
    json_object_foreach ((json_t *)options, key, value) {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9));
        html_row(out);
        html_cell(out, "%s", key);
        html_cell(out, "%s", text);
        free(text);
    }
    html_table_end(out);
    fputs("</details>\n", out);
}

void page_about(const struct page_about *a, FILE *out)
{
    fputs("<dl>\n", out);
    for (const struct page_fact *f = a->fact; f->label != NULL; f++)
        html_fact(out, f->label, f->text);
    html_fact(out, "program", a->version);
    html_fact(out, "command", a->command);
    fputs("</dl>\n", out);
    html_sources(out, a->profile_source);
    write_options(a->options, out);
}

void page_figure(FILE *out, const char *name, const char *title, const char *meaning)
{
    fprintf(out, "<figure class=\"chart\" data-chart=\"%s\">\n<figcaption><b>", name);
    html_text(out, title);
    fputs(".</b> ", out);
    html_text(out, meaning);
    fputs("</figcaption>\n</figure>\n", out);
}

/* Nothing in a string can then end the script that holds it. */
static void write_escaped(const char *json, FILE *out)
{
    for (; *json != '\0'; json++) {
        if (*json == '<')
            fputs("\\u003c", out);
        else
            fputc(*json, out);
    }
}

void page_data(FILE *out, const char *id, const json_t *data, int digits)
{
    char *text = json_dumps(data, JSON_COMPACT | JSON_REAL_PRECISION((size_t)digits));
    fprintf(out, "<script type=\"application/json\" id=\"%s\">", id);
    write_escaped(text, out);
    fputs("</script>\n", out);
    free(text);
}

static void write_script(const struct asset *a, FILE *out)
{
    fputs("<script>", out);
    fwrite(a->data, 1, a->len, out);
    fputs("</script>\n", out);
}

/* With the texts that its licences ask to keep. */
static void write_library(const struct asset *library, FILE *out)
{
    fputs("<details><summary>Licences of the chart library</summary>\n", out);
    for (const struct asset *a = assets; a->name != NULL; a++) {
        if (strstr(a->name, ".txt") == NULL)
            continue;
        fprintf(out, "<h3>%s</h3>\n<pre>", a->name);
        html_text(out, (const char *)a->data);
        fputs("</pre>\n", out);
    }
    fputs("</details>\n", out);
    write_script(library, out);
}

void page_scripts(FILE *out, const char *own)
{
    const struct asset *library = asset_find("echarts.min.js"), *common = asset_find("report.js");
    const struct asset *script = asset_find(own);
    assert(common != NULL && script != NULL);
    fputs("<noscript><p>Charts, and data as CSV, need this page's own script.</p></noscript>\n",
          out);
    if (library != NULL)
        write_library(library, out);
    else
        fputs("<p id=\"no-charts\">This build has no chart library, so there are tables only; "
              "\"make charts\" and \"make\" add it.</p>\n",
              out);
    write_script(common, out);
    write_script(script, out);
}
