/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of strings as the text of a message: a NUL stands behind each. */
#ifndef QDQD_CARRIERS_WORDS_H
#define QDQD_CARRIERS_WORDS_H

#include <stdbool.h>
#include <stddef.h>

struct words {
    char *text; /* owned by a list that words_add() made */
    size_t len, at;
};

/* Adds a string. Returns false when out of memory. */
bool words_add(struct words *words, const char *word);
bool words_add_number(struct words *words, long long number);
void words_fini(struct words *words);

/* Returns the next string of a received text, or NULL behind the last one. */
const char *words_next(struct words *words);
/* Reads the next string as a number. Returns false when it is none. */
bool words_next_number(struct words *words, long long *ret);

#endif
