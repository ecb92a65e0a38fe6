/* SPDX-License-Identifier: Apache-2.0 */
/* The facts about a model, a dataset and the engine, as JSON. */
#include "config.h"
#include "api/report.h"
#include "api/spec.h"

#include <string.h>

#include "base/json.h"

#include <stdlib.h>

/* --- shapes --------------------------------------------------------------- */

/* Encodes a dimension: its size, the name of its symbol, or null when it is not
   known. */
static json_t *
encode_dim(const void *items, size_t i)
{
    const struct qdq_dim *dim = (const struct qdq_dim *)items + i;
    return dim->value >= 0 ? json_integer(dim->value) : api_json_text(dim->symbol);
}

static json_t *
encode_value(const void *items, size_t i)
{
    const struct qdq_value *value = (const struct qdq_value *)items + i;
    return json_pack("{s:o, s:o, s:o}", "name", api_json_text(value->name), "dtype",
                     api_json_text(*value->dtype ? value->dtype : NULL), "shape",
                     value->has_shape
                         ? api_json_list(value->dims, value->rank, encode_dim)
                         : json_null());
}

static json_t *
encode_size(const void *items, size_t i)
{
    int64_t size = ((const int64_t *)items)[i];
    return size == QDQ_DIFFERS ? json_null() : json_integer(size);
}

static json_t *
encode_array(const void *items, size_t i)
{
    const struct qdq_array *array = (const struct qdq_array *)items + i;
    return json_pack("{s:o, s:o, s:o}", "name", api_json_text(array->name), "dtype",
                     api_json_text(array->dtype), "shape",
                     api_json_list(array->shape, array->rank, encode_size));
}

char *
api_dataset_info_encode(const struct qdq_dataset_info *dataset)
{
    return api_json_dump(
        json_pack("{s:I, s:o}", "samples", (json_int_t)dataset->samples, "inputs",
                  api_json_list(dataset->arrays, dataset->n_arrays, encode_array)),
        0);
}

/* --- model ---------------------------------------------------------------- */

static json_t *
encode_op(const void *items, size_t i)
{
    const struct qdq_op_count *op = (const struct qdq_op_count *)items + i;
    return json_pack("{s:o, s:I}", "op", api_json_text(op->op), "count",
                     (json_int_t)op->count);
}

static bool
is_quantized(const struct qdq_layer *layer)
{
    return layer->n_inputs > 0 || layer->weight_input >= 0;
}

static int
count_up(json_t *counts, const char *name, int by)
{
    json_t *count = json_object_get(counts, name);
    return json_integer_set(count, json_integer_value(count) + by);
}

/* Encodes {"Conv": {"count": 12, "quantized": 12}, …}; null without a plan. */
static json_t *
encode_classes(const struct qdq_plan_view *plan)
{
    if (!plan)
        return json_null();
    json_t *classes = json_object();
    for (size_t i = 0; classes && i < plan->n_layers; i++) {
        const struct qdq_layer *layer = &plan->layers[i];
        if (!json_object_get(classes, layer->cls))
            json_object_set_new(classes, layer->cls,
                                json_pack("{s:i, s:i}", "count", 0, "quantized", 0));
        json_t *counts = json_object_get(classes, layer->cls);
        if (count_up(counts, "count", 1) != 0 ||
            count_up(counts, "quantized", is_quantized(layer)) != 0) {
            json_decref(classes);
            classes = NULL;
        }
    }
    return classes;
}

char *
api_model_info_encode(const struct qdq_model_info *model,
                      const struct qdq_plan_view *plan)
{
    return api_json_dump(
        json_pack("{s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "name",
                  api_json_text(model->name), "producer",
                  api_json_text(model->producer), "ir_version",
                  (json_int_t)model->ir_version, "opset", (json_int_t)model->opset,
                  "size", (json_int_t)model->size, "nodes", (json_int_t)model->n_nodes,
                  "initializers", (json_int_t)model->n_initializers, "inputs",
                  api_json_list(model->inputs, model->n_inputs, encode_value),
                  "outputs",
                  api_json_list(model->outputs, model->n_outputs, encode_value), "ops",
                  api_json_list(model->ops, model->n_ops, encode_op), "classes",
                  encode_classes(plan)),
        0);
}

