/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/text/bpe.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = -1 };

/* A token of the piece; one that was merged into the token on its left is gone. */
struct symbol {
    int32_t token, previous, next;
    bool is_gone;
};

/* A merge that can be done at a symbol, if that and its neighbour are still what they were. */
struct chance {
    uint32_t rank;
    int32_t at, result;
};

struct qdqi_bpe {
    const struct qdqi_vocab *vocab;
    struct qdq_string prefix, suffix;
    bool fuses_unknown, falls_back, ignores_merges, has_unknown;
    bool
        lacks_unknown; /* the token for unknown characters was wanted and is not there */
    int32_t unknown;
    struct symbol *symbols;
    size_t n, capacity;
    struct chance *heap;
    size_t n_heap, heap_capacity;
    struct qdqi_text part; /* a character with what stands around it */
};

bool
qdqi_ids_add(struct qdqi_ids *ids, uint32_t id)
{
    if (ids->n == ids->capacity) {
        uint32_t *grown =
            qdqi_grow(ids->rows, &ids->capacity, ids->n + 1, sizeof *grown);
        if (!grown)
            return false;
        ids->rows = grown;
    }
    ids->rows[ids->n++] = id;
    return true;
}

static bool
copy_string(struct qdqi_arena *arena, struct qdq_string from, struct qdq_string *ret)
{
    *ret = (struct qdq_string){
        qdqi_arena_copy(arena, from.size ? from.data : "", from.size, 1), from.size};
    return ret->data;
}

enum qdq_code
qdqi_bpe_new(const struct qdq_tokenizer_form *form, const struct qdqi_vocab *vocab,
             struct qdqi_arena *arena, struct qdqi_bpe **ret, struct qdq_error *err)
{
    struct qdqi_bpe *bpe = qdqi_arena_alloc(arena, sizeof *bpe);
    if (!bpe || !copy_string(arena, form->continuing_prefix, &bpe->prefix) ||
        !copy_string(arena, form->word_suffix, &bpe->suffix))
        return qdqi_no_memory(err);
    bpe->vocab = vocab;
    bpe->fuses_unknown = form->fuses_unknown;
    bpe->falls_back = form->falls_back_to_bytes;
    bpe->ignores_merges = form->ignores_merges;
    bpe->has_unknown = form->unknown.data;
    bpe->unknown = bpe->has_unknown
                       ? qdqi_vocab_find(vocab, form->unknown.data, form->unknown.size)
                       : QDQI_NO_TOKEN;
    *ret = bpe;
    return QDQ_OK;
}

void
qdqi_bpe_free(struct qdqi_bpe *bpe)
{
    if (!bpe)
        return;
    free(bpe->symbols);
    free(bpe->heap);
    free(bpe->part.data);
}

/* --- the heap ----------------------------------------------------------------- */

static bool
is_before(const struct chance *a, const struct chance *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static bool
push(struct qdqi_bpe *bpe, struct chance new)
{
    if (bpe->n_heap == bpe->heap_capacity) {
        struct chance *grown =
            qdqi_grow(bpe->heap, &bpe->heap_capacity, bpe->n_heap + 1, sizeof *grown);
        if (!grown)
            return false;
        bpe->heap = grown;
    }
    size_t i = bpe->n_heap++;
    for (; i > 0 && is_before(&new, &bpe->heap[(i - 1) / 2]); i = (i - 1) / 2)
        bpe->heap[i] = bpe->heap[(i - 1) / 2];
    bpe->heap[i] = new;
    return true;
}

static struct chance
pop(struct qdqi_bpe *bpe)
{
    struct chance *heap = bpe->heap;
    const struct chance first = heap[0], last = heap[--bpe->n_heap];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= bpe->n_heap)
            break;
        if (child + 1 < bpe->n_heap && is_before(&heap[child + 1], &heap[child]))
            child++;
        if (!is_before(&heap[child], &last))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return first;
}

/* Pushes the merge of a symbol with the next one, if there is one. */
static bool
push_at(struct qdqi_bpe *bpe, int32_t at)
{
    struct chance new = {.at = at};
    const struct symbol *s = &bpe->symbols[at];
    if (s->next == NONE)
        return true;
    new.rank = qdqi_vocab_merge(bpe->vocab, s->token, bpe->symbols[s->next].token,
                                &new.result);
    return new.rank == UINT32_MAX || push(bpe, new);
}

/* --- merges ------------------------------------------------------------------- */

static bool
merge(struct qdqi_bpe *bpe, const struct chance *chance)
{
    struct symbol *s = &bpe->symbols[chance->at];
    int32_t result;
    if (s->is_gone || s->next == NONE)
        return true;
    struct symbol *right = &bpe->symbols[s->next];
    if (qdqi_vocab_merge(bpe->vocab, s->token, right->token, &result) == UINT32_MAX ||
        result != chance->result)
        return true; /* a neighbour has changed */
    s->token = result;
    right->is_gone = true;
    s->next = right->next;
    if (s->next != NONE)
        bpe->symbols[s->next].previous = chance->at;
    return (s->previous == NONE || push_at(bpe, s->previous)) &&
           push_at(bpe, chance->at);
}

