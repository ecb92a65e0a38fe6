/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of strings as the text of a message: a NUL stands behind each. */
#ifndef QDQD_CARRIERS_STRING_LIST_H
#define QDQD_CARRIERS_STRING_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct string_list {
    char *text; /* owned by a list that string_list_add() made */
    size_t len, at;
};

/* Adds a string. Returns false when out of memory. */
bool string_list_add(struct string_list *strings, const char *string);
bool string_list_add_number(struct string_list *strings, long long number);
void string_list_fini(struct string_list *strings);

/* Returns the next string of a received text, or NULL behind the last one. */
const char *string_list_next(struct string_list *strings);
/* Reads the next string as a number. Returns false when it is none. */
bool string_list_next_number(struct string_list *strings, long long *ret);

#endif
