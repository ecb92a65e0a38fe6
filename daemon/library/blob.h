/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Content-addressed files: STATE/blobs/ab/abcd…, named by the SHA-256 of their bytes.
 * Bytes come in through a spool, a file in STATE/tmp that is hashed while it is written
 * and either becomes a blob (spool_commit) or disappears (spool_drop). What a crash
 * leaves in tmp/ is swept away by blobs_open().
 *
 * A blob never changes and is either there as a whole or not at all. Any thread may
 * call; one spool belongs to one thread at a time. Whoever makes blobs and rows of the
 * store agree does so under library.h's lock.
 */
#ifndef QDQD_LIBRARY_BLOB_H
#define QDQD_LIBRARY_BLOB_H

#include "base/digest.h"
#include "api/problem.h"

struct blobs;
struct spool;

/* `dir` is the state folder's descriptor and stays the caller's. */
bool blobs_open(int dir, struct blobs **ret, struct api_problem *p);
void blobs_close(struct blobs **blobs);

/* A read-only descriptor of a blob (O_CLOEXEC), which the caller closes. NOT_FOUND. */
bool blob_read(struct blobs *blobs, const char *id, int *ret, struct api_problem *p);
bool blob_exists(struct blobs *blobs, const char *id);
/* Makes the name of a blob that is there durable. */
bool blob_settle(struct blobs *blobs, const char *id, struct api_problem *p);
/* Absent is fine. */
void blob_remove(struct blobs *blobs, const char *id);
/* Calls `fn` with the id of every blob. */
bool blobs_each(struct blobs *blobs, void (*fn)(void *arg, const char *id), void *arg,
                struct api_problem *p);

/* --- room ----------------------------------------------------------------- */

/* How much may be stored. 0: no limit, or what is left by itself (below). */
struct blobs_limits {
    _Atomic uint64_t max_bytes; /* of blobs, and of what is on its way to be one */
    _Atomic uint64_t min_free;  /* of the disk; 0: a twentieth of it, 1 GB at most */
    /* Removes something that need not be kept; false: there is nothing left. NULL: there
       never is. Called without a lock. */
    bool (*evict)(void *arg);
    void *arg;
};

/* Without it there are no limits but the disk's. Once other threads call, the numbers alone
   may become others. */
void blobs_set_limits(struct blobs *blobs, const struct blobs_limits *limits);
/* Bytes of all blobs. */
uint64_t blobs_used(struct blobs *blobs);
/* Is there room for so many bytes more? DISK_FULL, IO. */
bool blobs_has_room(struct blobs *blobs, uint64_t size, struct api_problem *p);
/* The same, but makes room where it can. Not to be called with the library's lock. */
bool blobs_check_room(struct blobs *blobs, uint64_t size, struct api_problem *p);

/* --- spools --------------------------------------------------------------- */

/* DISK_FULL, IO. The problem of a write is the spool's end: it can only be dropped. */
bool spool_open(struct blobs *blobs, struct spool **ret, struct api_problem *p);
bool spool_write(struct spool *spool, const void *data, size_t len,
                 struct api_problem *p);
/* Puts all of a file into an empty spool that a worker will write, and that
   spool_finish_file() ends; *ret: the id of what was put in. */
bool spool_fill(struct spool *spool, int from, char ret[DIGEST_SIZE],
                struct api_problem *p);
/* No more bytes will come: makes the id. */
bool spool_finish(struct spool *spool, struct api_problem *p);
/* The same for a file that a worker wrote through spool_fd(): hashes it from there. */
bool spool_finish_file(struct spool *spool, struct api_problem *p);

/* Bytes written, or, once finished, bytes in the file. */
uint64_t spool_size(const struct spool *spool);
/* The id of a finished spool. */
const char *spool_id(const struct spool *spool);
/* The spool's own descriptor, readable and writable; borrowed. */
int spool_fd(const struct spool *spool);
/* A read-only descriptor of the same file, which the caller closes. */
bool spool_read(struct spool *spool, int *ret, struct api_problem *p);

/* Flush finished spools to the disk, all at once. */
bool spool_sync(struct spool *spool, struct api_problem *p);
bool spools_sync(struct spool **const *spools, size_t n, struct api_problem *p);
/*
 * Make finished and synced spools of one folder blobs that survive a power loss: all get
 * their names, then the names are made durable at once. Where a blob is there already it
 * stays as it is, unless its size or spool_replaces() says that it is damaged. Free the spools on success;
 * where that fails some may have their names.
 */
bool spool_commit(struct spool **spool, struct api_problem *p);
void spool_replaces(struct spool *spool);
bool spools_commit(struct spool **const *spools, size_t n, struct api_problem *p);
void spool_drop(struct spool **spool);

#endif
