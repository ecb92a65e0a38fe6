/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte pair encoding: the characters of a piece become tokens, of which two neighbours are merged as
 * long as there is a merge, the one of the lowest rank first and among equal ones the leftmost. A
 * heap holds the merges that can be done, so that a piece of n characters takes n log n.
 */
#ifndef QDQI_FILES_TEXT_BPE_H
#define QDQI_FILES_TEXT_BPE_H

#include "files/text/vocab.h"

struct qdqi_bpe;

/* Makes the model in the arena, which keeps the vocabulary. */
enum qdq_code qdqi_bpe_new(const struct qdq_tokenizer_form *form,
                           const struct qdqi_vocab *vocab, struct qdqi_arena *arena,
                           struct qdqi_bpe **ret, struct qdq_error *err) QDQ_MUST_CHECK;
/* Frees its work space, which lies outside of the arena. */
void qdqi_bpe_free(struct qdqi_bpe *bpe);

/* Ids that grow on the heap. */
struct qdqi_ids {
    uint32_t *rows;
    size_t n, capacity;
};

bool qdqi_ids_add(struct qdqi_ids *ids, uint32_t id);

/* Appends the ids of a piece, which is not empty. A character without a token has no id where there
   is no token for unknown ones. */
enum qdq_code qdqi_bpe_encode(struct qdqi_bpe *bpe, const char *piece, size_t size,
                              struct qdqi_ids *ids,
                              struct qdq_error *err) QDQ_MUST_CHECK;

#endif
