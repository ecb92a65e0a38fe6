/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that computes the SHA-256 of a part of a file while another thread sends or
 * receives bytes, so that the digest costs no time of the transfer where there are two
 * processors.
 */
#ifndef REMOTE_BASE_HASHER_H
#define REMOTE_BASE_HASHER_H

#include <stdint.h>

#include "api/digest.h"

struct hasher;

/* Starts at byte `from` of the file, which the caller keeps open. Nothing is read before
   hasher_allow(). NULL: there is no memory or no thread. */
struct hasher *hasher_start(int fd, int64_t from);
/* Says that the bytes before `end` are in the file. `end` never becomes smaller. */
void hasher_allow(struct hasher *hasher, int64_t end);
/* Waits for the digest of the bytes to `end`, which was allowed, and frees the hasher.
   Returns false when the file could not be read or has fewer bytes. */
bool hasher_finish(struct hasher **hasher, int64_t end, char ret[DIGEST_SIZE]);
/* Ends the thread, which may have bytes left to read. NULL is freed, too. */
void hasher_free(struct hasher **hasher);

#endif
