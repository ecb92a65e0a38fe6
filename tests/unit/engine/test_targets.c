/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets are rows. This program has two targets more than the library, each of which
 * consists of its file in tests/unit/targets/ and its line in the list of targets: toy, and
 * crowd, which has 70 rules. Plans, scripts, the spec's JSON and the listing must all know
 * them.
 */
#include "config.h"

#include "api/report.h"
#include "api/spec.h"
#include "base/json.h"
#include "cases.h"
#include "plan/placement/plan.h"
#include "plan/placement/target.h"

/* --- the rows ------------------------------------------------------------- */

START_TEST(rows_have_names_and_rules_of_their_own)
{
    const struct qdq_target *row;
    size_t n = 0, n_rules = 0;
    for (; (row = qdq_target_row(n)); n++) {
        ck_assert_ptr_eq(qdq_target_find(row->name), row);
        ck_assert_str_ne(row->title, "");
        ck_assert_str_ne(row->text, "");
        ck_assert_int_ge(row->weights, 0);
        ck_assert_int_ge(row->activations, 0);
        ck_assert_int_ge(row->storage, 0);
        ck_assert_ptr_nonnull(row->hooks);
        for (size_t i = 0; i < row->n_rules; i++)
            ck_assert_ptr_eq(qdq_rule(n_rules++), &row->rules[i]);
    }
    ck_assert_uint_ge(n, 5);
    ck_assert_str_eq(qdq_target_row(n - 2)->name, "toy");
    ck_assert_str_eq(qdq_target_row(n - 1)->name, "crowd");
    ck_assert_ptr_null(qdq_target_find("toys"));
    ck_assert_ptr_null(qdq_target_find(""));
    ck_assert_ptr_null(qdq_target_row(SIZE_MAX));
    ck_assert_ptr_null(qdq_rule(n_rules));
}
END_TEST

/* --- plans ---------------------------------------------------------------- */

static struct builder b;
static struct qdq_model *m;
static struct qdq_plan *plan;
static struct qdq_spec spec;
static struct qdq_error err;

/* Builds x -> conv -> pool -> last -> y, where `last` is a Conv. */
static void
set_up(void)
{
    b = (struct builder){0};
    err = (struct qdq_error){0};
    builder_init(&b, 21);
    builder_input(&b, "x", QDQI_FLOAT32);
    builder_weight(&b, "w1", 4, (const int64_t[]){16, 16, 3, 3});
    builder_weight(&b, "w2", 4, (const int64_t[]){16, 16, 1, 1});
    builder_node(&b, "Conv", "conv", "x,w1", "a");
    builder_node(&b, "GlobalAveragePool", "pool", "a", "p");
    builder_node(&b, "Conv", "last", "p,w2", "y");
    builder_output(&b, "y", QDQI_FLOAT32);
    ck_assert_msg(builder_open(&b, &m, &err) == QDQ_OK, "%s", err.text);
    qdq_spec_init(&spec);
    spec.target = qdq_target_find("toy");
}

static void
tear_down(void)
{
    qdq_plan_free(&plan);
    builder_close(&b, &m);
}

static const struct qdq_plan_view *
make_plan(void)
{
    qdq_plan_free(&plan);
    ck_assert_msg(qdq_plan_make(NULL, m, &spec, &plan, &err) == QDQ_OK, "%s", err.text);
    return qdq_plan_view(plan);
}

/* Returns the ids of the rules that a layer of the plan follows, separated by
   blanks. */
static const char *
rules_of(const struct qdq_plan_view *view, size_t layer)
{
    static char text[256];
    text[0] = '\0';
    for (size_t i = 0; i < view->target->n_rules; i++)
        if (qdq_rule_set_has(&view->layers[layer].rules, i))
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s",
                     *text ? " " : "", view->target->rules[i].id);
    return text;
}

START_TEST(a_plan_follows_the_rules_of_its_target)
{
    const struct qdq_plan_view *view = make_plan();
    ck_assert_uint_eq(view->n_layers, 3);
    ck_assert_str_eq(view->layers[0].reason, "default");
    ck_assert_str_eq(rules_of(view, 0), "Y1");
    ck_assert_int_eq(view->layers[0].weight_axis, -1);
    ck_assert_str_eq(view->layers[1].reason, "off by default");
    ck_assert_str_eq(rules_of(view, 1), "");
    ck_assert_str_eq(view->layers[2].reason, "rule:Y2");
    ck_assert_str_eq(rules_of(view, 2), "Y2");
    ck_assert_uint_eq(view->n_warnings, 0);
}
END_TEST

