/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api/remote.h"
#include "api.h"

#define ID "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define LONGEST "a23456789-123456789_123456789-12"

static struct api_problem problem;

static void
set_up(void)
{
    problem = (struct api_problem){0};
}

/* --- texts ---------------------------------------------------------------- */

static const struct {
    const char *text, *remote, *ref; /* remote NULL: the text is no place */
} texts[] = {
    {"prod:models:/glyph@champion", "prod", "models:/glyph@champion"},
    {"prod:repo@sha256:00", "prod", "repo@sha256:00"},
    {LONGEST ":k", LONGEST, "k"},
    {"0_-:a/b c", "0_-", "a/b c"},
    {ID, NULL, NULL},
    {"sha256:k", NULL, NULL},
    {"prod", NULL, NULL},
    {":k", NULL, NULL},
    {"Prod:k", NULL, NULL},
    {"-a:k", NULL, NULL},
    {LONGEST "3:k", NULL, NULL},
    {"", NULL, NULL},
};

UNIT_ROWS(parses_texts, texts)
{
    struct api_place place = {0};
    ck_assert_msg(api_place_is_text(texts[_i].text) == (texts[_i].remote != NULL), "%s",
                  texts[_i].text);
    if (!texts[_i].remote)
        return;
    ck_assert(api_place_parse(texts[_i].text, "/model", &place, &problem));
    ck_assert_str_eq(place.remote, texts[_i].remote);
    ck_assert_str_eq(place.ref, texts[_i].ref);
    api_place_fini(&place);
}

/* --- objects -------------------------------------------------------------- */

static const struct {
    const char *json, *where; /* where NULL: it is valid */
} objects[] = {
    {"{\"remote\": \"prod\", \"ref\": \"models:/glyph/3\"}", NULL},
    {"{\"ref\": \"k\", \"remote\": \"a\"}", NULL},
    {"{\"remote\": \"prod\"}", "/model/ref"},
    {"{\"ref\": \"k\"}", "/model/remote"},
    {"{\"remote\": null, \"ref\": \"k\"}", "/model/remote"},
    {"{\"remote\": 5, \"ref\": \"k\"}", "/model/remote"},
    {"{\"remote\": \"A\", \"ref\": \"k\"}", "/model/remote"},
    {"{\"remote\": \"sha256\", \"ref\": \"k\"}", "/model/remote"},
    {"{\"remote\": \"a\", \"ref\": \"\"}", "/model/ref"},
    {"{\"remote\": \"a\", \"ref\": \"a\\nb\"}", "/model/ref"},
    {"{\"remote\": \"a\", \"ref\": []}", "/model/ref"},
    {"{\"remote\": \"a\", \"ref\": \"k\", \"url\": \"http://h\"}", "/model/url"},
    {"[]", "/model"},
    {"5", "/model"},
};

UNIT_ROWS(decodes_objects, objects)
{
    struct api_place place = {0};
    bool ok = api_place_decode(objects[_i].json, "/model", &place, &problem);
    ck_assert_msg(ok == !objects[_i].where, "row %d", _i);
    if (!ok) {
        ck_assert_int_eq(problem.code, API_BAD_REQUEST);
        ck_assert_str_eq(problem.where, objects[_i].where);
    }
    api_place_fini(&place);
}

/* --- publications --------------------------------------------------------- */

#define A "\"remote\": \"a\", \"ref\": \"k\""
#define EVERYTHING 63

