/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256, as the ids that the wire shows: "sha256:" and 64 hex digits. */
#ifndef QDQD_BASE_DIGEST_H
#define QDQD_BASE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>

#define DIGEST_SIZE 72 /* an id and its end */

struct digest;

/* One digest is used by one thread at a time. NULL when out of memory. */
struct digest *digest_new(void);
void digest_free(struct digest **digest);
bool digest_update(struct digest *digest, const void *data, size_t len);
/* Writes the id; the digest can only be freed afterwards. */
bool digest_finish(struct digest *digest, char ret[DIGEST_SIZE]);

bool digest_of(const void *data, size_t len, char ret[DIGEST_SIZE]);

/* Compares two ids in a time that does not depend on where they differ. */
bool digest_is_same(const char *a, const char *b);

/* Is `text` an id in the one form that digest_finish() writes? */
bool digest_is_id(const char *text);

#endif
