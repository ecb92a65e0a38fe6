/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Content-addressed files: STATE/blobs/ab/abcd…, named by the SHA-256 of their bytes.
 * Bytes are written to a spool, a file in STATE/tmp that is hashed while it is written
 * and either becomes a blob (spool_commit) or is discarded (spool_discard).
 * blobs_open() deletes the spools that a crash left in tmp/.
 *
 * Where the blobs are in a bucket (bucket/bucket.h), these files are a cache of it: a call that opens
 * a blob fetches it first if it is not there, and can then also fail with UNAVAILABLE.
 *
 * A blob never changes, and exists either completely or not at all. Any thread may
 * call; one spool belongs to one thread at a time. Code that keeps blobs and rows of
 * the store consistent holds the library's lock (library.h).
 */
#ifndef QDQD_LIBRARY_BLOB_H
#define QDQD_LIBRARY_BLOB_H

#include "api/digest.h"
#include "api/problem.h"

#include <stdatomic.h>

struct blobs;
struct spool;

/* Opens the blobs. `dir` is the state folder's descriptor; the caller keeps it. */
bool blobs_open(int dir, struct blobs **ret, struct api_problem *p);
void blobs_close(struct blobs **blobs);

/*
 * Opens a blob read-only (O_CLOEXEC); the caller closes the descriptor. The first time
 * after a start, and after a change of the file, this hashes the whole file. NOT_FOUND.
 * DAMAGED: the bytes are not those of the id; the file is set aside in STATE/damaged,
 * until the right bytes are stored.
 */
bool blob_read(struct blobs *blobs, const char *id, int *ret, struct api_problem *p);
/* Opens a blob without hashing it, for a caller that reads a part of it or no byte at
   all. A file that has not `size` bytes is DAMAGED. */
bool blob_read_part(struct blobs *blobs, const char *id, uint64_t size, int *ret,
                    struct api_problem *p);
/* Opens a blob without any check, for a caller that hashes it while it reads. */
bool blob_open(struct blobs *blobs, const char *id, int *ret, struct api_problem *p);
bool blob_exists(struct blobs *blobs, const char *id);
/* Makes an existing blob durable, with its name. */
bool blob_sync(struct blobs *blobs, const char *id, struct api_problem *p);
/* Removes a blob; does nothing when it does not exist. */
void blob_remove(struct blobs *blobs, const char *id);
/* Calls `fn` with the id of every blob. */
bool blobs_each(struct blobs *blobs, void (*fn)(void *arg, const char *id), void *arg,
                struct api_problem *p);

/* --- damage --------------------------------------------------------------- */

/* Counts of findings since the start. */
struct blobs_health {
    uint64_t damaged;  /* blobs that were set aside */
    uint64_t scrubbed; /* bytes that blobs_scrub() read */
};

void blobs_health(struct blobs *blobs, struct blobs_health *ret);
/* Sets the function that is called, without a lock of the blobs, with the id of a blob
   that was set aside. Must be called before other threads call. */
void blobs_on_damaged(struct blobs *blobs, void (*fn)(void *arg, const char *id),
                      void *arg);
/* Reads up to `bytes` of the blobs, in their order and from where the last call ended,
   and sets damaged ones aside. *ret_done: the last blob was read, and the next call
   begins with the first. One thread may call. */
bool blobs_scrub(struct blobs *blobs, uint64_t bytes, bool *ret_done,
                 struct api_problem *p);

/* --- disk space ---------------------------------------------------------- */

/* Limits of the stored bytes. 0 in max_bytes: no limit; 0 in min_free: the default
   below. */
struct blobs_limits {
    _Atomic uint64_t max_bytes; /* of blobs, spools and what counts beside them */
    /* bytes of the disk that stay free; 0: a twentieth of the disk, at most 1 GB */
    _Atomic uint64_t min_free;
    /* age at which a file or object that no row names is removed */
    _Atomic int64_t grace_ms;
    /* Removes something that need not be kept, or with `computed` only what can be computed
       again; returns false when nothing is left. NULL: nothing can be removed. Called
       without a lock. */
    bool (*evict)(void *arg, bool computed);
    /* Tells how many bytes all who share the disk have stored, and how many have stored any.
       NULL: nobody shares it. Called without a lock. */
    void (*sharers)(void *arg, uint64_t *ret_used, unsigned *ret_n);
    /* Returns the bytes of the blobs that rows name, where those alone count, because files
       that no row names go later. NULL: all files count. */
    uint64_t (*rows)(void *arg);
    /* Returns the bytes that count beside blobs and spools. NULL: there are none. */
    uint64_t (*beside)(void *arg);
    void *arg;
};

/* Sets the limits; without a call the disk is the only limit. While other threads
   call, only the numbers may be changed. */
