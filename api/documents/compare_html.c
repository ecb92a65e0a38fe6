/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison of two jobs as a page. */
#include "config.h"
#include "documents/compare.h"
#include "documents/html.h"

#include <stdlib.h>

#include "base/json.h"

/* Adds a value for people; lists and objects as JSON. */
static void
add_value(struct api_markup *page, json_t *value)
{
    if (!json_is_array(value) && !json_is_object(value)) {
        api_markup_value(page, value);
        return;
    }
    char *text = api_json_dump(json_incref(value), 0);
    api_markup_add(page, "<code>");
    api_markup_text(page, text ? text : "");
    api_markup_add(page, "</code>");
    page->failed |= !text;
    free(text);
}

/* Adds a cell with both values: one where they are the same, else "first, arrow, second". */
static void
add_both(struct api_markup *page, const struct html_column *column,
         const json_t *values)
{
    json_t *first = json_array_get(values, 0), *second = json_array_get(values, 1);
    bool differ = !json_equal(first, second);
    api_markup_format(page, "<td class=\"%s%s\">", differ ? "" : "off ",
                      column->kind == HTML_NUMBER ? "n" : "");
    add_value(page, first);
    if (differ) {
        api_markup_add(page, " &rarr; ");
        add_value(page, second);
    }
    api_markup_add(page, "</td>");
}

/* Adds a section with the rows. The first column is a text, the others have both values. */
static void
add_section(struct api_markup *page, const char *id, const char *title,
            const json_t *rows, const struct html_column *columns, size_t n)
{
    html_begin_section(page, id, title);
    if (json_array_size(rows) == 0) {
        html_note(page, "No difference.");
    } else {
        html_begin_table(page, title, columns, n, json_array_size(rows) > 12);
        for (size_t row = 0; row < json_array_size(rows); row++) {
            const json_t *cells = json_array_get(rows, row);
            api_markup_add(page, "<tr>");
            html_cell(page, HTML_NAME, json_object_get(cells, columns[0].member), 0);
            for (size_t i = 1; i < n; i++)
                add_both(page, &columns[i], json_object_get(cells, columns[i].member));
            api_markup_add(page, "</tr>\n");
        }
        html_end_table(page);
    }
    html_end_section(page);
}

static void
add_jobs(struct api_markup *page, const json_t *jobs)
{
    static const struct html_column columns[] = {
        {"job", NULL, HTML_NAME},      {"model", NULL, HTML_TEXT},
        {"model id", NULL, HTML_NAME}, {"calibration data", NULL, HTML_NAME},
        {"engine", NULL, HTML_TEXT},
    };
    html_begin_section(page, "jobs", "Jobs");
    html_begin_table(page, "Jobs", HTML_COLUMNS(columns), false);
    for (size_t i = 0; i < json_array_size(jobs); i++) {
        const json_t *job = json_array_get(jobs, i);
        const json_t *model = json_object_get(job, "model");
        api_markup_add(page, "<tr>");
        html_cell(page, HTML_NAME, json_object_get(job, "id"), 0);
        html_cell(page, HTML_TEXT, json_object_get(model, "name"), 0);
        html_cell(page, HTML_NAME, json_object_get(model, "id"), 0);
        html_cell(page, HTML_NAME, json_object_get(job, "calibration"), 0);
        html_cell(page, HTML_TEXT, json_object_get(job, "engine"), 0);
        api_markup_add(page, "</tr>\n");
    }
    html_end_table(page);
    html_end_section(page);
}

