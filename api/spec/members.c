/* SPDX-License-Identifier: Apache-2.0 */
/* The members of the spec object itself. */
#include "config.h"
#include "spec/members.h"

#include "qdq/targets.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The opsets that a model can be converted to. */
enum { OPSET_MIN = 7, OPSET_MAX = 28 };

static bool
decode_object(struct decoder *d, const struct member *m, json_t *value)
{
    return api_decode_members(d, m->pointer, value);
}

/* true, false, or an object, which means true. */
static bool
decode_evaluate(struct decoder *d, const struct member *m, json_t *value)
{
    d->to->spec.evaluate = json_is_false(value) ? QDQ_NO : QDQ_YES;
    return !json_is_object(value) || decode_object(d, m, value);
}

static json_t *
encode_evaluate(const void *object, const struct member *m)
{
    const struct qdq_spec *spec = object;
    (void)m;
    if (spec->evaluate == QDQ_DEFAULT)
        return json_null();
    if (spec->evaluate == QDQ_YES && spec->evaluate_seconds > 0)
        return json_pack("{s:I, s:I}", "samples", (json_int_t)spec->evaluate_samples,
                         "max_seconds", (json_int_t)spec->evaluate_seconds);
    if (spec->evaluate == QDQ_YES && spec->evaluate_samples > 0)
        return json_pack("{s:I}", "samples", (json_int_t)spec->evaluate_samples);
    return json_boolean(spec->evaluate == QDQ_YES);
}

static const char *
target_name(size_t i)
{
    const struct qdq_target *target = qdq_target_row(i);
    return target ? target->name : NULL;
}

static bool
decode_target(struct decoder *d, const struct member *m, json_t *value)
{
    if (!api_decode_choice(d, m, value))
        return false;
    d->to->spec.target = qdq_target_find(json_string_value(value));
    return true;
}

static json_t *
encode_target(const void *object, const struct member *m)
{
    (void)m;
    return json_string(((const struct qdq_spec *)object)->target->name);
}

/* A decoded spec is one target's. api_spec_split() takes several apart where several results are
   made. */
static bool
refuse_targets(struct decoder *d, const struct member *m, json_t *value)
{
    (void)value;
    return api_refuse(d, API_UNSUPPORTED, m->pointer,
                      "this is done for one target: name it as target. Jobs (POST "
                      "/v1/jobs) and qdq quantize take several targets, and make a "
                      "result for each");
}

static const char *
method_name(size_t i)
{
    struct qdq_range_method method;
    return qdq_range_method(i, &method) ? method.name : NULL;
}

static bool
uses_percentile(const struct qdq_calibration_spec *c)
{
    struct qdq_range_method method;
    for (size_t i = 0; qdq_range_method(i, &method); i++)
        if (strcmp(method.name, c->method) == 0)
            return method.uses_percentile;
    return false;
}

/* Decodes the percentile alone. api_check_percentile() checks after all members that the
   method uses one. */
static bool
decode_percentile(struct decoder *d, const struct member *m, json_t *value)
{
    double percent = json_number_value(value);
    if (!(percent > 0 && percent <= 100))
        return api_refuse(d, API_INVALID_SPEC, m->pointer,
                          "%s is to be above 0 and at most 100, not %.17g",
                          api_label(d, m->pointer).text, percent);
    *(double *)api_field(d, m) = percent;
    return true;
}

/* Leaves the percentile out for all other methods. */
static json_t *
encode_percentile(const void *object, const struct member *m)
{
    const struct qdq_calibration_spec *c =
        &((const struct qdq_spec *)object)->calibration;
    (void)m;
    return uses_percentile(c) ? json_real(c->percentile) : json_null();
}

