/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regular expressions of Oniguruma (doc/RE of its sources, the syntax for Ruby), rewritten for
 * PCRE2. Most is the same; classes of characters have other extents, and some signs mean other
 * things. Rare signs that differ are refused.
 */
#include "config.h"
#include "files/text/pattern.h"
#include "ground/base/arena.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_GROUPS = 64, MOST_PATTERN = 16384 };

struct rewriting {
    const char *from, *member;
    size_t size, at;
    struct qdqi_text *to;
    size_t atom;                /* where the last atom begins in `to` */
    size_t groups[MOST_GROUPS]; /* where the open groups begin in `to` */
    size_t n_groups;
    bool in_class;
    struct qdq_error *err;
};

static enum qdq_code
refuse(const struct rewriting *r, const char *what)
{
    return qdq_error_set(r->err, QDQ_UNSUPPORTED, QDQ_AT_POINTER, r->member,
                         "a regular expression has %s at byte %zu, which is not read "
                         "here",
                         what, r->at);
}

static enum qdq_code
put(struct rewriting *r, const char *text, size_t size)
{
    return qdqi_text_add(r->to, text, size) ? QDQ_OK : qdqi_no_memory(r->err);
}

static enum qdq_code
put_text(struct rewriting *r, const char *text)
{
    return put(r, text, strlen(text));
}

/* Returns the byte i places behind the current one; 0 behind the end. */
static char
peek(const struct rewriting *r, size_t i)
{
    return i < r->size - r->at ? r->from[r->at + i] : '\0';
}

static bool
follows(const struct rewriting *r, const char *text)
{
    const size_t n = strlen(text);
    return n <= r->size - r->at && memcmp(r->from + r->at, text, n) == 0;
}

/* Puts text and moves n bytes on. */
static enum qdq_code
replace(struct rewriting *r, const char *text, size_t n)
{
    const enum qdq_code code = put_text(r, text);
    r->at += n;
    return code;
}

/* --- escapes ------------------------------------------------------------------ */

/* \w matches this there, superscripts and fractions of Latin-1, too. */
#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\xb2\\xb3\\xb9\\xbc-\\xbe"

/* Escapes of one letter: what they are in a class of characters and outside. NULL: refused. */
static const struct {
    char letter;
    const char *inside, *outside;
} escapes[] = {
    {'s', "\\p{White_Space}", "\\p{White_Space}"},
    {'S', "\\P{White_Space}", "\\P{White_Space}"},
    {'d', "\\p{Nd}", "\\p{Nd}"},
    {'D', "\\P{Nd}", "\\P{Nd}"},
    {'w', WORD, "[" WORD "]"},
    {'W', NULL, "[^" WORD "]"},
    {'h', "0-9A-Fa-f", "[0-9A-Fa-f]"},
    {'H', NULL, "[^0-9A-Fa-f]"},
    {'n', "\\n", "\\n"},
    {'r', "\\r", "\\r"},
    {'t', "\\t", "\\t"},
    {'f', "\\f", "\\f"},
    {'e', "\\e", "\\e"},
    {'a', "\\a", "\\a"},
    {'v', "\\x0b", "\\x0b"},
    {'b', "\\x08", "(?:(?<=[" WORD "])(?![" WORD "])|(?<![" WORD "])(?=[" WORD "]))"},
    {'B', NULL, "(?:(?<=[" WORD "])(?=[" WORD "])|(?<![" WORD "])(?![" WORD "]))"},
    {'A', NULL, "\\A"},
    {'z', NULL, "\\z"},
    {'Z', NULL, "\\Z"},
    {'R', NULL, "\\R"},
};

/* Long names of general categories, which scripts are told from by this table. */
static const struct {
    const char *name, *category;
} categories[] = {
    {"Letter", "L"},
    {"Mark", "M"},
    {"Number", "N"},
    {"Punctuation", "P"},
    {"Symbol", "S"},
    {"Separator", "Z"},
    {"Other", "C"},
    {"Punct", "P"},
    {"Alphabetic", "Alphabetic"},
    {"Alpha", "Alphabetic"},
    {"White_Space", "White_Space"},
    {"Space", "White_Space"},
    {"Lowercase_Letter", "Ll"},
    {"Uppercase_Letter", "Lu"},
    {"Decimal_Number", "Nd"},
    {"Digit", "Nd"},
};

