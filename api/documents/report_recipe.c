/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "documents/report_recipe.h"

#include "api/spec.h"
#include "base/json.h"
#include "spec/values.h"

#include <stdlib.h>
#include <string.h>

/* Adds to an object of the spec what a step of the recipe changes there. */
static bool
add_changes(json_t *to, const struct qdq_recipe_step *step)
{
    const struct qdq_spec *spec = step->spec;
    const struct {
        unsigned choice;
        const char *name;
        json_t *value;
    } rows[] = {
        {QDQ_CHOICE_METHOD, "calibration",
         json_pack("{s:s}", "method", spec->calibration.method)},
        {QDQ_CHOICE_EQUALIZE, "equalize", json_boolean(spec->equalize)},
        {QDQ_CHOICE_SMOOTH, "smooth", json_pack("{s:f}", "alpha", spec->smooth)},
        {QDQ_CHOICE_BIASES, "bias_correction",
         api_encode_bias_correction(spec->bias_correction)},
        {QDQ_CHOICE_ROUNDING, "weights", json_pack("{s:s}", "rounding", "gptq")},
        {QDQ_CHOICE_C7, "rules", json_pack("{s:b}", "C7", 0)},
        {QDQ_CHOICE_ACTIVATIONS, "activations",
         json_pack("{s:s}", "dtype",
                   spec->activations.format == QDQ_FORMAT_INT16 ? "int16" : "uint16")},
    };
    bool ok = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (step->changed & rows[i].choice)
            ok = json_object_set(to, rows[i].name, rows[i].value) == 0 && ok;
        json_decref(rows[i].value);
    }
    return ok;
}

/* Encodes the entries of layers of a step that gave weights or activations their formats. */
static json_t *
encode_entries(const struct qdq_spec *spec)
{
    char *text = api_spec_encode(spec);
    json_t *all = text ? json_loads(text, 0, NULL) : NULL;
    json_t *to =
        all ? json_pack("{s:O}", "layers", json_object_get(all, "layers")) : NULL;
    json_decref(all);
    free(text);
    return to;
}

/* Encodes the members of the spec that a step of the recipe tried. */
static json_t *
encode_tried(const struct qdq_recipe_step *step)
{
    if (strcmp(step->step, "formats") == 0 || strcmp(step->step, "widths") == 0)
        return encode_entries(step->spec);
    json_t *to =
        step->n_layers == 0
            ? json_object()
            : json_pack("{s:[{s:o, s:b, s:b}]}", "layers", "name",
                        api_json_list(step->layers, step->n_layers, api_json_text_item),
                        "quantize_input", 0, "quantize_weight", 0);
    return api_json_if(to && (!step->changed || add_changes(to, step)), to);
}

static json_t *
encode_recipe_step(const void *items, size_t i)
{
    const struct qdq_recipe_step *step = (const struct qdq_recipe_step *)items + i;
    return api_pack(
        "step:t spec:j sqnr_db:r size_ratio:r latency_ratio:r samples:i kept:b "
        "estimated:b task_drop:r predicted_latency_ratio:r",
        step->step, encode_tried(step), step->sqnr_db, step->size_ratio,
        step->latency_ratio, step->samples, step->kept, step->estimated,
        step->task_drop, step->predicted_ratio);
}

json_t *
api_encode_recipe(const struct qdq_recipe_report *recipe)
{
    return recipe ? api_json_list(recipe->steps, recipe->n_steps, encode_recipe_step)
                  : json_null();
}

static json_t *
encode_point(const void *items, size_t i)
{
    const struct qdq_frontier_point *point =
        (const struct qdq_frontier_point *)items + i;
    char *spec = api_spec_encode(point->spec);
    json_t *json = api_pack("sqnr_db:r latency_ratio:r size_ratio:r spec:j",
                            point->sqnr_db, point->latency_ratio, point->size_ratio,
                            spec ? json_loads(spec, 0, NULL) : NULL);
    free(spec);
    return json;
}

json_t *
api_encode_frontier_points(const struct qdq_frontier *frontier)
{
    return frontier ? api_json_list(frontier->points, frontier->n, encode_point)
                    : json_null();
}
