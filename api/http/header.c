/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api/header.h"
#include "api/digest.h"

#include <string.h>
#include <strings.h>

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *
skip_space(const char *at)
{
    return at + strspn(at, " \t");
}

/* Returns the end of a list's element: the next comma that is not quoted, or `stop`. */
static const char *
element_end(const char *at, const char *stop)
{
    bool quoted = false;
    for (; *at && (quoted || !strchr(stop, *at)); at++) {
        if (quoted && *at == '\\' && at[1])
            at++;
        else if (*at == '"')
            quoted = !quoted;
    }
    return at;
}

/* --- Range ---------------------------------------------------------------- */

/* Parses digits; a number that is too large becomes the largest one. Returns false
   when there are no digits. */
static bool
parse_offset(const char **at, uint64_t *ret)
{
    uint64_t n = 0;
    if (!is_digit(**at))
        return false;
    for (; is_digit(**at); ++*at) {
        uint64_t digit = (uint64_t)(**at - '0');
        n = n > (UINT64_MAX - digit) / 10 ? UINT64_MAX : n * 10 + digit;
    }
    *ret = n;
    return true;
}

enum api_range_kind
api_header_range(const char *text, uint64_t size, struct api_range *ret)
{
    static const char unit[] = "bytes=";
    uint64_t first = 0, last = UINT64_MAX;
    if (!text || strncasecmp(text, unit, sizeof unit - 1) != 0)
        return API_RANGE_WHOLE;
    const char *at = skip_space(text + sizeof unit - 1);
    bool has_first = parse_offset(&at, &first);
    if (*at++ != '-')
        return API_RANGE_WHOLE;
    bool has_last = parse_offset(&at, &last);
    if (*skip_space(at) || (!has_first && !has_last) || (has_first && last < first))
        return API_RANGE_WHOLE;
    if (!has_first) { /* a suffix: the last bytes, as many as the number says */
        if (last > size)
            last = size;
        first = size - last;
        last = UINT64_MAX;
    }
    if (first >= size)
        return API_RANGE_NONE;
    ret->first = first;
    ret->size = (last < size ? last + 1 : size) - first;
    return API_RANGE_PART;
}

/* --- If-Match, If-None-Match ---------------------------------------------- */

bool
api_header_has_tag(const char *text, const char *tag, enum api_tags how)
{
    size_t len = tag ? strlen(tag) : 0;
    if (!text)
        return false;
    const char *at = skip_space(text);
    if (*at == '*')
        return !*skip_space(at + 1);
    while (*(at += strspn(at, ", \t"))) {
        bool is_weak = strncmp(at, "W/", 2) == 0;
        if (is_weak)
            at += 2;
        const char *end = *at == '"' ? strchr(at + 1, '"') : NULL;
        if (!end)
            return false;
        end++;
        bool counts = tag && (!is_weak || how == API_TAG_WEAK);
        bool is_it = counts && (size_t)(end - at) == len && memcmp(at, tag, len) == 0;
        at = skip_space(end);
        if (is_it || (*at && *at != ','))
            return is_it && (!*at || *at == ',');
    }
    return false;
}

/* --- Accept --------------------------------------------------------------- */

/* Parses "0", "0.5", "1.000" into thousandths. Returns false for a text that is no
   weight. */
static bool
parse_weight(const char *at, const char *end, int *ret)
{
    int n = 0, place = 1000;
    if (at == end || (*at != '0' && *at != '1'))
        return false;
    n = (*at++ - '0') * place;
    if (at < end && *at++ != '.')
        return false;
    for (; at < end && is_digit(*at) && place > 1; at++)
        n += (*at - '0') * (place /= 10);
    *ret = n;
    return at == end && n <= 1000;
}

/* Finds the weight of an element, 1000 where it names none. Other parameters are
   ignored. Returns false when the weight cannot be parsed. */
