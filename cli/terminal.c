/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "terminal.h"

#include <stdbool.h>

#include "api/utf8.h"

enum {
    NO_UTF8 = 0x110000,
    REPLACEMENT = 0xfffd
}; /* the first is above all characters */

/* Returns the character at `text` and its length. That of a byte that is not UTF-8 is
   NO_UTF8. */
static unsigned
decode(const char *text, size_t *ret_len)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t len = api_utf8_length(text);
    unsigned c = len == 1 ? s[0] : s[0] & (0xffU >> (len + 1));
    for (size_t i = 1; i < len; i++)
        c = c << 6 | (s[i] & 0x3f);
    *ret_len = len ? len : 1;
    return len ? c : NO_UTF8;
}

/* Returns whether a terminal may get the character. */
static bool
is_printable(unsigned c)
{
    bool is_control = c < 0x20 || (c >= 0x7f && c < 0xa0);
    bool is_direction = c == 0x61c || c == 0x200e || c == 0x200f ||
                        (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
    return !is_control && !is_direction && c != 0xfeff && c != NO_UTF8;
}

void
put_text(FILE *to, const char *text, int width)
{
    size_t len;
    for (; *text; text += len) {
        bool ok = is_printable(decode(text, &len));
        fwrite(ok ? text : "?", 1, ok ? len : 1, to);
        width -= ok ? (int)len : 1;
    }
    fprintf(to, "%*s", width > 0 ? width : 0, "");
}

void
put_json(FILE *to, const char *json, size_t size)
{
    size_t len;
    for (const char *at = json; at < json + size; at += len) {
        unsigned c = decode(at, &len);
        if (c == '\n' || c == '\t' || is_printable(c))
            fwrite(at, 1, len, to);
        else
            fprintf(to, "\\u%04x", c == NO_UTF8 ? REPLACEMENT : c);
    }
}
