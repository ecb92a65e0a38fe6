/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/text/word_piece.h"

/* A word has at most so many: each of them may be compared with all behind it. */
enum { MOST_CHARS = 1024 };

struct qdqi_word_piece {
    const struct qdqi_vocab *vocab;
    struct qdq_string prefix;
    size_t most_chars;
    int32_t unknown;
};

enum qdq_code
qdqi_word_piece_new(const struct qdq_tokenizer_form *form,
                    const struct qdqi_vocab *vocab, struct qdqi_arena *arena,
                    struct qdqi_word_piece **ret, struct qdq_error *err)
{
    const struct qdq_string prefix = form->continuing_prefix;
    if (form->most_chars > MOST_CHARS)
        return qdq_error_set(
            err, QDQ_LIMIT_EXCEEDED, QDQ_AT_POINTER, "/model/max_input_chars_per_word",
            "words of more than %d characters are not read", MOST_CHARS);
    struct qdqi_word_piece *model = qdqi_arena_alloc(arena, sizeof *model);
    char *copy = qdqi_arena_copy(arena, prefix.size ? prefix.data : "", prefix.size, 1);
    if (!model || !copy)
        return qdqi_no_memory(err);
    *model = (struct qdqi_word_piece){
        .vocab = vocab,
        .prefix = {copy, prefix.size},
        .most_chars = form->most_chars,
        .unknown = form->unknown.data
                       ? qdqi_vocab_find(vocab, form->unknown.data, form->unknown.size)
                       : QDQI_NO_TOKEN};
    *ret = model;
    return QDQ_OK;
}

static size_t
count_chars(struct qdq_string text)
{
    size_t n = 0;
    for (size_t at = 0; at < text.size; n++)
        qdqi_utf8_next(text.data, text.size, &at);
    return n;
}

static enum qdq_code
add_unknown(const struct qdqi_word_piece *model, struct qdqi_ids *ids,
            struct qdq_error *err)
{
    if (model->unknown == QDQI_NO_TOKEN)
        return qdq_error_set(err, QDQ_INVALID_DATASET, QDQ_AT_POINTER,
                             "/model/unk_token",
                             "the vocabulary lacks this token, and the text has a "
                             "word without tokens");
    return qdqi_ids_add(ids, qdqi_vocab_id(model->vocab, model->unknown))
               ? QDQ_OK
               : qdqi_no_memory(err);
}

enum qdq_code
qdqi_word_piece_encode(const struct qdqi_word_piece *model, struct qdq_string word,
                       struct qdqi_ids *ids, struct qdq_error *err)
{
    const size_t n_before = ids->n;
    const bool is_long = count_chars(word) > model->most_chars;
    for (size_t at = 0, size = 0; at < word.size && !is_long; at += size) {
        const struct qdq_string rest = {word.data + at, word.size - at},
                                prefix = {model->prefix.data,
                                          at > 0 ? model->prefix.size : 0};
        const int32_t token = qdqi_vocab_longest(model->vocab, prefix, rest, &size);
        if (token == QDQI_NO_TOKEN) {
            ids->n = n_before;
            return add_unknown(model, ids, err);
        }
        if (!qdqi_ids_add(ids, qdqi_vocab_id(model->vocab, token)))
            return qdqi_no_memory(err);
    }
    return is_long ? add_unknown(model, ids, err) : QDQ_OK;
}
