/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/text/unicode.h"

#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "ground/base/arena.h"

/* --- texts ------------------------------------------------------------------ */

bool
qdqi_text_add(struct qdqi_text *text, const char *from, size_t size)
{
    if (size > text->capacity - text->size) {
        char *grown =
            size > SIZE_MAX - text->size
                ? NULL
                : qdqi_grow(text->data, &text->capacity, text->size + size, 1);
        if (!grown)
            return false;
        text->data = grown;
    }
    if (size > 0)
        memcpy(text->data + text->size, from, size);
    text->size += size;
    return true;
}

size_t
qdqi_utf8_encode(uint32_t c, char to[4])
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    const size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)((0xf00 >> n & 0xff) | c);
    return n;
}

static bool
add_char(struct qdqi_text *text, uint32_t c)
{
    char bytes[4];
    return qdqi_text_add(text, bytes, qdqi_utf8_encode(c, bytes));
}

bool
qdqi_unicode_is_there(void)
{
    return utf8proc_version() != NULL;
}

/* --- UTF-8 ------------------------------------------------------------------ */

/* Returns how many bytes a character has by its first one; 0: none begins so. */
static size_t
length(unsigned char first)
{
    return first < 0x80   ? 1
           : first < 0xc2 ? 0
           : first < 0xe0 ? 2
           : first < 0xf0 ? 3
           : first < 0xf5 ? 4
                          : 0;
}

uint32_t
qdqi_utf8_next(const char *text, size_t size, size_t *at)
{
    const unsigned char *s = (const unsigned char *)text + *at;
    size_t n = length(*s);
    if (n == 0 || n > size - *at)
        n = 1;
    uint32_t c = n == 1 ? *s : *s & (0x7fu >> n);
    for (size_t i = 1; i < n; i++)
        c = c << 6 | (s[i] & 0x3f);
    *at += n;
    return c;
}

uint32_t
qdqi_utf8_before(const char *text, size_t at)
{
    size_t start = at - 1;
    while (start > 0 && at - start < 4 && ((unsigned char)text[start] & 0xc0) == 0x80)
        start--;
    return qdqi_utf8_next(text, at, &start);
}

size_t
qdqi_utf8_check(const char *text, size_t size)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    for (size_t at = 0; at < size;) {
        const size_t n = length((unsigned char)text[at]), start = at;
        if (n == 0 || n > size - at)
            return at;
        for (size_t i = 1; i < n; i++)
            if (((unsigned char)text[at + i] & 0xc0) != 0x80)
                return at;
        const uint32_t c = qdqi_utf8_next(text, size, &at);
        if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
            return start;
    }
    return size;
}

/* --- characters that came later ------------------------------------------------- */

/*
 * The library's forms and marks are those of Unicode 9, and its signs of punctuation those of Unicode
 * 8: characters that came later stay as they are and are neither. The ranges have no older ones of
 * these kinds.
 */
struct range {
    uint32_t first, last;
};