void blobs_set_limits(struct blobs *blobs, const struct blobs_limits *limits);
/* Returns the bytes of all blobs in the folder. */
uint64_t blobs_used(struct blobs *blobs);
/* Returns the stored bytes that count towards the limit, without spools. */
uint64_t blobs_counted(const struct blobs *blobs);
/* Counts the files again, because other daemons add and remove some. */
bool blobs_recount(struct blobs *blobs, struct api_problem *p);
/* Checks whether there is room for so many more bytes. DISK_FULL, IO. */
bool blobs_has_room(struct blobs *blobs, uint64_t size, struct api_problem *p);
/* Does the same, and evicts to make room. Where the disk is short, what cannot be computed
   again goes only as far as these blobs have more than an equal share of the disk: nobody's
   files go because others have filled it. Where evicted files stay on the disk for the grace
   period, it evicts what the disk lacks once in that time. The caller must not hold the library's lock. */
bool blobs_check_room(struct blobs *blobs, uint64_t size, struct api_problem *p);

/* --- spools --------------------------------------------------------------- */

/* Opens a spool. DISK_FULL, IO. After a write that failed the spool can only be
   discarded. */
bool spool_open(struct blobs *blobs, struct spool **ret, struct api_problem *p);
/* Does the same for a file of the caller's that a worker writes and that spool_finish_file()
   finishes, or that is discarded. The file is borrowed. NO_MEMORY. */
bool spool_open_lent(struct blobs *blobs, int fd, struct spool **ret,
                     struct api_problem *p);
/*
 * A file that is lent to one worker process after the other. lent_file_open() makes *fd an empty
 * file without a name: a new one where it is -1, and else the same one. Making and removing
 * files takes longer than a small job. lent_file_trim() frees the space of one that has
 * become large, and leaves the others for the next job. DISK_FULL, IO.
 */
bool lent_file_open(struct blobs *blobs, int *fd, struct api_problem *p);
void lent_file_trim(int *fd);
void lent_file_close(int *fd);
bool spool_write(struct spool *spool, const void *data, size_t len,
                 struct api_problem *p);
/* Counts the bytes that another process has written to the spool's file so far, and checks now
   and then whether there is room for them: another process knows nothing of the limits. The
   caller must not hold the library's lock. DISK_FULL, IO. */
bool spool_watch(struct spool *spool, struct api_problem *p);
/* Copies a whole file into an empty spool that a worker will write to and that
   spool_finish_file() finishes. *ret is the id of the copied bytes. */
bool spool_fill(struct spool *spool, int from, char ret[DIGEST_SIZE],
                struct api_problem *p);
/* Ends the writing and computes the id. */
bool spool_finish(struct spool *spool, struct api_problem *p);
/*
 * Does the same for a file that a worker wrote through spool_fd(). The spool becomes a copy
 * of it: a worker that kept the descriptor cannot change what was hashed. A small
 * file whose bytes a blob has is not copied, unless the blob is gone when the spool is
 * committed; such a spool has no file for spool_read(). DISK_FULL, IO.
 */
bool spool_finish_file(struct spool *spool, struct api_problem *p);

/* Returns the bytes written so far; for a finished spool the bytes of the file. */
uint64_t spool_size(const struct spool *spool);
/* Returns the id of a finished spool. */
const char *spool_id(const struct spool *spool);
/* Returns the spool's own descriptor, readable and writable; borrowed. */
int spool_fd(const struct spool *spool);
/* Opens the same file read-only; the caller closes the descriptor. */
bool spool_read(struct spool *spool, int *ret, struct api_problem *p);

/* Returns whether the blob's file and its name are known to have been synced since the
   start. Where they are not known to be, they may be durable all the same. */
bool blob_is_durable(struct blobs *blobs, const char *id);
/* Tells that a durable blob with these bytes exists and is not removed until the spool
   is committed. The spool is then neither synced nor renamed, unless the blob turns out to
   be damaged. */
void spool_set_stored(struct spool *spool);
bool spool_is_stored(const struct spool *spool);
/* Has a spool that is not stored published without a sync: the caller sees to its bytes until
   blobs_sync_all(). */
void spool_set_deferred(struct spool *spool);
/* Makes all files of the blobs' disk durable, others' files, too. */
bool blobs_sync_all(struct blobs *blobs, struct api_problem *p);
/*
 * Publish finished spools of one folder as blobs that survive a power loss: all spools are
 * renamed first, then their bytes and names are made durable at once. So a blob that no row
 * names may be damaged by a power loss. An existing blob stays, unless its size or
 * spool_set_replace() says that it is damaged. The spools are freed on success; on failure
 * some may have been renamed.
 */
bool spool_commit(struct spool **spool, struct api_problem *p);
void spool_set_replace(struct spool *spool);
bool spools_commit(struct spool **const *spools, size_t n, struct api_problem *p);
void spool_discard(struct spool **spool);

#endif
