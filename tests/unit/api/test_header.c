/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api.h"

#include "api/header.h"

/* --- Range ---------------------------------------------------------------- */

#define HUGE_NUMBER "99999999999999999999999999"

static const struct {
    const char *text;
    uint64_t size;
    enum api_range_kind ranged;
    uint64_t first, n;
} ranges[] = {
    {NULL, 100, API_RANGE_WHOLE, 0, 0},
    {"", 100, API_RANGE_WHOLE, 0, 0},
    {"bytes=0-0", 100, API_RANGE_PART, 0, 1},
    {"bytes=0-99", 100, API_RANGE_PART, 0, 100},
    {"bytes=10-19", 100, API_RANGE_PART, 10, 10},
    {"BYTES=10-19 ", 100, API_RANGE_PART, 10, 10},
    {"bytes= 10-19", 100, API_RANGE_PART, 10, 10},
    {"bytes=90-500", 100, API_RANGE_PART, 90, 10},
    {"bytes=90-" HUGE_NUMBER, 100, API_RANGE_PART, 90, 10},
    {"bytes=99-", 100, API_RANGE_PART, 99, 1},
    {"bytes=0-", 100, API_RANGE_PART, 0, 100},
    {"bytes=-1", 100, API_RANGE_PART, 99, 1},
    {"bytes=-100", 100, API_RANGE_PART, 0, 100},
    {"bytes=-101", 100, API_RANGE_PART, 0, 100},
    {"bytes=-" HUGE_NUMBER, 100, API_RANGE_PART, 0, 100},
    {"bytes=5-18446744073709551615", UINT64_MAX, API_RANGE_PART, 5, UINT64_MAX - 5},
    {"bytes=100-", 100, API_RANGE_NONE, 0, 0},
    {"bytes=100-200", 100, API_RANGE_NONE, 0, 0},
    {"bytes=" HUGE_NUMBER "-", 100, API_RANGE_NONE, 0, 0},
    {"bytes=-0", 100, API_RANGE_NONE, 0, 0},
    {"bytes=0-", 0, API_RANGE_NONE, 0, 0},
    {"bytes=-5", 0, API_RANGE_NONE, 0, 0},
    {"bytes=0-1,5-6", 100, API_RANGE_WHOLE, 0, 0},
    {"bytes=0-1,", 100, API_RANGE_WHOLE, 0, 0},
    {"bytes=2-1", 100, API_RANGE_WHOLE, 0, 0},
    {"bytes=-", 100, API_RANGE_WHOLE, 0, 0},
    {"bytes=", 100, API_RANGE_WHOLE, 0, 0},
    {"bytes=1", 100, API_RANGE_WHOLE, 0, 0},
    {"bytes=a-b", 100, API_RANGE_WHOLE, 0, 0},
    {"bytes=+1-2", 100, API_RANGE_WHOLE, 0, 0},
    {"bytes=1-2x", 100, API_RANGE_WHOLE, 0, 0},
    {"bytes=--2", 100, API_RANGE_WHOLE, 0, 0},
    {"bytes =1-2", 100, API_RANGE_WHOLE, 0, 0},
    {"items=1-2", 100, API_RANGE_WHOLE, 0, 0},
};

UNIT_ROWS(test_range, ranges)
{
    struct api_range range = {0};
    ck_assert_int_eq(api_header_range(ranges[_i].text, ranges[_i].size, &range),
                     ranges[_i].ranged);
    ck_assert_uint_eq(range.first, ranges[_i].first);
    ck_assert_uint_eq(range.size, ranges[_i].n);
}

/* --- If-Match, If-None-Match ---------------------------------------------- */

static const struct {
    const char *text;
    bool has, has_strong;
} tags[] = {
    {NULL, false, false},
    {"", false, false},
    {"\"a,b\"", true, true},
    {"W/\"a,b\"", true, false},
    {"*", true, true},
    {" * ", true, true},
    {"\"x\", \"a,b\"", true, true},
    {"\"x\",W/\"y\" ,, \"a,b\" ", true, true},
    {"\"x\"", false, false},
    {"\"a,b", false, false},
    {"a,b", false, false},
    {"\"xa,b\"", false, false},
    {"\"a,bx\"", false, false},
    {"\"a,b\"x", false, false},
    {"\"x\\\", \"a,b\"", true, true}, /* a backslash is a character like others */
    {"\"x\" \"a,b\"", false, false},
    {"w/\"a,b\"", false, false},
    {"\"*\"", false, false},
    {"*, \"x\"", false, false},
};

UNIT_ROWS(test_tag, tags)
{
    const char *text = tags[_i].text, tag[] = "\"a,b\"";
    bool is_any = text && strchr(text, '*') && tags[_i].has;
    ck_assert_int_eq(api_header_has_tag(text, tag, API_TAG_WEAK), tags[_i].has);
    ck_assert_int_eq(api_header_has_tag(text, tag, API_TAG_STRONG),
                     tags[_i].has_strong);
    ck_assert_int_eq(api_header_has_tag(text, NULL, API_TAG_WEAK), is_any);
}

