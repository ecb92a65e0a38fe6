/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/json.h"
#include "api/utf8.h"

#include <assert.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

size_t
api_utf8_length(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80)
        return 1;
    size_t n = s[0] >= 0xc2 && s[0] <= 0xdf   ? 2
               : s[0] >= 0xe0 && s[0] <= 0xef ? 3
               : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4
                                              : 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

bool
api_utf8_is_valid(const char *text)
{
    size_t len;
    while (*text && (len = api_utf8_length(text)))
        text += len;
    return !*text;
}

char *
api_utf8_repair(const char *text)
{
    static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
    char *copy = malloc(strlen(text) * (sizeof replacement - 1) + 1);
    if (!copy)
        return NULL;
    size_t len = 0;
    for (const char *s = text; *s;) {
        size_t n = api_utf8_length(s);
        const char *from = n ? s : replacement;
        size_t take = n ? n : sizeof replacement - 1;
        memcpy(copy + len, from, take);
        len += take;
        s += n ? n : 1;
    }
    copy[len] = '\0';
    return copy;
}

static json_t *
repaired_text(const char *text)
{
    char *copy = api_utf8_repair(text);
    json_t *json = copy ? json_string(copy) : NULL;
    free(copy);
    return json;
}

json_t *
api_json_text(const char *text)
{
    if (!text)
        return json_null();
    json_t *json = json_string(text);
    return json ? json : repaired_text(text);
}

json_t *
api_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *
api_json_seconds(double seconds)
{
    return api_json_real(round(seconds * 1e6) / 1e6);
}

/* Returns whether jansson ran out of memory. It does not set the code for that
   everywhere. */
static bool
is_out_of_memory(const json_error_t *error)
{
    enum json_error_code code = json_error_code(error);
    return code == json_error_out_of_memory || code == json_error_unknown;
}

json_t *
api_json_embed(const char *text)
{
    json_error_t error = {0};
    json_t *json = text ? json_loads(text, JSON_DECODE_ANY, &error) : json_null();
    return json || is_out_of_memory(&error) ? json : json_null();
}

json_t *
api_json_if(bool ok, json_t *json)
{
    if (ok)
        return json;
    json_decref(json);
    return NULL;
}

json_t *
api_json_list(const void *items, size_t n, api_json_item_fn item)
{
    json_t *list = json_array();
    bool ok = list;
    for (size_t i = 0; ok && i < n; i++)
        ok = json_array_append_new(list, item(items, i)) == 0;
    return api_json_if(ok, list);
}

json_t *
api_json_index(const json_t *rows, const char *member)
{
    json_t *index = json_object();
    bool ok = index;
    for (size_t i = 0; ok && i < json_array_size(rows); i++) {
        json_t *row = json_array_get(rows, i);
        const char *text = json_string_value(json_object_get(row, member));
        ok = !text || json_object_set(index, text, row) == 0;
    }
    return api_json_if(ok, index);
}

json_t *
api_json_text_item(const void *items, size_t i)
{
    return api_json_text(((const char *const *)items)[i]);
}

json_t *
api_json_int_item(const void *items, size_t i)
{
    return json_integer(((const int *)items)[i]);
}

static_assert(sizeof(size_t) == sizeof(int64_t), "api_pack() takes sizes for integers");

json_t *
api_json_time(int64_t ms)
{
    struct tm tm;
    char text[48];
    time_t seconds = (time_t)(ms / 1000);
    if (ms <= 0 || !gmtime_r(&seconds, &tm))
        return json_null();
    size_t len = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text + len, sizeof text - len, ".%03dZ", (int)(ms % 1000));
    return json_string(text);
}

/* Returns the value of a member, for whose type it takes the arguments. */
static json_t *
next_value(char type, va_list *args)
{
    int n;
    int64_t number;
    const void *items;
    size_t len;
    switch (type) {
    case 't':
        return api_json_text(va_arg(*args, const char *));
    case 'r':
        return api_json_real(va_arg(*args, double));
    case 's':
        return api_json_seconds(va_arg(*args, double));
    case 'i':
        return json_integer(va_arg(*args, int64_t));
    case 'n':
        number = va_arg(*args, int64_t);
        return number ? json_integer(number) : json_null();
    case 'm':
        return api_json_time(va_arg(*args, int64_t));
    case 'e':
        return api_json_embed(va_arg(*args, const char *));
    case 'd':
        return json_integer(va_arg(*args, int));
    case 'x':
        n = va_arg(*args, int);
        return n < 0 ? json_null() : json_integer(n);
    case 'b':
        return json_boolean(va_arg(*args, int));
    case 'a':
        items = va_arg(*args, const void *);
        len = va_arg(*args, size_t);
        return api_json_list(items, len, va_arg(*args, api_json_item_fn));
    default:
        return va_arg(*args, json_t *);
    }
}

