/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the unit programs for the spec's JSON. */
#ifndef TESTS_UNIT_API_SPEC_H
#define TESTS_UNIT_API_SPEC_H

#include "api.h"

#include "api/spec.h"
#include "qdq/targets.h"

/* --- equal ---------------------------------------------------------------- */

static inline void
expect_equal_texts(const char *a, const char *b)
{
    ck_assert_int_eq(a == NULL, b == NULL);
    if (a)
        ck_assert_str_eq(a, b);
}

static inline void
expect_equal_formats(const struct qdq_layer_entry *a, const struct qdq_layer_entry *b)
{
    ck_assert_int_eq(a->weights == NULL, b->weights == NULL);
    if (a->weights) {
        ck_assert_int_eq(a->weights->format, b->weights->format);
        ck_assert_int_eq(a->weights->granularity, b->weights->granularity);
        ck_assert_int_eq(a->weights->block, b->weights->block);
        ck_assert_int_eq(a->weights->storage, b->weights->storage);
        ck_assert_int_eq(a->weights->method, b->weights->method);
        ck_assert_int_eq(a->weights->rounding, b->weights->rounding);
    }
    ck_assert_int_eq(a->activations == NULL, b->activations == NULL);
    if (a->activations) {
        ck_assert_int_eq(a->activations->format, b->activations->format);
        ck_assert_int_eq(a->activations->symmetric, b->activations->symmetric);
    }
}

static inline void
expect_equal_layers(const struct qdq_spec *a, const struct qdq_spec *b)
{
    ck_assert_uint_eq(a->n_layers, b->n_layers);
    for (size_t i = 0; i < a->n_layers; i++) {
        const struct qdq_layer_entry *left = &a->layers[i], *right = &b->layers[i];
        ck_assert_int_eq(left->by, right->by);
        ck_assert_int_eq(left->is_list, right->is_list);
        ck_assert_int_eq(left->quantize_input, right->quantize_input);
        ck_assert_int_eq(left->quantize_weight, right->quantize_weight);
        ck_assert_uint_eq(left->n_names, right->n_names);
        for (size_t k = 0; k < left->n_names; k++)
            ck_assert_str_eq(left->names[k], right->names[k]);
        ck_assert_int_eq(left->index == NULL, right->index == NULL);
        ck_assert_uint_eq(left->n_index, right->n_index);
        for (size_t k = 0; k < left->n_index; k++)
            ck_assert_int_eq(left->index[k], right->index[k]);
        expect_equal_formats(left, right);
    }
}

static inline void
expect_equal_lists(const struct qdq_spec *a, const struct qdq_spec *b)
{
    expect_equal_layers(a, b);
    ck_assert_uint_eq(a->n_cases, b->n_cases);
    for (size_t i = 0; i < a->n_cases; i++) {
        ck_assert_str_eq(a->cases[i].name, b->cases[i].name);
        expect_equal_texts(a->cases[i].lua, b->cases[i].lua);
    }
    ck_assert_uint_eq(a->n_support, b->n_support);
    for (size_t i = 0; i < a->n_support; i++) {
        const struct qdq_support *left = &a->support[i], *right = &b->support[i];
        ck_assert_str_eq(left->cls, right->cls);
        ck_assert_int_eq(left->kind, right->kind);
        ck_assert_int_eq(left->weight_input, right->weight_input);
        ck_assert_int_eq(left->channel_axis, right->channel_axis);
        ck_assert_int_eq(left->quantize_input, right->quantize_input);
        ck_assert_int_eq(left->quantize_weight, right->quantize_weight);
    }
}

/* Compares gates; NaN, which stands for no bound, equals NaN. */
static inline void
expect_equal_gates(const struct qdq_gate *a, const struct qdq_gate *b)
{
    const double left[] = {a->min_sqnr_db, a->min_cosine, a->max_abs_error,
                           a->min_top1_agreement, a->min_slice_sqnr_db};
    const double right[] = {b->min_sqnr_db, b->min_cosine, b->max_abs_error,
                            b->min_top1_agreement, b->min_slice_sqnr_db};
    for (size_t i = 0; i < 5; i++)
        ck_assert(left[i] == right[i] || (left[i] != left[i] && right[i] != right[i]));
}

/* Compares the gates of single outputs in any order. */
static inline void
expect_equal_accepts(const struct qdq_accept *a, const struct qdq_accept *b)
{
    expect_equal_gates(&a->all, &b->all);
    ck_assert_uint_eq(a->n_outputs, b->n_outputs);
    for (size_t i = 0; i < a->n_outputs; i++) {
        size_t k = 0;
        while (k < b->n_outputs &&
               strcmp(a->outputs[i].output, b->outputs[k].output) != 0)
            k++;
        ck_assert_uint_lt(k, b->n_outputs);
        expect_equal_gates(&a->outputs[i].gate, &b->outputs[k].gate);
    }
}

