/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inputs of a language model that follow from the ids of its tokens, as ONNX Runtime GenAI
 * and Optimum name them: `input_ids`, integers of the shape [batch, length]. The others are the
 * mask of positions that there are, their numbers, and the caches of a past, which is empty.
 */
#ifndef QDQI_FILES_DATA_TOKENS_H
#define QDQI_FILES_DATA_TOKENS_H

#include "ground/base/dtype.h"
#include "qdq/model.h"

enum qdqi_from_tokens {
    QDQI_NOT_FROM_TOKENS,
    QDQI_TOKENS_MASK,      /* attention_mask: ones, as many as there are positions */
    QDQI_TOKENS_POSITIONS, /* position_ids: from those of the past to the last */
    QDQI_TOKENS_PAST,      /* past…: no elements */
    QDQI_TOKENS_CHOICE,    /* use_cache_branch: whether there is a past */
};

/* Returns the index of the model's `input_ids`; the number of its inputs where there is none. */
size_t qdqi_tokens_input(const struct qdq_model_info *model);

/* Returns whether the model reads caches of a past: it is a decoder. */
bool qdqi_tokens_have_past(const struct qdq_model_info *model);

/* Returns whether an output holds logits of tokens: `logits` [batch, length, vocabulary]. */
bool qdqi_tokens_are_logits(const struct qdq_model_info *model, size_t output);

/* Says what an input holds for one sample of ids without a past. */
enum qdqi_from_tokens qdqi_tokens_give(const struct qdq_model_info *model,
                                       size_t input);

/* Sets the shape of such an input, of so many axes as it has, for a sample of n ids. */
void qdqi_tokens_shape(const struct qdq_value *input, enum qdqi_from_tokens what,
                       int64_t n, int64_t *shape);

/* Writes n elements of an input other than a past, where so many positions lie before the ids. */
void qdqi_tokens_write(enum qdqi_from_tokens what, enum qdqi_dtype dtype, size_t n,
                       int64_t before, void *to);

/* Counts the ids before the first negative one, of n of type int32 or int64. False where
   others follow it. */
bool qdqi_tokens_count(enum qdqi_dtype dtype, const void *ids, size_t n, size_t *ret);

/* Returns integer i of int32 or int64, which need not be aligned. */
int64_t qdqi_tokens_at(enum qdqi_dtype dtype, const void *from, size_t i);

#endif
