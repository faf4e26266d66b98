/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/html.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "sim/base/units.h"
#include "sim/report/percent.h"
#include "sim/report/table.h"

/* Colours after Okabe and Ito, darkened on white to stand out from it. */
static const char style[] =
    ":root{color-scheme:light dark;--bg:#fff;--fg:#1c2126;--dim:#59636e;--line:#d3d9df;"
    "--tile:#f4f6f8;--near:#c6d5e1;--far:#e6ecf2;--c0:#0072b2;--c1:#d55e00;--c2:#00805d;"
    "--c3:#aa3a8a;--c4:#8a6d00;--c5:#555e68}"
    "@media(prefers-color-scheme:dark){:root{--bg:#15191d;--fg:#e4e8ec;--dim:#9aa5b0;"
    "--line:#3a434c;--tile:#1f252b;--near:#384856;--far:#242e37;--c0:#56b4e9;--c1:#ff9248;"
    "--c2:#2ec598;--c3:#e58cc8;--c4:#f0e442;--c5:#b6bfc8}}"
    "*{box-sizing:border-box}"
    "body{margin:0 auto;max-width:1120px;padding:16px;background:var(--bg);color:var(--fg);"
    "font:16px/1.5 system-ui,sans-serif}"
    "h1{font-size:1.5rem;line-height:1.25;margin:.3em 0}h2{font-size:1.2rem;margin:1.8em 0 .4em}"
    "h3{font-size:1rem;margin:1.2em 0 .3em}p{margin:.4em 0;max-width:76ch}"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.1em 1em;margin:.6em 0}"
    "dt{color:var(--dim)}dd{margin:0;overflow-wrap:anywhere}"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(140px,1fr));gap:8px;"
    "margin:1em 0}.tiles div{background:var(--tile);border-radius:6px;padding:8px 12px}"
    ".tiles b{display:block;font-size:1.35rem;line-height:1.3}.tiles span{color:var(--dim);"
    "font-size:.85rem}"
    ".pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr));"
    "gap:16px 32px;margin:.8em 0}"
    "figure{margin:0;max-width:540px}figcaption{font-size:.85rem;color:var(--dim)}"
    ".scroll{overflow-x:auto;margin:.6em 0}"
    "table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}"
    "th,td{padding:3px 8px;text-align:left;white-space:nowrap;"
    "border-bottom:1px solid var(--line)}th{font-weight:600;color:var(--dim)}"
    "th:first-child,td:first-child{padding-left:0}"
    "ul.key{list-style:none;display:flex;flex-wrap:wrap;gap:.2em 1.2em;padding:0;margin:.4em 0;"
    "font-size:.9rem}ul.key svg{width:16px;height:16px;vertical-align:-3px;margin-right:4px}"
    "summary{cursor:pointer;color:var(--dim);margin:.4em 0}"
    "figure.chart{max-width:none;margin:1.2em 0;min-width:0}.plot{width:100%;height:300px}"
    ".tall{height:900px}pre{white-space:pre-wrap;font-size:.8rem}pre.wide{white-space:pre}.tools{"
    "display:flex;flex-wrap:"
    "wrap;gap:8px 12px;align-items:center}"
    ".tools "
    "label,select{max-width:100%}button,select{font:inherit;font-size:.9rem;min-height:34px;"
    "padding:2px 12px;color:var(--fg);"
    "background:var(--tile);border:1px solid var(--line);border-radius:6px}"
    ":focus-visible{outline:2px solid var(--c0);outline-offset:2px}"
    ".number td:not(:first-child),.number th:not(:first-child){text-align:right}"
    "a{color:var(--c0)}code{font:.9em/1.4 ui-monospace,monospace;overflow-wrap:anywhere}"
    "svg{display:block;width:100%;height:auto}svg.bars{width:120px;height:26px}"
    "ul.key svg{display:inline-block}"
    "svg text{fill:var(--fg);font:13px system-ui,sans-serif}svg text.dim{fill:var(--dim)}"
    ".line{stroke-width:1.8;fill:none}.dash{stroke-dasharray:3 4}"
    ".axis{stroke:var(--dim);stroke-width:1;fill:none}.grid{stroke:var(--line);stroke-width:1}"
    ".near{fill:var(--near)}.far{fill:var(--far)}.mark{stroke:var(--bg);stroke-width:.6}"
    ".open{fill:var(--bg);stroke-width:1.4}.faint{fill-opacity:.45}"
    ".c0{fill:var(--c0)}.c1{fill:var(--c1)}.c2{fill:var(--c2)}.c3{fill:var(--c3)}"
    ".c4{fill:var(--c4)}.c5{fill:var(--c5)}"
    ".s0{stroke:var(--c0)}.s1{stroke:var(--c1)}.s2{stroke:var(--c2)}.s3{stroke:var(--c3)}"
    ".s4{stroke:var(--c4)}.s5{stroke:var(--c5)}";

enum { ROWS_OPEN_MAX = 24 };

