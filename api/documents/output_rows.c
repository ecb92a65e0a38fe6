/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "documents/output_rows.h"

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
