/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api.h"

#include <locale.h>
#include <math.h>

/* --- text ----------------------------------------------------------------- */

#define FFFD "\xef\xbf\xbd"

static const struct {
    const char *bytes, *text;
} texts[] = {
    {"", ""},
    {"conv1/weight", "conv1/weight"},
    {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
    {"\xe2\x82\xac \xf0\x9f\x98\x80", "\xe2\x82\xac \xf0\x9f\x98\x80"},
    {"\xff", FFFD},
    {"a\xffz", "a" FFFD "z"},
    {"a\xc3", "a" FFFD},                            /* truncated */
    {"\xe2\x82", FFFD FFFD},                        /* truncated */
    {"\xc0\xaf", FFFD FFFD},                        /* overlong */
    {"\xe0\x80\xaf", FFFD FFFD FFFD},               /* overlong */
    {"\xf0\x80\x80\x80", FFFD FFFD FFFD FFFD},      /* overlong */
    {"\xed\xa0\x80", FFFD FFFD FFFD},               /* a surrogate */
    {"\xf4\x90\x80\x80", FFFD FFFD FFFD FFFD},      /* over U+10FFFF */
    {"\xf5\x80\x80\x80x", FFFD FFFD FFFD FFFD "x"}, /* over U+10FFFF */
};

UNIT_ROWS(test_text, texts)
{
    json_t *json = api_json_text(texts[_i].bytes);
    ck_assert_str_eq(json_string_value(json), texts[_i].text);
    json_decref(json);
}

UNIT_TEST(test_text_null)
{
    json_t *json = api_json_text(NULL);
    ck_assert(json_is_null(json));
    json_decref(json);
}

/* --- numbers -------------------------------------------------------------- */

static const struct {
    double value;
    const char *text;
} reals[] = {
    {0.1, "0.1"},
    {-0.1, "-0.1"},
    {99.99, "99.99"},
    {0.0, "0.0"},
    {-0.0, "-0.0"},
    {3.0, "3.0"},
    {1e22, "1e22"},
    {1.5e-7, "1.5e-07"},
    {0.1f, "0.10000000149011612"},
    {1.0 / 3, "0.3333333333333333"},
    {0.1 + 0.2, "0.30000000000000004"},
    {5e-324, NULL},
    {1.7976931348623157e308, NULL},
    {3.4028234663852886e38, NULL},
    {1e-45f, NULL},
};

static char *
dumped(double value)
{
    return api_json_dump(api_json_real(value), 0);
}

UNIT_ROWS(test_real, reals)
{
    char *text = dumped(reals[_i].value);
    ck_assert_ptr_nonnull(text);
    if (reals[_i].text)
        ck_assert_str_eq(text, reals[_i].text);
    ck_assert(strtod(text, NULL) == reals[_i].value);
    json_t *back = json_loads(text, JSON_DECODE_ANY, NULL);
    ck_assert(json_is_real(back));
    ck_assert(json_real_value(back) == reals[_i].value);
    json_decref(back);
    free(text);
}

UNIT_TEST(test_reals_beside_other_values)
{
    char *text =
        api_json_dump(json_pack("{s:[f, s, f, b, i], s:n}", "0.10000000000000001", 0.1,
                                "\\\"0.10000000000000001\"", 1.0 / 3, 1, -7, "2"),
                      JSON_SORT_KEYS);
    ck_assert_str_eq(text, "{\"0.10000000000000001\":[0.1,"
                           "\"\\\\\\\"0.10000000000000001\\\"\",0.3333333333333333,"
                           "true,-7],\"2\":null}");
    free(text);
}

UNIT_TEST(test_seconds)
{
    char *text = api_json_dump(api_json_seconds(1.0 / 3), 0);
    ck_assert_str_eq(text, "0.333333");
    free(text);
}

UNIT_LOOP(test_real_random_bits, 3)
{
    uint64_t bits = 0x9e3779b97f4a7c15ULL * (uint64_t)(_i + 1);
    for (int i = 0; i < 10000; i++) {
        bits = bits * 6364136223846793005ULL + 1442695040888963407ULL;
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        char *text = dumped(value);
        ck_assert_msg(strtod(text, NULL) == value, "%a became %s", value, text);
        free(text);
    }
}

UNIT_LOOP(test_not_finite, 3)
{
    static const double values[] = {NAN, INFINITY, -INFINITY};
    expect_json(dumped(values[_i]), "null");
}

/* glibc never frees the list that it makes of LOCPATH. */
QDQ_API const char *__lsan_default_suppressions(void);

const char *
__lsan_default_suppressions(void)
{
    return "leak:argz_add_sep";
}

/* A locale with a decimal comma changes no number. */
UNIT_TEST(test_locale)
{
    const char *locales = getenv("TEST_LOCALES");
    ck_assert_msg(locales && setenv("LOCPATH", locales, 1) == 0,
                  "make check says in TEST_LOCALES where it built de_DE.UTF-8");
    locale_t comma = newlocale(LC_ALL_MASK, "de_DE.UTF-8", (locale_t)0);
    ck_assert_msg(comma, "no de_DE.UTF-8 in %s", locales);
    locale_t saved = uselocale(comma);
    char *text = dumped(0.5);
    char *long_text = dumped(1.0 / 3);
    json_t *back = json_loads("2.5", JSON_DECODE_ANY, NULL);
    uselocale(saved);
    freelocale(comma);
    ck_assert_str_eq(text, "0.5");
    ck_assert_str_eq(long_text, "0.3333333333333333");
    ck_assert(json_real_value(back) == 2.5);
    json_decref(back);
    free(text);
    free(long_text);
}

/* Digits inside strings are text. */
UNIT_TEST(test_numbers_in_strings)
{
    static const char *const text = "{\"0.10000000000000001\":"
                                    "\"\\\"0.10000000000000001\\\\\",\"x\":0.5}";
    json_t *json = json_loads(text, 0, NULL);
    char *again = api_json_dump(json, 0);
    ck_assert_str_eq(again, text);
    free(again);
}

static const struct {
    const char *json;
    bool integral;
    int64_t value;
} integers[] = {
    {"3", true, 3},
    {"3.0", true, 3},
    {"3e0", true, 3},
    {"-0.0", true, 0},
    {"1e15", true, 1000000000000000},
    {"-9223372036854775808", true, INT64_MIN},
    {"2.5", false, 0},
    {"1e30", false, 0},
    {"9223372036854775808.0", false, 0},
    {"-1e19", false, 0},
    {"\"3\"", false, 0},
    {"true", false, 0},
    {"null", false, 0},
};

UNIT_ROWS(test_integer, integers)
{
    int64_t value = 0;
    json_t *json = json_loads(integers[_i].json, JSON_DECODE_ANY, NULL);
    ck_assert_int_eq(api_json_integer(json, &value), integers[_i].integral);
    ck_assert_int_eq(value, integers[_i].value);
    json_decref(json);
}

/* --- pointers ------------------------------------------------------------- */

UNIT_TEST(test_pointer)
{
    char text[32] = "/calibration";
    api_json_pointer_add(text, sizeof text, "a/b~c");
    ck_assert_str_eq(text, "/calibration/a~1b~0c");
    api_json_pointer_add(text, sizeof text, "");
    ck_assert_str_eq(text, "/calibration/a~1b~0c/");
    api_json_pointer_add(text, sizeof text, "much longer than that");
    ck_assert_uint_eq(strlen(text), sizeof text - 1);
    ck_assert_str_eq(text + sizeof text - 4, "...");
    api_json_pointer_add(text, sizeof text, "x"); /* the buffer is already full */
    ck_assert_uint_eq(strlen(text), sizeof text - 1);
}

static const struct {
    const char *json, *pointer;
} duplicates[] = {
    {"{\"a\":1,\"a\":2}", "/a"},
    {"{\"a\":{\"x\":[1,{}]},\"b\":[],\"a\":2}", "/a"},
    {"{\"a\":[{},[1,2],{\"q\":{\"b/c\":1, \"b/c\" :2}}]}", "/a/2/q/b~1c"},
    {"{\"\\u0061\":1,\"a\":2}", "/a"},
    {"{\"a\\\"}\":1,\"a\\\"}\":2}", "/a\"}"},
    {"[[],[0,{\"k\":0,\"k\":0}]]", "/1/1/k"},
};

UNIT_ROWS(test_duplicate, duplicates)
{
    struct api_problem problem = {0};
    const char *text = duplicates[_i].json;
    ck_assert_ptr_null(api_json_load(text, strlen(text), API_INVALID_SPEC, &problem));
    ck_assert_int_eq(problem.code, API_INVALID_SPEC);
    ck_assert_int_eq(problem.kind, QDQ_AT_POINTER);
    ck_assert_str_eq(problem.where, duplicates[_i].pointer);
}

#define BYTES(text) text, sizeof(text) - 1

static const struct {
    const char *text;
    size_t len;
    const char *offset;
} broken[] = {
    {BYTES(""), "0"},
    {BYTES("{\"a\" 1}"), "6"},
    {BYTES("{\"a\":1"), "6"},
    {BYTES("{} x"), "4"},
    {BYTES("{\"a\":\0}"), NULL},
    {BYTES("\"a\\u0000b\""), NULL},
    {BYTES("\"\xff\""), NULL},
    {BYTES("[1e999]"), NULL},
    {BYTES("[99999999999999999999]"), NULL},
    {BYTES("[NaN]"), NULL},
};

UNIT_ROWS(test_broken, broken)
{
    struct api_problem problem = {0};
    ck_assert_ptr_null(
        api_json_load(broken[_i].text, broken[_i].len, API_INVALID_SPEC, &problem));
    ck_assert_int_eq(problem.code, API_INVALID_JSON);
    ck_assert_int_eq(problem.kind, QDQ_AT_OFFSET);
    if (broken[_i].offset)
        ck_assert_str_eq(problem.where, broken[_i].offset);
    ck_assert_ptr_nonnull(strstr(problem.detail, "line 1, column "));
    /* A user knows no flags of the parser. */
    ck_assert_ptr_null(strstr(problem.detail, "JSON_"));
}

UNIT_TEST(test_too_deep)
{
    enum { DEPTH = 100000 };
    static char text[DEPTH];
    struct api_problem problem = {0};
    memset(text, '[', DEPTH);
    ck_assert_ptr_null(api_json_load(text, DEPTH, API_INVALID_SPEC, &problem));
    ck_assert_int_eq(problem.code, API_INVALID_JSON);
}

/* --- out of memory -------------------------------------------------------- */

static char *
encode_everything(void)
{
    json_t *embedded = api_json_embed("{\"a\":[1,2.5,\"x\",null,true]}");
    return api_json_dump(json_pack("{s:o, s:o, s:o, s:o}", "bad", api_json_text("\xff"),
                                   "good", api_json_text("y"), "real",
                                   api_json_real(0.5), "embedded", embedded),
                         JSON_SORT_KEYS);
}

UNIT_TEST(test_no_memory)
{
    expect_survives_no_memory(encode_everything);
}

UNIT_SUITE("api/json")