json_t *
api_pack(const char *members, ...)
{
    json_t *object = json_object();
    bool ok = object;
    char name[32];
    va_list args;
    va_start(args, members);
    while (*members) {
        size_t len = strcspn(members, ":");
        snprintf(name, sizeof name, "%.*s", (int)len, members);
        json_t *value = next_value(members[len + 1], &args);
        ok = json_object_set_new(object, name, value) == 0 && ok;
        members += len + 2 + (members[len + 2] == ' ');
    }
    va_end(args);
    return api_json_if(ok, object);
}

char *
api_dump_list(const char *name, const void *items, size_t n, api_json_item_fn item)
{
    json_t *object = json_object();
    bool ok = json_object_set_new(object, name, api_json_list(items, n, item)) == 0;
    return api_json_dump(api_json_if(ok, object), 0);
}

enum { EXACT = 16 }; /* a real in at most so many characters has 15 digits or fewer */

/* Copies the real number text[0 .. len) to `to` in fewer digits, where those read
   back to the same value. */
static size_t
shorten_real(char *to, const char *text, size_t len)
{
    char shorter[32];
    double value = strtod(text, NULL);
    for (int digits = 15; digits < 17; digits++) {
        int n = snprintf(shorter, sizeof shorter, "%.*g", digits, value);
        if (n > 0 && (size_t)n < len && strpbrk(shorter, ".e") &&
            strtod(shorter, NULL) == value) {
            memcpy(to, shorter, (size_t)n);
            return (size_t)n;
        }
    }
    memmove(to, text, len);
    return len;
}

/* Returns the length of the string at `text`, which begins and ends with a quote. */
static size_t
quoted_length(const char *text)
{
    const char *s = text + 1;
    while (*(s += strcspn(s, "\"\\")) == '\\')
        s += 2;
    return (size_t)(s - text) + 1;
}

/* Shortens all reals of a text. jansson prints them with the same number of digits
   each: 0.1 as 0.10000000000000001. */
static void
shorten_reals(char *text)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain)
        return;
    locale_t saved = uselocale(plain);
    char *to = text;
    for (const char *s = text; *s;) {
        size_t number = strspn(s, "+-.eE0123456789");
        size_t n = number      ? number
                   : *s == '"' ? quoted_length(s)
                               : strcspn(s, "\"-0123456789");
        if (number > EXACT && (memchr(s, '.', n) || memchr(s, 'e', n))) {
            to += shorten_real(to, s, n);
        } else {
            memmove(to, s, n);
            to += n;
        }
        s += n;
    }
    *to = '\0';
    uselocale(saved);
    freelocale(plain);
}

char *
api_json_dump(json_t *json, size_t flags)
{
    char *text = json_dumps(json, flags | JSON_COMPACT | JSON_ENCODE_ANY |
                                      JSON_REAL_PRECISION(17));
    json_decref(json);
    if (text)
        shorten_reals(text);
    return text;
}

bool
api_json_integer(const json_t *json, int64_t *ret)
{
    double value = json_number_value(json);
    if (json_is_integer(json)) {
        *ret = json_integer_value(json);
        return true;
    }
    if (!json_is_real(json) || value != floor(value) || fabs(value) >= 0x1p63)
        return false;
    *ret = (int64_t)value;
    return true;
}

