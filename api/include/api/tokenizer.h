/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.json, the file of a tokenizer of Hugging Face's library `tokenizers`. */
#ifndef API_TOKENIZER_H
#define API_TOKENIZER_H

#include <stddef.h>

#include "api/problem.h"
#include "qdq/tokenizer.h"

#define API_TOKENIZER "tokenizer.json"

/*
 * Makes the tokenizer of a file's text. False with a problem that names the member: INVALID_JSON,
 * INVALID_DATASET for a value of a wrong form, UNSUPPORTED for what is known there and not here. The
 * members `truncation` and `padding` are left out: they are for batches of a training. The caller
 * frees *ret by qdq_tokenizer_free().
 */
bool api_tokenizer_read(const char *text, size_t len, struct qdq_tokenizer **ret,
                        struct api_problem *problem);

#endif
