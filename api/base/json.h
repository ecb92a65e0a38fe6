/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What jansson leaves open: text that may not be UTF-8, numbers that are not finite,
 * lists, the pointer of a duplicate member. Only files of api/ include this.
 *
 * Makers return NULL when out of memory; jansson's containers take NULL for a failure
 * and pass it on, so only the last call of an encoder is checked.
 */
#ifndef API_BASE_JSON_H
#define API_BASE_JSON_H

#include <jansson.h>

#include "api/problem.h"

/* A string; null for NULL. What is not UTF-8 (names come from strangers) becomes
   U+FFFD. */
json_t *api_json_text(const char *text);
/* A number, or null when it is not finite. */
json_t *api_json_real(double value);
/* The value of a JSON text; null for NULL and for what cannot be read. */
json_t *api_json_embed(const char *text);

typedef json_t *(*api_json_item_fn)(const void *items, size_t i);
/* The array of item(items, 0) … item(items, n - 1). */
json_t *api_json_list(const void *items, size_t n, api_json_item_fn item);

/*
 * Takes `json` and returns its compact text, which the caller frees; NULL when out of
 * memory or `json` is NULL. Reals have the fewest digits (of 15 to 17) that read back
 * to the same value, whatever the locale. `flags` are jansson's.
 */
char *api_json_dump(json_t *json, size_t flags);

/*
 * Reads `len` bytes of any JSON value. INVALID_JSON with the byte offset; a duplicate
 * member is `duplicate` with its pointer. NULL when it fails.
 */
json_t *api_json_load(const char *text, size_t len, enum api_code duplicate,
                      struct api_problem *problem);

/* Whether `json` is a whole number, however written (3, 3.0, 3e0); *ret is it. */
bool api_json_integer(const json_t *json, int64_t *ret);

/* Appends "/segment" to the pointer text in `to`, escaped by RFC 6901; cut with "..."
   when longer than `size`. */
void api_json_pointer_add(char *to, size_t size, const char *segment);

/* The problem document as a value, for documents that hold one. */
json_t *api_problem_json(const struct api_problem *p);

/* Appends `text` to the text in `to`; what does not fit is dropped. */
void api_text_add(char *to, size_t size, const char *text);

/* "a string", "a number"… for messages. */
const char *api_json_type_name(const json_t *json);

#endif