const char *
api_text_at(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

void
api_json_pointer_add(char *to, size_t size, const char *segment)
{
    size_t len = strlen(to),
           end = len <= size - 4 ? len : size - 4; /* before the dots */
    while (end && (to[end] & 0xc0) == 0x80)
        end--;
    char escaped[3] = "/";
    for (const char *s = segment;; s++) {
        size_t n = strlen(escaped);
        if ((*escaped & 0xc0) != 0x80 && len <= size - 4)
            end = len;
        if (len + n >= size) {
            memcpy(to + end, "...", 4);
            return;
        }
        memcpy(to + len, escaped, n + 1);
        len += n;
        if (!*s)
            return;
        memcpy(escaped, *s == '~' ? "~0" : *s == '/' ? "~1" : (char[]){*s, 0, 0}, 3);
    }
}

/* --- the pointer of a place in a text ------------------------------------- */

enum { MAX_DEPTH = 2048 }; /* the largest depth that jansson parses */

/* An open object or array, with the last key or the index. */
struct level {
    const char *key; /* points to its opening quote; NULL in an array */
    size_t key_len;
    size_t index;
};

static size_t
string_length(const char *s, const char *end)
{
    const char *p = s + 1;
    while (p < end && *p != '"')
        p += *p == '\\' ? 2 : 1;
    return (size_t)(p - s) + 1;
}

static void
pointer_of(const struct level *levels, size_t depth, char *to, size_t size)
{
    to[0] = '\0';
    for (size_t i = 0; i < depth; i++) {
        char number[24];
        json_t *key = NULL;
        snprintf(number, sizeof number, "%zu", levels[i].index);
        if (levels[i].key)
            key = json_loadb(levels[i].key, levels[i].key_len, JSON_DECODE_ANY, NULL);
        api_json_pointer_add(to, size, key ? json_string_value(key) : number);
        json_decref(key);
    }
}

/* Writes the pointer of the key that ends at `len`. The text before it has been
   parsed as JSON. */
static void
pointer_at(const char *text, size_t len, char *to, size_t size)
{
    to[0] = '\0';
    struct level *levels = calloc(MAX_DEPTH + 1, sizeof *levels);
    if (!levels)
        return;
    size_t depth = 0;
    bool want_key = false;
    for (const char *s = text, *end = text + len; s < end;) {
        struct level *top = depth ? &levels[depth - 1] : NULL;
        size_t n = *s == '"' ? string_length(s, end) : 1;
        if (*s == '"' && top && want_key) {
            top->key = s;
            top->key_len = n;
            want_key = false;
        } else if ((*s == '{' || *s == '[') && depth < MAX_DEPTH) {
            levels[depth++] = (struct level){0};
            want_key = *s == '{';
        } else if ((*s == '}' || *s == ']') && depth) {
            depth--;
            want_key = false;
        } else if (*s == ',' && top) {
            want_key = top->key != NULL;
            top->index++;
        }
        s += n;
    }
    pointer_of(levels, depth, to, size);
    free(levels);
}

void
api_json_set_broken(const json_error_t *error, struct api_problem *problem)
{
    char where[32];
    snprintf(where, sizeof where, "%d", error->position < 0 ? 0 : error->position);
    /* Jansson's own text names a flag of its function. */
    const char *text = json_error_code(error) == json_error_null_character
                           ? "a text has the character \\u0000, which is not allowed"
                           : error->text;
    api_problem_set(problem, API_INVALID_JSON, QDQ_AT_OFFSET, where,
                    "line %d, column %d: %s", error->line, error->column, text);
}

json_t *
api_json_load(const char *text, size_t len, enum api_code duplicate,
              struct api_problem *problem)
{
    json_error_t error = {0};
    json_t *json =
        json_loadb(text, len, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
    if (json)
        return json;
    if (is_out_of_memory(&error)) {
        api_problem_no_memory(problem);
    } else if (json_error_code(&error) == json_error_duplicate_key) {
        size_t position = error.position < 0 ? 0 : (size_t)error.position;
        char where[sizeof problem->where];
        pointer_at(text, position < len ? position : len, where, sizeof where);
        api_fail_at(problem, duplicate, where, "the member %s stands there twice",
                    where);
    } else {
        api_json_set_broken(&error, problem);
    }
    return NULL;
}

void
api_text_add(char *to, size_t size, const char *text)
{
    size_t len = strlen(to), room = size - len - 1, n = strlen(text);
    if (n > room)
        for (n = room; n && (text[n] & 0xc0) == 0x80;)
            n--;
    memcpy(to + len, text, n);
    to[len + n] = '\0';
}

const char *
api_json_type_name(const json_t *json)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array",
        [JSON_STRING] = "a string",  [JSON_INTEGER] = "a number",
        [JSON_REAL] = "a number",    [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null",
    };
    return names[json_typeof(json)];
}