/* --- Accept --------------------------------------------------------------- */

static const char *const types[] = {"application/json", "text/markdown"};
enum { JSON, MARKDOWN, NOTHING };

static const struct {
    const char *text;
    size_t chosen;
} accepts[] = {
    {NULL, JSON},
    {"", JSON},
    {"*/*", JSON},
    {"application/json", JSON},
    {"text/markdown", MARKDOWN},
    {"Text/Markdown;charset=utf-8", MARKDOWN},
    {"text/*", MARKDOWN},
    {"application/*", JSON},
    {"text/markdown, application/json", JSON},
    {"text/markdown, application/json;q=0.9", MARKDOWN},
    {"text/markdown;q=0.5, application/json;q=0.501", JSON},
    {"text/markdown;q=0.5, application/json;q=0.499", MARKDOWN},
    {"text/markdown ; Q=0.5 , application/json ; q=0.4", MARKDOWN},
    {"text/markdown, */*;q=0.1", MARKDOWN},
    {"text/markdown;q=0, */*", JSON},
    {"application/json;q=0, */*;q=0.1", MARKDOWN},
    {"text/*;q=0.3, text/markdown;q=0.9, application/*;q=0.5", MARKDOWN},
    {"text/*, text/markdown;q=0.2, application/*;q=0.5", JSON},
    {"text/html, image/png", NOTHING},
    {"text/html", NOTHING},
    {"text/markdown;q=0", NOTHING},
    {"*/*;q=0", NOTHING},
    {"text/markdown;q=0.000, application/json;q=0.0", NOTHING},
    {"text/markdownish", NOTHING},
    {"text", NOTHING},
    {"*", NOTHING},
    {"text/markdown;q=2, application/json;q=0.1", JSON}, /* 2 is no weight */
    {"text/markdown;q=0.1234, application/json;q=0.1", JSON},
    {"text/markdown;q=, application/json;q=0.1", JSON},
    {"text/markdown;q=1.001, application/json;q=0.1", JSON},
    {"text/markdown;x=\"a,b;q=0\";q=0.9, application/json;q=0.8", MARKDOWN},
    {"text/markdown;x=\"\\\",\";q=0.9, application/json;q=0.8", MARKDOWN},
    {"text/markdown;x=\"open, application/json", MARKDOWN},
    {";q=1", NOTHING},
    {",,;,", NOTHING},
    {"text/markdown;q=nan", JSON}, /* no entry of it can be read */
};

UNIT_ROWS(test_accept, accepts)
{
    ck_assert_uint_eq(api_header_choose(accepts[_i].text, types, 2),
                      accepts[_i].chosen);
}

/* --- Repr-Digest ---------------------------------------------------------- */

/* The SHA-256 of nothing, as sha256sum and base64 print it. */
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define EMPTY64 "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="

UNIT_TEST(test_digest_of)
{
    char digest[API_HEADER_DIGEST];
    ck_assert(api_header_digest_of("sha256:" EMPTY, digest));
    ck_assert_str_eq(digest, "sha-256=:" EMPTY64 ":");
    ck_assert(!api_header_digest_of("sha256:00", digest));
    ck_assert(!api_header_digest_of("sha256:" EMPTY "00", digest));
    ck_assert(!api_header_digest_of("sha512:" EMPTY, digest));
    ck_assert(!api_header_digest_of("", digest));
}

static const struct {
    const char *text;
    const char *id; /* NULL: refused */
} digests[] = {
    {NULL, ""},
    {"", ""},
    {"sha-256=:" EMPTY64 ":", "sha256:" EMPTY},
    {"sha-512=:AAAA:, sha-256=:" EMPTY64 ":;x=1", "sha256:" EMPTY},
    {"sha-256=:" EMPTY64 ": ,md5=:AA==:", "sha256:" EMPTY},
    {"sha-512=:AAAA:", ""},
    {"sha-2560=:AAAA:", ""},
    {"unixsum=:AAAA:, x=\"sha-256=1\"", ""},
    {"sha-256", NULL},
    {"sha-256=", NULL},
    {"sha-256=:", NULL},
    {"sha-256=::", NULL},
    {"sha-256=" EMPTY64, NULL},
    {"sha-256=:" EMPTY64, NULL},
    {"sha-256=:" EMPTY64 ":x", NULL},
    {"sha-256=:" EMPTY ":", NULL},
    /* the unused last bits are not zero */
    {"sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFV=:", NULL},
    {"sha-256=:47DEQpj8HBSa+_TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:", NULL},
    {"md5=:AA==:, sha-256=?1", NULL},
};

UNIT_ROWS(test_digest, digests)
{
    char id[API_HEADER_ID] = "x";
    struct api_problem problem = {0};
    bool ok = api_header_digest(digests[_i].text, id, &problem);
    ck_assert_int_eq(ok, digests[_i].id != NULL);
    if (ok)
        ck_assert_str_eq(id, digests[_i].id);
    else
        ck_assert_int_eq(problem.code, API_BAD_REQUEST);
}

UNIT_SUITE("api/header")
