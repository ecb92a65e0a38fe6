/* SPDX-License-Identifier: Apache-2.0 */
/* The chosen ranges of a report, drawn on the histograms of their tensors. */
#include "config.h"
#include "documents/html.h"

#include <math.h>

#include "api/report.h"
#include "base/json.h"

enum {
    MOST_COUNTS = 256,
    MOST_COLUMNS = 64,
    WIDTH = 128, /* of a drawing */
    HEIGHT = 32,
};

static const json_t *
member(const json_t *object, const char *name)
{
    return json_object_get(object, name);
}

/* Joins so many counts each into the heights of columns, on a logarithmic scale from 0 to 1.
   Returns the number of columns. */
static size_t
heights_of(const json_t *counts, size_t joined, double heights[MOST_COLUMNS])
{
    size_t n = json_array_size(counts), columns = 0;
    double highest = 0;
    for (size_t i = 0; i < n; columns++) {
        double sum = 0;
        for (size_t k = 0; k < joined && i < n; k++, i++)
            sum += fmax(json_number_value(json_array_get(counts, i)), 0);
        heights[columns] = log1p(sum);
        highest = fmax(highest, heights[columns]);
    }
    for (size_t i = 0; i < columns; i++)
        heights[i] = highest > 0 && isfinite(highest) ? heights[i] / highest : 0;
    return columns;
}

/* Returns where a value is from left to right, within the drawing. */
static double
x_of(double value, double low, double high)
{
    return fmin(fmax((value - low) / (high - low), 0), 1) * WIDTH;
}

/* Draws the columns, before the part of the axis that is in the range, between two lines. */
static void
draw(struct api_markup *page, const json_t *counts, const double axis[2],
     const double range[2])
{
    double heights[MOST_COLUMNS], size = (double)json_array_size(counts);
    size_t joined = (json_array_size(counts) + MOST_COLUMNS - 1) / MOST_COLUMNS;
    size_t n = heights_of(counts, joined, heights);
    double from = x_of(range[0], axis[0], axis[1]);
    double to = x_of(range[1], axis[0], axis[1]);
    api_markup_format(page,
                      "<svg class=\"values\" viewBox=\"0 0 %d %d\" "
                      "preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect "
                      "x=\"%.1f\" width=\"%.1f\" height=\"%d\"/><path d=\"M0 %d",
                      WIDTH, HEIGHT, from, to - from, HEIGHT, HEIGHT);
    for (size_t i = 0; i < n; i++)
        api_markup_format(page, "V%.3gH%.4g", HEIGHT * (1 - heights[i]),
                          WIDTH * fmin((double)((i + 1) * joined) / size, 1));
    api_markup_format(page,
                      "V%dZ\"/><line x1=\"%.1f\" x2=\"%.1f\" y2=\"%d\"/><line "
                      "x1=\"%.1f\" x2=\"%.1f\" y2=\"%d\"/></svg>",
                      HEIGHT, from, from, HEIGHT, to, to, HEIGHT);
}

/* Adds the cells of a histogram. */
static void
add_values(struct api_markup *page, const json_t *h)
{
    const json_t *counts = member(h, "counts"), *pair = member(h, "range");
    double axis[2] = {json_number_value(member(h, "low")),
                      json_number_value(member(h, "high"))};
    double range[2] = {json_number_value(json_array_get(pair, 0)),
                       json_number_value(json_array_get(pair, 1))};
    size_t n = json_array_size(counts);
    if (json_is_true(member(h, "magnitudes"))) {
        range[1] = fmax(-range[0], range[1]);
        range[0] = 0;
    }
    api_markup_add(page, "<td>");
    if (n > 0 && n <= MOST_COUNTS && isfinite(1 / (axis[1] - axis[0])) &&
        axis[1] > axis[0] && range[1] >= range[0])
        draw(page, counts, axis, range);
    if (json_is_true(member(h, "magnitudes")))
        api_markup_add(page, "<small>|x|</small>");
    api_markup_add(page, "</td>");
    if (json_is_number(member(h, "clipped")))
        api_markup_format(page, "<td class=\"n\">%.3g&nbsp;%%</td>",
                          100 * json_number_value(member(h, "clipped")));
    else
        html_cell(page, HTML_NUMBER, NULL, 0);
    if (json_is_number(member(h, "sqnr_db")))
        api_markup_format(page, "<td class=\"n\">%.4g</td>",
                          json_number_value(member(h, "sqnr_db")));
    else
        html_cell(page, HTML_NUMBER, NULL, 0);
}