static const struct range later_marks[] = {
    {0x7fd, 0x7fd},     {0x897, 0x8d3},     {0x9fe, 0x9fe},     {0xafa, 0xaff},
    {0xb55, 0xb55},     {0xc04, 0xc3c},     {0xcf3, 0xd00},     {0xd3b, 0xd3c},
    {0xd81, 0xd81},     {0xeba, 0xeba},     {0xece, 0xece},     {0x1715, 0x1715},
    {0x180f, 0x180f},   {0x1abf, 0x1ace},   {0x1cf7, 0x1cf7},   {0x1df6, 0x1dfa},
    {0x32ff, 0x32ff},   {0xa7f2, 0xa7f4},   {0xa82c, 0xa82c},   {0xa8ff, 0xa8ff},
    {0xab69, 0xab69},   {0x105c9, 0x107ba}, {0x10d24, 0x10f85}, {0x11070, 0x11074},
    {0x110c2, 0x110c2}, {0x11145, 0x11146}, {0x111c9, 0x111c9}, {0x111ce, 0x111cf},
    {0x11241, 0x11241}, {0x1133b, 0x1133b}, {0x11383, 0x113e2}, {0x1145e, 0x1145e},
    {0x1182c, 0x11a99}, {0x11d31, 0x1612f}, {0x16d40, 0x16f4f}, {0x16f7f, 0x16f87},
    {0x16fe4, 0x16ff1}, {0x1ccd6, 0x1cf46}, {0x1e030, 0x1e5ef}, {0x1f16c, 0x1f16c},
    {0x1fbf0, 0x1fbf9},
};
static const struct range later_punctuation[] = {
    {0x61d, 0x61d},     {0x9fd, 0xa76},     {0xc77, 0xc84},     {0x1b4e, 0x1b4f},
    {0x1b7d, 0x1b7f},   {0x2e43, 0x2e5d},   {0x10d6e, 0x10f89}, {0x113d4, 0x1145d},
    {0x11660, 0x116b9}, {0x1183b, 0x11fff}, {0x12ff1, 0x12ff2}, {0x16d6d, 0x16fe2},
    {0x1e5ff, 0x1e95f},
};