bool
api_check_percentile(struct decoder *d)
{
    const struct qdq_calibration_spec *c = &d->to->spec.calibration;
    const json_t *given =
        json_object_get(json_object_get(d->to->root, "calibration"), "percentile");
    return !given || uses_percentile(c) ||
           api_refuse(d, API_INVALID_SPEC, "/calibration/percentile",
                      "calibration.percentile is for the method percentile, not %s",
                      c->method);
}

/* A name, or the number of the opset that the model is converted to. */
static bool
decode_opset(struct decoder *d, const struct member *m, json_t *value)
{
    struct member names = *m;
    names.field = NO_FIELD;
    int64_t *to = api_field(d, m);
    if (!json_is_string(value))
        return api_parse_integer(d, m->pointer, value, OPSET_MIN, OPSET_MAX, to);
    if (!api_decode_choice(d, &names, value))
        return false;
    bool keep = strcmp(json_string_value(value), "keep") == 0;
    *to = keep ? QDQ_OPSET_KEEP : QDQ_OPSET_AUTO;
    return true;
}

static json_t *
encode_opset(const void *object, const struct member *m)
{
    int64_t opset = ((const struct qdq_spec *)object)->opset;
    (void)m;
    if (opset == QDQ_OPSET_AUTO || opset == QDQ_OPSET_KEEP)
        return json_string(opset == QDQ_OPSET_AUTO ? "auto" : "keep");
    return json_integer((json_int_t)opset);
}

static json_t *
encode_bias_correction(const void *object, const struct member *m)
{
    const struct qdq_spec *spec = object;
    (void)m;
    return !qdq_spec_rounds(spec) && spec->bias_correction == QDQ_BIASES_NONE
               ? json_null()
               : api_encode_bias_correction(spec->bias_correction);
}

static bool
has_goals(const struct qdq_spec *spec)
{
    return !isnan(spec->recipe_sqnr_db) || !isnan(spec->recipe_top1_agreement) ||
           !isnan(spec->recipe_task_drop) || !isnan(spec->recipe_size_ratio) ||
           !isnan(spec->recipe_bytes) || !isnan(spec->recipe_latency_ratio);
}

/* A name, or an object of goals. */
static bool
decode_recipe(struct decoder *d, const struct member *m, json_t *value)
{
    struct qdq_spec *spec = &d->to->spec;
    if (json_is_string(value))
        return api_decode_choice(d, m, value);
    if (!decode_object(d, m, value))
        return false;
    bool has_goal = has_goals(spec);
    if (spec->recipe_formats && isnan(spec->recipe_size_ratio) &&
        isnan(spec->recipe_bytes) && isnan(spec->recipe_sqnr_db) &&
        isnan(spec->recipe_task_drop))
        return api_refuse(
            d, API_INVALID_SPEC, m->pointer,
            "recipe.formats goes with a budget, max_bytes or "
            "max_size_ratio, or with a goal, min_sqnr_db or max_task_drop");
    spec->recipe = has_goal ? QDQ_RECIPE_BEST : QDQ_RECIPE_AUTO;
    return has_goal || spec->recipe_seconds > 0 ||
           api_refuse(d, API_INVALID_SPEC, m->pointer,
                      "recipe has neither a goal, min_sqnr_db, min_top1_agreement, "
                      "max_task_drop, max_size_ratio, max_bytes or max_latency_ratio, "
                      "nor max_seconds");
}

/* Adds a number to an object unless it is NaN. Returns false when there is no memory. */
static bool
add_number(json_t *object, const char *name, double value)
{
    return isnan(value) || json_object_set_new(object, name, json_real(value)) == 0;
}

static bool
add_bytes(json_t *object, double bytes)
{
    return isnan(bytes) || json_object_set_new(object, "max_bytes",
                                               json_integer((json_int_t)bytes)) == 0;
}

/* The formats among which a recipe chooses. */
static bool
decode_formats(struct decoder *d, const struct member *m, json_t *value)
{
    return api_decode_format_set(d, m, value, &d->to->spec.recipe_formats);
}