static const char *const shapes[HTML_SERIES] = {
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",    /* disc */
    "M-3.5-3.5h7v7h-7z",                     /* square */
    "M0-4.5L4.3 3.4H-4.3z",                  /* triangle */
    "M0-5L5 0L0 5L-5 0z",                    /* diamond */
    "M-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z", /* cross */
    "M0 4.5L4.3-3.4H-4.3z",                  /* triangle, upside down */
};

void html_begin(FILE *out, const char *title)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:\">\n"
          "<link rel=\"icon\" href=\"data:,\">\n<title>",
          out);
    html_text(out, title);
    fprintf(out, "</title>\n<style>%s</style>\n</head>\n<body>\n", style);
    fputs("<svg style=\"position:absolute;width:0;height:0\" aria-hidden=\"true\"><defs>", out);
    for (int i = 0; i < HTML_SERIES; i++)
        fprintf(out, "<path id=\"m%d\" d=\"%s\"/>", i, shapes[i]);
    fputs("</defs></svg>\n<h1>", out);
    html_text(out, title);
    fputs("</h1>\n", out);
}

void html_end(FILE *out)
{
    fputs("</body>\n</html>\n", out);
}

void html_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '&': fputs("&amp;", out); break;
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '"': fputs("&quot;", out); break;
        default: fputc(*text, out);
        }
    }
}

static void print_escaped(FILE *out, const char *fmt, va_list ap)
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    vfprintf(f, fmt, ap);
    fclose(f);
    html_text(out, text);
    free(text);
}

void html_printf(FILE *out, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    print_escaped(out, fmt, ap);
    va_end(ap);
}

void html_p(FILE *out, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("<p>", out);
    print_escaped(out, fmt, ap);
    fputs("</p>\n", out);
    va_end(ap);
}

void html_fact(FILE *out, const char *label, const char *text)
{
    fprintf(out, "<dt>%s</dt><dd>", label);
    html_text(out, text);
    fputs("</dd>\n", out);
}

void html_sources(FILE *out, const json_t *source)
{
    if (json_array_size(source) == 0)
        return;
    fputs("<details><summary>Where the profile's numbers come from</summary>\n<ul>\n", out);
    for (size_t i = 0; i < json_array_size(source); i++) {
        fputs("<li>", out);
        html_text(out, json_string_value(json_array_get(source, i)));
        fputs("</li>\n", out);
    }
    fputs("</ul></details>\n", out);
}

void html_table_begin(FILE *out, const char *label, const char *const *head)
{
    fputs("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"", out);
    html_text(out, label);
    fputs("\"><table>\n<thead><tr>", out);
    for (; *head != NULL; head++) {
        fputs("<th scope=\"col\">", out);
        html_text(out, *head);
    }
    fputs("</tr></thead>\n<tbody>\n", out);
}

void html_table_end(FILE *out)
{
    fputs("</tbody></table></div>\n", out);
}

void html_row(FILE *out)
{
    fputs("<tr>", out);
}

void html_cell(FILE *out, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("<td>", out);
    print_escaped(out, fmt, ap);
    va_end(ap);
}

void html_cell_percent(FILE *out, double frac)
{
    char buf[PERCENT_SIZE];
    html_cell(out, "%s", percent(frac, buf));
}

void html_cell_signed(FILE *out, double frac)
{
    char buf[PERCENT_SIZE];
    html_cell(out, "%s", percent_signed(frac, buf));
}

void html_cell_count(FILE *out, int64_t n)
{
    char buf[32];
    html_cell(out, "%s", units_count(n, buf, sizeof buf));
}

void html_cell_ms(FILE *out, double ns)
{
    char buf[TABLE_MS_SIZE];
    html_cell(out, "%s", table_ms(ns, buf));
}

void html_cell_number(FILE *out, double x)
{
    char buf[64];
    if (isnan(x))
        html_cell(out, "-");
    else if (x < 0)
        html_cell(out, "-%s", table_number(-x, buf, sizeof buf));
    else if (x >= 1000 || x == floor(x))
        html_cell(out, "%s", units_count(llround(x), buf, sizeof buf));
    else
        html_cell(out, "%s", table_number(x, buf, sizeof buf));
}

void html_fold_begin(FILE *out, int rows)
{
    if (rows > ROWS_OPEN_MAX)
        fprintf(out, "<details><summary>%d rows</summary>\n", rows);
}

void html_fold_end(FILE *out, int rows)
{
    if (rows > ROWS_OPEN_MAX)
        fputs("</details>\n", out);
}

void html_tile(FILE *out, const char *number, const char *what)
{
    fprintf(out, "<div><b>%s</b><span>%s</span></div>\n", number, what);
}

void html_legend(FILE *out, const char *const *name, int n)
{
    fputs("<ul class=\"key\">", out);
    for (int i = 0; i < n; i++) {
        int s = i % HTML_SERIES;
        fprintf(out,
                "<li><svg viewBox=\"-8 -8 16 16\" aria-hidden=\"true\"><use href=\"#m%d\" "
                "class=\"mark c%d\"/></svg>",
                s, s);
        html_text(out, name[i]);
        fputs("</li>", out);
    }
    fputs("</ul>\n", out);
}