/* --- what there is to choose from ------------------------------------------ */

static json_t *
encode_support(const void *catalog, size_t i)
{
    const struct qdq_layer_support *row = qdq_catalog_layer(catalog, i);
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:b, s:b, s:o, s:b, s:o, s:o}", "class",
        api_json_text(row->cls), "op", api_json_text(row->op), "kind",
        api_json_text(row->kind), "weight_input",
        row->weight_input < 0 ? json_null() : json_integer(row->weight_input),
        "quantize_input", row->quantize_input, "quantize_weight", row->quantize_weight,
        "selected_by", api_json_text(row->selected_by), "pass_through",
        row->pass_through, "note", api_json_text(row->note), "source",
        api_json_text(row->source));
}

char *
api_layers_encode(const struct qdq_catalog *catalog)
{
    size_t n = 0;
    while (qdq_catalog_layer(catalog, n))
        n++;
    return api_json_dump(
        json_pack("{s:o}", "layers", api_json_list(catalog, n, encode_support)), 0);
}

/* Encodes a rule in the form of the tables in docs/reference/targets.md. */
static json_t *
encode_rule(const void *rules, size_t i)
{
    const struct qdq_rule *rule = (const struct qdq_rule *)rules + i;
    const char *state = rule->is_fixed  ? "always"
                        : rule->is_auto ? "auto"
                        : rule->is_on   ? "on"
                                        : "off";
    return json_pack("{s:o, s:s, s:o}", "id", api_json_text(rule->id), "state", state,
                     "text", api_json_text(rule->text));
}

/* Encodes the effective spec of a spec that has only the target; null when out of
   memory. */
static json_t *
default_spec(const struct qdq_target *target)
{
    struct qdq_spec spec;
    qdq_spec_init(&spec);
    spec.target = target;
    qdq_spec_complete(&spec);
    char *text = api_spec_encode(&spec);
    json_t *json = api_json_embed(text);
    free(text);
    return json;
}

/* Returns a member of one of the spec's objects. */
static json_t *
member_of(const json_t *spec, const char *object, const char *name)
{
    return json_object_get(json_object_get(spec, object), name);
}

static json_t *
encode_target(const void *none, size_t i)
{
    const struct qdq_target *row = qdq_target_row(i);
    json_t *spec = default_spec(row);
    (void)none;
    json_t *json =
        json_pack("{s:o, s:o, s:o, s:{s:O, s:O}, s:{s:O, s:O}, s:O, s:b, s:o}", "name",
                  api_json_text(row->name), "title", api_json_text(row->title), "info",
                  api_json_text(row->text), "weights", "dtype",
                  member_of(spec, "weights", "dtype"), "storage",
                  member_of(spec, "weights", "storage"), "activations", "dtype",
                  member_of(spec, "activations", "dtype"), "symmetric",
                  member_of(spec, "activations", "symmetric"), "recipe",
                  json_object_get(spec, "recipe"), "integer_kernels", row->has_kernels,
                  "rules", api_json_list(row->rules, row->n_rules, encode_rule));
    json_decref(spec);
    return json;
}

char *
api_targets_encode(void)
{
    size_t n = 0;
    while (qdq_target_row(n))
        n++;
    return api_json_dump(
        json_pack("{s:o}", "targets", api_json_list(NULL, n, encode_target)), 0);
}

static json_t *
encode_case(const void *catalog, size_t i)
{
    const struct qdq_case_info *row = qdq_catalog_case(catalog, i);
    return json_pack("{s:o, s:o, s:o}", "name", api_json_text(row->name), "info",
                     api_json_text(row->info), "source", api_json_text(row->source));
}

char *
api_cases_encode(const struct qdq_catalog *catalog)
{
    size_t n = 0;
    while (qdq_catalog_case(catalog, n))
        n++;
    return api_json_dump(
        json_pack("{s:o}", "cases", api_json_list(catalog, n, encode_case)), 0);
}
