/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256. A digest is written as the wire shows it: "sha256:" and 64 hex digits, which
 * is also the id of the hashed bytes. The daemon and the command line use this one.
 */
#ifndef API_DIGEST_H
#define API_DIGEST_H

#include <stdbool.h>
#include <stddef.h>

#define DIGEST_SIZE 72 /* length of an id, with its terminating NUL and some room */

struct digest;

/* Returns NULL when out of memory. One thread at a time uses a digest. */
struct digest *digest_new(void);
void digest_free(struct digest **digest);
bool digest_update(struct digest *digest, const void *data, size_t len);
/* Writes the id to `ret`. Afterwards the digest can only be freed. */
bool digest_finish(struct digest *digest, char ret[DIGEST_SIZE]);

bool digest_of(const void *data, size_t len, char ret[DIGEST_SIZE]);

/* Compares two ids in constant time, which does not reveal where they differ. */
bool digest_is_same(const char *a, const char *b);

/* Returns whether `text` is an id in the form that digest_finish() writes. */
bool digest_is_id(const char *text);

#endif
