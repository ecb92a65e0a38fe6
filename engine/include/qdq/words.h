/* SPDX-License-Identifier: Apache-2.0 */
/* For errors about names: which known word was meant? */
#ifndef QDQ_WORDS_H
#define QDQ_WORDS_H

#include "qdq/error.h"

/*
 * The known word nearest to `word`: fewest edits (Levenshtein), letters compared without
 * case; NULL when none is near enough to be meant. `known(arg, i)` is word i, NULL past
 * the last.
 */
QDQ_API const char *qdq_nearest_word(const char *word,
                                     const char *(*known)(const void *arg, size_t i),
                                     const void *arg);

#endif