static inline void
expect_equal_specs(const struct qdq_spec *a, const struct qdq_spec *b)
{
    ck_assert_int_eq(a->mode, b->mode);
    ck_assert_ptr_eq(a->target, b->target);
    ck_assert_int_eq(a->device, b->device);
    for (size_t i = 0; i < a->target->n_rules; i++)
        ck_assert_int_eq(qdq_spec_has_rule(a, i), qdq_spec_has_rule(b, i));
    expect_equal_lists(a, b);
    ck_assert_int_eq(a->recipe, b->recipe);
    ck_assert_int_eq(a->weights.format, b->weights.format);
    ck_assert_int_eq(a->weights.granularity, b->weights.granularity);
    ck_assert_int_eq(a->weights.storage, b->weights.storage);
    ck_assert_int_eq(a->weights.method, b->weights.method);
    ck_assert_int_eq(a->weights.rounding, b->weights.rounding);
    ck_assert_int_eq(a->weights.range, b->weights.range);
    ck_assert_int_eq(a->weights.scales, b->weights.scales);
    ck_assert_int_eq(a->bias_correction, b->bias_correction);
    ck_assert_int_eq(a->activations.format, b->activations.format);
    ck_assert_int_eq(a->activations.symmetric, b->activations.symmetric);
    ck_assert_str_eq(a->calibration.method, b->calibration.method);
    ck_assert(a->calibration.percentile == b->calibration.percentile);
    expect_equal_texts(a->calibration.source, b->calibration.source);
    ck_assert_int_eq(a->calibration.max_samples, b->calibration.max_samples);
    ck_assert_int_eq(a->calibration.batch, b->calibration.batch);
    ck_assert_int_eq(a->calibration.random_samples, b->calibration.random_samples);
    ck_assert_int_eq(a->calibration.on_nonfinite, b->calibration.on_nonfinite);
    ck_assert_uint_eq(a->calibration.n_dims, b->calibration.n_dims);
    for (size_t i = 0; i < a->calibration.n_dims; i++) {
        const struct qdq_dim_value *left = &a->calibration.dims[i];
        ck_assert_str_eq(left->symbol, b->calibration.dims[i].symbol);
        ck_assert_int_eq(left->size, b->calibration.dims[i].size);
    }
    ck_assert_uint_eq(a->calibration.n_random, b->calibration.n_random);
    for (size_t i = 0; i < a->calibration.n_random; i++) {
        const struct qdq_random_input *left = &a->calibration.random[i];
        ck_assert_str_eq(left->input, b->calibration.random[i].input);
        ck_assert(left->low == b->calibration.random[i].low);
        ck_assert(left->high == b->calibration.random[i].high);
    }
    ck_assert_int_eq(a->evaluate, b->evaluate);
    ck_assert_int_eq(a->evaluate_samples, b->evaluate_samples);
    expect_equal_accepts(&a->accept, &b->accept);
    ck_assert_int_eq(a->unmatched_is_error, b->unmatched_is_error);
    ck_assert_uint_eq(a->calibration.n_ranges, b->calibration.n_ranges);
    for (size_t i = 0; i < a->calibration.n_ranges; i++) {
        ck_assert_str_eq(a->calibration.ranges[i].tensor,
                         b->calibration.ranges[i].tensor);
        ck_assert(a->calibration.ranges[i].min == b->calibration.ranges[i].min);
        ck_assert(a->calibration.ranges[i].max == b->calibration.ranges[i].max);
    }
}

/* --- accepted ------------------------------------------------------------- */

static inline struct api_spec *
decode(const char *text)
{
    struct api_spec *spec = NULL;
    struct api_problem problem = {0};
    ck_assert_msg(api_spec_decode(text, text ? strlen(text) : 0, &spec, &problem),
                  "%.200s is refused: %s", text ? text : "", problem.detail);
    ck_assert(!problem.set);
    return spec;
}

/* Expects that the text is accepted and that its effective spec decodes to the same
   spec and the same text. */
static inline void
expect_round_trip(const char *json)
{
    struct api_spec *spec = decode(json);
    char *text = api_spec_encode(api_spec_get(spec));
    ck_assert_ptr_nonnull(text);
    struct api_spec *again = decode(text);
    expect_equal_specs(api_spec_get(spec), api_spec_get(again));
    char *text_again = api_spec_encode(api_spec_get(again));
    ck_assert_str_eq(text, text_again);
    free(text);
    free(text_again);
    api_spec_free(&spec);
    api_spec_free(&again);
    ck_assert_ptr_null(again);
}

/* A unit_encode_fn for expect_survives_no_memory(). */
static inline char *
decode_and_encode(const char *text)
{
    struct api_spec *spec = NULL;
    struct api_problem problem = {0};
    if (!api_spec_decode(text, strlen(text), &spec, &problem)) {
        /* jansson reports some failed allocations as errors in the text. */
        ck_assert(problem.code == API_NO_MEMORY || problem.code == API_INVALID_JSON);
        return NULL;
    }
    char *encoded = api_spec_encode(api_spec_get(spec));
    api_spec_free(&spec);
    return encoded;
}

/* --- refused -------------------------------------------------------------- */

struct refused_spec {
    const char *json;
    enum api_code code;
    const char *pointer, *text; /* part of the detail */
};

/* A text that this version does not know, or knows to be wrong. */
#define INVALID(json, pointer, text)          \
    {                                         \
        json, API_INVALID_SPEC, pointer, text \
    }
/* A text that this version understands and does not support. */
#define LATER(json, pointer)                        \
    {                                               \
        json, API_UNSUPPORTED, pointer, "cannot do" \
    }

static inline void
expect_refused(const struct refused_spec *row)
{
    struct api_spec *spec = NULL;
    struct api_problem problem = {0};
    const char *json = row->json;
    ck_assert_msg(!api_spec_decode(json, strlen(json), &spec, &problem),
                  "%.200s is accepted", json);
    ck_assert_ptr_null(spec);
    ck_assert_msg(problem.code == row->code, "%.200s is %s: %s", json,
                  api_problem_slug(problem.code), problem.detail);
    if (row->pointer) {
        ck_assert_int_eq(problem.kind, QDQ_AT_POINTER);
        ck_assert_str_eq(problem.where, row->pointer);
    }
    ck_assert_msg(strstr(problem.detail, row->text) != NULL,
                  "%.200s: \"%s\" lacks \"%s\"", json, problem.detail, row->text);
}

#endif
