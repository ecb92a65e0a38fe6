/* SPDX-License-Identifier: Apache-2.0 */
/* The table of layers: where each has pairs, in words, its loss and its time; and the kernels that
   compute several nodes. */
#include "config.h"
#include "documents/html.h"

#include <stdlib.h>
#include <string.h>

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

/* Returns whether weights of the layers have different formats, which are shown then. */
static bool
are_mixed(const json_t *layers)
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

/* Adds a cell that says where the layer has pairs. */
static void
add_pairs(struct api_markup *page, const json_t *layer, bool mixed)
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

/* --- the times of layers ----------------------------------------------------------- */

/* Takes from a runtime's name of a node what its optimizer has added: "_token_7", "_nchwc". */
static void
strip_name(char *name)
{
    static const char *const endings[] = {"_nchwc", "_nhwc"};
    size_t len = strlen(name);
    char *token = NULL, *at = name;
    while ((at = strstr(at, "_token_"))) {
        token = at;
        at += strlen("_token_");
    }
    if (token &&
        token[strlen("_token_") + strspn(token + strlen("_token_"), "0123456789")] ==
            '\0')
        *token = '\0';
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t ending = strlen(endings[i]);
        if (len > ending && strcmp(name + len - ending, endings[i]) == 0)
            name[len - ending] = '\0';
    }
}

/* Returns the item of a list that a number names; NULL where there is none. */
static json_t *
item_at(const json_t *list, const json_t *number)
{
    const json_int_t i = json_integer_value(number);
    return json_is_integer(number) && i >= 0 ? json_array_get(list, (size_t)i) : NULL;
}

/* The nodes of a runtime are found by these: {name: layer} of the names of layers and of the tensors that
   they make; {layer: its operator}; {layer: the one before it}. */
struct index {
    json_t *names, *ops, *before;
};

static void
index_fini(struct index *index)
{
    json_decref(index->names);
    json_decref(index->ops);
    json_decref(index->before);
}

static bool
index_nodes(const json_t *report, struct index *ret)
{
    const json_t *layers = member(report, "layers"), *graph = member(report, "graph");
    const json_t *edges = member(graph, "edges"), *nodes = member(graph, "nodes");
    *ret = (struct index){json_object(), json_object(), json_object()};
    bool ok = ret->names && ret->ops && ret->before;
    for (size_t i = 0; ok && i < json_array_size(edges); i++) {
        json_t *from = item_at(nodes, json_array_get(json_array_get(edges, i), 0));
        const char *to = json_string_value(
            item_at(nodes, json_array_get(json_array_get(edges, i), 1)));
        const char *tensor = json_string_value(item_at(
            member(graph, "tensors"), json_array_get(json_array_get(edges, i), 2)));
        ok = !from || !to || !tensor ||
             (json_object_set(ret->names, tensor, from) == 0 &&
              (member(ret->before, to) || json_object_set(ret->before, to, from) == 0));
    }
    for (size_t i = 0; ok && i < json_array_size(layers); i++) {
        const json_t *layer = json_array_get(layers, i);
        json_t *name = json_object_get(layer, "name"),
               *op = json_object_get(layer, "op");
        const char *text = json_string_value(name);
        ok = !text || !op ||
             (json_object_set(ret->names, text, name) == 0 &&
              json_object_set(ret->ops, text, op) == 0);
    }
    return ok;
}

/* Returns the layer that a runtime's node computes. A node that is fused with others may be called
   after the last of them, and has the operator of the first. NULL: none is known. */
static const char *
layer_of(const struct index *index, const char *name, const char *op)
{
    enum { MOST_FUSED = 4 };
    const char *last = json_string_value(member(index->names, name)), *layer = last;
    for (int i = 0; layer && i < MOST_FUSED; i++) {
        const char *own = json_string_value(member(index->ops, layer));
        if (own && strstr(op, own))
            return layer;
        layer = json_string_value(member(index->before, layer));
    }
    return last;
}

/* Adds the time of a node to that of its layer in the object of its model. */
static bool
add_time(json_t *times, const struct index *index, const json_t *node)
{
    json_t *of_model = json_object_get(times, api_text_at(node, "model"));
    char *name = strdup(api_text_at(node, "name"));
    if (!name)
        return false;
    strip_name(name);
    const char *layer = layer_of(index, name, api_text_at(node, "op"));
    free(name);
    if (!of_model || !layer)
        return true;
    const double before = json_number_value(json_object_get(of_model, layer));
    return json_object_set_new(
               of_model, layer,
               api_json_real(before + json_number_value(member(node, "ms")))) == 0;
}

/* Returns {"float": {layer: ms}, "quantized": the same} of the nodes of the profile. NULL when out of
   memory. */
static json_t *
index_times(const json_t *report)
{
    const json_t *nodes = member(member(report, "profile"), "nodes");
    struct index index;
    json_t *times = json_pack("{s:{}, s:{}}", "float", "quantized");
    bool ok = index_nodes(report, &index) && times;
    for (size_t i = 0; ok && i < json_array_size(nodes); i++)
        ok = add_time(times, &index, json_array_get(nodes, i));
    index_fini(&index);
    return api_json_if(ok, times);
}

/* --- the table --------------------------------------------------------------------- */

/* Returns {name: value} of a member of rows. NULL when out of memory. */
static json_t *
index_rows(const json_t *rows, const char *name)
{
    json_t *index = json_object();
    bool ok = index;
    for (size_t i = 0; ok && i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *key = json_string_value(member(row, "name"));
        json_t *value = json_object_get(row, name);
        ok = !key || !json_is_number(value) || json_object_set(index, key, value) == 0;
    }
    return api_json_if(ok, index);
}