static void
add_tensor(struct api_markup *page, const json_t *tensor, const double axis[2],
           const json_t *histograms)
{
    const json_t *min = member(tensor, "min"), *max = member(tensor, "max");
    const char *name = json_string_value(member(tensor, "name"));
    api_markup_add(page, "<tr>");
    html_cell(page, HTML_NAME, member(tensor, "name"), 0);
    html_cell(page, HTML_NUMBER, min, 0);
    html_cell(page, HTML_NUMBER, max, 0);
    api_markup_add(page, "<td>");
    if (json_is_number(min) && json_is_number(max))
        html_range(page, json_number_value(min), json_number_value(max), axis[0],
                   axis[1]);
    api_markup_add(page, "</td>");
    html_cell(page, HTML_TEXT, member(tensor, "dtype"), 0);
    html_cell(page, HTML_NUMBER, member(tensor, "scale"), 0);
    html_cell(page, HTML_NUMBER, member(tensor, "zero_point"), 0);
    html_cell(page, HTML_TEXT, member(tensor, "method"), 0);
    if (json_object_size(histograms))
        add_values(page, name ? member(histograms, name) : NULL);
    api_markup_add(page, "</tr>\n");
}

void
html_ranges(struct api_markup *page, const json_t *report)
{
    static const struct html_column columns[] = {
        {"tensor", NULL, HTML_NAME},      {"min", NULL, HTML_NUMBER},
        {"max", NULL, HTML_NUMBER},       {"range", NULL, HTML_TEXT},
        {"type", NULL, HTML_TEXT},        {"scale", NULL, HTML_NUMBER},
        {"zero", NULL, HTML_NUMBER},      {"method", NULL, HTML_TEXT},
        {"values", NULL, HTML_TEXT},      {"clipped", NULL, HTML_NUMBER},
        {"SQNR (dB)", NULL, HTML_NUMBER},
    };
    enum { OF_HISTOGRAMS = 3 };
    const json_t *tensors = member(report, "tensors");
    double axis[2] = {0, html_largest(tensors, "max")};
    if (json_array_size(tensors) == 0)
        return;
    json_t *histograms =
        api_json_index(member(report, API_REPORT_HISTOGRAMS), "tensor");
    bool has = json_object_size(histograms);
    page->failed |= !histograms;
    for (size_t i = 0; i < json_array_size(tensors); i++)
        axis[0] =
            fmin(axis[0], json_number_value(member(json_array_get(tensors, i), "min")));
    html_begin_section(page, "ranges", "Ranges");
    html_note(page,
              "The chosen range of each quantized activation, all on one axis; the "
              "mark is zero.");
    html_note(
        page,
        has ? "The values that calibration saw stand in columns on a logarithmic "
              "scale, each tensor on its own axis; the chosen range is shaded. "
              "Where a tensor has both signs, |x| stands in the columns. Clipped is "
              "the "
              "share of values outside of the range, and SQNR that of the tensor by "
              "itself."
            : "The report has no histograms: the ranges were given, or nothing "
              "asked for histograms.");
    html_begin_table(page, "Ranges", HTML_COLUMNS(columns) - (has ? 0 : OF_HISTOGRAMS),
                     true);
    for (size_t i = 0; i < json_array_size(tensors); i++)
        add_tensor(page, json_array_get(tensors, i), axis, histograms);
    html_end_table(page);
    html_end_section(page);
    json_decref(histograms);
}
