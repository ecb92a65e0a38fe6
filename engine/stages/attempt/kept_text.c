/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/attempt/kept_text.h"

#include "ground/base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void
qdqi_kept_text_print(struct qdqi_kept_text *to, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *grown = to->failed || n < 0
                      ? NULL
                      : qdqi_grow(to->bytes, &to->capacity, to->n + (size_t)n + 1, 1);
    if (!grown) {
        to->failed = true;
        return;
    }
    to->bytes = grown;
    va_start(args, fmt);
    vsnprintf(to->bytes + to->n, (size_t)n + 1, fmt, args);
    va_end(args);
    to->n += (size_t)n;
}

static bool
is_plain(unsigned char c)
{
    return c > ' ' && c != '%' && c != 0x7f;
}

void
qdqi_kept_text_print_name(struct qdqi_kept_text *to, const char *name)
{
    for (const char *p = name; *p; p++)
        if (is_plain((unsigned char)*p))
            qdqi_kept_text_print(to, "%c", *p);
        else
            qdqi_kept_text_print(to, "%%%02X", (unsigned char)*p);
}

static int
digit_of(char c)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

bool
qdqi_kept_text_read_name(char *name)
{
    char *to = name;
    for (const char *p = name; *p; p++) {
        if (*p != '%') {
            *to++ = *p;
            continue;
        }
        const int high = digit_of(p[1]), low = high < 0 ? -1 : digit_of(p[2]);
        if (low < 0 || high * 16 + low == 0)
            return false;
        *to++ = (char)(high * 16 + low);
        p += 2;
    }
    *to = '\0';
    return true;
}
