/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vocabulary of a tokenizer: texts of tokens and their ids, and the merges of two tokens. A
 * token is known by its place here, from which its id follows. Nothing of the form is kept.
 */
#ifndef QDQI_FILES_TEXT_VOCAB_H
#define QDQI_FILES_TEXT_VOCAB_H

#include "files/text/unicode.h"
#include "ground/base/arena.h"

enum { QDQI_NO_TOKEN = -1 };

struct qdqi_vocab;

/* Makes a vocabulary in the arena. INVALID_DATASET for a merge of tokens that are not there. */
enum qdq_code qdqi_vocab_new(const struct qdq_tokenizer_form *form,
                             struct qdqi_arena *arena, struct qdqi_vocab **ret,
                             struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the token of a text, or QDQI_NO_TOKEN. */
int32_t qdqi_vocab_find(const struct qdqi_vocab *vocab, const char *text, size_t size);
/* The same for one character. */
int32_t qdqi_vocab_char(const struct qdqi_vocab *vocab, const char *text, size_t size);
/* Returns the token of a byte, "<0x00>" to "<0xFF>". */
int32_t qdqi_vocab_byte(const struct qdqi_vocab *vocab, unsigned char byte);
/* Returns the longest token that is the prefix and a beginning of the text, of which it takes *ret_size
   bytes, more than 0; or QDQI_NO_TOKEN. */
int32_t qdqi_vocab_longest(const struct qdqi_vocab *vocab, struct qdq_string prefix,
                           struct qdq_string text, size_t *ret_size);
uint32_t qdqi_vocab_id(const struct qdqi_vocab *vocab, int32_t token);

/* Returns the rank of the merge of two tokens, of which the lowest is done first, and the token that
   comes of it; UINT32_MAX where there is none. */
uint32_t qdqi_vocab_merge(const struct qdqi_vocab *vocab, int32_t left, int32_t right,
                          int32_t *ret);

#endif
