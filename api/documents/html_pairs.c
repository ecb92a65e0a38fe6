/* SPDX-License-Identifier: Apache-2.0 */
/* Where a layer has pairs, in words. */
#include "config.h"
#include "documents/html.h"

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