/* Rewrites \p{NAME}, \p{^NAME} and \P{NAME}. */
static enum qdq_code
property(struct rewriting *r)
{
    char name[40], text[64];
    bool negated = peek(r, 1) == 'P';
    size_t i = 3, n = 0;
    if (peek(r, 2) != '{')
        return refuse(r, "a property without {}");
    if (peek(r, i) == '^') {
        negated = !negated;
        i++;
    }
    while (n + 1 < sizeof name &&
           (isalnum((unsigned char)peek(r, i)) || peek(r, i) == '_'))
        name[n++] = peek(r, i++);
    name[n] = '\0';
    if (n == 0 || peek(r, i) != '}')
        return refuse(r, "a property of an unknown name");
    const char *known = n <= 2 ? name : NULL, *kind = "";
    for (size_t k = 0; k < sizeof categories / sizeof *categories && !known; k++)
        if (strcmp(name, categories[k].name) == 0)
            known = categories[k].category;
    if (!known) {
        kind = "sc:"; /* a script itself, without the characters that it shares */
        known = name;
    }
    snprintf(text, sizeof text, "\\%c{%s%s}", negated ? 'P' : 'p', kind, known);
    return replace(r, text, i + 1);
}

/* Rewrites \xHH, \x{H…} and \uHHHH. */
static enum qdq_code
number(struct rewriting *r)
{
    const bool is_long = peek(r, 1) == 'u', has_braces = peek(r, 2) == '{';
    const size_t start = has_braces && !is_long ? 3 : 2, most = is_long      ? 4
                                                                : start == 3 ? 6
                                                                             : 2;
    size_t n = 0;
    char text[16];
    while (n < most && isxdigit((unsigned char)peek(r, start + n)))
        n++;
    const bool ended = start == 2 || peek(r, start + n) == '}';
    if (n == 0 || !ended || (is_long && n < 4) ||
        (start == 2 && !is_long && n == 2 && peek(r, 2) > '7'))
        return refuse(r, "a number of a character");
    snprintf(text, sizeof text, "\\x{%.*s}", (int)n, r->from + r->at + start);
    return replace(r, text, start + n + (start == 3));
}

static enum qdq_code
escape(struct rewriting *r)
{
    const char c = peek(r, 1);
    if (r->size - r->at < 2)
        return refuse(r, "a \\ at its end");
    if (c == 'p' || c == 'P')
        return property(r);
    if (c == 'x' || c == 'u')
        return number(r);
    for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++) {
        const char *text = r->in_class ? escapes[i].inside : escapes[i].outside;
        if (c == escapes[i].letter && text)
            return replace(r, text, 2);
    }
    if (isalnum((unsigned char)c) || c == '\0')
        return refuse(r, "an escape");
    if ((unsigned char)c >= 0x80) {
        r->at++; /* the character itself follows */
        return QDQ_OK;
    }
    const enum qdq_code code = put(r, r->from + r->at, 2);
    r->at += 2;
    return code;
}

/* --- classes ------------------------------------------------------------------ */

static enum qdq_code
open_class(struct rewriting *r)
{
    r->in_class = true;
    enum qdq_code code = replace(r, "[", 1);
    if (code == QDQ_OK && peek(r, 0) == '^')
        code = replace(r, "^", 1);
    return code == QDQ_OK && peek(r, 0) == ']' ? refuse(r, "an empty class") : code;
}

static enum qdq_code
in_class(struct rewriting *r)
{
    const char c = peek(r, 0);
    if (c == '\\')
        return escape(r);
    if (c == '[')
        return refuse(r, "a class within a class");
    if (follows(r, "&&"))
        return refuse(r, "an intersection of classes");
    r->in_class = c != ']';
    const enum qdq_code code = put(r, &c, 1);
    r->at++;
    return code;
}

/* --- groups and repeats --------------------------------------------------------- */

/* Rewrites the options of (?i: or (?i), where m lets . match a new line, too. */
static enum qdq_code
options(struct rewriting *r)
{
    char text[16] = "(?";
    size_t n = 2, i = 2;
    for (; n < 10 && peek(r, i) && strchr("imx-", peek(r, i)); i++)
        text[n++] = peek(r, i) == 'm' ? 's' : peek(r, i);
    const char end = peek(r, i);
    if (n == 2 || (end != ':' && end != ')'))
        return refuse(r, "a group of an unknown kind");
    if (end == ')' && r->at > 0)
        return refuse(r, "options that do not stand at its start");
    text[n] = end;
    text[n + 1] = '\0';
    r->n_groups -= end == ')';
    return replace(r, text, i + 1);
}

