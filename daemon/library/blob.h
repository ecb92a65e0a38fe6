/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Content-addressed files: STATE/blobs/ab/abcd…, named by the SHA-256 of their bytes.
 * Bytes come in through a spool, a file in STATE/tmp that is hashed while it is
 * written. A spool becomes a blob (spools_commit()) or is deleted (spool_drop()).
 * Spools that a crash left in tmp/ are deleted by blobs_open().
 *
 * A blob never changes and is either complete or absent. Any thread may call; one spool
 * belongs to one thread at a time. Code that keeps blobs consistent with the rows of
 * the store holds library.h's lock.
 */
#ifndef QDQD_LIBRARY_BLOB_H
#define QDQD_LIBRARY_BLOB_H

#include "base/digest.h"
#include "api/problem.h"

struct blobs;
struct spool;

/* `dir` is the state folder's descriptor. The caller keeps and closes it. */
bool blobs_open(int dir, struct blobs **ret, struct api_problem *p);
void blobs_close(struct blobs **blobs);

/* Opens a blob read-only (O_CLOEXEC). The caller closes the descriptor. NOT_FOUND. */
bool blob_read(struct blobs *blobs, const char *id, int *ret, struct api_problem *p);
bool blob_exists(struct blobs *blobs, const char *id);
/* Makes the name of an existing blob durable. */
bool blob_settle(struct blobs *blobs, const char *id, struct api_problem *p);
/* Deletes a blob. Does nothing when it is absent. */
void blob_remove(struct blobs *blobs, const char *id);
/* Calls `fn` with the id of every blob. */
bool blobs_each(struct blobs *blobs, void (*fn)(void *arg, const char *id), void *arg,
                struct api_problem *p);

/* --- room ----------------------------------------------------------------- */

/* Limits of the stored bytes. 0: no limit, except for min_free (below). */
struct blobs_limits {
    _Atomic uint64_t max_bytes; /* most bytes of blobs and spools */
    /* bytes of the disk that stay free; 0: a twentieth of it, 1 GB at most */
    _Atomic uint64_t min_free;
    /* Deletes something that need not be kept. Returns false when there is nothing
       left to delete. NULL: nothing is ever deleted. Called without a lock. */
    bool (*evict)(void *arg);
    void *arg;
};

/* Sets the limits; without this call only the disk limits. Once other threads call,
   only the numbers may change. */
void blobs_set_limits(struct blobs *blobs, const struct blobs_limits *limits);
/* Returns the bytes of all blobs. */
uint64_t blobs_used(struct blobs *blobs);
/* Checks whether there is room for `bytes` more. DISK_FULL, IO. */
bool blobs_has_room(struct blobs *blobs, uint64_t size, struct api_problem *p);
/* Checks likewise, but makes room where it can. The caller must not hold the
   library's lock. */
bool blobs_check_room(struct blobs *blobs, uint64_t size, struct api_problem *p);

/* --- spools --------------------------------------------------------------- */

/* DISK_FULL, IO. After a write that failed the spool can only be dropped. */
bool spool_open(struct blobs *blobs, struct spool **ret, struct api_problem *p);
bool spool_write(struct spool *spool, const void *data, size_t len,
                 struct api_problem *p);
/* Copies a whole file into an empty spool, which a worker will then write and
   spool_finish_file() will end. *ret is the id of the copied bytes. */
bool spool_fill(struct spool *spool, int from, char ret[DIGEST_SIZE],
                struct api_problem *p);
/* Ends the writing and computes the id. */
bool spool_finish(struct spool *spool, struct api_problem *p);
/* Ends a spool that a worker wrote through spool_fd(): hashes the file's bytes. */
bool spool_finish_file(struct spool *spool, struct api_problem *p);

/* Returns the bytes written so far, or the file's bytes once the spool is finished. */
uint64_t spool_size(const struct spool *spool);
/* Returns the id of a finished spool. */
const char *spool_id(const struct spool *spool);
/* Returns the spool's own descriptor, readable and writable. It is borrowed. */
int spool_fd(const struct spool *spool);
/* Opens the same file read-only. The caller closes the descriptor. */
bool spool_read(struct spool *spool, int *ret, struct api_problem *p);

/* Flushes finished spools to the disk, all at once. */
bool spool_sync(struct spool *spool, struct api_problem *p);
bool spools_sync(struct spool **const *spools, size_t n, struct api_problem *p);
/*
 * Turns finished and synced spools of one folder into blobs that survive a power loss:
 * all get their names, then the names are made durable at once. An existing blob stays
 * as it is, unless its size or spool_replaces() says that it is damaged. Frees the
 * spools on success. After a failure some of them may have their names.
 */
bool spool_commit(struct spool **spool, struct api_problem *p);
void spool_replaces(struct spool *spool);
bool spools_commit(struct spool **const *spools, size_t n, struct api_problem *p);
void spool_drop(struct spool **spool);

#endif
