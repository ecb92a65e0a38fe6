/* SPDX-License-Identifier: Apache-2.0 */
/* The targets' rules and warnings as tables, and warnings that concern many layers.
   The effect of each rule on a model is in tests/golden/rules_*. */
#include "config.h"

#include <ctype.h>

#include "builder.h"
#include "plan/placement/target.h"
#include "qdq/plan.h"

/* Returns the target that has the row. */
static const struct qdq_target *
target_of(const struct qdq_rule *rule)
{
    const struct qdq_target *target = NULL;
    for (size_t i = 0; (target = qdq_target_row(i)); i++)
        if (rule >= target->rules && rule < target->rules + target->n_rules)
            break;
    return target;
}

START_TEST(ids_are_unique_and_fixed_rules_are_on)
{
    struct qdq_spec spec;
    qdq_spec_init(&spec);
    size_t n = 0;
    for (; qdq_rule(n); n++) {
        const struct qdq_rule *rule = qdq_rule(n);
        ck_assert_msg(rule->is_on || !rule->is_fixed, "%s", rule->id);
        ck_assert_str_ne(rule->text, "");
        spec.target = target_of(rule);
        const int number = qdq_target_find_rule(spec.target, rule->id);
        ck_assert_ptr_eq(&spec.target->rules[number], rule);
        ck_assert_msg(qdq_spec_has_rule(&spec, (size_t)number) == rule->is_on, "%s",
                      rule->id);
        /* Two targets may share a rule, which says the same for both. */
        for (size_t k = 0; k < n; k++)
            if (strcmp(rule->id, qdq_rule(k)->id) == 0) {
                ck_assert_str_eq(rule->text, qdq_rule(k)->text);
                ck_assert_ptr_ne(target_of(rule), target_of(qdq_rule(k)));
            }
    }
    ck_assert_uint_gt(n, 40);
    ck_assert_int_eq(qdq_target_find_rule(qdq_target_row(0), "C7"), -1);
    ck_assert_ptr_null(qdq_rule(SIZE_MAX));
}
END_TEST

START_TEST(lints_have_a_rule)
{
    const struct qdq_target *target;
    size_t n = 0;
    for (size_t k = 0; (target = qdq_target_row(k)); k++) {
        const struct qdqi_lint *lints = target->hooks->lints;
        for (size_t i = 0; lints && lints[i].code; i++, n++) {
            ck_assert_uint_lt((size_t)lints[i].rule, target->n_rules);
            ck_assert_str_ne(lints[i].text, "");
            for (size_t other = 0; other < i; other++)
                ck_assert_str_ne(lints[i].code, lints[other].code);
        }
    }
    ck_assert_uint_gt(n, 10);
}
END_TEST

/* The faults of runtimes: what heeds them is a rule of their target, or a warning or reason. */
static const struct {
    const char *target, *version, *symptom, *heeded, *test;
} faults[] = {
#define FAULT(...) {"onnxruntime", __VA_ARGS__},
#include "plan/targets/onnxruntime/faults.h"
#undef FAULT
#define FAULT(...) {"openvino", __VA_ARGS__},
#include "plan/targets/openvino/faults.h"
#undef FAULT
#define FAULT(...) {"qnn", __VA_ARGS__},
#include "plan/targets/qnn/faults.h"
#undef FAULT
};

enum { N_FAULTS = sizeof faults / sizeof *faults };

START_TEST(a_fault_is_heeded)
{
    const struct qdq_target *target = qdq_target_find(faults[_i].target);
    const char *heeded = faults[_i].heeded;
    ck_assert_ptr_nonnull(target);
    ck_assert_msg(islower(heeded[0]) || qdq_target_find_rule(target, heeded) >= 0, "%s",
                  heeded);
    ck_assert(isdigit(faults[_i].version[0]));
    ck_assert_int_eq(faults[_i].symptom[strlen(faults[_i].symptom) - 1], '.');
    ck_assert_ptr_nonnull(strstr(faults[_i].test, ".py::test_"));
    for (int i = 0; i < _i; i++)
        ck_assert_str_ne(faults[i].symptom, faults[_i].symptom);
}
END_TEST

static struct builder b;
static struct qdq_model *m;
static struct qdq_plan *plan;
static struct qdq_error err;

static void
set_up(void)
{
    b = (struct builder){0};
    err = (struct qdq_error){0};
    builder_init(&b, 13);
    builder_input(&b, "x", QDQI_FLOAT32);
    builder_weight(&b, "w", 2, (const int64_t[]){4, 4});
}

static void
tear_down(void)
{
    qdq_plan_free(&plan);
    builder_close(&b, &m);
}

