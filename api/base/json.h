/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Additions to jansson: text that may not be UTF-8, numbers that are not finite, lists,
 * the pointer of a duplicate member. Only files of api/ include this header.
 *
 * Constructors return NULL when out of memory. jansson's containers treat a NULL value
 * as a failure and return it, so only the last call of an encoder is checked.
 */
#ifndef API_BASE_JSON_H
#define API_BASE_JSON_H

#include <jansson.h>

#include "api/problem.h"

/* Returns a string, or null for NULL. Bytes that are not UTF-8 become U+FFFD,
   because names come from strangers. */
json_t *api_json_text(const char *text);
/* Returns a number, or null when it is not finite. */
json_t *api_json_real(double value);
/* Returns a number of seconds, rounded to microseconds. */
json_t *api_json_seconds(double seconds);
/* Returns a time by RFC 3339, in UTC with milliseconds; null for 0. */
json_t *api_json_time(int64_t ms);
/* Returns the value of a JSON text, or null for NULL and for a text that cannot be
   parsed. */
json_t *api_json_embed(const char *text);

typedef json_t *(*api_json_item_fn)(const void *items, size_t i);
/* Returns the array of item(items, 0) … item(items, n - 1). */
json_t *api_json_list(const void *items, size_t n, api_json_item_fn item);
/* Items that are texts (const char *) and ints. */
json_t *api_json_text_item(const void *items, size_t i);
json_t *api_json_int_item(const void *items, size_t i);

/*
 * Returns an object of members "NAME:TYPE", with a space between two. The types and their
 * arguments:
 *   t  const char *, as by api_json_text()      d  int
 *   r  double, as by api_json_real()            x  int, where a negative one is null
 *   s  double, as by api_json_seconds()         b  bool
 *   i  an integer of 64 bits                    e  const char *, as by api_json_embed()
 *   n  the same, where 0 is null                j  json_t *, which it takes
 *   m  the same: milliseconds since 1970, as a time by RFC 3339; null for 0
 *   a  items, size_t n and item of api_json_list()
 */
json_t *api_pack(const char *members, ...);
/* Returns the object {"NAME": [...]} as api_json_dump() does. */
char *api_dump_list(const char *name, const void *items, size_t n,
                    api_json_item_fn item);
/* Returns the rows of an array by the text that each has in a member: {text: row}. */
json_t *api_json_index(const json_t *rows, const char *member);
/* Returns the JSON, or frees it and returns NULL unless `ok`. */
json_t *api_json_if(bool ok, json_t *json);

/*
 * Takes ownership of `json` and returns its compact text, which the caller frees; NULL
 * when out of memory or when `json` is NULL. Reals have the fewest digits (of 15 to 17)
 * that read back to the same value, whatever the locale. `flags` are jansson's.
 */
char *api_json_dump(json_t *json, size_t flags);

/* Sets INVALID_JSON with the place and the text of an error of jansson's parser. */
void api_json_set_broken(const json_error_t *error, struct api_problem *problem);

/* Parses `len` bytes of any JSON value. Returns NULL and sets INVALID_JSON with the
   byte offset, or for a duplicate member the code `duplicate` with its pointer. */
json_t *api_json_load(const char *text, size_t len, enum api_code duplicate,
                      struct api_problem *problem);

/* Returns whether `json` is a whole number in any notation (3, 3.0, 3e0), which *ret
   becomes. */
bool api_json_integer(const json_t *json, int64_t *ret);

/* Returns the text of a member of an object; "" where it is none. */
const char *api_text_at(const json_t *object, const char *name);

/* Appends "/segment" to the pointer in `to`, escaped by RFC 6901. A pointer longer
   than `size` is cut and ends in "...". */
void api_json_pointer_add(char *to, size_t size, const char *segment);

/* Returns the problem document as a value, for documents that contain it. */
json_t *api_problem_json(const struct api_problem *p);

/* Appends `text` to the text in `to` and drops the characters that do not fit. */
void api_text_add(char *to, size_t size, const char *text);

/* Returns "a string", "a number"… for messages. */
const char *api_json_type_name(const json_t *json);

#endif