static bool
is_in(uint32_t c, const struct range *ranges, size_t n)
{
    size_t low = 0, high = n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (c > ranges[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && c >= ranges[low].first;
}

/* Returns whether the forms do not know the character. */
static bool
is_later(uint32_t c)
{
    return c >= later_marks[0].first &&
           is_in(c, later_marks, sizeof later_marks / sizeof *later_marks);
}

/* --- classes ---------------------------------------------------------------- */

bool
qdqi_char_is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

static utf8proc_category_t
category(uint32_t c)
{
    return utf8proc_category((utf8proc_int32_t)c);
}

bool
qdqi_char_is_numeric(uint32_t c)
{
    if (c < 0x80)
        return c >= '0' && c <= '9';
    const utf8proc_category_t k = category(c);
    return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL ||
           k == UTF8PROC_CATEGORY_NO;
}

static bool
is_mark(utf8proc_category_t k)
{
    return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_MC ||
           k == UTF8PROC_CATEGORY_ME;
}

/* Control and format characters and those of private use are the ones of Unicode 8. */
bool
qdqi_char_is_control(uint32_t c)
{
    static const struct range later[] = {
        {0x890, 0x891}, {0x8e2, 0x8e2}, {0x110cd, 0x110cd}, {0x13430, 0x1343f}};
    if (c == '\t' || c == '\n' || c == '\r')
        return false;
    const utf8proc_category_t k = category(c);
    return c == 0 || c == 0xfffd || k == UTF8PROC_CATEGORY_CC ||
           k == UTF8PROC_CATEGORY_CO ||
           (k == UTF8PROC_CATEGORY_CF &&
            !is_in(c, later, sizeof later / sizeof *later));
}

/* Those are the ones of Unicode 8, too. */
bool
qdqi_char_is_nonspacing(uint32_t c)
{
    static const struct range since_nine[] = {
        {0x8d4, 0x8e1},     {0x1885, 0x1886},   {0x1dfb, 0x1dfb},   {0xa8c5, 0xa8c5},
        {0xa9bd, 0xa9bd},   {0x1123e, 0x1123e}, {0x11438, 0x11446}, {0x11c30, 0x11cb6},
        {0x1e000, 0x1e02a}, {0x1e944, 0x1e94a}};
    const bool was_one = c == 0x1734;
    return was_one || (c >= 0x80 && !is_later(c) &&
                       !is_in(c, since_nine, sizeof since_nine / sizeof *since_nine) &&
                       category(c) == UTF8PROC_CATEGORY_MN);
}

bool
qdqi_char_is_ideograph(uint32_t c)
{
    static const struct range all[] = {
        {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},  {0x20000, 0x2a6df},
        {0x2a700, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};
    return is_in(c, all, sizeof all / sizeof *all);
}

/* Returns whether a symbol counts as alphabetic: Latin letters in circles and squares. */
static bool
is_framed_letter(uint32_t c)
{
    return (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
           (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189);
}

bool
qdqi_char_is_word(uint32_t c)
{
    if (c < 0x80)
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
               (c >= 'a' && c <= 'z') || c == '_';
    const utf8proc_category_t k = category(c);
    return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO) || is_mark(k) ||
           k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL ||
           k == UTF8PROC_CATEGORY_PC || c == 0x200c || c == 0x200d ||
           is_framed_letter(c);
}

bool
qdqi_char_is_punctuation(uint32_t c)
{
    if (c < 0x80)
        return c > ' ' && c < 0x7f && !qdqi_char_is_word(c) ? true : c == '_';
    if (c == 0x166d || c == 0x111c9) /* were punctuation then */
        return true;
    const utf8proc_category_t k = category(c);
    return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO &&
           !is_in(c, later_punctuation,
                  sizeof later_punctuation / sizeof *later_punctuation);
}

/* --- normal forms ------------------------------------------------------------- */

/* Characters of a part of the text, decomposed. */
struct characters {
    utf8proc_int32_t *rows;
    size_t n, capacity;
};

static bool
decompose(struct characters *to, uint32_t c, bool compatible)
{
    enum { MOST = 32 }; /* no character has more */
    const utf8proc_option_t options =
        UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
    utf8proc_int32_t *grown =
        to->capacity - to->n >= MOST
            ? to->rows
            : qdqi_grow(to->rows, &to->capacity, to->n + MOST, sizeof *to->rows);
    if (!grown)
        return false;
    to->rows = grown;
    if (is_later(c)) {
        to->rows[to->n++] = (utf8proc_int32_t)c;
        return true;
    }
    const utf8proc_ssize_t n = utf8proc_decompose_char(
        (utf8proc_int32_t)c, to->rows + to->n, MOST, options, NULL);
    if (n >= 0 && n <= MOST)
        to->n += (size_t)n;
    return true;
}

static unsigned
class_of(utf8proc_int32_t c)
{
    const utf8proc_property_t *p = utf8proc_get_property(c);
    return p && !is_later((uint32_t)c) ? (unsigned)p->combining_class & 0xff : 0;
}

/* Sorts n characters that combine by their classes and leaves equal ones in their order. A count by
   class takes the same time for any run. */
static bool
sort_run(utf8proc_int32_t *rows, size_t n)
{
    size_t starts[257] = {0};
    utf8proc_int32_t few[32], *copy = n <= 32 ? few : malloc(n * sizeof *copy);
    if (!copy)
        return false;
    memcpy(copy, rows, n * sizeof *copy);
    for (size_t i = 0; i < n; i++)
        starts[class_of(copy[i]) + 1]++;
    for (size_t i = 1; i < 257; i++)
        starts[i] += starts[i - 1];
    for (size_t i = 0; i < n; i++)
        rows[starts[class_of(copy[i])]++] = copy[i];
    if (copy != few)
        free(copy);
    return true;
}

static bool
sort_marks(struct characters *c)
{
    for (size_t i = 0; i < c->n; i++) {
        size_t end = i;
        while (end < c->n && class_of(c->rows[end]) != 0)
            end++;
        if (end - i > 1 && !sort_run(c->rows + i, end - i))
            return false;
        i = end;
    }
    return true;
}

/* Composes n characters, of which at most as many remain. */
static size_t
compose(utf8proc_int32_t *rows, size_t n)
{
    const utf8proc_ssize_t left = utf8proc_normalize_utf32(
        rows, (utf8proc_ssize_t)n, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    return left >= 0 ? (size_t)left : n;
}

/* Composes all characters; those that came later do not take part. */
static void
compose_all(struct characters *c)
{
    size_t n = 0;
    for (size_t i = 0, end; i < c->n; i = end) {
        const bool stays = is_later((uint32_t)c->rows[i]);
        end = i + 1;
        while (!stays && end < c->n && !is_later((uint32_t)c->rows[end]))
            end++;
        const size_t left = stays ? 1 : compose(c->rows + i, end - i);
        memmove(c->rows + n, c->rows + i, left * sizeof *c->rows);
        n += left;
    }
    c->n = n;
}

/* Appends a part of the text: no character before it or behind it combines with one of it. */
static bool
add_part(struct qdqi_text *to, struct characters *c, const char *text, size_t size,
         enum qdq_text_op form)
{
    c->n = 0;
    for (size_t at = 0; at < size;)
        if (!decompose(c, qdqi_utf8_next(text, size, &at),
                       form == QDQ_TEXT_NFKC || form == QDQ_TEXT_NFKD))
            return false;
    if (!sort_marks(c))
        return false;
    if (form == QDQ_TEXT_NFC || form == QDQ_TEXT_NFKC)
        compose_all(c);
    for (size_t i = 0; i < c->n; i++)
        if (!add_char(to, (uint32_t)c->rows[i]))
            return false;
    return true;
}

static bool
is_ascii(const char *text, size_t at)
{
    return (unsigned char)text[at] < 0x80;
}

bool
qdqi_text_add_form(struct qdqi_text *to, const char *text, size_t size,
                   enum qdq_text_op form)
{
    struct characters c = {0};
    bool ok = true;
    for (size_t at = 0; at < size && ok;) {
        size_t plain = at;
        while (plain < size && is_ascii(text, plain))
            plain++;
        /* ASCII stays, but its last character may combine with what follows. */
        if (plain < size && plain > at)
            plain--;
        size_t end = plain;
        if (end < size)
            end++;
        while (end < size && !is_ascii(text, end))
            end++;
        ok = qdqi_text_add(to, text + at, plain - at) &&
             (end == plain || add_part(to, &c, text + plain, end - plain, form));
        at = end;
    }
    free(c.rows);
    return ok;
}

bool
qdqi_text_add_lower(struct qdqi_text *to, const char *text, size_t size)
{
    enum { I_WITH_DOT = 0x130, DOT_ABOVE = 0x307 };
    for (size_t at = 0; at < size;) {
        uint32_t c = qdqi_utf8_next(text, size, &at);
        const bool is_two = c == I_WITH_DOT; /* the only one that becomes two */
        if (c < 0x80)
            c = c >= 'A' && c <= 'Z' ? c | 0x20 : c;
        else
            c = is_two ? 'i' : (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
        if (!add_char(to, c) || (is_two && !add_char(to, DOT_ABOVE)))
            return false;
    }
    return true;
}

bool
qdqi_text_add_unmarked(struct qdqi_text *to, const char *text, size_t size)
{
    for (size_t at = 0; at < size;) {
        const size_t start = at;
        const uint32_t c = qdqi_utf8_next(text, size, &at);
        const bool was_mark = c == 0x1cf2 || c == 0x1cf3; /* in Unicode 9 */
        if ((c < 0x80 || is_later(c) || !is_mark(category(c))) && !was_mark &&
            !qdqi_text_add(to, text + start, at - start))
            return false;
    }
    return true;
}

static uint32_t
char_of_byte(unsigned char byte)
{
    const unsigned b = byte;
    if ((b >= '!' && b <= '~') || (b >= 0xa1 && b != 0xad))
        return b;
    /* the others are counted: 0 to 0x20, 0x7f to 0xa0, 0xad */
    return 0x100 + (b <= 0x20 ? b : b <= 0xa0 ? b - 0x7f + 0x21 : 0x43);
}

bool
qdqi_text_add_bytes(struct qdqi_text *to, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!add_char(to, char_of_byte((unsigned char)text[i])))
            return false;
    return true;
}