/* The figures of layers, each in an object {layer: number}, and the number of the longest bar. Those
   that no layer has are no column. */
enum { SQNR, GAIN, FLOAT_MS, QUANTIZED_MS, N_FIGURES };
struct figures {
    json_t *of[N_FIGURES];
    double largest[N_FIGURES];
};

static double
largest_of(json_t *figures)
{
    const char *layer;
    json_t *value;
    double largest = 0;
    json_object_foreach (figures, layer, value)
        if (json_number_value(value) > largest)
            largest = json_number_value(value);
    return largest;
}

static struct figures
find_figures(struct api_markup *page, const json_t *report)
{
    json_t *times = index_times(report);
    struct figures f = {
        .of = {
            [SQNR] =
                index_rows(member(member(report, "evaluation"), "layers"), "sqnr_db"),
            [GAIN] = index_rows(member(report, "sensitivity"), "gain_db"),
            [FLOAT_MS] = json_incref(json_object_get(times, "float")),
            [QUANTIZED_MS] = json_incref(json_object_get(times, "quantized")),
        }};
    json_decref(times);
    for (size_t i = 0; i < N_FIGURES; i++) {
        page->failed |= !f.of[i];
        f.largest[i] = largest_of(f.of[i]);
    }
    double *slow = &f.largest[FLOAT_MS], *quick = &f.largest[QUANTIZED_MS];
    *slow = *quick = *slow > *quick ? *slow : *quick; /* bars of both have one scale */
    return f;
}

static bool
is_column(const struct figures *figures, size_t i)
{
    return i == SQNR || json_object_size(figures->of[i]) > 0;
}

static void
add_layer(struct api_markup *page, size_t i, const json_t *layer,
          const struct figures *figures, bool mixed)
{
    const char *name = json_string_value(member(layer, "name"));
    api_markup_format(page, "<tr><td class=\"n\">%zu</td>", i + 1);
    html_cell(page, HTML_NAME, member(layer, "name"), 0);
    html_cell(page, HTML_TEXT, member(layer, "op"), 0);
    add_pairs(page, layer, mixed);
    for (size_t k = 0; k < N_FIGURES; k++)
        if (is_column(figures, k))
            html_cell(page, HTML_BAR, name ? member(figures->of[k], name) : NULL,
                      figures->largest[k]);
    html_cell(page, HTML_TEXT, member(layer, "reason"), 0);
    api_markup_add(page, "</tr>\n");
}

static void
begin_layers(struct api_markup *page, const struct figures *figures)
{
    static const struct html_column first[] = {{"#", NULL, HTML_NUMBER},
                                               {"layer", NULL, HTML_NAME},
                                               {"operator", NULL, HTML_TEXT},
                                               {"pairs", NULL, HTML_TEXT}};
    static const struct html_column of_figures[N_FIGURES] = {
        [SQNR] = {"SQNR (dB)", NULL, HTML_BAR},
        [GAIN] = {"gain without it (dB)", NULL, HTML_BAR},
        [FLOAT_MS] = {"float (ms)", NULL, HTML_BAR},
        [QUANTIZED_MS] = {"quantized (ms)", NULL, HTML_BAR},
    };
    struct html_column columns[sizeof first / sizeof *first + N_FIGURES + 1];
    size_t n = sizeof first / sizeof *first;
    memcpy(columns, first, sizeof first);
    for (size_t i = 0; i < N_FIGURES; i++)
        if (is_column(figures, i))
            columns[n++] = of_figures[i];
    columns[n++] = (struct html_column){"decided by", NULL, HTML_TEXT};
    html_begin_table(page, "Layers", columns, n, true);
}

/* Adds the rows, without those of nodes that compute constants alone. Returns how many these are. */
static size_t
add_rows(struct api_markup *page, const json_t *layers, const struct figures *figures)
{
    const bool mixed = are_mixed(layers);
    size_t left_out = 0;
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const json_t *layer = json_array_get(layers, i);
        if (json_is_true(member(layer, "constant")))
            left_out++;
        else
            add_layer(page, i - left_out, layer, figures, mixed);
    }
    return left_out;
}

void
html_layers(struct api_markup *page, const json_t *report)
{
    const json_t *errors = member(member(report, "evaluation"), "layers");
    struct figures figures = find_figures(page, report);
    html_begin_section(page, "layers", "Layers");
    html_note(page,
              "In the order of the graph. A layer's SQNR is that of its output, with "
              "all errors that came before it; the higher, the better.");
    if (is_column(&figures, FLOAT_MS) || is_column(&figures, QUANTIZED_MS))
        html_note(page, "Times are those of the slowest nodes of each model. What the "
                        "runtime fuses into one stands at the first of its layers.");
    if (json_array_size(errors))
        html_curve(page, errors, "sqnr_db", "name", "quantized layers", "SQNR in dB");
    begin_layers(page, &figures);
    size_t left_out = add_rows(page, member(report, "layers"), &figures);
    html_end_table(page);
    if (left_out > 0)
        api_markup_format(page,
                          "<p class=\"note\">%zu nodes that compute constants alone "
                          "are left out.</p>\n",
                          left_out);
    html_end_section(page);
    for (size_t i = 0; i < N_FIGURES; i++)
        json_decref(figures.of[i]);
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
