/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/text/added.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ADDED = 1 << 17, MOST_SIZE = 256 };

struct token {
    struct qdq_string text; /* as it is looked for */
    struct qdq_added_token how;
    uint32_t id;
};

/* Sorted by texts; starts[b] is the first whose text begins with the byte b. */
struct qdqi_added {
    struct token *tokens;
    size_t n;
    size_t starts[257];
};

/* --- the list --------------------------------------------------------------------- */

static int
by_text(const void *a, const void *b)
{
    const struct qdq_string x = ((const struct token *)a)->text,
                            y = ((const struct token *)b)->text;
    const int order = memcmp(x.data, y.data, x.size < y.size ? x.size : y.size);
    return order ? order : (x.size > y.size) - (x.size < y.size);
}

static void
find_starts(struct qdqi_added *added)
{
    size_t i = 0;
    for (unsigned b = 0; b < 257; b++) {
        while (i < added->n && (unsigned char)added->tokens[i].text.data[0] < b)
            i++;
        added->starts[b] = i;
    }
}

static enum qdq_code
check_size(size_t i, size_t size, struct qdq_error *err)
{
    char member[64];
    snprintf(member, sizeof member, "/added_tokens/%zu", i);
    return size <= MOST_SIZE
               ? QDQ_OK
               : qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_POINTER, member,
                               "an added token has %zu bytes, and %d are read here",
                               size, MOST_SIZE);
}

static int
by_content(const void *a, const void *b, void *arg)
{
    const struct qdq_added_token *rows = arg;
    const size_t i = *(const size_t *)a, j = *(const size_t *)b;
    const struct qdq_string x = rows[i].content, y = rows[j].content;
    const size_t n = x.size < y.size ? x.size : y.size;
    const int order = n > 0 ? memcmp(x.data, y.data, n) : 0;
    if (order || x.size != y.size)
        return order ? order : (x.size > y.size) - (x.size < y.size);
    return (i > j) - (i < j);
}

