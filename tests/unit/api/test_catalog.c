/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of layers, insertion cases and targets. */
#include "config.h"
#include "api.h"

#include "api/report.h"
#include "api/spec.h"

static char *
encode_layers(void)
{
    return api_layers_encode(NULL);
}

static char *
encode_cases(void)
{
    return api_cases_encode(NULL);
}

static bool
flag(const json_t *row, const char *name)
{
    ck_assert(json_is_boolean(json_object_get(row, name)));
    return json_is_true(json_object_get(row, name));
}

static void
expect_text(const json_t *row, const char *name, const char *wanted)
{
    const char *text = json_string_value(json_object_get(row, name));
    ck_assert_ptr_nonnull(text);
    ck_assert_str_eq(text, wanted);
}

UNIT_TEST(test_layers)
{
    char *text = encode_layers();
    json_t *json = json_loads(text, 0, NULL);
    json_t *rows = json_object_get(json, "layers");
    const struct qdq_layer_support *wanted;
    size_t n = 0;
    for (; (wanted = qdq_catalog_layer(NULL, n)); n++) {
        const json_t *row = json_array_get(rows, n);
        expect_text(row, "class", wanted->cls);
        expect_text(row, "op", wanted->op);
        expect_text(row, "kind", wanted->kind);
        expect_text(row, "note", wanted->note);
        expect_text(row, "selected_by", wanted->selected_by);
        expect_text(row, "source", "library");
        ck_assert_int_eq(flag(row, "quantize_input"), wanted->quantize_input);
        ck_assert_int_eq(flag(row, "quantize_weight"), wanted->quantize_weight);
        ck_assert_int_eq(flag(row, "pass_through"), wanted->pass_through);
        ck_assert_int_eq(json_is_null(json_object_get(row, "weight_input")),
                         wanted->weight_input < 0);
        ck_assert_uint_eq(json_object_size(row), 10);
    }
    ck_assert_uint_gt(n, 0);
    ck_assert_uint_eq(json_array_size(rows), n);
    json_decref(json);
    free(text);
}

UNIT_TEST(test_cases)
{
    char *text = encode_cases();
    json_t *json = json_loads(text, 0, NULL);
    json_t *rows = json_object_get(json, "cases");
    const struct qdq_case_info *wanted;
    size_t n = 0;
    for (; (wanted = qdq_catalog_case(NULL, n)); n++) {
        const json_t *row = json_array_get(rows, n);
        expect_text(row, "name", wanted->name);
        expect_text(row, "info", wanted->info);
        expect_text(row, "source", "library");
        ck_assert_uint_eq(json_object_size(row), 3);
    }
    ck_assert(json_is_array(rows));
    ck_assert_uint_eq(json_array_size(rows), n);
    json_decref(json);
    free(text);
}

UNIT_TEST(test_targets)
{
    static const char *const states[] = {"off", "on", "always"};
    char *text = api_targets_encode();
    json_t *json = json_loads(text, 0, NULL);
    json_t *rows = json_object_get(json, "targets");
    const struct qdq_target *wanted;
    size_t n = 0;
    for (; (wanted = qdq_target_row(n)); n++) {
        const json_t *row = json_array_get(rows, n);
        const json_t *rules = json_object_get(row, "rules");
        expect_text(row, "name", wanted->name);
        expect_text(row, "title", wanted->title);
        expect_text(row, "info", wanted->text);
        ck_assert_int_eq(flag(row, "integer_kernels"), wanted->has_kernels);
        expect_text(row, "recipe", wanted->recipe == QDQ_RECIPE_AUTO ? "auto" : "none");
        expect_text(json_object_get(row, "weights"), "storage",
                    wanted->storage == QDQ_STORE_DQ ? "dq" : "qdq");
        ck_assert_uint_eq(json_array_size(rules), wanted->n_rules);
        for (size_t i = 0; i < wanted->n_rules; i++) {
            const struct qdq_rule *rule = &wanted->rules[i];
            expect_text(json_array_get(rules, i), "id", rule->id);
            expect_text(json_array_get(rules, i), "text", rule->text);
            expect_text(json_array_get(rules, i), "state",
                        rule->is_auto ? "auto" : states[rule->is_fixed + rule->is_on]);
        }
        ck_assert_uint_eq(json_object_size(row), 8);
    }
    ck_assert_uint_eq(json_array_size(rows), n);
    json_decref(json);
    free(text);
}

static const unit_encode_fn encoders[] = {
    encode_layers,
    encode_cases,
    api_targets_encode,
};

UNIT_ROWS(test_no_memory, encoders)
{
    expect_survives_no_memory(encoders[_i]);
}

UNIT_SUITE("api/catalog")
