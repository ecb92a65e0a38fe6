/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison of two jobs as JSON. */
#include "config.h"
#include "documents/compare.h"

#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "documents/output_rows.h"

/* The depth to which members of a spec are told apart; below it they are compared whole. */
enum { DEPTH = 8, POINTER = 512 };

/* Returns [a, b], with null for NULL. */
static json_t *
both(json_t *a, json_t *b)
{
    return json_pack("[O?, O?]", a, b);
}

static bool
is_same(const json_t *a, const json_t *b)
{
    bool no_a = !a || json_is_null(a), no_b = !b || json_is_null(b);
    return no_a || no_b ? no_a && no_b : json_equal(a, b);
}

/* Adds the members to `row`, each with both values. */
static json_t *
add_both(json_t *row, const json_t *a, const json_t *b, const char *const *members)
{
    bool ok = row;
    for (size_t i = 0; ok && members[i]; i++)
        ok = json_object_set_new(row, members[i],
                                 both(json_object_get(a, members[i]),
                                      json_object_get(b, members[i]))) == 0;
    return api_json_if(ok, row);
}

/* Lists of rows that are matched by name. */
struct list {
    const char *const *shown; /* the members of a row */
    const char *const
        *decides; /* a row is listed if one of these differs; NULL: always */
};

static bool
is_listed(const struct list *list, const json_t *a, const json_t *b)
{
    bool differs = !list->decides || !a || !b;
    for (size_t i = 0; !differs && list->decides[i]; i++)
        differs = !is_same(json_object_get(a, list->decides[i]),
                           json_object_get(b, list->decides[i]));
    return differs;
}

static bool
add_row(json_t *rows, const char *name, const struct list *list, const json_t *a,
        const json_t *b)
{
    if (!is_listed(list, a, b))
        return true;
    return json_array_append_new(rows, add_both(json_pack("{s:s}", "name", name), a, b,
                                                list->shown)) == 0;
}

/* Adds the rows beside those of the same name in `others`. With `only_new` it adds those that
   have none there, as rows of the second job. */
static bool
add_rows(json_t *to, const json_t *rows, const json_t *others, const struct list *list,
         bool only_new)
{
    bool ok = true;
    for (size_t i = 0; ok && i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *name = json_string_value(json_object_get(row, "name"));
        if (!name)
            continue;
        const json_t *other = json_object_get(others, name);
        if (!only_new)
            ok = add_row(to, name, list, row, other);
        else if (!other)
            ok = add_row(to, name, list, NULL, row);
    }
    return ok;
}

static json_t *
match_rows(const json_t *a, const json_t *b, const struct list *list)
{
    json_t *rows = json_array();
    json_t *in_a = api_json_index(a, "name"), *in_b = api_json_index(b, "name");
    bool ok = rows && in_a && in_b && add_rows(rows, a, in_b, list, false) &&
              add_rows(rows, b, in_a, list, true);
    json_decref(in_a);
    json_decref(in_b);
    return api_json_if(ok, rows);
}

/* --- the spec ------------------------------------------------------------------ */

static bool add_spec(json_t *rows, const char *pointer, json_t *a, json_t *b,
                     int depth);

/* Adds the differences in the members of `a`; with `only_new` the members of `b` that `a`
   lacks. */
static bool
add_members(json_t *rows, const char *pointer, json_t *a, json_t *b, bool only_new,
            int depth)
{
    const char *name;
    json_t *value;
    bool ok = true;
    json_object_foreach (only_new ? b : a, name, value) {
        char inner[POINTER];
        if (only_new && json_object_get(a, name))
            continue;
        snprintf(inner, sizeof inner, "%s", pointer);
        api_json_pointer_add(inner, sizeof inner, name);
        ok = ok && add_spec(rows, inner, only_new ? NULL : value,
                            only_new ? value : json_object_get(b, name), depth);
    }
    return ok;
}

/* Adds a row for each member whose values differ. Found ranges are those of the tensors. */
static bool
add_spec(json_t *rows, const char *pointer, json_t *a, json_t *b, int depth)
{
    if (is_same(a, b) || strcmp(pointer, "/calibration/ranges") == 0)
        return true;
    if (depth > 0 && json_is_object(a) && json_is_object(b))
        return add_members(rows, pointer, a, b, false, depth - 1) &&
               add_members(rows, pointer, a, b, true, depth - 1);
    json_t *row = json_pack("{s:s, s:o}", "pointer", pointer, "value", both(a, b));
    return json_array_append_new(rows, row) == 0;
}

static json_t *
compare_specs(json_t *a, json_t *b)
{
    json_t *rows = json_array();
    return api_json_if(rows && add_spec(rows, "", a, b, DEPTH), rows);
}

/* --- the whole ----------------------------------------------------------------- */

static json_t *
encode_job(const char *id, const json_t *report)
{
    const json_t *model = json_object_get(report, "model");
    const json_t *calibration = json_object_get(report, "calibration");
    return json_pack("{s:s, s:{s:O?, s:O?}, s:O?, s:O?}", "id", id, "model", "id",
                     json_object_get(model, "id"), "name",
                     json_object_get(model, "name"), "calibration",
                     json_object_get(calibration, "id"), "engine",
                     json_object_get(report, "engine"));
}

/* Returns the layers with their SQNR from the evaluation. NULL when out of memory. */
static json_t *
join_layers(const json_t *report)
{
    const json_t *layers = json_object_get(report, "layers");
    json_t *errors = api_json_index(
        json_object_get(json_object_get(report, "evaluation"), "layers"), "name");
    json_t *joined = json_array();
    bool ok = errors && joined;
    for (size_t i = 0; ok && i < json_array_size(layers); i++) {
        json_t *layer = json_copy(json_array_get(layers, i));
        const char *name = json_string_value(json_object_get(layer, "name"));
        json_t *sqnr =
            name ? json_object_get(json_object_get(errors, name), "sqnr_db") : NULL;
        ok = layer && (!sqnr || json_object_set(layer, "sqnr_db", sqnr) == 0);
        ok = json_array_append_new(joined, layer) == 0 && ok;
    }
    json_decref(errors);
    return api_json_if(ok, joined);
}

