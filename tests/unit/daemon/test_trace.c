/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/log.h"
#include "watch/trace.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define OWN "0000000700000009"

static const struct {
    const char *id, *parent, *wanted_id, *wanted_parent;
} rows[] = {
    {NULL, NULL, OWN, ""},
    {"abc-1", "", "abc-1", ""},
    {"a\"b", "00-" TRACE "-00f067aa0ba902b7-01", OWN, "00-" TRACE "-" OWN "-01"},
    {"", "00-" TRACE "-00f067aa0ba902b7-00", OWN, "00-" TRACE "-" OWN "-00"},
    {NULL, "cc-" TRACE "-00f067aa0ba902b7-01-x", OWN, "00-" TRACE "-" OWN "-01"},
    {NULL, "00-" TRACE "-00f067aa0ba902b7-01-x", OWN, ""},
    {NULL, "00-" TRACE "-00f067aa0ba902b7-0", OWN, ""},
    {NULL, "00-" TRACE "-0000000000000000-01", OWN, ""},
    {NULL, "00-", OWN, ""},
    {NULL, "ff-" TRACE "-00f067aa0ba902b7-01", OWN, ""},
};

UNIT_ROWS(names, rows)
{
    struct trace trace;
    trace_begin(&trace, rows[_i].id, rows[_i].parent, 7, 9);
    ck_assert_str_eq(trace.id, rows[_i].wanted_id);
    ck_assert_str_eq(trace.parent, rows[_i].wanted_parent);
}

#define HEAD "{\"time\":\"t\",\"level\":\"info\",\"event\":\"e\""

static const struct {
    const char *members, *wanted;
} lines[] = {
    {"", HEAD "}"},
    {"a=1 b=x", HEAD ",\"a\":1,\"b\":\"x\"}"},
    {"a=1.50 b=01 c=-1 d=.5",
     HEAD ",\"a\":1.50,\"b\":\"01\",\"c\":\"-1\",\"d\":\".5\"}"},
    {"a=\"b c\" d=", HEAD ",\"a\":\"b c\",\"d\":\"\"}"},
    {"a=\"\\\"\\\\\\x0a\\xff\"", HEAD ",\"a\":\"\\\"\\\\\\u000a\\\\xff\"}"},
    {"a=\"cut", HEAD ",\"a\":\"cut\"}"},
    {"a", HEAD ",\"a\":\"\"}"},
};

UNIT_ROWS(json, lines)
{
    char line[256];
    size_t len = log_json(line, sizeof line, "t", "info", "e", lines[_i].members);
    ck_assert_str_eq(line, lines[_i].wanted);
    ck_assert_uint_eq(len, strlen(line));
}

/* In a buffer of any size the text is a complete JSON object. */
UNIT_TEST(json_is_whole)
{
    for (size_t size = sizeof HEAD + 4; size < 100; size++) {
        char line[100];
        size_t len =
            log_json(line, size, "t", "info", "e", "abc=\"d\\x0ae\" fg=12 h=i");
        ck_assert_uint_lt(len, size);
        ck_assert_int_eq(line[len - 1], '}');
        ck_assert(line[len - 2] == '"' || line[len - 2] == '2');
    }
}

UNIT_SUITE("daemon/trace")