static bool
decode_bytes(struct decoder *d, const struct member *m, json_t *value)
{
    int64_t bytes;
    if (!api_parse_integer(d, m->pointer, value, 1, INT64_MAX, &bytes))
        return false;
    d->to->spec.recipe_bytes = (double)bytes;
    return true;
}

static json_t *
encode_recipe(const void *object, const struct member *m)
{
    const struct qdq_spec *spec = object;
    if (!has_goals(spec) && !spec->recipe_seconds)
        return api_encode_choice(object, m);
    json_t *goals = json_object();
    if (add_number(goals, "min_sqnr_db", spec->recipe_sqnr_db) &&
        add_number(goals, "min_top1_agreement", spec->recipe_top1_agreement) &&
        add_number(goals, "max_task_drop", spec->recipe_task_drop) &&
        add_number(goals, "max_size_ratio", spec->recipe_size_ratio) &&
        add_number(goals, "max_latency_ratio", spec->recipe_latency_ratio) &&
        add_bytes(goals, spec->recipe_bytes) &&
        (!spec->recipe_formats ||
         json_object_set_new(goals, "formats",
                             api_encode_format_set(spec->recipe_formats)) == 0) &&
        (!spec->recipe_seconds ||
         json_object_set_new(goals, "max_seconds",
                             json_integer((json_int_t)spec->recipe_seconds)) == 0))
        return goals;
    json_decref(goals);
    return NULL;
}

/* A spec that does not allow the cast stays as it was before there was a choice. */
static json_t *
encode_cast(const void *object, const struct member *m)
{
    (void)m;
    return ((const struct qdq_spec *)object)->calibration.cast ? json_true()
                                                               : json_null();
}

/* "evaluation": the only data that a task is judged by. */
static bool
decode_task_data(struct decoder *d, const struct member *m, json_t *value)
{
    struct member names = *m;
    names.field = NO_FIELD;
    return api_decode_choice(d, &names, value);
}

#define SMOOTH_ALPHA 0.5 /* the default; SmoothQuant's */

/* true, false, {"alpha": x, "insert": true}, or "awq". */
static bool
decode_smooth(struct decoder *d, const struct member *m, json_t *value)
{
    const char *name = json_string_value(value);
    if (name && strcmp(name, "awq") != 0)
        return api_refuse(d, API_INVALID_SPEC, m->pointer,
                          "%s is true, false, an object or \"awq\", not \"%.60s\"",
                          api_label(d, m->pointer).text, name);
    d->to->spec.smooth_awq = name;
    d->to->spec.smooth = name || json_is_false(value) ? 0 : SMOOTH_ALPHA;
    return !json_is_object(value) || decode_object(d, m, value);
}

static bool
decode_alpha(struct decoder *d, const struct member *m, json_t *value)
{
    double alpha = json_number_value(value);
    if (!(alpha > 0 && alpha < 1))
        return api_refuse(d, API_INVALID_SPEC, m->pointer,
                          "%s is to be above 0 and below 1, not %.17g",
                          api_label(d, m->pointer).text, alpha);
    d->to->spec.smooth = alpha;
    return true;
}

/* Left out where nothing is smoothed: a spec that says nothing of it stays as it was. */
static json_t *
encode_smooth(const void *object, const struct member *m)
{
    const struct qdq_spec *spec = object;
    (void)m;
    if (spec->smooth_awq)
        return json_string("awq");
    if (spec->smooth == 0)
        return json_null();
    return spec->smooth_insert
               ? json_pack("{s:f, s:b}", "alpha", spec->smooth, "insert", 1)
               : json_pack("{s:f}", "alpha", spec->smooth);
}

/* Left out where it says nothing, likewise. */
static json_t *
encode_decoder(const void *object, const struct member *m)
{
    const struct qdq_spec *spec = object;
    return spec->decoder == QDQ_DECODER_AS_IS ? json_null()
                                              : api_encode_choice(object, m);
}

