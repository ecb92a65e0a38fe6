/* SPDX-License-Identifier: Apache-2.0 */
/* A spec with several targets is taken apart into one for each. */
#include "config.h"
#include "api/targets.h"
#include "api_spec.h"

/* Texts that are left to the decoder: none has the member, or none is an object. */
static const char *const others[] = {
    NULL,
    "{}",
    "{\"target\":\"openvino\"}",
    "[\"targets\"]",
    "{",
    "",
    " ",
    "3",
    "{\"targets\":[\"openvino\"],\"targets\":[\"openvino\"]}",
};

UNIT_ROWS(one_target_is_left_alone, others)
{
    struct api_target_specs specs;
    struct api_problem problem = {0};
    const char *text = others[_i];
    ck_assert(api_spec_split(text, text ? strlen(text) : 0, &specs, &problem));
    ck_assert(!problem.set);
    ck_assert_uint_eq(specs.n, 0);
    api_target_specs_fini(&specs);
}

/* Every target that there is, in the order of the list, with the rest of the spec. */
UNIT_TEST(each_target_has_the_rest)
{
    struct api_target_specs specs;
    struct api_problem problem = {0};
    char text[512] = "{\"recipe\":\"none\",\"targets\":[";
    size_t n = 0;
    while (qdq_target_row(n))
        n++;
    for (size_t i = n; i-- > 0;)
        snprintf(text + strlen(text), sizeof text - strlen(text), "\"%s\"%s",
                 qdq_target_row(i)->name,
                 i ? "," : "],\"accept\":{\"min_cosine\":0.5}}");
    ck_assert_msg(api_spec_split(text, strlen(text), &specs, &problem), "%s",
                  problem.detail);
    ck_assert_uint_eq(specs.n, n);
    for (size_t i = 0; i < n; i++) {
        const char *name = qdq_target_row(n - 1 - i)->name;
        char alone[256];
        struct api_spec *one, *by_itself;
        snprintf(
            alone, sizeof alone,
            "{\"target\":\"%s\",\"recipe\":\"none\",\"accept\":{\"min_cosine\":0.5}}",
            name);
        ck_assert_str_eq(specs.items[i].target, name);
        ck_assert(api_spec_decode(specs.items[i].text, strlen(specs.items[i].text),
                                  &one, &problem));
        ck_assert(api_spec_decode(alone, strlen(alone), &by_itself, &problem));
        char *left = api_spec_encode(api_spec_get(one));
        char *right = api_spec_encode(api_spec_get(by_itself));
        ck_assert_str_eq(left, right);
        free(left);
        free(right);
        api_spec_free(&one);
        api_spec_free(&by_itself);
    }
    api_target_specs_fini(&specs);
    ck_assert_uint_eq(specs.n, 0);
}

/* A frontier is asked of the targets that can measure one, and refused where none can. */
UNIT_TEST(a_frontier_is_for_those_that_measure)
{
    static const char some[] =
        "{\"targets\":[\"qnn\",\"tensorrt\"],\"frontier\":{\"points\":3}}";
    static const char none[] =
        "{\"targets\":[\"tensorrt\",\"qnn\"],\"recipe\":\"none\",\"frontier\":true}";
    struct api_target_specs specs;
    struct api_problem problem = {0};
    ck_assert(api_spec_split(some, sizeof some - 1, &specs, &problem));
    ck_assert_str_eq(specs.items[0].text, "{\"target\":\"qnn\"}");
    ck_assert_ptr_nonnull(strstr(specs.items[1].text, "\"frontier\":{\"points\":3}"));
    api_target_specs_fini(&specs);
    ck_assert(!api_spec_split(none, sizeof none - 1, &specs, &problem));
    ck_assert_str_eq(problem.where, "/frontier");
    ck_assert_int_eq(problem.code, API_UNSUPPORTED);
    api_target_specs_fini(&specs);
}