/* Adds the figures of the whole, one in a row. */
static void
add_summary(struct api_markup *page, const json_t *compared)
{
    static const struct {
        const char *title, *in, *member;
    } rows[] = {
        {"verdict", "summary", "verdict"},
        {"quantized layers", "summary", "quantized_layers"},
        {"Q/DQ pairs", "summary", "qdq_pairs"},
        {"bytes before", "summary", "size_before"},
        {"bytes after", "summary", "size_after"},
        {"latency, float = 1", "latency", "ratio"},
        {"latency in", "latency", "runtime"},
        {"latency on", "latency", "processor"},
    };
    static const struct html_column columns[] = {{"figure", NULL, HTML_TEXT},
                                                 {"first, second", NULL, HTML_NUMBER}};
    html_begin_section(page, "summary", "Summary");
    html_begin_table(page, "Summary", HTML_COLUMNS(columns), false);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const json_t *in = json_object_get(compared, rows[i].in);
        api_markup_format(page, "<tr><td>%s</td>", rows[i].title);
        add_both(page, &columns[1], json_object_get(in, rows[i].member));
        api_markup_add(page, "</tr>\n");
    }
    html_end_table(page);
    html_end_section(page);
}

static void
add_lists(struct api_markup *page, const json_t *compared)
{
    static const struct html_column outputs[] = {
        {"output", "name", HTML_NAME},
        {"SQNR (dB)", "sqnr_db", HTML_NUMBER},
        {"cosine", "cosine", HTML_NUMBER},
        {"largest error", "max_abs_error", HTML_NUMBER},
        {"same top 1", "top1_agreement", HTML_NUMBER},
    };
    static const struct html_column slices[] = {
        {"slice", "name", HTML_NAME},
        {"SQNR (dB)", "sqnr_db", HTML_NUMBER},
        {"share", "share", HTML_NUMBER},
    };
    static const struct html_column spec[] = {{"member", "pointer", HTML_NAME},
                                              {"first, second", "value", HTML_TEXT}};
    static const struct html_column layers[] = {
        {"layer", "name", HTML_NAME},
        {"inputs", "quantized_inputs", HTML_TEXT},
        {"outputs", "quantized_outputs", HTML_TEXT},
        {"weight", "weight_quantized", HTML_TEXT},
        {"axis", "weight_axis", HTML_NUMBER},
        {"type", "weight_dtype", HTML_TEXT},
        {"block", "weight_block", HTML_NUMBER},
        {"type of inputs", "input_dtype", HTML_TEXT},
        {"decided by", "reason", HTML_TEXT},
        {"SQNR (dB)", "sqnr_db", HTML_NUMBER},
    };
    static const struct html_column tensors[] = {
        {"tensor", "name", HTML_NAME},   {"min", "min", HTML_NUMBER},
        {"max", "max", HTML_NUMBER},     {"type", "dtype", HTML_TEXT},
        {"scale", "scale", HTML_NUMBER}, {"zero", "zero_point", HTML_NUMBER},
        {"method", "method", HTML_TEXT},
    };
    static const struct {
        const char *id, *title;
        const struct html_column *columns;
        size_t n;
    } lists[] = {
        {"outputs", "Outputs", HTML_COLUMNS(outputs)},
        {"deployed", "Outputs as deployed", HTML_COLUMNS(outputs)},
        {"slices", "Slices with other figures", HTML_COLUMNS(slices)},
        {"spec", "Spec", HTML_COLUMNS(spec)},
        {"layers", "Layers with other pairs", HTML_COLUMNS(layers)},
        {"tensors", "Tensors with another range", HTML_COLUMNS(tensors)},
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        add_section(page, lists[i].id, lists[i].title,
                    json_object_get(compared, lists[i].id), lists[i].columns,
                    lists[i].n);
}

static void
add_compared(struct api_markup *page, json_t *compared)
{
    html_begin(page, "Two jobs compared");
    api_markup_add(page, "<h1>Two jobs compared</h1>\n");
    add_jobs(page, json_object_get(compared, "jobs"));
    add_summary(page, compared);
    add_lists(page, compared);
    html_end(page);
}

char *
api_compare_html(const struct api_compared *first, const struct api_compared *second)
{
    return api_markup_render(api_compare_load(first, second), add_compared);
}