static bool
find_weight(const char *at, const char *end, int *ret)
{
    *ret = 1000;
    while (at < end) {
        const char *stop = element_end(at + 1, ";,");
        const char *name = skip_space(at + 1);
        at = stop;
        while (stop > name && strchr(" \t", stop[-1]))
            stop--;
        if (strncasecmp(name, "q=", 2) == 0)
            return parse_weight(name + 2, stop, ret);
    }
    return true;
}

/* Returns how closely the media range matches: 0 not at all, 1 any type, 2 any
   subtype, 3 the type itself. */
static int
match_range(const char *range, size_t len, const char *type)
{
    size_t major = strcspn(type, "/") + 1;
    if (len == 3 && memcmp(range, "*/*", 3) == 0)
        return 1;
    if (len == major + 1 && range[major] == '*' && !strncasecmp(range, type, major))
        return 2;
    return len == strlen(type) && !strncasecmp(range, type, len) ? 3 : 0;
}

/* Returns the weight that an Accept gives to a type, which is that of the closest
   range, or -1 when no part of it can be parsed. */
static int
weight_for(const char *text, const char *type)
{
    int best = 0, weight = -1;
    for (const char *at = text; *(at += strspn(at, ", \t"));) {
        const char *end = element_end(at, ",");
        size_t len = strcspn(at, "; \t,");
        int one;
        if (find_weight(element_end(at, ";,"), end, &one)) {
            int fits = match_range(at, len, type);
            if (weight < 0)
                weight = 0;
            if (fits && (fits > best || (fits == best && one > weight))) {
                best = fits;
                weight = one;
            }
        }
        at = end;
    }
    return weight;
}

size_t
api_header_choose(const char *text, const char *const types[], size_t n)
{
    size_t chosen = n;
    int most = 0;
    for (size_t i = 0; i < n; i++) {
        int weight = text ? weight_for(text, types[i]) : -1;
        if (weight < 0)
            return 0;
        if (weight > most) {
            most = weight;
            chosen = i;
        }
    }
    return chosen;
}

/* --- Repr-Digest ---------------------------------------------------------- */

static const char field[] = "sha-256=:";

enum { DIGITS = 44 /* of base64, with one "=" */ };

bool
api_header_digest_of(const char *id, char ret[API_HEADER_DIGEST])
{
    unsigned char bytes[DIGEST_BYTES];
    if (!digest_is_id(id))
        return false;
    digest_bytes_of(id, bytes);
    memcpy(ret, field, sizeof field - 1);
    digest_base64(bytes, sizeof bytes, ret + sizeof field - 1);
    memcpy(ret + sizeof field - 1 + DIGITS, ":", 2);
    return true;
}

/* Decodes the digits into an id. Returns false when they are no digest in the one form that it
   has in base64. */
static bool
parse_digest(const char *at, char ret[API_HEADER_ID])
{
    unsigned char bytes[DIGITS / 4 * 3];
    char again[DIGITS + 1];
    size_t n;
    if (strnlen(at, DIGITS + 1) <= DIGITS || at[DIGITS] != ':' ||
        !strchr(";, \t", at[DIGITS + 1]) || /* also matches the NUL at the end */
        !digest_unbase64(at, DIGITS, bytes, &n) || n != DIGEST_BYTES)
        return false;
    digest_base64(bytes, n, again);
    digest_id_of(bytes, ret);
    return memcmp(again, at, DIGITS) == 0;
}

bool
api_header_digest(const char *text, char ret[API_HEADER_ID],
                  struct api_problem *problem)
{
    static const size_t name_len = sizeof field - 3; /* without "=:" and the NUL */
    ret[0] = '\0';
    for (const char *at = text ? text : ""; *(at += strspn(at, ", \t"));) {
        const char *end = element_end(at, ",");
        bool ours = strcspn(at, "=;, \t") == name_len && !strncmp(at, field, name_len);
        if (ours && (strncmp(at, field, sizeof field - 1) != 0 ||
                     !parse_digest(at + sizeof field - 1, ret)))
            return api_fail(problem, API_BAD_REQUEST,
                            "the header Repr-Digest has no sha-256 of 32 bytes in "
                            "base64 between colons");
        at = end;
    }
    return true;
}
