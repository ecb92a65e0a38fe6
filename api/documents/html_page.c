/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of a page and its tables. */
#include "config.h"
#include "documents/html.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/digest.h"
#include "api/report.h"

static const char style[] =
#include "report_css.inc"
    ;
static const char script[] =
#include "report_js.inc"
    ;

enum { POLICY_SIZE = 256 };

bool
html_hash(const char *text, char ret[HTML_HASH_SIZE])
{
    char id[DIGEST_SIZE];
    unsigned char bytes[DIGEST_BYTES];
    if (!digest_of(text, strlen(text), id))
        return false;
    digest_bytes_of(id, bytes);
    digest_base64(bytes, sizeof bytes, ret);
    return true;
}

bool
html_hashes(char style_hash[HTML_HASH_SIZE], char script_hash[HTML_HASH_SIZE])
{
    return html_hash(style, style_hash) && html_hash(script, script_hash);
}

bool
api_html_policy(char *to, size_t size)
{
    char styles[HTML_HASH_SIZE], scripts[HTML_HASH_SIZE];
    if (!html_hashes(styles, scripts))
        return false;
    int n = snprintf(to, size,
                     "default-src 'none'; img-src data:; style-src 'sha256-%s'; "
                     "script-src 'sha256-%s'; base-uri 'none'; form-action 'none'",
                     styles, scripts);
    return n > 0 && (size_t)n < size;
}

void
html_begin(struct api_markup *page, const char *title)
{
    char policy[POLICY_SIZE];
    if (!api_html_policy(policy, sizeof policy)) {
        page->failed = true;
        return;
    }
    api_markup_add(page, "<!doctype html>\n<html lang=\"en\">\n<head>\n"
                         "<meta charset=\"utf-8\">\n"
                         "<meta http-equiv=\"Content-Security-Policy\" content=\"");
    api_markup_add(page, policy);
    api_markup_add(page,
                   "\">\n<meta name=\"viewport\" content=\"width=device-width\">\n"
                   "<meta name=\"color-scheme\" content=\"light dark\">\n"
                   "<link rel=\"icon\" href=\"data:,\">\n<title>");
    api_markup_text(page, title);
    api_markup_add(page, "</title>\n<style>");
    api_markup_add(page, style);
    api_markup_add(page, "</style>\n</head>\n<body>\n<main>\n");
}

void
html_end(struct api_markup *page)
{
    api_markup_add(page, "</main>\n<script>");
    api_markup_add(page, script);
    api_markup_add(page, "</script>\n</body>\n</html>\n");
}

void
html_begin_section(struct api_markup *page, const char *id, const char *title)
{
    api_markup_format(page, "<section id=\"%s\">\n<h2>%s</h2>\n", id, title);
}

void
html_end_section(struct api_markup *page)
{
    api_markup_add(page, "</section>\n");
}

void
html_note(struct api_markup *page, const char *text)
{
    api_markup_add(page, "<p class=\"note\">");
    api_markup_add(page, text);
    api_markup_add(page, "</p>\n");
}

void
html_begin_table(struct api_markup *page, const char *label,
                 const struct html_column *columns, size_t n, bool filter)
{
    api_markup_format(page,
                      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" "
                      "aria-label=\"%s\">\n<table%s>\n<thead><tr>",
                      label, filter ? " data-filter" : "");
    for (size_t i = 0; i < n; i++)
        api_markup_format(page, "<th scope=\"col\"%s>%s</th>",
                          html_is_number(columns[i].kind) ? " class=\"n\"" : "",
                          columns[i].title);
    api_markup_add(page, "</tr></thead>\n<tbody>\n");
}

void
html_end_table(struct api_markup *page)
{
    api_markup_add(page, "</tbody>\n</table>\n</div>\n");
}

/* Adds a bar of at most 100 units behind a number. */
static void
add_bar(struct api_markup *page, double value, double largest)
{
    double width = largest > 0 && value > 0 ? 100 * (value / largest) : 0;
    api_markup_format(page,
                      " <svg class=\"bar\" viewBox=\"0 0 100 8\" aria-hidden=\"true\">"
                      "<rect width=\"%.3g\" height=\"8\"/></svg>",
                      width);
}