static bool
merge_all(struct qdqi_bpe *bpe)
{
    bpe->n_heap = 0;
    for (size_t i = 0; i + 1 < bpe->n; i++)
        if (!push_at(bpe, (int32_t)i))
            return false;
    while (bpe->n_heap > 0) {
        const struct chance chance = pop(bpe);
        if (!merge(bpe, &chance))
            return false;
    }
    return true;
}

/* --- characters ----------------------------------------------------------------- */

static bool
add(struct qdqi_bpe *bpe, int32_t token)
{
    if (bpe->n == bpe->capacity) {
        struct symbol *grown =
            qdqi_grow(bpe->symbols, &bpe->capacity, bpe->n + 1, sizeof *grown);
        if (!grown)
            return false;
        bpe->symbols = grown;
    }
    const int32_t i = (int32_t)bpe->n++;
    bpe->symbols[i] = (struct symbol){token, i - 1, NONE, false};
    if (i > 0)
        bpe->symbols[i - 1].next = i;
    return true;
}

/* Finds the token of a character, with what stands before it and behind it in the vocabulary.
   *ret is that text. */
static bool
find_char(struct qdqi_bpe *bpe, struct qdq_string c, bool is_first, bool is_last,
          struct qdq_string *ret, int32_t *token)
{
    const bool has_prefix = !is_first && bpe->prefix.size > 0;
    const bool has_suffix = is_last && bpe->suffix.size > 0;
    *ret = c;
    if (!has_prefix && !has_suffix) {
        *token = qdqi_vocab_char(bpe->vocab, c.data, c.size);
        return true;
    }
    bpe->part.size = 0;
    if ((has_prefix &&
         !qdqi_text_add(&bpe->part, bpe->prefix.data, bpe->prefix.size)) ||
        !qdqi_text_add(&bpe->part, c.data, c.size) ||
        (has_suffix && !qdqi_text_add(&bpe->part, bpe->suffix.data, bpe->suffix.size)))
        return false;
    *ret = (struct qdq_string){bpe->part.data, bpe->part.size};
    *token = qdqi_vocab_find(bpe->vocab, ret->data, ret->size);
    return true;
}

static bool
has_bytes(const struct qdqi_bpe *bpe, struct qdq_string text)
{
    for (size_t i = 0; i < text.size; i++)
        if (qdqi_vocab_byte(bpe->vocab, (unsigned char)text.data[i]) == QDQI_NO_TOKEN)
            return false;
    return true;
}

static bool
add_bytes(struct qdqi_bpe *bpe, struct qdq_string text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!add(bpe, qdqi_vocab_byte(bpe->vocab, (unsigned char)text.data[i])))
            return false;
    return true;
}

/*
 * Adds the tokens of all characters. One for unknown characters waits for the next that is known, as
 * in the library, where bytes of a character in between come before it.
 */
static bool
add_chars(struct qdqi_bpe *bpe, const char *piece, size_t size)
{
    bool waits = false, ok = true;
    bpe->n = 0;
    for (size_t at = 0; at < size && ok;) {
        const size_t start = at;
        struct qdq_string text;
        int32_t token;
        qdqi_utf8_next(piece, size, &at);
        ok = find_char(bpe, (struct qdq_string){piece + start, at - start}, start == 0,
                       at == size, &text, &token);
        if (ok && token != QDQI_NO_TOKEN) {
            ok = (!waits || add(bpe, bpe->unknown)) && add(bpe, token);
            waits = false;
        } else if (ok && bpe->falls_back && has_bytes(bpe, text)) {
            ok = add_bytes(bpe, text);
        } else if (ok && bpe->has_unknown) {
            bpe->lacks_unknown = bpe->unknown == QDQI_NO_TOKEN;
            ok = !bpe->lacks_unknown &&
                 (!waits || bpe->fuses_unknown || add(bpe, bpe->unknown));
            waits = true;
        }
    }
    return ok && (!waits || add(bpe, bpe->unknown));
}

enum qdq_code
qdqi_bpe_encode(struct qdqi_bpe *bpe, const char *piece, size_t size,
                struct qdqi_ids *ids, struct qdq_error *err)
{
    if (bpe->ignores_merges) {
        const int32_t token = qdqi_vocab_find(bpe->vocab, piece, size);
        if (token != QDQI_NO_TOKEN)
            return qdqi_ids_add(ids, qdqi_vocab_id(bpe->vocab, token))
                       ? QDQ_OK
                       : qdqi_no_memory(err);
    }
    bpe->lacks_unknown = false;
    if (!add_chars(bpe, piece, size))
        return bpe->lacks_unknown
                   ? qdq_error_set(
                         err, QDQ_INVALID_DATASET, QDQ_AT_POINTER, "/model/unk_token",
                         "the vocabulary lacks this token, and the text has a "
                         "character without one")
                   : qdqi_no_memory(err);
    if (!merge_all(bpe))
        return qdqi_no_memory(err);
    for (size_t i = 0; i < bpe->n; i++)
        if (!bpe->symbols[i].is_gone &&
            !qdqi_ids_add(ids, qdqi_vocab_id(bpe->vocab, bpe->symbols[i].token)))
            return qdqi_no_memory(err);
    return QDQ_OK;
}
