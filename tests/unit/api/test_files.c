/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api.h"

#include "api/files.h"

UNIT_TEST(identity)
{
    const struct api_file files[] = {{"m.onnx", "sha256:aa", 5},
                                     {"a/w", "sha256:bb", 10},
                                     {"\xc3\xa4\"", "sha256:c", 1}};
    char *text = api_files_identity(files, 3);
    ck_assert_str_eq(
        text, "{\"files\":[{\"digest\":\"sha256:bb\",\"path\":\"a/w\",\"size\":10},"
              "{\"digest\":\"sha256:aa\",\"path\":\"m.onnx\",\"size\":5},"
              "{\"digest\":\"sha256:c\",\"path\":\"\xc3\xa4\\\"\",\"size\":1}]}");
    free(text);
}

static const struct {
    const char *path;
    bool inside;
} paths[] = {
    {"w", true},        {"a/b.bin", true}, {"..w", true},   {"a/..b", true},
    {"\xc3\xa4", true}, {"...", true},     {"a b", true},   {"", false},
    {".", false},       {"..", false},     {"/w", false},   {"../w", false},
    {"a/../w", false},  {"a/..", false},   {"a/", false},   {"a\\b", false},
    {"a\nb", false},    {"a\x7f", false},  {"\xff", false}, {"a/./b", true},
};

UNIT_ROWS(inside, paths)
{
    ck_assert_msg(api_path_is_inside(paths[_i].path) == paths[_i].inside, "%s",
                  paths[_i].path);
}

static const char *const spellings[][2] = {
    {"w", "w"},       {"./w", "w"}, {"././a//b", "a/b"}, {"a/./b", "a/b"},
    {".w/x", ".w/x"}, {"/a", "/a"}, {"a/b/", "a/b/"},    {"", ""},
};

UNIT_ROWS(normalized, spellings)
{
    char path[32];
    snprintf(path, sizeof path, "%s", spellings[_i][0]);
    api_path_normalize(path);
    ck_assert_str_eq(path, spellings[_i][1]);
}

UNIT_TEST(paths_of_a_worker)
{
    static const char *const said[] = {"a/b", "\"\xc3\xa4\n"};
    char *got[2], *text = api_paths_encode(said, 2);
    ck_assert(!api_paths_decode(text, got, 1));
    ck_assert(!api_paths_decode("[\"a\",1]", got, 2));
    ck_assert(!api_paths_decode("{", got, 0));
    ck_assert(api_paths_decode(text, got, 2));
    for (size_t i = 0; i < 2; i++) {
        ck_assert_str_eq(got[i], said[i]);
        free(got[i]);
    }
    free(text);
}

static const struct {
    const char *json, *where;
    enum api_code code;
} refused[] = {
    {"[]", "", API_BAD_REQUEST},
    {"{\"files\":{}}", "", API_BAD_REQUEST},
    {"{}", "/files", API_MISSING_PART},
    {"{\"files\":[1]}", "/files/0", API_BAD_REQUEST},
    {"{\"files\":[{\"path\":\"m\",\"digest\":null}]}", "/files/0/digest",
     API_BAD_REQUEST},
    {"{\"files\":[{\"path\":\"a/m\",\"digest\":\"d\"}]}", "/files/0/path",
     API_BAD_REQUEST},
    {"{\"files\":[{\"path\":\"m\",\"digest\":\"d\"},{\"path\":\"../"
     "w\",\"digest\":\"d\"}]}",
     "/files/1/path", API_BAD_REQUEST},
    {"{\"files\":[{\"path\":\"m\",\"digest\":\"d\"},{\"path\":\"m\",\"digest\":\"e\"}]"
     "}",
     "/files/1/path", API_BAD_REQUEST},
    {"{\"files\":[],\"files\":[]}", "/files", API_BAD_REQUEST},
};

UNIT_ROWS(files_named_by_digest, refused)
{
    struct api_named_files files;
    struct api_problem problem = {0};
    const char *good = "{\"files\":[{\"digest\":\"d\",\"path\":\"m\"},"
                       "{\"path\":\"a/w\",\"digest\":\"e\"}]}";
    ck_assert(api_named_files_decode(good, strlen(good), &files, &problem));
    ck_assert_uint_eq(files.n, 2);
    ck_assert_str_eq(files.items[0].path, "m");
    ck_assert_str_eq(files.items[0].digest, "d");
    ck_assert_str_eq(files.items[1].path, "a/w");
    ck_assert_str_eq(files.items[1].digest, "e");
    api_named_files_fini(&files);
    const char *bad = refused[_i].json;
    ck_assert(!api_named_files_decode(bad, strlen(bad), &files, &problem));
    ck_assert_int_eq(problem.code, refused[_i].code);
    ck_assert_str_eq(problem.where, refused[_i].where);
    ck_assert_uint_eq(files.n, 0);
}

UNIT_SUITE("api/files")