/* A name, or an object: {"scheme": "int8_per_channel", "method": "percentile", "percentile": x}. */
static bool
decode_kv_cache(struct decoder *d, const struct member *m, json_t *value)
{
    struct qdq_spec *spec = &d->to->spec;
    if (!json_is_object(value))
        return api_decode_choice(d, m, value);
    spec->kv_cache = QDQ_KV_INT8_PER_CHANNEL;
    if (!decode_object(d, m, value))
        return false;
    return !json_object_get(value, "percentile") ||
           spec->kv_method == QDQ_KV_PERCENTILE ||
           api_refuse(d, API_INVALID_SPEC, "/output/kv_cache/percentile",
                      "%s is for the method percentile",
                      api_label(d, "/output/kv_cache/percentile").text);
}

static const char *const kv_methods[] = {"minmax", "percentile", "mse", NULL};
static const struct choices kv_method_names = {kv_methods, NULL};

/* Left out where it says nothing, likewise; a name where the method is the default. */
static json_t *
encode_kv_cache(const void *object, const struct member *m)
{
    const struct qdq_spec *spec = object;
    if (spec->kv_cache == QDQ_KV_NONE)
        return json_null();
    json_t *scheme = api_encode_choice(object, m);
    if (spec->kv_method == QDQ_KV_MINMAX)
        return scheme;
    json_t *ret = json_pack("{s:o, s:s}", "scheme", scheme, "method",
                            kv_methods[spec->kv_method]);
    if (ret && spec->kv_method == QDQ_KV_PERCENTILE &&
        json_object_set_new(ret, "percentile", json_real(spec->kv_percentile)) != 0) {
        json_decref(ret);
        ret = NULL;
    }
    return ret;
}

/* Left out where it says nothing, likewise. */
static json_t *
encode_context(const void *object, const struct member *m)
{
    (void)m;
    return ((const struct qdq_spec *)object)->context ? json_true() : json_null();
}

/* --- the table ------------------------------------------------------------ */

#define FIELD(name) ((ptrdiff_t)offsetof(struct qdq_spec, name))
#define PARTS(decode) WITHOUT_FIELD(decode, NULL)
#define GROUP PARTS(decode_object)
#define KV_SCHEMES                                                          \
    NAMES("none", "int8_per_tensor", "int8_per_channel", "int4_per_tensor", \
          "int4_per_channel")