static bool
is_same(struct qdq_string a, struct qdq_string b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Finds for each added token the first and the last of the same content. */
static void
find_repeated(const struct qdq_tokenizer_form *form, size_t *order, size_t *first,
              size_t *last)
{
    for (size_t i = 0; i < form->n_added; i++)
        order[i] = i;
    qsort_r(order, form->n_added, sizeof *order, by_content,
            (void *)(uintptr_t)form->added);
    for (size_t i = 0, end; i < form->n_added; i = end) {
        for (end = i; end < form->n_added && is_same(form->added[order[i]].content,
                                                     form->added[order[end]].content);)
            end++;
        for (size_t k = i; k < end; k++) {
            first[order[k]] = order[i];
            last[order[k]] = order[end - 1];
        }
    }
}

/* Finds the ids of all added tokens. Those that the vocabulary lacks are counted on behind it. */
static void
number(const struct qdq_tokenizer_form *form, const struct qdqi_vocab *vocab,
       const size_t *first, uint32_t *ids)
{
    uint32_t most = 0;
    bool has_any = false;
    for (size_t i = 0; i < form->n_added; i++) {
        const struct qdq_string text = form->added[i].content;
        if (text.size == 0)
            continue;
        const int32_t token = qdqi_vocab_find(vocab, text.data, text.size);
        const uint32_t behind = (uint32_t)form->n_vocab;
        if (first[i] != i)
            ids[i] = ids[first[i]];
        else if (token != QDQI_NO_TOKEN)
            ids[i] = qdqi_vocab_id(vocab, token);
        else
            ids[i] = has_any && (most >= behind || behind == 0) ? most + 1 : behind;
        most = !has_any || ids[i] > most ? ids[i] : most;
        has_any = true;
    }
}

static enum qdq_code
add_one(struct qdqi_added *added, size_t i, const struct qdq_added_token *how,
        uint32_t id, qdqi_normalize_fn normalize, void *arg, struct qdqi_arena *arena,
        struct qdq_error *err)
{
    struct qdq_string text = how->content;
    enum qdq_code code = check_size(i, text.size, err);
    if (code == QDQ_OK && how->normalized)
        code = normalize(arg, text, &text, err);
    if (code == QDQ_OK)
        code = check_size(i, text.size, err);
    if (code != QDQ_OK || text.size == 0)
        return code;
    const char *copy = qdqi_arena_copy(arena, text.data, text.size, 1);
    if (!copy)
        return qdqi_no_memory(err);
    added->tokens[added->n++] = (struct token){{copy, text.size}, *how, id};
    return QDQ_OK;
}

/* Keeps the first of tokens that are the same once normalized. */
static void
drop_same(struct qdqi_added *added)
{
    size_t n = 0;
    for (size_t i = 0; i < added->n; i++)
        if (n == 0 || !is_same(added->tokens[n - 1].text, added->tokens[i].text))
            added->tokens[n++] = added->tokens[i];
    added->n = n;
}

enum qdq_code
qdqi_added_new(const struct qdq_tokenizer_form *form, const struct qdqi_vocab *vocab,
               bool normalized, qdqi_normalize_fn normalize, void *arg,
               struct qdqi_arena *arena, struct qdqi_added **ret, struct qdq_error *err)
{
    const size_t n = form->n_added;
    if (n > MOST_ADDED)
        return qdq_error_set(err, QDQ_LIMIT_EXCEEDED, QDQ_AT_POINTER, "/added_tokens",
                             "at most %d tokens are read here", MOST_ADDED);
    struct qdqi_added *added = qdqi_arena_alloc(arena, sizeof *added);
    size_t *order = qdqi_arena_array(arena, n, sizeof *order);
    size_t *first = qdqi_arena_array(arena, n, sizeof *first);
    size_t *last = qdqi_arena_array(arena, n, sizeof *last);
    uint32_t *ids = qdqi_arena_array(arena, n, sizeof *ids);
    if (!added || !order || !first || !last || !ids ||
        !(added->tokens = qdqi_arena_array(arena, n, sizeof *added->tokens)))
        return qdqi_no_memory(err);
    enum qdq_code code = QDQ_OK;
    if (n > 0)
        find_repeated(form, order, first, last);
    number(form, vocab, first, ids);
    /* special ones come first, which decides between those that are the same once normalized */
    for (size_t pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < n && code == QDQ_OK; i++) {
            const struct qdq_added_token *how = &form->added[last[i]];
            if (first[i] == i && how->normalized == normalized &&
                how->special == (pass == 0))
                code = add_one(added, i, how, ids[i], normalize, arg, arena, err);
        }
    if (code != QDQ_OK)
        return code;
    if (added->n > 0)
        qsort(added->tokens, added->n, sizeof *added->tokens, by_text);
    drop_same(added);
    find_starts(added);
    *ret = added;
    return QDQ_OK;
}

/* --- cutting ---------------------------------------------------------------------- */

/* Returns the first of the tokens low to high whose byte `depth` is at least `byte`. */
static size_t
bound(const struct qdqi_added *added, size_t low, size_t high, size_t depth,
      unsigned byte)
{
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if ((unsigned char)added->tokens[middle].text.data[depth] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns the longest token at a place of the text, or NULL. */
static const struct token *
longest(const struct qdqi_added *added, struct qdq_string text, size_t at)
{
    const struct token *found = NULL;
    const unsigned first = (unsigned char)text.data[at];
    size_t low = added->starts[first], high = added->starts[first + 1];
    for (size_t depth = 1; low < high; depth++) {
        if (added->tokens[low].text.size == depth)
            found = &added->tokens[low++];
        if (at + depth >= text.size)
            break;
        const unsigned byte = (unsigned char)text.data[at + depth];
        high = bound(added, low, high, depth, byte + 1);
        low = bound(added, low, high, depth, byte);
    }
    return found;
}

static bool
is_single(struct qdq_string text, size_t start, size_t end)
{
    return (start == 0 || !qdqi_char_is_word(qdqi_utf8_before(text.data, start))) &&
           (end == text.size ||
            !qdqi_char_is_word(qdqi_utf8_next(text.data, text.size, &end)));
}

static size_t
skip_space_before(const struct qdqi_cutting *c, size_t start)
{
    while (start > c->taken) {
        const uint32_t one = qdqi_utf8_before(c->text.data, start);
        if (!qdqi_char_is_space(one))
            break;
        do
            start--;
        while (start > c->taken && ((unsigned char)c->text.data[start] & 0xc0) == 0x80);
    }
    return start;
}

static size_t
skip_space_behind(struct qdqi_cutting *c, size_t end)
{
    if (end < c->space_end)
        return c->space_end; /* within white space that was looked at before */
    while (end < c->text.size) {
        size_t next = end;
        if (!qdqi_char_is_space(qdqi_utf8_next(c->text.data, c->text.size, &next)))
            break;
        end = next;
    }
    c->space_end = end;
    return end;
}

/* Finds the next token, and what of the text it takes. */
static bool
find(struct qdqi_cutting *c, struct qdqi_part *ret)
{
    while (c->at < c->text.size) {
        const struct token *token = longest(c->added, c->text, c->at);
        const size_t start = c->at;
        if (!token) {
            c->at++;
            continue;
        }
        c->at = start + token->text.size;
        if (token->how.single_word && !is_single(c->text, start, c->at))
            continue;
        *ret = (struct qdqi_part){start, c->at, true, token->id};
        if (token->how.lstrip)
            ret->start = start > c->taken ? skip_space_before(c, start) : c->taken;
        if (token->how.rstrip)
            ret->end = skip_space_behind(c, c->at);
        return true;
    }
    return false;
}

bool
qdqi_added_next(struct qdqi_cutting *c, struct qdqi_part *ret)
{
    if (c->has_token) {
        *ret = c->token;
        c->has_token = false;
        return true;
    }
    const bool found = find(c, &c->token);
    const size_t start = c->taken, end = found ? c->token.start : c->text.size;
    if (found)
        c->taken = c->token.end;
    else
        c->taken = c->text.size;
    if (start < end) {
        *ret = (struct qdqi_part){start, end, false, 0};
        c->has_token = found;
        return true;
    }
    if (found)
        *ret = c->token;
    return found;
}