static enum qdq_code
open_group(struct rewriting *r)
{
    static const char *const kinds[] = {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!"};
    if (r->n_groups == MOST_GROUPS)
        return refuse(r, "groups within groups, too many,");
    r->groups[r->n_groups++] = r->to->size;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (follows(r, kinds[i]))
            return replace(r, kinds[i], strlen(kinds[i]));
    if (peek(r, 1) == '?')
        return options(r);
    return peek(r, 1) == '*' ? refuse(r, "a (*") : replace(r, "(?:", 1);
}

static enum qdq_code
close_group(struct rewriting *r)
{
    if (r->n_groups == 0)
        return refuse(r, "a ) without its (");
    r->atom = r->groups[--r->n_groups];
    return replace(r, ")", 1);
}

/* Returns the number of bytes of {n}, {n,}, {,m} or {n,m} at the current byte; 0: it is none. */
static size_t
interval(const struct rewriting *r)
{
    size_t i = 1, digits = 0;
    for (; isdigit((unsigned char)peek(r, i)); i++)
        digits++;
    if (peek(r, i) == ',')
        for (i++; isdigit((unsigned char)peek(r, i)); i++)
            digits++;
    return digits > 0 && digits <= 8 && peek(r, i) == '}' ? i + 1 : 0;
}

/* A + or ? behind {n,m} repeats the whole, but for {n,m}?, which is the least number. */
static enum qdq_code
repeat(struct rewriting *r)
{
    const size_t n = interval(r);
    if (n == 0)
        return replace(r, "\\{", 1);
    const bool is_open = peek(r, 1) == ',';
    const bool has_comma = memchr(r->from + r->at, ',', n);
    const char next = peek(r, n);
    enum qdq_code code = put_text(r, is_open ? "{0" : "{");
    if (code == QDQ_OK)
        code = put(r, r->from + r->at + 1, n - 1);
    r->at += n;
    if (code != QDQ_OK || !(next == '+' || (next == '?' && !has_comma)))
        return code;
    const size_t tail = r->to->size - r->atom;
    code = put(r, "(?:)", 4);
    if (code != QDQ_OK)
        return code;
    memmove(r->to->data + r->atom + 3, r->to->data + r->atom, tail);
    memcpy(r->to->data + r->atom, "(?:", 3);
    return QDQ_OK; /* the + or ? follows as it is */
}

static enum qdq_code
literal(struct rewriting *r)
{
    size_t n = 1;
    r->atom = r->to->size;
    while (((unsigned char)peek(r, n) & 0xc0) == 0x80)
        n++;
    const enum qdq_code code = put(r, r->from + r->at, n);
    r->at += n;
    return code;
}

static enum qdq_code
one(struct rewriting *r)
{
    const char c = peek(r, 0);
    if (r->in_class)
        return in_class(r);
    if (c == '(')
        return open_group(r);
    if (c == ')')
        return close_group(r);
    if (c == '{')
        return repeat(r);
    if (c == '\0')
        return refuse(r, "a NUL");
    if (strchr("*+?|", c)) {
        const enum qdq_code code = put(r, &c, 1);
        r->at++;
        return code;
    }
    r->atom = r->to->size;
    return c == '\\' ? escape(r) : c == '[' ? open_class(r) : literal(r);
}

enum qdq_code
qdqi_pattern_rewrite(struct qdq_string pattern, const char *member,
                     struct qdqi_text *ret, struct qdq_error *err)
{
    struct rewriting r = {.from = pattern.data,
                          .member = member,
                          .size = pattern.size,
                          .to = ret,
                          .err = err};
    enum qdq_code code = QDQ_OK;
    if (pattern.size > MOST_PATTERN)
        return refuse(&r, "too many bytes");
    while (code == QDQ_OK && r.at < r.size)
        code = one(&r);
    if (code == QDQ_OK && (r.in_class || r.n_groups > 0))
        code = refuse(&r, "no end of a class or group");
    return code;
}
