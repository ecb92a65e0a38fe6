/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/text/vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_TOKENS = 1 << 22,
    MOST_MERGES = 1 << 22,
    SHORT = 0x800, /* characters below are looked up in a table */
    MOST_PROBES = 32,
};

struct merge {
    int32_t left, right, result;
    uint32_t rank;
};

/*
 * Tokens are sorted by their texts, so that a search finds each. The table of hashes is a shortcut:
 * a text that has no place within a few probes is searched for, whatever the hashes are.
 */
struct qdqi_vocab {
    struct qdq_string *texts;
    uint32_t *ids;
    size_t n, longest; /* bytes of the longest text */
    int32_t *table;    /* of n_table places; QDQI_NO_TOKEN: free */
    size_t n_table;
    bool is_full; /* some texts have no place in the table */
    int32_t chars[SHORT], bytes[256];
    struct merge *merges; /* sorted by left and right */
    size_t n_merges;
    uint32_t *of_left; /* of each token: its first merge; one more at the end */
};

/* --- texts -------------------------------------------------------------------- */

static int
compare(struct qdq_string a, struct qdq_string b)
{
    const size_t n = a.size < b.size ? a.size : b.size;
    const int order = n > 0 ? memcmp(a.data, b.data, n) : 0;
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

static int
by_text(const void *a, const void *b)
{
    const struct qdq_vocab_token *left = a, *right = b;
    return compare(left->text, right->text);
}

static const uint64_t hash_of_nothing = 0xcbf29ce484222325u; /* FNV-1a of 64 bits */

/* Returns the hash of a text and what stands behind it, given that of the text. */
static uint64_t
hash_more(uint64_t h, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
    return h;
}

static size_t
hash_end(uint64_t h)
{
    return (size_t)(h ^ h >> 32);
}

static size_t
hash(const char *text, size_t size)
{
    return hash_end(hash_more(hash_of_nothing, text, size));
}

static int32_t
search(const struct qdqi_vocab *v, struct qdq_string text)
{
    size_t low = 0, high = v->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = compare(text, v->texts[middle]);
        if (order == 0)
            return (int32_t)middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return QDQI_NO_TOKEN;
}

int32_t
qdqi_vocab_find(const struct qdqi_vocab *v, const char *text, size_t size)
{
    const size_t start = hash(text, size);
    for (size_t i = 0; i < MOST_PROBES; i++) {
        const int32_t token = v->table[(start + i) & (v->n_table - 1)];
        if (token == QDQI_NO_TOKEN)
            return token;
        if (v->texts[token].size == size &&
            memcmp(v->texts[token].data, text, size) == 0)
            return token;
    }
    return v->is_full ? search(v, (struct qdq_string){text, size}) : QDQI_NO_TOKEN;
}

static bool
is_joined(struct qdq_string whole, struct qdq_string a, struct qdq_string b)
{
    return whole.size == a.size + b.size &&
           (a.size == 0 || memcmp(whole.data, a.data, a.size) == 0) &&
           memcmp(whole.data + a.size, b.data, b.size) == 0;
}

/* Returns the token of two texts, one behind the other, whose hash is given. */
static int32_t
find_joined(const struct qdqi_vocab *v, size_t start, struct qdq_string a,
            struct qdq_string b)
{
    for (size_t i = 0; i < v->n_table; i++) {
        const int32_t token = v->table[(start + i) & (v->n_table - 1)];
        if (token == QDQI_NO_TOKEN || is_joined(v->texts[token], a, b))
            return token;
    }
    return QDQI_NO_TOKEN;
}

int32_t
qdqi_vocab_longest(const struct qdqi_vocab *v, struct qdq_string prefix,
                   struct qdq_string text, size_t *ret_size)
{
    uint64_t h = hash_more(hash_of_nothing, prefix.data, prefix.size);
    int32_t ret = QDQI_NO_TOKEN;
    for (size_t at = 0; at < text.size && prefix.size + at < v->longest;) {
        const size_t start = at;
        qdqi_utf8_next(text.data, text.size, &at);
        h = hash_more(h, text.data + start, at - start);
        const int32_t token =
            find_joined(v, hash_end(h), prefix, (struct qdq_string){text.data, at});
        if (token == QDQI_NO_TOKEN)
            continue;
        ret = token;
        *ret_size = at;
    }
    return ret;
}

int32_t
qdqi_vocab_char(const struct qdqi_vocab *v, const char *text, size_t size)
{
    size_t at = 0;
    const uint32_t c = qdqi_utf8_next(text, size, &at);
    return c < SHORT ? v->chars[c] : qdqi_vocab_find(v, text, size);
}

int32_t
qdqi_vocab_byte(const struct qdqi_vocab *v, unsigned char byte)
{
    return v->bytes[byte];
}

uint32_t
qdqi_vocab_id(const struct qdqi_vocab *v, int32_t token)
{
    return v->ids[token];
}

static void
place(struct qdqi_vocab *v, int32_t token)
{
    const size_t start = hash(v->texts[token].data, v->texts[token].size);
    for (size_t i = 0; i < MOST_PROBES; i++) {
        int32_t *at = &v->table[(start + i) & (v->n_table - 1)];
        if (*at == QDQI_NO_TOKEN) {
            *at = token;
            return;
        }
    }
    v->is_full = true;
}

/* Copies the sorted texts one behind the other. */
static bool
copy_texts(struct qdqi_vocab *v, const struct qdq_vocab_token *sorted,
           struct qdqi_arena *arena)
{
    size_t size = 0;
    for (size_t i = 0; i < v->n; i++)
        size += sorted[i].text.size;
    char *to = qdqi_arena_alloc(arena, size);
    for (size_t i = 0; i < v->n && to; i++) {
        if (sorted[i].text.size > 0)
            memcpy(to, sorted[i].text.data, sorted[i].text.size);
        v->texts[i] = (struct qdq_string){to, sorted[i].text.size};
        v->ids[i] = sorted[i].id;
        if (v->texts[i].size > v->longest)
            v->longest = v->texts[i].size;
        to += sorted[i].text.size;
    }
    return to;
}

static bool
add_texts(struct qdqi_vocab *v, const struct qdq_tokenizer_form *form,
          struct qdqi_arena *arena)
{
    v->n = form->n_vocab;
    v->n_table = 64;
    while (v->n_table < 2 * v->n)
        v->n_table *= 2;
    struct qdq_vocab_token *sorted = calloc(v->n + 1, sizeof *sorted);
    v->texts = qdqi_arena_array(arena, v->n, sizeof *v->texts);
    v->ids = qdqi_arena_array(arena, v->n, sizeof *v->ids);
    v->table = qdqi_arena_array(arena, v->n_table, sizeof *v->table);
    bool ok = sorted && v->texts && v->ids && v->table;
    if (ok) {
        memcpy(sorted, form->vocab, v->n * sizeof *sorted);
        qsort(sorted, v->n, sizeof *sorted, by_text);
        ok = copy_texts(v, sorted, arena);
    }
    free(sorted);
    for (size_t i = 0; ok && i < v->n_table; i++)
        v->table[i] = QDQI_NO_TOKEN;
    for (size_t i = 0; ok && i < v->n; i++)
        place(v, (int32_t)i);
    return ok;
}

static void
fill_tables(struct qdqi_vocab *v)
{
    for (uint32_t c = 0; c < SHORT; c++) {
        char text[2] = {(char)c};
        if (c >= 0x80) {
            text[0] = (char)(0xc0 | c >> 6);
            text[1] = (char)(0x80 | (c & 0x3f));
        }
        v->chars[c] = qdqi_vocab_find(v, text, c < 0x80 ? 1 : 2);
    }
    for (unsigned b = 0; b < 256; b++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", b);
        v->bytes[b] = qdqi_vocab_find(v, text, 6);
    }
}

/* --- merges ------------------------------------------------------------------- */

static int
by_pair(const void *a, const void *b)
{
    const struct merge *left = a, *right = b;
    if (left->left != right->left)
        return left->left < right->left ? -1 : 1;
    if (left->right != right->right)
        return left->right < right->right ? -1 : 1;
    return (left->rank > right->rank) - (left->rank < right->rank);
}

static enum qdq_code
read_merge(const struct qdqi_vocab *v, const struct qdq_tokenizer_form *form, size_t i,
           struct qdqi_text *whole, struct merge *ret, struct qdq_error *err)
{
    const struct qdq_string a = form->merges[i].left, b = form->merges[i].right;
    const size_t skip = form->continuing_prefix.size;
    char member[64];
    whole->size = 0;
    if (skip <= b.size && (!qdqi_text_add(whole, a.data, a.size) ||
                           !qdqi_text_add(whole, b.data + skip, b.size - skip)))
        return qdqi_no_memory(err);
    *ret = (struct merge){
        qdqi_vocab_find(v, a.data, a.size), qdqi_vocab_find(v, b.data, b.size),
        skip <= b.size ? qdqi_vocab_find(v, whole->data, whole->size) : QDQI_NO_TOKEN,
        (uint32_t)i};
    if (ret->left != QDQI_NO_TOKEN && ret->right != QDQI_NO_TOKEN &&
        ret->result != QDQI_NO_TOKEN)
        return QDQ_OK;
    snprintf(member, sizeof member, "/model/merges/%zu", i);
    return qdq_error_set(err, QDQ_INVALID_DATASET, QDQ_AT_POINTER, member,
                         "a merge has a token that the vocabulary lacks");
}

/* The last of several merges of the same two tokens counts. */
static void
drop_repeated(struct qdqi_vocab *v)
{
    size_t n = 0;
    for (size_t i = 0; i < v->n_merges; i++) {
        const struct merge *m = &v->merges[i];
        if (n > 0 && v->merges[n - 1].left == m->left &&
            v->merges[n - 1].right == m->right)
            n--;
        v->merges[n++] = *m;
    }
    v->n_merges = n;
}

static enum qdq_code
add_merges(struct qdqi_vocab *v, const struct qdq_tokenizer_form *form,
           struct qdqi_arena *arena, struct qdq_error *err)
{
    struct qdqi_text whole = {0};
    enum qdq_code code = QDQ_OK;
    v->n_merges = form->n_merges;
    v->merges = qdqi_arena_array(arena, v->n_merges, sizeof *v->merges);
    v->of_left = qdqi_arena_array(arena, v->n + 1, sizeof *v->of_left);
    if (!v->merges || !v->of_left)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < v->n_merges && code == QDQ_OK; i++)
        code = read_merge(v, form, i, &whole, &v->merges[i], err);
    free(whole.data);
    if (code != QDQ_OK || v->n_merges == 0)
        return code;
    qsort(v->merges, v->n_merges, sizeof *v->merges, by_pair);
    drop_repeated(v);
    for (size_t token = 0, i = 0; token <= v->n; token++) {
        while (i < v->n_merges && v->merges[i].left < (int32_t)token)
            i++;
        v->of_left[token] = (uint32_t)i;
    }
    return QDQ_OK;
}

