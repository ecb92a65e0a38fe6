/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsers of header fields that clients send. They are pure. `text` is the value of a
 * field, or NULL where the field is absent; the values of a repeated field have been
 * joined by commas before. A value that cannot be parsed counts as absent, unless a
 * comment says otherwise.
 */
#ifndef API_HEADER_H
#define API_HEADER_H

#include "api/problem.h"

#define API_HEADER_ID 72 /* size of "sha256:", 64 hex digits and the NUL */
/* size of "sha-256=:", 44 digits of base64, ":" and the NUL */
#define API_HEADER_DIGEST 56

/* --- Range (RFC 9110, 14) ------------------------------------------------- */

struct api_range {
    uint64_t first, size; /* in bytes */
};

enum api_range_kind {
    API_RANGE_WHOLE, /* no range, several ranges or another unit: all bytes */
    API_RANGE_PART,  /* the bytes of *ret */
    API_RANGE_NONE   /* the range has none of the bytes */
};

/* Parses the Range for `size` bytes. A part has at least one byte and ends within
   them. */
enum api_range_kind api_header_range(const char *text, uint64_t size,
                                     struct api_range *ret);

/* --- If-Match, If-None-Match (RFC 9110, 13) ------------------------------- */

/* Comparisons of entity tags: in a weak one W/ does not count, and in a strong one a tag with
   W/ is equal to none. */
enum api_tags { API_TAG_WEAK, API_TAG_STRONG };

/* Returns whether `tag` (with its quotes; NULL: none) is in a list of entity tags, or the list
   is "*". */
bool api_header_has_tag(const char *text, const char *tag, enum api_tags how);

/* --- Accept (RFC 9110, 12) ------------------------------------------------ */

/*
 * Returns the index of the media type (lower case, without parameters) that the Accept
 * prefers: the first of equals, and the first one without an Accept. Returns `n` when
 * the Accept allows none of them.
 */
size_t api_header_choose(const char *text, const char *const types[], size_t n);

/* --- Repr-Digest (RFC 9530) ----------------------------------------------- */

/* Formats the value of the field for the id of bytes, "sha256:" and 64 hex digits.
   Returns false when `id` is no such id. */
bool api_header_digest_of(const char *id, char ret[API_HEADER_DIGEST]);
/*
 * Parses the field into the id that its sha-256 stands for, or "" when it has none
 * (other algorithms are ignored). Sets BAD_REQUEST when the value is no digest, because
 * a client that sends one wants it checked.
 */
bool api_header_digest(const char *text, char ret[API_HEADER_ID],
                       struct api_problem *problem);

#endif