static json_t *
compare_layers(const json_t *a, const json_t *b)
{
    static const char *const decides[] = {
        "quantized_inputs", "quantized_outputs", "weight_quantized", "weight_axis",
        "weight_dtype",     "weight_block",      "input_dtype",      NULL};
    static const char *const shown[] = {"quantized_inputs", "quantized_outputs",
                                        "weight_quantized", "weight_axis",
                                        "weight_dtype",     "weight_block",
                                        "input_dtype",      "reason",
                                        "sqnr_db",          NULL};
    json_t *in_a = join_layers(a), *in_b = join_layers(b);
    json_t *rows =
        in_a && in_b ? match_rows(in_a, in_b, &(struct list){shown, decides}) : NULL;
    json_decref(in_a);
    json_decref(in_b);
    return rows;
}

static json_t *
outputs_of(const json_t *report, bool deployed)
{
    const json_t *evaluation = json_object_get(report, "evaluation");
    return json_object_get(
        deployed ? json_object_get(evaluation, "deployed") : evaluation, "outputs");
}

/* Returns the slices of the outputs that decide, named by output, slice and place. */
static json_t *
slices_of(const json_t *report)
{
    const json_t *deployed = outputs_of(report, true);
    json_t *rows = api_slice_rows(deployed ? deployed : outputs_of(report, false));
    bool ok = rows;
    for (size_t i = 0; ok && i < json_array_size(rows); i++) {
        json_t *row = json_array_get(rows, i);
        json_t *name =
            json_sprintf("%s: %s (axis %lld, from %lld)",
                         json_string_value(json_object_get(row, "output")),
                         json_string_value(json_object_get(row, "name")),
                         (long long)json_integer_value(json_object_get(row, "axis")),
                         (long long)json_integer_value(json_object_get(row, "begin")));
        ok = json_object_set_new(row, "name", name) == 0;
    }
    return api_json_if(ok, rows);
}

static json_t *
compare_slices(const json_t *a, const json_t *b)
{
    static const char *const figures[] = {"sqnr_db", "share", NULL};
    json_t *of_a = slices_of(a), *of_b = slices_of(b);
    json_t *rows =
        of_a && of_b ? match_rows(of_a, of_b, &(struct list){figures, figures}) : NULL;
    json_decref(of_a);
    json_decref(of_b);
    return rows;
}

/* Returns the latency with its runtime as text. NULL when out of memory. */
static json_t *
latency_of(const json_t *report)
{
    const json_t *profile = json_object_get(report, "profile");
    json_t *latency = json_is_object(profile) ? json_copy((json_t *)(uintptr_t)profile)
                                              : json_object();
    bool ok =
        latency &&
        json_object_set_new(latency, "runtime",
                            api_runtime_text(json_object_get(profile, "runtime"))) == 0;
    return api_json_if(ok, latency);
}

static json_t *
compare_latencies(const json_t *a, const json_t *b)
{
    static const char *const members[] = {"ratio",   "ratio_low", "ratio_high",
                                          "runtime", "processor", NULL};
    json_t *of_a = latency_of(a), *of_b = latency_of(b);
    json_t *both_of =
        of_a && of_b ? add_both(json_object(), of_a, of_b, members) : NULL;
    json_decref(of_a);
    json_decref(of_b);
    return both_of;
}

static json_t *
compare_reports(const char *const ids[2], json_t *a, json_t *b)
{
    static const char *const sums[] = {"verdict",     "quantized_layers", "qdq_pairs",
                                       "size_before", "size_after",       NULL};
    static const char *const figures[] = {"sqnr_db", "cosine", "max_abs_error",
                                          "top1_agreement", NULL};
    static const char *const ranges[] = {"min",        "max",    "dtype", "scale",
                                         "zero_point", "method", NULL};
    const struct list outputs = {figures, NULL}, tensors = {ranges, ranges};
    return json_pack(
        "{s:[o, o], s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "jobs",
        encode_job(ids[0], a), encode_job(ids[1], b), "summary",
        add_both(json_object(), json_object_get(a, "summary"),
                 json_object_get(b, "summary"), sums),
        "outputs", match_rows(outputs_of(a, false), outputs_of(b, false), &outputs),
        "deployed", match_rows(outputs_of(a, true), outputs_of(b, true), &outputs),
        "slices", compare_slices(a, b), "latency", compare_latencies(a, b), "spec",
        compare_specs(json_object_get(a, "spec"), json_object_get(b, "spec")), "layers",
        compare_layers(a, b), "tensors",
        match_rows(json_object_get(a, "tensors"), json_object_get(b, "tensors"),
                   &tensors));
}

json_t *
api_compare_load(const struct api_compared *first, const struct api_compared *second)
{
    const char *const ids[2] = {first->id, second->id};
    json_t *a = json_loadb(first->json, first->len, 0, NULL);
    json_t *b = json_loadb(second->json, second->len, 0, NULL);
    json_t *compared = a && b ? compare_reports(ids, a, b) : NULL;
    json_decref(a);
    json_decref(b);
    return compared;
}

char *
api_compare_encode(const struct api_compared *first, const struct api_compared *second)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    char *text = NULL;
    if (plain) {
        locale_t saved = uselocale(plain);
        text = api_json_dump(api_compare_load(first, second), 0);
        uselocale(saved);
        freelocale(plain);
    }
    return text;
}
