/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "documents/output_rows.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"

static bool
add_slices(json_t *rows, const json_t *output)
{
    const json_t *slices = json_object_get(output, "slices");
    bool ok = true;
    for (size_t i = 0; ok && i < json_array_size(slices); i++) {
        if (!json_is_object(json_array_get(slices, i)))
            continue;
        json_t *row = json_copy(json_array_get(slices, i));
        json_t *name = json_object_get(output, "name");
        ok = row && (!name || json_object_set(row, "output", name) == 0);
        ok = json_array_append_new(rows, row) == 0 && ok;
    }
    return ok;
}

json_t *
api_slice_rows(const json_t *outputs)
{
    json_t *rows = json_array();
    bool ok = rows;
    for (size_t i = 0; ok && i < json_array_size(outputs); i++)
        ok = add_slices(rows, json_array_get(outputs, i));
    return api_json_if(ok, rows);
}

static bool
add_samples(json_t *rows, const json_t *output)
{
    const json_t *samples = json_object_get(output, "samples");
    const json_t *confidence = json_object_get(samples, "confidence");
    if (!json_is_object(samples))
        return true;
    json_t *row = json_pack("{s:O?, s:O?, s:O?, s:O?, s:O?, s:O?}", "output",
                            json_object_get(output, "name"), "worst_db",
                            json_object_get(samples, "worst_db"), "p5_db",
                            json_object_get(samples, "p5_db"), "median_db",
                            json_object_get(samples, "median_db"), "confidence_db",
                            json_object_get(confidence, "db"), "level",
                            json_object_get(confidence, "level"));
    return json_array_append_new(rows, row) == 0;
}

json_t *
api_sample_rows(const json_t *outputs)
{
    json_t *rows = json_array();
    bool ok = rows;
    for (size_t i = 0; ok && i < json_array_size(outputs); i++)
        ok = add_samples(rows, json_array_get(outputs, i));
    return api_json_if(ok, rows);
}

json_t *
api_runtime_text(const json_t *runtime)
{
    const char *name = json_string_value(json_object_get(runtime, "name"));
    const char *version = json_string_value(json_object_get(runtime, "version"));
    return name ? json_sprintf("%s %s", name, version ? version : "") : json_null();
}

json_t *
api_encode_samples(const struct qdq_sample_report *samples)
{
    if (samples->n == 0)
        return json_null();
    return api_pack(
        "worst_db:r p5_db:r median_db:r confidence:j", samples->worst_db,
        samples->p5_db, samples->median_db,
        api_pack("db:r level:r", samples->confidence_db, samples->confidence_level));
}

/* Rounds to what a drawing shows. */
static double
drawn(float x)
{
    char text[32];
    snprintf(text, sizeof text, "%.4g", (double)x);
    return strtod(text, NULL);
}

static json_t *
encode_point(const void *items, size_t i)
{
    const struct qdq_point *point = (const struct qdq_point *)items + i;
    return json_pack("[f, f]", drawn(point->f), drawn(point->q));
}

json_t *
api_with_points(json_t *object, const struct qdq_output_report *output)
{
    if (output->n_points == 0)
        return object;
    json_t *points = api_json_list(output->points, output->n_points, encode_point);
    const bool ok = object && json_object_set_new(object, "points", points) == 0;
    return api_json_if(ok, object);
}

static json_t *
encode_confusion(const void *items, size_t i)
{
    const struct qdq_confusion *row = (const struct qdq_confusion *)items + i;
    return api_pack("label:i float:i quantized:i rows:i", (uint64_t)row->label,
                    (uint64_t)row->float_class, (uint64_t)row->quantized_class,
                    (uint64_t)row->rows);
}

json_t *
api_with_confusions(json_t *object, const struct qdq_task_report *task)
{
    if (task->rows == 0)
        return object;
    json_t *more = api_pack("rows:i changed:i confusions:a", task->rows, task->changed,
                            task->confusions, task->n_confusions, encode_confusion);
    const bool ok = object && more && json_object_update(object, more) == 0;
    json_decref(more);
    return api_json_if(ok, object);
}
