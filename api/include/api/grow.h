/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays that grow. Their room follows from their number of elements, so nobody keeps it: it
 * doubles from 8 elements on.
 */
#ifndef API_GROW_H
#define API_GROW_H

#include <stdbool.h>
#include <stddef.h>

#include "qdq.h"

/*
 * Returns an array with room for `more` elements of `size` bytes behind its `n` elements, or
 * NULL when out of memory or when the size overflows: then the old array is as it was. The
 * array is NULL, or all of its elements were added after calls of this function; elements may
 * have been removed since. The caller frees it.
 */
void *api_grow(void *array, size_t n, size_t more, size_t size) QDQ_MUST_CHECK;
/* Appends bytes to such a text of *len bytes, and a NUL behind them. Returns false when out of
   memory: then the text is as it was. */
bool api_append(char **text, size_t *len, const void *bytes, size_t n) QDQ_MUST_CHECK;

#endif