static const struct {
    const char *text, *pointer, *detail;
    enum api_code code;
} refused[] = {
    {"{\"targets\":[\"qnn\"],\"target\":\"qnn\"}", "/targets",
     "both target and targets", API_INVALID_SPEC},
    {"{\"targets\":\"qnn\"}", "/targets", "an array of names, not a string",
     API_INVALID_SPEC},
    {"{\"targets\":null}", "/targets", "an array of names, not null", API_INVALID_SPEC},
    {"{\"targets\":[]}", "/targets", "targets is empty", API_INVALID_SPEC},
    {"{\"targets\":[\"qnn\",\"openvin\"]}", "/targets/1",
     "targets[1] is to be one of tensorrt, onnxruntime, openvino, qnn; not "
     "\"openvin\"; "
     "did you mean \"openvino\"?",
     API_INVALID_SPEC},
    {"{\"targets\":[\"\"]}", "/targets/0", "not \"\"", API_INVALID_SPEC},
    {"{\"targets\":[\"qnn\",3]}", "/targets/1", "qnn, not a number", API_INVALID_SPEC},
    {"{\"targets\":[\"qnn\",\"openvino\",\"qnn\"]}", "/targets/2",
     "targets[2] is \"qnn\", as targets[0] is", API_INVALID_SPEC},
    /* Mistakes for one of the targets alone, and for all of them. */
    {"{\"targets\":[\"qnn\",\"openvino\"],\"host\":\"v73\"}", "/host",
     "with target openvino: ", API_INVALID_SPEC},
    {"{\"targets\":[\"openvino\",\"qnn\"],\"no\":1}", "/no",
     "with target openvino: ", API_INVALID_SPEC},
};

UNIT_ROWS(wrong_lists_are_refused, refused)
{
    struct api_target_specs specs;
    struct api_problem problem = {0};
    ck_assert(
        !api_spec_split(refused[_i].text, strlen(refused[_i].text), &specs, &problem));
    ck_assert_int_eq(problem.code, refused[_i].code);
    ck_assert_int_eq(problem.kind, QDQ_AT_POINTER);
    ck_assert_str_eq(problem.where, refused[_i].pointer);
    ck_assert_msg(strstr(problem.detail, refused[_i].detail), "\"%s\" lacks \"%s\"",
                  problem.detail, refused[_i].detail);
    api_target_specs_fini(&specs);
}

/* The decoder of one target's spec says who takes several. */
UNIT_TEST(a_decoded_spec_has_one_target)
{
    const char text[] = "{\"targets\":[\"openvino\"]}";
    struct api_spec *spec = NULL;
    struct api_problem problem = {0};
    ck_assert(!api_spec_decode(text, strlen(text), &spec, &problem));
    ck_assert_int_eq(problem.code, API_UNSUPPORTED);
    ck_assert_str_eq(problem.where, "/targets");
    ck_assert(strstr(problem.detail, "POST /v1/jobs"));
    ck_assert_ptr_null(spec);
}

/* Members with a value that is a default of some targets, and none of the others. */
static const char *const against_a_target[] = {
    "\"weights\":{\"rounding\":\"nearest\"}",
    "\"weights\":{\"rounding\":\"gptq\"}",
    "\"weights\":{\"rounding\":\"gptq\"},\"bias_correction\":false",
    "\"weights\":{\"rounding\":\"nearest\"},\"bias_correction\":true",
    "\"bias_correction\":false",
    "\"weights\":{\"method\":\"max\"}",
    "\"weights\":{\"method\":\"mse\"}",
    "\"weights\":{\"storage\":\"qdq\"}",
    "\"weights\":{\"scales\":\"moments\",\"range\":\"narrow\"}",
    "\"activations\":{\"dtype\":\"uint8\"}",
    "\"activations\":{\"dtype\":\"int8\"}",
    "\"activations\":{\"symmetric\":true}",
    "\"activations\":\"none\",\"weights\":{\"rounding\":\"nearest\"}",
};

/* The effective spec says what its spec says, whatever the target does by default and the recipe chooses. */
UNIT_ROWS(the_effective_spec_keeps_what_is_named, against_a_target)
{
    static const char *const recipes[] = {"\"none\"", "\"auto\"", "\"best\"",
                                          "{\"max_seconds\":9}"};
    size_t n = 0;
    for (size_t i = 0; qdq_target_row(i); i++)
        for (size_t k = 0; k < sizeof recipes / sizeof *recipes; k++) {
            char text[256];
            struct api_spec *spec;
            struct api_problem problem = {0};
            snprintf(text, sizeof text, "{\"target\":\"%s\",\"recipe\":%s,%s}",
                     qdq_target_row(i)->name, recipes[k], against_a_target[_i]);
            if (!api_spec_decode(text, strlen(text), &spec, &problem))
                continue; /* the target lacks the recipe or the format */
            n++;
            api_spec_free(&spec);
            expect_round_trip(text);
        }
    ck_assert_uint_ge(n, 4);
}

UNIT_SUITE("api/targets")
