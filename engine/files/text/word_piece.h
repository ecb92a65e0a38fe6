/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WordPiece: the longest token that a word begins with, then the longest that the rest begins with,
 * which has a prefix in the vocabulary, and so on. A word that is not used up so, or has too many
 * characters, becomes the one token for unknown words.
 */
#ifndef QDQI_FILES_TEXT_WORD_PIECE_H
#define QDQI_FILES_TEXT_WORD_PIECE_H

#include "files/text/bpe.h"

struct qdqi_word_piece;

/* Makes the model in the arena, which keeps the vocabulary. LIMIT_EXCEEDED for words of too many
   characters. */
enum qdq_code qdqi_word_piece_new(const struct qdq_tokenizer_form *form,
                                  const struct qdqi_vocab *vocab,
                                  struct qdqi_arena *arena,
                                  struct qdqi_word_piece **ret,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

/* Appends the ids of a word, which is not empty. INVALID_DATASET where it is unknown and the vocabulary
   has no token for that. */
enum qdq_code qdqi_word_piece_encode(const struct qdqi_word_piece *model,
                                     struct qdq_string word, struct qdqi_ids *ids,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

#endif
