/* SPDX-License-Identifier: Apache-2.0 */
/* Texts as data of a language model: ids of tokens are made of them by the tokenizer.json beside the
   model. */
#ifndef CLI_DATA_TEXT_H
#define CLI_DATA_TEXT_H

#include "api/problem.h"

/* Returns whether a path names a text, by its ending .txt. */
bool text_is(const char *path);

/*
 * Opens the ids of a text as an .npy file of int64 [samples, 512], which has no name; the caller
 * closes *ret. A sample has fewer ids where the model takes no more, by genai_config.json. The whole
 * file is one sequence, whose last ids that fill no sample are left out; less
 * than a sample is one of its own length. Parts that are spread over
 * it are read of a text of more than 16 MiB, each a sequence. `model` is the model's path, or NULL where no file is known.
 */
bool text_open(const char *path, const char *model, int *ret,
               struct api_problem *problem);

#endif