static const struct {
    const char *json, *where; /* where NULL: it is valid */
    size_t n;
    unsigned what; /* of the last */
} lists[] = {
    {"[]", NULL, 0, 0},
    {"[{" A "}]", NULL, 1, EVERYTHING},
    {"[{" A ", \"what\": null}]", NULL, 1, EVERYTHING},
    {"[{" A ", \"what\": [\"report\"]}]", NULL, 1, API_PUBLISH_REPORT},
    {"[{" A "}, {" A ", \"what\": [\"spec\", \"model\"]}]", NULL, 2, 5},
    {"[{" A ", \"what\": [\"signature\", \"bom\", \"provenance\"]}]", NULL, 1, 56},
    {"[{" A ", \"alias\": \"new\", \"tags\": {\"t\": \"v\"}}]", NULL, 1, EVERYTHING},
    {"{}", "/publish", 0, 0},
    {"[5]", "/publish/0", 0, 0},
    {"[{" A "}, {\"remote\": \"a\"}]", "/publish/1/ref", 0, 0},
    {"[{" A ", \"alias\": 5}]", "/publish/0/alias", 0, 0},
    {"[{" A ", \"tags\": []}]", "/publish/0/tags", 0, 0},
    {"[{" A ", \"tags\": {\"t\": 5}}]", "/publish/0/tags/t", 0, 0},
    {"[{" A ", \"tags\": {\"qdqd.job\": \"x\"}}]", "/publish/0/tags/qdqd.job", 0, 0},
    {"[{" A ", \"what\": []}]", "/publish/0/what", 0, 0},
    {"[{" A ", \"what\": \"model\"}]", "/publish/0/what", 0, 0},
    {"[{" A ", \"what\": [\"log\"]}]", "/publish/0/what", 0, 0},
    {"[{" A ", \"colour\": 1}]", "/publish/0/colour", 0, 0},
};

UNIT_ROWS(decodes_publications, lists)
{
    struct api_publication *list = NULL;
    size_t n = 0;
    bool ok = api_publications_decode(lists[_i].json, &list, &n, &problem);
    ck_assert_msg(ok == !lists[_i].where, "row %d: %s", _i, problem.detail);
    if (!ok) {
        ck_assert_str_eq(problem.where, lists[_i].where);
        ck_assert_ptr_null(list);
        return;
    }
    ck_assert_uint_eq(n, lists[_i].n);
    if (n)
        ck_assert_uint_eq(list[n - 1].what, lists[_i].what);
    if (n)
        ck_assert_int_eq(list[n - 1].says_what, lists[_i].what != EVERYTHING);
    api_publications_free(&list, n);
}

UNIT_TEST(limits_the_list)
{
    char text[2048] = "[";
    struct api_publication *list = NULL;
    size_t n;
    for (int i = 0; i <= API_MAX_PUBLISH; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s{" A "}",
                 i ? "," : "");
    snprintf(text + strlen(text), sizeof text - strlen(text), "]");
    ck_assert(!api_publications_decode(text, &list, &n, &problem));
    ck_assert_str_eq(problem.where, "/publish");
}

/* --- rules ---------------------------------------------------------------- */

static const struct {
    const char *models, *name;
    bool takes;
} patterns[] = {
    {"glyph", "glyph", true},
    {"glyph", "glyphs", false},
    {"glyph*", "glyph", true},
    {"glyph*", "glyph-int8", true},
    {"glyph*", "aglyph", false},
    {"*", "any thing", true},
    {"*", "", true},
    {"", "glyph", false},
    {" , ,", "glyph", false},
    {"a, b c ,d", "b c", true},
    {"a,b", "a,b", false},
    {"*b*", "aabaa", true},
    {"*a*b", "xaxab", true},
    {"*a*b", "xaxabx", false},
    {"a**b", "ab", true},
    {"*?", "ab", false},
    {"*aaab", "aaaaaab", true},
    {"a*a", "a", false},
};

UNIT_ROWS(takes_names, patterns)
{
    ck_assert_msg(api_rule_matches(patterns[_i].models, patterns[_i].name) ==
                      patterns[_i].takes,
                  "row %d", _i);
}

UNIT_TEST(makes_a_job)
{
    static const struct api_rule rule = {.hook = "h",
                                         .remote = "prod",
                                         .model = "models:/{name}/{version}",
                                         .publish = "models:/{name}-int8-{x}@{version}",
                                         .calibration = ""};
    struct api_rule with = rule;
    char *text = api_rule_encode(&rule, "a\"{version}", "3");
    ck_assert_str_eq(text,
                     "{\"model\":{\"remote\":\"prod\",\"ref\":"
                     "\"models:/a\\\"{version}/3\"},\"publish\":[{\"remote\":\"prod\","
                     "\"ref\":\"models:/a\\\"{version}-int8-{x}@3\"}],"
                     "\"labels\":{\"hook\":\"h\"}}");
    free(text);
    with.calibration = "prod:models:/data/1";
    text = api_rule_encode(&with, "m", "1");
    ck_assert_ptr_nonnull(strstr(text, "\"calibration\":\"prod:models:/data/1\""));
    free(text);
}

UNIT_SUITE("api/remote", .setup = set_up)