static const struct member members[] = {
    {"/mode", STRING, CHOICE(mode, "full", "partial")},
    {"/target", STRING, decode_target, encode_target, NO_FIELD,
     NAMES_OF_ROWS(target_name), 0, NULL},
    {"/targets", ARRAY, WITHOUT_FIELD(refuse_targets, NULL)},
    {"/device", STRING, CHOICE(device, "auto", "cpu", "cuda")},
    {"/host", STRING,
     OWN(api_decode_host, api_encode_choice, host, NAMES_OF_ROWS(api_host_name))},
    {"/version", STRING, CHOICE(version, "rtx-1.7")},
    {"/recipe", STRING | OBJECT,
     OWN(decode_recipe, encode_recipe, recipe, NAMES("none", "auto", "best"))},
    {"/recipe/min_sqnr_db", NUMBER, BOUND_ONLY(recipe_sqnr_db)},
    {"/recipe/min_top1_agreement", NUMBER, BOUND_ONLY(recipe_top1_agreement)},
    {"/recipe/max_task_drop", NUMBER, BOUND_ONLY(recipe_task_drop)},
    {"/recipe/max_size_ratio", NUMBER, BOUND_ONLY(recipe_size_ratio)},
    {"/recipe/max_latency_ratio", NUMBER, BOUND_ONLY(recipe_latency_ratio)},
    {"/recipe/max_bytes", INTEGER, WITHOUT_FIELD(decode_bytes, NULL)},
    {"/recipe/formats", ARRAY, WITHOUT_FIELD(decode_formats, NULL)},
    {"/recipe/max_seconds", INTEGER, COUNT_ONLY(recipe_seconds)},
    {"/frontier", BOOL | OBJECT,
     WITHOUT_FIELD(api_decode_frontier, api_encode_frontier)},
    {"/frontier/points", INTEGER, COUNT_ONLY(frontier_points)},
    {"/layers", ARRAY, api_decode_layers, api_encode_items, NO_FIELD, NULL, 0,
     &api_layers},
    {"/cases", ARRAY, ITEMS(api_cases)},
    {"/layer_support", ARRAY, ITEMS(api_support)},
    {"/weights", OBJECT, WITHOUT_FIELD(api_decode_weights, api_encode_weights)},
    {"/activations", STRING | OBJECT, api_decode_activations, api_encode_activations,
     NO_FIELD, NAMES("none", "dynamic"), 0, NULL},
    {"/float", STRING, CHOICE(float_type, "keep", "float16", "bfloat16")},
    {"/calibration", OBJECT, GROUP},
    {"/calibration/method", STRING,
     NAME(calibration.method, NAMES_OF_ROWS(method_name))},
    {"/calibration/percentile", NUMBER,
     OWN(decode_percentile, encode_percentile, calibration.percentile, NULL)},
    {"/calibration/ranges", OBJECT | ARRAY | STRING,
     WITHOUT_FIELD(api_decode_ranges, api_encode_ranges)},
    {"/calibration/source", STRING,
     OWN(api_decode_source, api_encode_text, calibration.source, NULL)},
    {"/calibration/max_samples", INTEGER, COUNT(calibration.max_samples, 0)},
    {"/calibration/max_seconds", INTEGER, COUNT(calibration.max_seconds, 1)},
    {"/calibration/batch", INTEGER, COUNT(calibration.batch, 1)},
    {"/calibration/dims", OBJECT, ITEMS(api_dims)},
    {"/calibration/random_samples", INTEGER, COUNT(calibration.random_samples, 0)},
    {"/calibration/random", OBJECT, ITEMS(api_random)},
    {"/calibration/on_nonfinite", STRING,
     CHOICE(calibration.on_nonfinite, "error", "skip_sample")},
    {"/calibration/cast", BOOL,
     OWN(api_decode_flag, encode_cast, calibration.cast, NULL)},
    {"/preprocess", OBJECT, ITEMS(api_preprocess)},
    {"/bias_correction", BOOL | STRING,
     OWN(api_decode_bias_correction, encode_bias_correction, bias_correction, NULL)},
    {"/equalize", BOOL, FLAG(equalize)},
    {"/smooth", BOOL | OBJECT | STRING,
     OWN(decode_smooth, encode_smooth, smooth, NULL)},
    {"/smooth/alpha", NUMBER, OWN(decode_alpha, NULL, smooth, NULL)},
    {"/smooth/insert", BOOL, OWN(api_decode_flag, NULL, smooth_insert, NULL)},
    {"/evaluate", BOOL | OBJECT, WITHOUT_FIELD(decode_evaluate, encode_evaluate)},
    {"/evaluate/samples", INTEGER, COUNT_ONLY(evaluate_samples)},
    {"/evaluate/max_seconds", INTEGER, COUNT_ONLY(evaluate_seconds)},
    {"/accept", OBJECT, GROUP},
    {"/accept/min_sqnr_db", NUMBER, BOUND(accept.all.min_sqnr_db)},
    {"/accept/min_slice_sqnr_db", NUMBER, BOUND(accept.all.min_slice_sqnr_db)},
    {"/accept/max_kl", NUMBER, BOUND(accept.all.max_kl)},
    {"/accept/min_cosine", NUMBER, BOUND(accept.all.min_cosine)},
    {"/accept/max_abs_error", NUMBER, BOUND(accept.all.max_abs_error)},
    {"/accept/min_top1_agreement", NUMBER, BOUND(accept.all.min_top1_agreement)},
    {"/accept/max_size_ratio", NUMBER, BOUND(accept.max_size_ratio)},
    {"/accept/max_latency_ratio", NUMBER, BOUND(accept.max_latency_ratio)},
    {"/accept/min_quantized_layers", INTEGER, COUNT(accept.min_quantized_layers, 1)},
    {"/accept/outputs", OBJECT, ITEMS(api_output_gates)},
    {"/accept/max_task_drop", NUMBER, BOUND(accept.max_task_drop)},
    {"/task", OBJECT, WITHOUT_FIELD(api_decode_task, api_encode_task)},
    {"/task/kind", STRING,
     OWN(api_decode_choice, NULL, task.kind, NAMES("classification", "metric"))},
    {"/task/model", STRING, OWN(api_decode_text, NULL, task.model, NULL)},
    {"/task/output", STRING, OWN(api_decode_text, NULL, task.output, NULL)},
    {"/task/once", BOOL, OWN(api_decode_flag, NULL, task.once, NULL)},
    {"/task/data", STRING,
     OWN(decode_task_data, NULL, task.asked, NAMES("evaluation"))},
    {"/sensitivity", OBJECT, PARTS(api_decode_sensitivity)},
    {"/sensitivity/samples", INTEGER, COUNT(sensitivity_samples, 1)},
    {"/sensitivity/max_seconds", INTEGER, COUNT(sensitivity_seconds, 1)},
    {"/search", OBJECT, PARTS(api_decode_search)},
    {"/search/min_sqnr_db", NUMBER, BOUND(search.min_sqnr_db)},
    {"/search/min_top1_agreement", NUMBER, BOUND(search.min_top1_agreement)},
    {"/search/max_task_drop", NUMBER, BOUND(search.max_task_drop)},
    {"/search/max_float_layers", INTEGER, COUNT(search.max_float_layers, 0)},
    {"/search/samples", INTEGER, COUNT(search.samples, 1)},
    {"/search/max_seconds", INTEGER, COUNT(search.max_seconds, 1)},
    {"/profile", OBJECT, PARTS(api_decode_profile)},
    {"/profile/runs", INTEGER, COUNT(profile.runs, 1)},
    {"/profile/threads", INTEGER, COUNT(profile.threads, 1)},
    {"/profile/batch", INTEGER, COUNT(profile.batch, 1)},
    {"/opset", STRING | INTEGER,
     OWN(decode_opset, encode_opset, opset, NAMES("auto", "keep"))},
    {"/existing_qdq", STRING, CHOICE(existing_qdq, "error", "keep", "strip")},
    {"/rules", OBJECT, WITHOUT_FIELD(api_decode_rules, api_encode_rules)},
    {"/output", OBJECT, GROUP},
    {"/output/external_data", STRING, CHOICE(external_data, "auto", "always", "never")},
    {"/output/decoder", STRING,
     OWN(api_decode_choice, encode_decoder, decoder,
         NAMES("none", "dq", "matmulnbits"))},
    {"/output/kv_cache", STRING | OBJECT,
     OWN(decode_kv_cache, encode_kv_cache, kv_cache, KV_SCHEMES)},
    {"/output/kv_cache/scheme", STRING,
     OWN(api_decode_choice, NULL, kv_cache, KV_SCHEMES)},
    {"/output/kv_cache/method", STRING,
     OWN(api_decode_choice, NULL, kv_method, &kv_method_names)},
    {"/output/kv_cache/percentile", NUMBER,
     OWN(decode_percentile, NULL, kv_percentile, NULL)},
    {"/output/context", BOOL, OWN(api_decode_flag, encode_context, context, NULL)},
    {"/on_unmatched", STRING, SWITCH(unmatched_is_error, "warn", "error")},
};

const struct table api_members = TABLE(members);
