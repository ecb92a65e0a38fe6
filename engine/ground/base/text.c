/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "qdq/error.h"

#include <stdio.h>
#include <string.h>

/* Returns how many bytes a character has by its first one; 1 for a byte that begins none. */
static size_t
length_by_first(unsigned char c)
{
    return c >= 0xf0 && c <= 0xf4  ? 4
           : c >= 0xe0 && c < 0xf0 ? 3
           : c >= 0xc2 && c < 0xe0 ? 2
                                   : 1;
}

/* Copies a text over itself without the parts of characters that a cut has left. */
static void
drop_parts(char *text)
{
    char *to = text;
    for (const char *s = text; *s;) {
        size_t whole = length_by_first((unsigned char)*s), n = 1;
        while (n < whole && ((unsigned char)s[n] & 0xc0) == 0x80)
            n++;
        if (n == whole) {
            memmove(to, s, n);
            to += n;
        }
        s += n;
    }
    *to = '\0';
}

static void
flatten(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = ' ';
}

/* Ends a text that did not fit in "...", and drops the parts of characters. */
static void
end_at_characters(char *text, size_t size, bool is_cut)
{
    static const char dots[] = "...";
    if (is_cut)
        text[size - sizeof dots] = '\0';
    drop_parts(text);
    if (is_cut)
        memcpy(text + strlen(text), dots, sizeof dots);
}

void
qdq_text_copy(char *to, size_t size, const char *from)
{
    end_at_characters(to, size, snprintf(to, size, "%s", from) >= (int)size);
}

void
qdq_text_vprint(char *to, size_t size, const char *fmt, va_list args)
{
    end_at_characters(to, size, vsnprintf(to, size, fmt, args) >= (int)size);
    flatten(to);
}

void
qdq_text_print(char *to, size_t size, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    qdq_text_vprint(to, size, fmt, args);
    va_end(args);
}
