/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/markup.h"
#include "api/grow.h"

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
add(struct api_markup *markup, const char *piece, size_t len)
{
    markup->failed =
        markup->failed || !api_append(&markup->data, &markup->len, piece, len);
}

void
api_markup_add(struct api_markup *markup, const char *piece)
{
    add(markup, piece, strlen(piece));
}

void
api_markup_format(struct api_markup *markup, const char *fmt, ...)
{
    char piece[512];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(piece, sizeof piece, fmt, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof piece)
        markup->failed = true;
    else
        add(markup, piece, (size_t)n);
}

/* Adds the picture of a control character: U+2400 and the character. */
static void
add_picture(struct api_markup *markup, unsigned char c)
{
    unsigned char low = c == 0x7f ? 0x21 : c;
    char picture[3] = {(char)0xe2, (char)0x90, (char)(0x80 | low)};
    add(markup, picture, sizeof picture);
}

/* Returns whether a character that turns the text behind it stands there, as far as the end of its
   paragraph: U+202A to U+202E and U+2066 to U+2069. */
static bool
turns_text(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    return c[0] == 0xe2 && ((c[1] == 0x80 && c[2] >= 0xaa && c[2] <= 0xae) ||
                            (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9));
}

void
api_markup_text(struct api_markup *markup, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '&')
            api_markup_add(markup, "&amp;");
        else if (c == '<')
            api_markup_add(markup, "&lt;");
        else if (c == '>')
            api_markup_add(markup, "&gt;");
        else if (c == '"')
            api_markup_add(markup, "&quot;");
        else if (c == '\'')
            api_markup_add(markup, "&#39;");
        else if (c < ' ' || c == 0x7f)
            add_picture(markup, c);
        else if (turns_text(text)) {
            api_markup_add(markup, "\xef\xbf\xbd");
            text += 2;
        } else
            add(markup, text, 1);
    }
}

void
api_markup_value(struct api_markup *markup, const json_t *value)
{
    switch (value ? json_typeof(value) : JSON_NULL) {
    case JSON_STRING:
        api_markup_text(markup, json_string_value(value));
        break;
    case JSON_INTEGER:
        api_markup_format(markup, "%lld", (long long)json_integer_value(value));
        break;
    case JSON_REAL:
        api_markup_format(markup, "%.6g", json_real_value(value));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        api_markup_add(markup, json_is_true(value) ? "yes" : "no");
        break;
    default:
        api_markup_add(markup, "\xe2\x80\x93");
    }
}

void
api_markup_bytes(struct api_markup *markup, double bytes)
{
    static const char *const units[] = {"bytes", "KB", "MB", "GB", "TB"};
    size_t unit = 0;
    while (bytes >= 1000 && unit + 1 < sizeof units / sizeof *units) {
        bytes /= 1000;
        unit++;
    }
    api_markup_format(markup, unit ? "%.2f %s" : "%.0f %s", bytes, units[unit]);
}

char *
api_markup_render(json_t *json,
                  void (*add_all)(struct api_markup *markup, json_t *json))
{
    struct api_markup markup = {.failed = !json};
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (json && plain) {
        locale_t saved = uselocale(plain);
        add_all(&markup, json);
        uselocale(saved);
    }
    if (plain)
        freelocale(plain);
    json_decref(json);
    if (plain && !markup.failed)
        return markup.data;
    free(markup.data);
    return NULL;
}