/* Draws numbers as columns whose heights are their shares of the largest of them. */
static void
add_steps(struct api_markup *page, const json_t *numbers)
{
    enum { WIDTH = 128, HEIGHT = 32 };
    size_t n = json_array_size(numbers);
    double largest = 0;
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, json_number_value(json_array_get(numbers, i)));
    if (n == 0 || !(largest > 0) || !isfinite(largest))
        return;
    api_markup_format(page,
                      "<svg class=\"values\" viewBox=\"0 0 %d %d\" "
                      "preserveAspectRatio=\"none\" aria-hidden=\"true\"><path "
                      "d=\"M0 %d",
                      WIDTH, HEIGHT, HEIGHT);
    for (size_t i = 0; i < n; i++) {
        double value = json_number_value(json_array_get(numbers, i));
        api_markup_format(page, "V%.3gH%.4g", HEIGHT * (1 - fmax(value, 0) / largest),
                          WIDTH * (double)(i + 1) / (double)n);
    }
    api_markup_format(page, "V%dZ\"/></svg>", HEIGHT);
}

/* Adds a number of bytes, with the number that its column is sorted by, to a cell's open tag. */
static void
add_bytes(struct api_markup *page, const json_t *value)
{
    if (json_is_number(value))
        api_markup_format(page, " data-key=\"%.17g\"", json_number_value(value));
    api_markup_add(page, ">");
    if (json_is_number(value))
        api_markup_bytes(page, json_number_value(value));
}

void
html_cell(struct api_markup *page, enum html_kind kind, const json_t *value,
          double largest)
{
    static const char *const begins[] = {
        [HTML_TEXT] = "<td>",
        [HTML_NAME] = "<td><code>",
        [HTML_NUMBER] = "<td class=\"n\">",
        [HTML_BAR] = "<td class=\"n b\">",
        [HTML_SHARED] = "<td class=\"n b\">",
        [HTML_BYTES] = "<td class=\"n\"",
        [HTML_STEPS] = "<td>",
    };
    api_markup_add(page, begins[kind]);
    if (kind == HTML_BYTES) {
        add_bytes(page, value);
    } else if (html_has_bar(kind) && json_is_number(value)) {
        double number = json_number_value(value);
        api_markup_format(page, "%.4g", number);
        add_bar(page, number, largest);
    } else if (kind == HTML_STEPS) {
        add_steps(page, value);
    } else {
        api_markup_value(page, value);
    }
    api_markup_add(page, kind == HTML_NAME ? "</code></td>" : "</td>");
}

double
html_largest(const json_t *rows, const char *member)
{
    double largest = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        double value =
            json_number_value(json_object_get(json_array_get(rows, i), member));
        largest = value > largest ? value : largest;
    }
    return largest;
}

/* The rows above which a table gets a field to filter it by. */
enum { MANY_ROWS = 12, MOST_COLUMNS = 12 };

void
html_table(struct api_markup *page, const char *label, const json_t *rows,
           const struct html_column *columns, size_t n)
{
    double largest[MOST_COLUMNS] = {0}, shared = 0;
    for (size_t i = 0; i < n && i < MOST_COLUMNS; i++) {
        if (html_has_bar(columns[i].kind))
            largest[i] = html_largest(rows, columns[i].member);
        if (columns[i].kind == HTML_SHARED && largest[i] > shared)
            shared = largest[i];
    }
    html_begin_table(page, label, columns, n, json_array_size(rows) > MANY_ROWS);
    for (size_t row = 0; row < json_array_size(rows); row++) {
        const json_t *anchor = json_object_get(json_array_get(rows, row), HTML_ANCHOR);
        if (json_is_integer(anchor))
            api_markup_format(page, "<tr id=\"row-%lld\">",
                              (long long)json_integer_value(anchor));
        else
            api_markup_add(page, "<tr>");
        for (size_t i = 0; i < n && i < MOST_COLUMNS; i++)
            html_cell(page, columns[i].kind,
                      json_object_get(json_array_get(rows, row), columns[i].member),
                      columns[i].kind == HTML_SHARED ? shared : largest[i]);
        api_markup_add(page, "</tr>\n");
    }
    html_end_table(page);
}

void
html_table_section(struct api_markup *page, const char *id, const char *title,
                   const json_t *rows, const struct html_column *columns, size_t n)
{
    if (json_array_size(rows) == 0)
        return;
    html_begin_section(page, id, title);
    html_table(page, title, rows, columns, n);
    html_end_section(page);
}
