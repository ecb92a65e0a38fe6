/* SPDX-License-Identifier: Apache-2.0 */
/* The page at /ui, made of the files in api/ui/ and of tables of the engine. */
#include "config.h"
#include "api/ui.h"

#include <stdio.h>
#include <stdlib.h>

#include "documents/html.h"
#include "qdq.h"

static const char style[] =
#include "report_css.inc"
#include "ui_css.inc"
    ;
static const char body[] =
#include "ui_html.inc"
    ;
static const char script[] =
#include "ui_js.inc"
    ;

bool
api_ui_policy(char *to, size_t size)
{
    char styles[2][HTML_HASH_SIZE], scripts[2][HTML_HASH_SIZE];
    if (!html_hash(style, styles[0]) || !html_hash(script, scripts[0]) ||
        !html_hashes(styles[1], scripts[1]))
        return false;
    int n = snprintf(to, size,
                     "default-src 'none'; connect-src 'self'; img-src data:; "
                     "style-src 'sha256-%s' 'sha256-%s'; script-src 'sha256-%s' "
                     "'sha256-%s'; base-uri 'none'; form-action 'none'; "
                     "frame-ancestors 'none'",
                     styles[0], styles[1], scripts[0], scripts[1]);
    return n > 0 && (size_t)n < size;
}

/* Adds the table of number formats, which the page moves to where it shows it. */
static void
add_formats(struct api_markup *page)
{
    static const struct {
        const char *name;
        int bits, opset, uses;
        double lowest, highest;
    } formats[] = {
#define QDQ_FORMAT(id, name, bits, lowest, highest, fraction, exponent, opset, uses) \
    {name, bits, opset, uses, lowest, highest},
#include "qdq/formats.h"
#undef QDQ_FORMAT
    };
    static const char *const uses[] = {
        [QDQ_FOR_WEIGHTS] = "weights",
        [QDQ_FOR_ACTIVATIONS] = "activations",
        [QDQ_FOR_BOTH] = "weights, activations",
    };
    static const struct html_column columns[] = {
        {"format", NULL, HTML_NAME},       {"bits", NULL, HTML_NUMBER},
        {"lowest", NULL, HTML_NUMBER},     {"highest", NULL, HTML_NUMBER},
        {"from opset", NULL, HTML_NUMBER}, {"for", NULL, HTML_TEXT},
    };
    api_markup_add(page, "<div id=\"formats\" hidden>\n");
    html_begin_table(page, "Number formats", HTML_COLUMNS(columns), false);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        api_markup_format(page,
                          "<tr><td><code>%s</code></td><td class=\"n\">%d</td>"
                          "<td class=\"n\">%g</td><td class=\"n\">%g</td>"
                          "<td class=\"n\">%d</td><td>%s</td></tr>\n",
                          formats[i].name, formats[i].bits, formats[i].lowest,
                          formats[i].highest, formats[i].opset, uses[formats[i].uses]);
    html_end_table(page);
    api_markup_add(page, "</div>\n");
}

char *
api_ui_page(void)
{
    struct api_markup page = {0};
    api_markup_add(&page,
                   "<!doctype html>\n<html lang=\"en\">\n<head>\n"
                   "<meta charset=\"utf-8\">\n"
                   "<meta name=\"viewport\" content=\"width=device-width\">\n"
                   "<meta name=\"color-scheme\" content=\"light dark\">\n"
                   "<link rel=\"icon\" href=\"data:,\">\n<title>qdqd</title>\n<style>");
    api_markup_add(&page, style);
    api_markup_add(&page, "</style>\n</head>\n<body>\n");
    api_markup_add(&page, body);
    add_formats(&page);
    api_markup_add(&page, "<script type=\"module\">");
    api_markup_add(&page, script);
    api_markup_add(&page, "</script>\n</body>\n</html>\n");
    if (!page.failed)
        return page.data;
    free(page.data);
    return NULL;
}