START_TEST(a_rule_of_its_own_is_switched)
{
    qdq_spec_switch_rule(&spec, (size_t)qdq_target_find_rule(spec.target, "Y2"), false);
    const struct qdq_plan_view *view = make_plan();
    ck_assert_uint_eq(view->n_quantized, 2);
    ck_assert_str_eq(view->layers[2].reason, "default");
}
END_TEST

START_TEST(a_plan_has_the_formats_of_its_target)
{
    const struct qdq_plan_view *view = make_plan();
    ck_assert_uint_eq(view->n_tensors, 1);
    ck_assert_int_eq(plan->activations[0].format, QDQI_TO_UINT8);
    ck_assert(!plan->activations[0].symmetric);
    ck_assert_int_eq(plan->weights[0].format, QDQI_TO_INT4);
    qdq_spec_complete(&spec);
    ck_assert_int_eq(spec.weights.storage, QDQ_STORE_DQ);
}
END_TEST

START_TEST(a_plan_warns_as_its_target_does)
{
    const struct qdq_layer_entry pool = {
        .by = QDQ_BY_NAME,
        .names = (const char *const[]){"pool"},
        .n_names = 1,
        .quantize_input = true,
    };
    spec.layers = &pool;
    spec.n_layers = 1;
    spec.activations.format = QDQ_FORMAT_INT8;
    const struct qdq_plan_view *view = make_plan();
    ck_assert_uint_eq(view->n_warnings, 2);
    ck_assert_str_eq(view->warnings[0].code, "target_format");
    ck_assert_str_eq(view->warnings[1].code, "toy_not_conv");
    ck_assert_str_eq(view->warnings[1].rule, "Y1");
    ck_assert_str_eq(view->warnings[1].node, "pool");
}
END_TEST

/* A set of rules holds the 70 of one target. The last one is switched by itself, and a layer
   cites it. */
START_TEST(a_target_may_have_seventy_rules)
{
    spec.target = qdq_target_find("crowd");
    ck_assert_uint_eq(spec.target->n_rules, 70);
    const struct qdq_plan_view *view = make_plan();
    ck_assert_str_eq(rules_of(view, 2), "Z00");
    qdq_spec_switch_rule(&spec, 69, true);
    for (size_t i = 0; i < spec.target->n_rules; i++)
        ck_assert_msg(qdq_spec_has_rule(&spec, i) == (i == 69), "%zu", i);
    view = make_plan();
    ck_assert_str_eq(rules_of(view, 0), "Z00");
    ck_assert_str_eq(rules_of(view, 2), "Z69");
    ck_assert_str_eq(view->layers[2].reason, "rule:Z69");
    ck_assert_int_eq(view->layers[2].reason_kind, QDQ_REASON_RULE);
    char *text = api_plan_encode(view, &m->info);
    expect_in(text, "\"rules\":[\"Z69\"]");
    free(text);
    qdq_spec_switch_rule(&spec, 69, false);
    view = make_plan();
    ck_assert_str_eq(rules_of(view, 2), "Z00");
}
END_TEST

/* The other targets give the same plans as without it. */
START_TEST(other_targets_stay_as_they_are)
{
    spec.target = qdq_target_find("tensorrt");
    const struct qdq_plan_view *view = make_plan();
    ck_assert_uint_eq(view->n_quantized, 3);
    ck_assert_str_eq(rules_of(view, 0), "T2 T3 T8");
    spec.target = qdq_target_find("onnxruntime");
    spec.host = QDQ_HOST_VNNI;
    spec.recipe = QDQ_RECIPE_NONE;
    view = make_plan();
    ck_assert_uint_eq(view->n_quantized, 3);
    ck_assert_str_eq(rules_of(view, 0), "C1 C2 C9");
}
END_TEST

START_TEST(a_script_sees_the_target)
{
    struct world w = {0};
    world_residual(&w);
    w.spec.target = qdq_target_find("toy");
    ck_assert_int_eq(run(&w, "mine", SCRIPT("return { {name = spec.target} }")),
                     QDQ_OK);
    ck_assert_str_eq(w.entries[0].names[0], "toy");
    world_close(&w);
}
END_TEST

/* --- JSON ----------------------------------------------------------------- */

/* Decodes a spec; returns false with the problem set. */
static bool
decode(const char *text, struct api_spec **ret, struct api_problem *problem)
{
    *problem = (struct api_problem){0};
    return api_spec_decode(text, strlen(text), ret, problem);
}

