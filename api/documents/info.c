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
    return api_pack(
        "name:t dtype:t shape:j", value->name, *value->dtype ? value->dtype : NULL,
        value->has_shape ? api_json_list(value->dims, value->rank, encode_dim)
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
    return api_pack("name:t dtype:t shape:a", array->name, array->dtype, array->shape,
                    array->rank, encode_size);
}

static json_t *
encode_name(const void *items, size_t i)
{
    return json_string(((const char *const *)items)[i]);
}

char *
api_dataset_info_encode(const struct qdq_dataset_info *dataset)
{
    json_t *json = api_pack("samples:i inputs:a", dataset->samples, dataset->arrays,
                            dataset->n_arrays, encode_array);
    if (json && dataset->n_classes > 0 &&
        json_object_set_new(
            json, "classes",
            api_json_list(dataset->classes, dataset->n_classes, encode_name))) {
        json_decref(json);
        json = NULL;
    }
    return api_json_dump(json, 0);
}

/* --- data ----------------------------------------------------------------- */

static json_t *
encode_facts(const void *items, size_t i)
{
    const struct qdq_array_facts *facts = (const struct qdq_array_facts *)items + i;
    json_t *json = encode_array(&facts->array, 0);
    if (!json || facts->finite == 0)
        return json;
    json_object_set_new(json, "min", json_real(facts->low));
    json_object_set_new(json, "max", json_real(facts->high));
    json_object_set_new(json, "mean", json_real(facts->mean));
    json_object_set_new(json, "not_finite", json_integer(facts->not_finite));
    return json;
}

static json_t *
encode_count(const void *items, size_t i)
{
    return json_integer(((const int64_t *)items)[i]);
}

char *
api_data_encode(const struct api_data *data)
{
    char *text = api_dataset_info_encode(data->info);
    char *spec = api_spec_encode(data->spec);
    json_t *json = text ? json_loads(text, 0, NULL) : NULL;
    json_t *all = spec ? json_loads(spec, 0, NULL) : NULL;
    free(text);
    free(spec);
    if (!json || !all) {
        json_decref(json);
        json_decref(all);
        return NULL;
    }
    json_object_set_new(json, data->has_model ? "model_inputs" : "arrays",
                        api_json_list(data->facts, data->n_facts, encode_facts));
    json_object_set_new(json, "labels",
                        api_json_list(data->counts, data->n_counts, encode_count));
    json_t *preprocess = json_object_get(all, "preprocess");
    json_object_set(json, "preprocess", preprocess ? preprocess : json_null());
    json_decref(all);
    return api_json_dump(json, 0);
}

/* --- model ---------------------------------------------------------------- */

static json_t *
encode_op(const void *items, size_t i)
{
    const struct qdq_op_count *op = (const struct qdq_op_count *)items + i;
    return api_pack("op:t count:i", op->op, op->count);
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
    bool ok = classes;
    for (size_t i = 0; ok && i < plan->n_layers; i++) {
        const struct qdq_layer *layer = &plan->layers[i];
        if (!json_object_get(classes, layer->cls))
            json_object_set_new(classes, layer->cls,
                                api_pack("count:d quantized:d", 0, 0));
        json_t *counts = json_object_get(classes, layer->cls);
        ok = count_up(counts, "count", 1) == 0 &&
             count_up(counts, "quantized",
                      layer->n_inputs > 0 || layer->weight_input >= 0) == 0;
    }
    return api_json_if(ok, classes);
}

char *
api_model_info_encode(const struct qdq_model_info *model,
                      const struct qdq_plan_view *plan)
{
    return api_json_dump(
        api_pack("name:t producer:t ir_version:i opset:i size:i nodes:i initializers:i "
                 "inputs:a outputs:a ops:a classes:j",
                 model->name, model->producer, model->ir_version, model->opset,
                 model->size, model->n_nodes, model->n_initializers, model->inputs,
                 model->n_inputs, encode_value, model->outputs, model->n_outputs,
                 encode_value, model->ops, model->n_ops, encode_op,
                 encode_classes(plan)),
        0);
}

/* --- what there is to choose from ------------------------------------------ */

static json_t *
encode_support(const void *catalog, size_t i)
{
    const struct qdq_layer_support *row = qdq_catalog_layer(catalog, i);
    return api_pack("class:t op:t kind:t weight_input:x quantize_input:b "
                    "quantize_weight:b selected_by:t pass_through:b note:t source:t",
                    row->cls, row->op, row->kind, row->weight_input,
                    row->quantize_input, row->quantize_weight, row->selected_by,
                    row->pass_through, row->note, row->source);
}

char *
api_layers_encode(const struct qdq_catalog *catalog)
{
    size_t n = 0;
    while (qdq_catalog_layer(catalog, n))
        n++;
    return api_dump_list("layers", catalog, n, encode_support);
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
    return api_pack("id:t state:t text:t", rule->id, state, rule->text);
}

/* Encodes the effective spec of a spec that has only the target; null when out of
   memory. */
static json_t *
default_spec(const struct qdq_target *target)
{
    struct qdq_spec spec;
    qdq_spec_init(&spec);
    spec.target = target;
    spec.open = 0; /* what a recipe may choose is stated, too */
    qdq_spec_complete(&spec);
    char *text = api_spec_encode(&spec);
    json_t *json = api_json_embed(text);
    free(text);
    return json;
}

/* Encodes two members of one of the spec's objects. */
static json_t *
two_of(const json_t *spec, const char *object, const char *first, const char *second)
{
    const json_t *from = json_object_get(spec, object);
    return json_pack("{s:O, s:O}", first, json_object_get(from, first), second,
                     json_object_get(from, second));
}

static json_t *
encode_target(const void *none, size_t i)
{
    const struct qdq_target *row = qdq_target_row(i);
    json_t *spec = default_spec(row);
    (void)none;
    json_t *json = api_pack("name:t title:t info:t weights:j activations:j recipe:j "
                            "integer_kernels:b rules:a",
                            row->name, row->title, row->text,
                            two_of(spec, "weights", "dtype", "storage"),
                            two_of(spec, "activations", "dtype", "symmetric"),
                            json_incref(json_object_get(spec, "recipe")),
                            row->has_kernels, row->rules, row->n_rules, encode_rule);
    json_decref(spec);
    return json;
}

char *
api_targets_encode(void)
{
    size_t n = 0;
    while (qdq_target_row(n))
        n++;
    return api_dump_list("targets", NULL, n, encode_target);
}

static json_t *
encode_case(const void *catalog, size_t i)
{
    const struct qdq_case_info *row = qdq_catalog_case(catalog, i);
    return api_pack("name:t info:t source:t", row->name, row->info, row->source);
}

char *
api_cases_encode(const struct qdq_catalog *catalog)
{
    size_t n = 0;
    while (qdq_catalog_case(catalog, n))
        n++;
    return api_dump_list("cases", catalog, n, encode_case);
}
