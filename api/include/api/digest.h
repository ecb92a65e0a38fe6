/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256. A digest is written as the wire shows it: "sha256:" and 64 hex digits, which
 * is also the id of the hashed bytes. The daemon and the command line use this one.
 * Beside it stand the two calls of signatures: HMAC and base64.
 */
#ifndef API_DIGEST_H
#define API_DIGEST_H

#include <stdbool.h>
#include <stddef.h>

#define DIGEST_BYTES 32
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
/* Converts an id to the bytes of the digest, and back. */
void digest_bytes_of(const char *id, unsigned char ret[DIGEST_BYTES]);
void digest_id_of(const unsigned char bytes[DIGEST_BYTES], char ret[DIGEST_SIZE]);

/* Writes the HMAC-SHA256 of the parts of a text, one behind the other. */
struct digest_part {
    const void *data;
    size_t len;
};
bool digest_hmac(const void *key, size_t key_len, const struct digest_part *parts,
                 size_t n, unsigned char ret[DIGEST_BYTES]);
/* Writes `len` bytes as base64 with a NUL, which takes (len + 2) / 3 * 4 + 1 bytes. */
void digest_base64(const unsigned char *bytes, size_t len, char *ret);
/* Reads base64 with its padding into `ret`, which has room for len / 4 * 3 bytes. */
bool digest_unbase64(const char *text, size_t len, unsigned char *ret, size_t *ret_len);
/* Compares in constant time. */
bool digest_is_equal(const void *a, const void *b, size_t len);
/* Overwrites a secret in a way that the compiler does not drop. */
void digest_cleanse(void *data, size_t len);

#endif