/* Returns the only warning of a plan with the default spec. */
static const struct qdq_warning *
only_warning(void)
{
    struct qdq_spec spec;
    qdq_spec_init(&spec);
    ck_assert_msg(builder_open(&b, &m, &err) == QDQ_OK, "%s", err.text);
    ck_assert_msg(qdq_plan_make(NULL, m, &spec, &plan, &err) == QDQ_OK, "%s", err.text);
    const struct qdq_plan_view *view = qdq_plan_view(plan);
    ck_assert_uint_eq(view->n_warnings, 1);
    ck_assert_str_eq(view->warnings[0].code, "small_matmul");
    ck_assert_str_eq(view->warnings[0].rule, "T23");
    return &view->warnings[0];
}

START_TEST(one_warning_counts_layers_and_names_three)
{
    static const char *const said[] = {"",
                                       "1 layer (g0): ",
                                       "2 layers (g0, g1): ",
                                       "3 layers (g0, g1, g2): ",
                                       "4 layers (g0, g1, g2, ...): ",
                                       "5 layers (g0, g1, g2, ...): "};
    for (int i = 0; i < _i; i++)
        builder_node(&b, "MatMul", qdqi_arena_printf(b.arena, "g%d", i), "x,w",
                     qdqi_arena_printf(b.arena, "y%d", i));
    const struct qdq_warning *w = only_warning();
    ck_assert_str_eq(w->node, "g0");
    ck_assert_msg(strncmp(w->detail, said[_i], strlen(said[_i])) == 0, "%s", w->detail);
}
END_TEST

/* Long names are cut, so that the rest of the text has room. */
START_TEST(long_names_are_cut)
{
    char name[1000];
    memset(name, 'n', sizeof name);
    for (int i = 0; i < 5; i++) {
        name[990] = (char)('0' + i);
        name[991] = 0;
        builder_node(&b, "MatMul", name, "x,w", qdqi_arena_printf(b.arena, "y%d", i));
    }
    const struct qdq_warning *w = only_warning();
    ck_assert_uint_eq(strlen(w->node), 991);
    ck_assert_ptr_nonnull(strstr(w->detail, "n..., n"));
    ck_assert_ptr_nonnull(strstr(w->detail, ", ...): a weight with fewer than 16"));
    ck_assert_ptr_nonnull(strstr(w->detail, "floating point"));
}
END_TEST

/* The rule by which an operator behind no layer gets no pair. Every row of
   tbl/layers.h that moves data is here. */
static const struct {
    const char *op, *rule;
} left_alone[] = {
    {"Identity", "T16"},  {"Dropout", "T16"},      {"Transpose", "T16"},
    {"Reshape", "T16"},   {"Flatten", "T16"},      {"Squeeze", "T16"},
    {"Unsqueeze", "T16"}, {"Gather", "T16"},       {"Slice", "T16"},
    {"Split", "T16"},     {"Pad", "T16"},          {"Expand", "T16"},
    {"Tile", "T16"},      {"DepthToSpace", "T16"}, {"SpaceToDepth", "T16"},
    {"Resize", "T17"},    {"Softmax", "T17"},      {"Relu", "T17"},
    {"MaxPool", NULL},
};

enum { N_LEFT_ALONE = sizeof left_alone / sizeof *left_alone };

START_TEST(an_operator_is_left_alone_by_its_rule)
{
    builder_node(&b, left_alone[_i].op, "n", "x", "y");
    ck_assert_msg(builder_open(&b, &m, &err) == QDQ_OK, "%s", err.text);
    struct qdq_spec spec;
    qdq_spec_init(&spec);
    ck_assert_msg(qdq_plan_make(NULL, m, &spec, &plan, &err) == QDQ_OK, "%s", err.text);
    const struct qdq_plan_view *view = qdq_plan_view(plan);
    ck_assert_uint_eq(view->n_layers, 1);
    struct qdq_rule_set cited = {{0}};
    if (left_alone[_i].rule)
        qdq_rule_set_add(
            &cited, (size_t)qdq_target_find_rule(spec.target, left_alone[_i].rule));
    ck_assert_msg(memcmp(&view->layers[0].rules, &cited, sizeof cited) == 0, "%s",
                  left_alone[_i].op);
    ck_assert_int_eq(view->layers[0].reason_kind, QDQ_REASON_OFF_BY_DEFAULT);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("rules");
    TCase *tables = tcase_create("tables");
    tcase_add_test(tables, ids_are_unique_and_fixed_rules_are_on);
    tcase_add_test(tables, lints_have_a_rule);
    tcase_add_loop_test(tables, a_fault_is_heeded, 0, N_FAULTS);
    suite_add_tcase(s, tables);
    TCase *t = tcase_create("warnings");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_loop_test(t, one_warning_counts_layers_and_names_three, 1, 6);
    tcase_add_test(t, long_names_are_cut);
    suite_add_tcase(s, t);
    t = tcase_create("citations");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_loop_test(t, an_operator_is_left_alone_by_its_rule, 0, N_LEFT_ALONE);
    suite_add_tcase(s, t);
    return s;
}

UNIT_MAIN(suite)
