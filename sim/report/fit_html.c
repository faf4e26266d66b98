/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report/fit_html.h"

#include "sim/base/json.h"
#include "sim/report/html.h"

static json_t *pairs_json(const struct fit_pairs *pairs)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < pairs->n; i++) {
        const struct fit_pair *p = &pairs->pair[i];
        json_array_append_new(
            rows, json_pack("[s,s,o,o,o]", p->of, p->layout, json_num(1e3 * p->measured_s),
                            json_num(1e3 * p->predicted_s),
                            json_num(100 * (p->predicted_s / p->measured_s - 1))));
    }
    return json_pack("{s:[s,s,s,s,s], s:o}", "columns", "of", "layout", "measured_ms",
                     "predicted_ms", "error_percent", "rows", rows);
}

void fit_html(const struct page_about *about, const char *text, const struct fit_pairs *pairs,
              FILE *out)
{
    enum { DIGITS = 6 };
    html_begin(out, "wavetank fit: a profile and its errors");
    page_about(about, out);
    page_figure(
        out, "parity", "Predicted against measured",
        "By the fitted profile, with all that it was fitted to; the line is equality, the "
        "dashed ones 15% off. A stage is its own time in a step; transfer is the exposed time "
        "of blocking switches, overlap what overlapped ones add.");
    page_figure(out, "residuals", "Errors by layout", "Predicted / measured - 1 of the same.");
    fputs("<h2>Parameters and errors</h2>\n<div class=\"scroll\" role=\"region\" tabindex=\"0\" "
          "aria-label=\"parameters and errors\"><pre class=\"wide\">",
          out);
    html_text(out, text);
    fputs("</pre></div>\n", out);
    json_t *data = pairs_json(pairs);
    page_data(out, "pairs", data, DIGITS);
    json_decref(data);
    page_scripts(out, "report_fit.js");
    html_end(out);
}
