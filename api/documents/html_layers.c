/* SPDX-License-Identifier: Apache-2.0 */
/* Where a layer has pairs, in words, and the kernels that compute several nodes. */
#include "config.h"
#include "documents/html.h"

#include <stdlib.h>

#include "api/report.h"
#include "base/json.h"

static const json_t *
member(const json_t *object, const char *name)
{
    return json_object_get(object, name);
}

/* Adds "inputs 0, 1". `more` says that something stands before it. Returns whether something
   stands there now. */
static bool
add_indices(struct api_markup *page, const char *what, const json_t *indices, bool more)
{
    size_t n = json_array_size(indices);
    if (n == 0)
        return more;
    api_markup_format(page, "%s%s%s ", more ? "; " : "", what, n > 1 ? "s" : "");
    for (size_t i = 0; i < n; i++) {
        api_markup_add(page, i ? ", " : "");
        api_markup_value(page, json_array_get(indices, i));
    }
    return true;
}

bool
html_are_mixed(const json_t *layers)
{
    const json_t *first = NULL;
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const json_t *layer = json_array_get(layers, i);
        if (!json_is_true(member(layer, "weight_quantized")))
            continue;
        first = first ? first : layer;
        if (!json_equal(member(first, "weight_dtype"), member(layer, "weight_dtype")) ||
            !json_equal(member(first, "weight_block"), member(layer, "weight_block")))
            return true;
    }
    return false;
}

/* Adds the format of the layer's weight behind a space. */
static void
add_format(struct api_markup *page, const json_t *layer)
{
    const json_t *block = member(layer, "weight_block");
    api_markup_add(page, " ");
    api_markup_value(page, member(layer, "weight_dtype"));
    if (json_is_integer(block))
        api_markup_format(page, " in blocks of %lld",
                          (long long)json_integer_value(block));
}

void
html_pairs(struct api_markup *page, const json_t *layer, bool mixed)
{
    const json_t *inputs = member(layer, "quantized_inputs");
    const json_t *outputs = member(layer, "quantized_outputs");
    const json_t *axis = member(layer, "weight_axis");
    bool weight = json_is_true(member(layer, "weight_quantized"));
    bool any = weight || json_array_size(inputs) || json_array_size(outputs);
    api_markup_add(page, any ? "<td>" : "<td class=\"off\">float");
    bool more = add_indices(page, "input", inputs, false);
    more = add_indices(page, "output", outputs, more);
    if (weight)
        api_markup_add(page, more ? "; weight" : "weight");
    if (weight && mixed)
        add_format(page, layer);
    if (weight && json_is_integer(axis))
        api_markup_format(page, " by axis %d", (int)json_integer_value(axis));
    api_markup_add(page, "</td>");
}

/* --- kernels of several nodes ---------------------------------------------------- */

/* Returns the names of a list with commas between; NULL when out of memory. */
static json_t *
join_names(const json_t *list)
{
    struct api_markup text = {.len = 0};
    for (size_t i = 0; i < json_array_size(list); i++)
        api_markup_format(&text, "%s%s", i ? ", " : "",
                          json_string_value(json_array_get(list, i)));
    json_t *ret = text.failed ? NULL : json_string(text.data ? text.data : "");
    free(text.data);
    return ret;
}

/* Returns the kernels of several nodes, as rows of a table; NULL when out of memory. */
static json_t *
fused_rows(const json_t *fused)
{
    json_t *rows = json_array();
    bool ok = rows;
    for (size_t i = 0; ok && i < json_array_size(fused); i++) {
        const json_t *row = json_array_get(fused, i);
        ok = json_array_append_new(
                 rows, api_pack("op:t computes:t nodes:j", api_text_at(row, "op"),
                                api_text_at(row, "computes"),
                                join_names(member(row, "nodes")))) == 0;
    }
    return api_json_if(ok, rows);
}

/* Adds the sentence that says how many layers are integers, and who says so. */
static void
add_planned(struct api_markup *page, const json_t *kernels)
{
    const json_t *layers = member(kernels, "layers");
    const json_t *by = member(kernels, "planned_by");
    api_markup_format(page,
                      "<p class=\"note\">%lld of %lld layers that multiply quantized "
                      "tensors are computed with integers",
                      (long long)json_integer_value(member(layers, "integer")),
                      (long long)json_integer_value(member(layers, "planned")));
    if (by) {
        api_markup_add(page, " in the plan of ");
        api_markup_text(page, api_text_at(by, "name"));
        api_markup_add(page, " ");
        api_markup_text(page, api_text_at(by, "version"));
        api_markup_add(page, ", which ran nothing: ");
        api_markup_text(page, api_text_at(by, "device"));
    }
    api_markup_add(page, ".</p>\n");
}

void
html_fused(struct api_markup *page, const json_t *report)
{
    static const struct html_column columns[] = {{"kernel", "op", HTML_TEXT},
                                                 {"computes", "computes", HTML_TEXT},
                                                 {"nodes", "nodes", HTML_NAME}};
    const json_t *kernels = member(report, "kernels");
    if (!member(kernels, "layers"))
        return;
    html_begin_section(page, "fused", "Kernels of several nodes");
    add_planned(page, kernels);
    json_t *rows = fused_rows(member(kernels, "fused"));
    page->failed |= !rows;
    if (json_array_size(rows) > 0)
        html_table(page, "Kernels of several nodes", rows, HTML_COLUMNS(columns));
    json_decref(rows);
    html_end_section(page);
}
