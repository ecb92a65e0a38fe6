/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients write into header fields. Pure. `text` is a field's value, or NULL where
 * it is absent; the values of a field that stands there several times are joined by
 * commas before. What cannot be read counts as absent, unless said otherwise.
 */
#ifndef API_HEADER_H
#define API_HEADER_H

#include "api/problem.h"

#define API_HEADER_ID 72     /* "sha256:", 64 hex digits and the end */
#define API_HEADER_DIGEST 56 /* "sha-256=:", 44 digits of base64, ":" and the end */

/* --- Range (RFC 9110, 14) ------------------------------------------------- */

struct api_range {
    uint64_t first, size; /* bytes */
};

enum api_ranged {
    API_RANGED_WHOLE, /* nothing, several ranges, another unit: all of it */
    API_RANGED_PART,  /* *ret */
    API_RANGED_NONE   /* the range has none of the bytes */
};

/* What a Range asks of `size` bytes. A part has at least one byte and ends within. */
enum api_ranged api_header_range(const char *text, uint64_t size,
                                 struct api_range *ret);

/* --- If-None-Match (RFC 9110, 13) ----------------------------------------- */

/* Is `tag` (with its quotes) in a list of entity tags, or the list "*"? Weak comparison:
   W/ does not count. */
bool api_header_has_tag(const char *text, const char *tag);

/* --- Accept (RFC 9110, 12) ------------------------------------------------ */

/*
 * Which of the media types (lower case, without parameters) an Accept wants most; the
 * first of equals, and the first without an Accept. `n` when it wants none of them.
 */
size_t api_header_choose(const char *text, const char *const types[], size_t n);

/* --- Repr-Digest (RFC 9530) ----------------------------------------------- */

/* The field's value for the id of bytes, "sha256:" and 64 hex digits; false when `id` is
   no such. */
bool api_header_digest_of(const char *id, char ret[API_HEADER_DIGEST]);
/*
 * The id that a field's sha-256 stands for, "" when it has none (other algorithms are
 * not looked at). BAD_REQUEST when it is no digest: who sends one wants it checked.
 */
bool api_header_digest(const char *text, char ret[API_HEADER_ID],
                       struct api_problem *problem);

#endif
