/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/log.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *text, *quoted;
} rows[] = {
    {"", "\"\""},
    {"plain", "\"plain\""},
    {"a \"b\" \\", "\"a \\\"b\\\" \\\\\""},
    {"two\nlines\r\x1b[0m\x7f", "\"two\\x0alines\\x0d\\x1b[0m\\x7f\""},
    {"cut \xf0\x9f\x98", "\"cut \\xf0\\x9f\\x98\""},
    {"\xc2\x9b[0m", "\"\\xc2\\x9b[0m\""},
    {"\xed\xa0\x80", "\"\\xed\\xa0\\x80\""},
    {"gr\xc3\xbc\xc3\x9f", "\"gr\xc3\xbc\xc3\x9f\""},
};

UNIT_ROWS(quotes, rows)
{
    char buf[LOG_QUOTED];
    ck_assert_str_eq(log_quote(buf, rows[_i].text), rows[_i].quoted);
}

/* A quoted text of any kind and length stays in the buffer and has its closing
   quote. */
UNIT_LOOP(caps, 4)
{
    char text[1000], buf[LOG_QUOTED];
    memset(text, "a\n\"\\"[_i], sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (size_t start = 0; start < sizeof text; start++) {
        log_quote(buf, text + start);
        size_t len = strnlen(buf, sizeof buf);
        ck_assert_uint_lt(len, sizeof buf);
        ck_assert_int_eq(buf[len - 1], '"');
    }
    ck_assert_ptr_nonnull(strstr(log_quote(buf, text), "...\""));
}

/* A text is cut between two characters. */
UNIT_LOOP(cuts, 4)
{
    static const char *const shift[] = {"", "a", "aa", "aaa"};
    char text[1000] = "", buf[LOG_QUOTED];
    size_t at = (size_t)snprintf(text, sizeof text, "%s", shift[_i]);
    for (; at + 4 < sizeof text; at += 4)
        memcpy(text + at, "\xf0\x9f\x98\x80", 4);
    log_quote(buf, text);
    const char *end = strstr(buf, "...");
    ck_assert_ptr_nonnull(end);
    ck_assert_int_eq(memcmp(end - 4, "\xf0\x9f\x98\x80", 4), 0);
}

UNIT_SUITE("daemon/log")