uint32_t
qdqi_vocab_merge(const struct qdqi_vocab *v, int32_t left, int32_t right, int32_t *ret)
{
    size_t low = v->of_left[left], high = v->of_left[left + 1];
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct merge *m = &v->merges[middle];
        if (m->right == right) {
            *ret = m->result;
            return m->rank;
        }
        if (right < m->right)
            high = middle;
        else
            low = middle + 1;
    }
    return UINT32_MAX;
}

/* --- the whole ---------------------------------------------------------------- */

enum qdq_code
qdqi_vocab_new(const struct qdq_tokenizer_form *form, struct qdqi_arena *arena,
               struct qdqi_vocab **ret, struct qdq_error *err)
{
    if (form->n_vocab > MOST_TOKENS || form->n_merges > MOST_MERGES)
        return qdq_error_set(err, QDQ_LIMIT_EXCEEDED, QDQ_AT_POINTER, "/model",
                             "a vocabulary has at most %d tokens and %d merges",
                             MOST_TOKENS, MOST_MERGES);
    struct qdqi_vocab *v = qdqi_arena_alloc(arena, sizeof *v);
    if (!v || !add_texts(v, form, arena))
        return qdqi_no_memory(err);
    fill_tables(v);
    enum qdq_code code = add_merges(v, form, arena, err);
    if (code == QDQ_OK)
        *ret = v;
    return code;
}