START_TEST(the_spec_has_it_as_a_value)
{
    struct api_spec *read = NULL;
    struct api_problem problem;
    ck_assert(decode("{\"target\":\"toy\",\"rules\":{\"Y2\":false}}", &read, &problem));
    ck_assert_ptr_eq(api_spec_get(read)->target, qdq_target_find("toy"));
    char *text = api_spec_encode(api_spec_get(read));
    expect_in(text, "\"target\":\"toy\"");
    expect_in(text, "\"rules\":{\"Y2\":false}");
    expect_in(text, "\"dtype\":\"uint8\"");
    free(text);
    api_spec_free(&read);
    ck_assert(
        !decode("{\"target\":\"toy\",\"rules\":{\"T22\":true}}", &read, &problem));
    ck_assert_str_eq(problem.detail, "rule T22 is one of another target");
    ck_assert(!decode("{\"target\":\"toys\"}", &read, &problem));
    expect_in(problem.detail, "tensorrt, onnxruntime, ");
    expect_in(problem.detail, "toy, crowd; not \"toys\"");
}
END_TEST

START_TEST(the_spec_switches_each_of_seventy_rules)
{
    struct api_spec *read = NULL;
    struct api_problem problem;
    ck_assert(decode("{\"rules\":{\"Z69\":true,\"Z63\":false,\"Z64\":true},"
                     "\"target\":\"crowd\"}",
                     &read, &problem));
    for (size_t i = 0; i < 70; i++)
        ck_assert_msg(qdq_spec_has_rule(api_spec_get(read), i) == (i == 64 || i == 69),
                      "%zu", i);
    char *text = api_spec_encode(api_spec_get(read));
    expect_in(text, "\"Z64\":true");
    expect_in(text, "\"Z63\":false");
    expect_in(text, "\"Z69\":true");
    free(text);
    api_spec_free(&read);
    ck_assert(
        !decode("{\"target\":\"toy\",\"rules\":{\"Z69\":true}}", &read, &problem));
    ck_assert_str_eq(problem.detail, "rule Z69 is one of another target");
    ck_assert(
        !decode("{\"target\":\"crowd\",\"rules\":{\"Z70\":true}}", &read, &problem));
    expect_in(problem.detail, "no target has a rule \"Z70\", did you mean \"Z");
}
END_TEST

START_TEST(the_listing_has_it)
{
    char *text = api_targets_encode();
    json_t *json = json_loads(text, 0, NULL);
    json_t *rows = json_object_get(json, "targets");
    json_t *wanted = json_pack(
        "{s:s, s:s, s:s, s:{s:s, s:s}, s:{s:s, s:b}, s:s, s:b, s:[{s:s, s:s, s:s}, "
        "{s:s, s:s, s:s}]}",
        "name", "toy", "title", "Toy", "info",
        "Pairs stand on the data inputs and the weights of Conv.", "weights", "dtype",
        "int4", "storage", "dq", "activations", "dtype", "uint8", "symmetric", 0,
        "recipe", "none", "integer_kernels", 0, "rules", "id", "Y1", "state", "always",
        "text", "A Conv has a pair on its data input, and one scale for its weight.",
        "id", "Y2", "state", "on", "text",
        "A layer that makes an output of the model stays floating point.");
    ck_assert_ptr_nonnull(wanted);
    ck_assert(json_equal(json_array_get(rows, json_array_size(rows) - 2), wanted));
    json_decref(wanted);
    json_decref(json);
    free(text);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("targets");
    TCase *t = tcase_create("rows");
    tcase_add_test(t, rows_have_names_and_rules_of_their_own);
    tcase_add_test(t, the_spec_has_it_as_a_value);
    tcase_add_test(t, the_spec_switches_each_of_seventy_rules);
    tcase_add_test(t, the_listing_has_it);
    tcase_add_test(t, a_script_sees_the_target);
    suite_add_tcase(s, t);
    t = tcase_create("plans");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, a_plan_follows_the_rules_of_its_target);
    tcase_add_test(t, a_rule_of_its_own_is_switched);
    tcase_add_test(t, a_plan_has_the_formats_of_its_target);
    tcase_add_test(t, a_plan_warns_as_its_target_does);
    tcase_add_test(t, a_target_may_have_seventy_rules);
    tcase_add_test(t, other_targets_stay_as_they_are);
    suite_add_tcase(s, t);
    return s;
}

UNIT_MAIN(suite)
