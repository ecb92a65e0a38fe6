/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a spec that are given one by one. */
#include "config.h"
#include "api/given_members.h"
#include "api.h"

static const struct {
    const char *text; /* NULL: none */
    const char *path, *value;
    const char *result; /* NULL: it is refused, with what `code` says */
    enum api_code code;
} rows[] = {
    {NULL, "target", "openvino", "{\"target\":\"openvino\"}", 0},
    {"{}", "weights.dtype", "\"int4\"", "{\"weights\":{\"dtype\":\"int4\"}}", 0},
    {"{\"weights\":{\"dtype\":\"int8\"}}", "weights.rounding", "gptq",
     "{\"weights\":{\"dtype\":\"int8\",\"rounding\":\"gptq\"}}", 0},
    {NULL, "recipe", "{\"min_sqnr_db\":3e1}", "{\"recipe\":{\"min_sqnr_db\":30.0}}", 0},
    {NULL, "evaluate", "false", "{\"evaluate\":false}", 0},
    {NULL, "/preprocess/x.1/a~1b~0", "1", "{\"preprocess\":{\"x.1\":{\"a/b~\":1}}}", 0},
    {"{\"layers\":[{}]}", "layers.0.name", "\"a b\"",
     "{\"layers\":[{\"name\":\"a b\"}]}", 0},
    /* The same value again. */
    {"{\"a\":{\"b\":1}}", "a.b", "1", "{\"a\":{\"b\":1}}", 0},
    {"{\"a\":{\"b\":1}}", "a.b", "2", NULL, API_INVALID_SPEC},
    {"{\"a\":{\"b\":1}}", "a.b.c", "2", NULL, API_INVALID_SPEC},
    {"{\"a\":{\"b\":1}}", "a", "2", NULL, API_INVALID_SPEC},
    {"{\"a\":[]}", "a.0", "2", NULL, API_INVALID_SPEC},
    {"{\"a\":[]}", "a.0.b", "2", NULL, API_INVALID_SPEC},
    {"{\"a\":[{}]}", "a.b.c", "2", NULL, API_INVALID_SPEC},
    {"{\"a\":1,\"a\":1}", "b", "2", NULL, API_INVALID_SPEC},
    {"[]", "a", "2", NULL, API_INVALID_SPEC},
    {"{", "a", "2", NULL, API_INVALID_JSON},
    {"", "a", "2", NULL, API_INVALID_JSON},
    {NULL, "a", "", NULL, API_INVALID_JSON},
    {NULL, "a", "two words", NULL, API_INVALID_JSON},
    {NULL, "a", "{\"b\":", NULL, API_INVALID_JSON},
    {NULL, "", "1", NULL, API_INVALID_SPEC},
    {NULL, "a.", "1", NULL, API_INVALID_SPEC},
    {NULL, ".a", "1", NULL, API_INVALID_SPEC},
    {NULL, "a..b", "1", NULL, API_INVALID_SPEC},
    {NULL, "/", "1", NULL, API_INVALID_SPEC},
};

UNIT_ROWS(one_member, rows)
{
    const struct api_spec_member member = {"--set it", rows[_i].path, rows[_i].value};
    struct api_problem problem = {0};
    const char *given = rows[_i].text;
    char *text =
        api_spec_with_members(given, given ? strlen(given) : 0, &member, 1, &problem);
    ck_assert_int_eq(problem.set, !rows[_i].result);
    if (rows[_i].result)
        ck_assert_str_eq(text, rows[_i].result);
    else
        ck_assert_int_eq(problem.code, rows[_i].code);
    ck_assert(rows[_i].result || !text);
    free(text);
}

/* Later members find what earlier ones have made, and a refusal names the later one. */
UNIT_TEST(members_in_order)
{
    const struct api_spec_member members[] = {
        {"--a", "a.b", "1"}, {"--c", "a.c", "x"}, {"--d", "a.b", "2"}};
    struct api_problem problem = {0};
    char *text = api_spec_with_members(NULL, 0, members, 2, &problem);
    ck_assert_str_eq(text, "{\"a\":{\"b\":1,\"c\":\"x\"}}");
    free(text);
    ck_assert_ptr_null(api_spec_with_members(NULL, 0, members, 3, &problem));
    ck_assert_int_eq(strncmp(problem.detail, "--d: ", 5), 0);
}

/* A name of a path that is as long as a command line allows. */
UNIT_TEST(long_names)
{
    enum { LONG = 1 << 16 };
    char *path = malloc(LONG + 1);
    struct api_problem problem = {0};
    memset(path, 'a', LONG);
    path[LONG] = '\0';
    const struct api_spec_member member = {"--set", path, "1"};
    ck_assert_ptr_null(api_spec_with_members(NULL, 0, &member, 1, &problem));
    ck_assert_int_eq(problem.code, API_INVALID_SPEC);
    free(path);
}

UNIT_SUITE("api/given_members")
