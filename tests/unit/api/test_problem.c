/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api.h"

#include "api/problem.h"

static const char *
member(const json_t *json, const char *name)
{
    return json_string_value(json_object_get(json, name));
}

/* The document of each code has the title, status and slug in its row. */
UNIT_LOOP(test_code, API_N_CODES)
{
    enum api_code code = (enum api_code)_i;
    const char *slug = api_problem_slug(code);
    ck_assert_int_eq(api_problem_code(slug), code);
    ck_assert_int_ge(api_problem_status(code), 400);
    ck_assert_int_lt(api_problem_status(code), 600);

    struct api_problem problem = {0};
    ck_assert(!api_problem_set(&problem, code, QDQ_AT_NOTHING, NULL, "%s", "why"));
    char *text = api_problem_encode(&problem);
    json_t *json = json_loads(text, 0, NULL);
    char type[96];
    snprintf(type, sizeof type, "/v1/errors#%s", slug);
    ck_assert_str_eq(member(json, "type"), type);
    ck_assert_str_eq(member(json, "code"), slug);
    ck_assert_str_eq(member(json, "detail"), "why");
    ck_assert_uint_gt(strlen(member(json, "title")), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "status")),
                     api_problem_status(code));
    ck_assert_int_eq(json_is_true(json_object_get(json, "retryable")),
                     api_problem_retryable(code));
    ck_assert_ptr_null(json_object_get(json, "errors"));
    json_decref(json);
    free(text);
}

/* The engine's error codes keep their slug and place. */
UNIT_RANGE(test_engine_code, QDQ_OK + 1, QDQ_N_CODES)
{
    struct qdq_error err = {0};
    struct api_problem problem = {0};
    enum qdq_code code = (enum qdq_code)_i;
    ck_assert_int_eq(qdq_error_set(&err, code, QDQ_AT_NODE, "conv1", "it is so"), code);
    ck_assert(!api_problem_set_engine(&problem, &err));
    ck_assert_str_eq(api_problem_slug(problem.code), qdq_code_slug(code));
    ck_assert_str_eq(problem.where, "conv1");
    ck_assert_str_eq(problem.detail, "it is so");
    ck_assert_int_eq(problem.kind, QDQ_AT_NODE);
}

static const struct {
    enum qdq_where kind;
    const char *where, *errors;
} places[] = {
    {QDQ_AT_POINTER, "", "[{\"pointer\":\"\",\"detail\":\"d\"}]"},
    {QDQ_AT_POINTER, "/a~1b", "[{\"pointer\":\"/a~1b\",\"detail\":\"d\"}]"},
    {QDQ_AT_NODE, "n\xff", "[{\"node\":\"n\xef\xbf\xbd\",\"detail\":\"d\"}]"},
    {QDQ_AT_TENSOR, "t", "[{\"tensor\":\"t\",\"detail\":\"d\"}]"},
    {QDQ_AT_INPUT, "x", "[{\"input\":\"x\",\"detail\":\"d\"}]"},
    {QDQ_AT_SAMPLE, "17", "[{\"sample\":17,\"detail\":\"d\"}]"},
    {QDQ_AT_OFFSET, "4294967296", "[{\"offset\":4294967296,\"detail\":\"d\"}]"},
    {QDQ_AT_OFFSET, "here", "[{\"offset\":\"here\",\"detail\":\"d\"}]"},
};

UNIT_ROWS(test_device_memory, places)
{
    struct api_problem problem = {0};
    api_problem_set(&problem, API_INVALID_MODEL, places[_i].kind, places[_i].where,
                    "d");
    char *text = api_problem_encode(&problem);
    json_t *json = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(json);
    expect_json(json_dumps(json_object_get(json, "errors"), 0), places[_i].errors);
    json_decref(json);
    free(text);
}

UNIT_TEST(test_first_wins)
{
    struct api_problem problem = {0};
    api_problem_set(&problem, API_IO, QDQ_AT_NOTHING, "ignored", "first");
    api_problem_set(&problem, API_FAILED, QDQ_AT_NODE, "x", "second");
    ck_assert_int_eq(problem.code, API_IO);
    ck_assert_str_eq(problem.detail, "first");
    ck_assert(!api_problem_set(NULL, API_IO, QDQ_AT_NOTHING, NULL, "nobody asked"));
}

UNIT_TEST(test_cut_and_one_line)
{
    struct api_problem problem = {0};
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    memcpy(text, "a\nb\tc", 5);
    api_problem_set(&problem, API_IO, QDQ_AT_NODE, text, "%s", text);
    ck_assert_int_eq(strncmp(problem.detail, "a b cx", 6), 0);
    ck_assert_str_eq(problem.detail + sizeof problem.detail - 4, "...");
    ck_assert_str_eq(problem.where + sizeof problem.where - 4, "...");
}

/* A code that is no row, for example from a damaged message, becomes an internal
   error. */
UNIT_TEST(test_unknown_code)
{
    ck_assert_int_eq(api_problem_code("no_such_code"), API_N_CODES);
    ck_assert_int_eq(api_problem_status((enum api_code)4711), 500);
    ck_assert_str_eq(api_problem_slug((enum api_code) - 1), "internal");
}

UNIT_TEST(test_list)
{
    char *text = api_problems_encode();
    json_t *json = json_loads(text, 0, NULL);
    json_t *errors = json_object_get(json, "errors");
    ck_assert_uint_eq(json_array_size(errors), API_N_CODES);
    for (size_t i = 0; i < API_N_CODES; i++) {
        json_t *row = json_array_get(errors, i);
        ck_assert_str_eq(member(row, "code"), api_problem_slug((enum api_code)i));
        ck_assert_uint_gt(strlen(member(row, "meaning")), 0);
    }
    json_decref(json);
    free(text);
}

static char *
encode_problem(void)
{
    struct api_problem problem = {0};
    api_problem_set(&problem, API_INVALID_SPEC, QDQ_AT_POINTER, "/a\xff", "d\xff");
    return api_problem_encode(&problem);
}

UNIT_TEST(test_no_memory)
{
    expect_survives_no_memory(encode_problem);
    expect_survives_no_memory(api_problems_encode);
}

UNIT_SUITE("api/problem")
