/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `struct blobs` and `struct library` that the files of this folder share. No file
   elsewhere includes this header. */
#ifndef QDQD_LIBRARY_INNER_H
#define QDQD_LIBRARY_INNER_H

#include "base/errno_code.h"
#include "base/lock.h"
#include "library/bucket/bucket.h"
#include "library/library.h"
#include "store/unsynced.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define NAME_SIZE 96 /* room for "ab/" and 64 digits, or for a spool's name */

struct incoming;

/* --- where the bytes of blobs are kept ------------------------------------- */

/*
 * The functions that differ by where blobs are kept: in the files of the folder alone
 * (folder/blobs_in_folder.c), or in a bucket, of which the files are a cache that may lose them
 * (bucket/blobs_in_bucket.c). library_open_at() chooses. NULL: nothing has to be done, or the
 * answer is no.
 */
struct blob_store_ops {
    /* Opens a blob that has no file. NOT_FOUND, DAMAGED, UNAVAILABLE, DISK_FULL. */
    bool (*open_absent)(struct blobs *blobs, const char *id, int *ret,
                        struct api_problem *p);
    /* Notes that an open file is used now. */
    void (*note_use)(struct blobs *blobs, int fd);
    /* Returns whether the file of a blob of these bytes says that it is kept. */
    bool (*is_kept)(struct blobs *blobs, const char *id, uint64_t size);
    /* Takes the name away from a file with wrong bytes. The caller holds the lock `naming`. */
    bool (*set_aside)(struct blobs *blobs, const char *id, const char *name);
    /* Tells of such a file, without that lock. */
    void (*report_damaged)(struct blobs *blobs, const char *id, uint64_t size);
    /* Makes the bytes of a file durable before it replaces another one. Sets errno. */
    bool (*sync_replacement)(int fd);
    /* Makes the bytes and the names of blobs durable. Sets errno. */
    bool (*sync)(struct blobs *blobs, const char *const *ids, size_t n);
    /* Frees room on the disk where that loses no blob. Returns false where the removal of rows
       would not free more, and the disk lacks room for `size` bytes. */
    bool (*free_disk)(struct blobs *blobs, uint64_t size);
    /* Returns whether evicted files stay on the disk until the leader's sweep removes them. */
    bool (*evicts_later)(const struct blobs *blobs);
    void (*close)(struct blobs *blobs);

    /* Returns whether the folder has blobs, so that a record without rows is another one's. */
    bool (*has_blobs)(struct blobs *blobs);
    /* Looks for blobs that no row names, when the record was opened. */
    bool (*find_leftovers)(struct library *library, struct api_problem *p);
    /* Keeps the bytes that are about to become blobs. The caller holds no lock. */
    bool (*keep_incoming)(struct library *library, struct incoming *incoming,
                          struct api_problem *p);
    /* Returns whether a part of a model is kept. The caller holds the library's lock. */
    bool (*has_part)(struct library *library, const char *id);
    /* Returns whether the blobs that rows name count, and not the files in the folder. */
    bool (*counts_rows)(const struct library *library);
    /* Cares for the folder of this daemon, in each round of the sweep. */
    bool (*tidy)(struct library *library, int64_t grace, struct api_problem *p);
    /* Removes blobs that no row has named for `grace` ms, as the leader. *ret_more: more are left
       to look at. */
    bool (*sweep)(struct library *library, int64_t grace, bool *ret_more,
                  struct api_problem *p);
};

extern const struct blob_store_ops blobs_in_folder, blobs_in_bucket;

/* --- blobs ------------------------------------------------------------------ */

/* A blob's file as it was when its bytes were found to be right. */
struct verified {
    uint64_t key; /* the first bytes of the digest; 0: no file */
    uint64_t inode;
    int64_t changed; /* time of its last change, in ns */
    bool durable;    /* it was synced, and its name, too */
};

/* The slow check of all blobs. Only the thread that calls blobs_scrub() uses it. */
struct scrub {
    char name[NAME_SIZE]; /* the blob that is being read, or was read last */
    int fd;               /* -1: none is being read */
    struct digest *digest;
    uint64_t at;
};

struct blobs {
    const struct blob_store_ops *ops;
    int dir, tmp, damaged; /* descriptors of STATE/blobs, STATE/tmp, STATE/damaged */
    struct blobs_limits limits;
    atomic_uint_fast64_t next;
    atomic_uint_fast64_t used, spooled; /* bytes of all blobs, and of all spools */
    /* Bytes that were evicted and that the sweep removes from the disk later, and when the
       last of them were, by steady clock in ms (room.c). */
    atomic_uint_fast64_t evicted;
    _Atomic int64_t evicted_at;
    atomic_uint_fast64_t n_damaged, scrubbed;
    struct scrub scrub;
    /* Called without a lock when a blob was set aside; NULL: nothing. */
    void (*on_damaged)(void *arg, const char *id);
    void *damaged_arg;
    struct lock naming; /* held while a blob gets or loses its name, and is counted */
    struct verified *verified; /* guarded by naming */
    /* of blobs in a bucket alone: */
    const struct bucket *bucket;
    char *tenant;              /* the first part of the keys; owned */
    struct blobs *next_cached; /* guarded by the cache's lock */
};

static inline const char *
blob_hex(const char *id)
{
    return strchr(id, ':') + 1;
}

static inline void
blob_name(const char *id, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "%.2s/%s", blob_hex(id), blob_hex(id));
}

static inline bool
blobs_fail(struct api_problem *p, const char *what)
{
    return api_problem_set(p, errno_code(errno), QDQ_AT_NOTHING, NULL, "%s: %s", what,
                           strerror(errno));
}

/* Opens a descriptor of its own for reading a folder, because the stream owns its
   descriptor. */
DIR *blobs_open_stream(int dir, const char *name);
/* Computes how many bytes the disk lacks if `size` more come. */
bool blobs_find_shortage(struct blobs *blobs, uint64_t size, uint64_t *ret,
                         struct api_problem *p);

/* Allocates the table of verified files. */
bool blobs_verified_open(struct blobs *blobs);
/* Returns whether the file of this name was verified and has not changed since. *ret_size is
   its size; 0: there is none. The caller holds the lock. */
bool blobs_is_verified(struct blobs *blobs, const char *id, uint64_t *ret_size);
/* Returns whether this open file was verified and has not changed since. */
bool blobs_is_verified_file(struct blobs *blobs, const char *id, int fd);
/* Remembers that the open file has the right bytes. The caller holds the lock. */
void blobs_set_verified(struct blobs *blobs, const char *id, int fd);
/* Remembers, of an open file that was verified, that it and its name were synced. */
void blobs_set_durable(struct blobs *blobs, const char *id, int fd);

/* Opens the file of a blob, which is in use then. Returns -1, with errno, when it cannot be
   opened. */
int blobs_open_file(struct blobs *blobs, const char *id);
/* Remembers a file whose bytes are right, and sets a wrong one aside. DAMAGED. */
bool blobs_judge_file(struct blobs *blobs, const char *id, int fd, bool right,
                      struct api_problem *p);
/* Returns whether the blob was found to be damaged. */
bool blobs_is_set_aside(struct blobs *blobs, const char *id);
/* Sets the DAMAGED of a blob that was. */
bool blobs_fail_damaged(const char *id, struct api_problem *p);
/* Refuses a shared record whose files are elsewhere (place_mark.c). `bucket_url` NULL: the files are
   in the folder at `path`. */
bool library_check_place(struct library *library, const char *path,
                         const char *bucket_url, struct api_problem *p);

/* Reads the next part of a file into a digest. Returns the number of bytes, 0 at the
   end, or -1. */
ssize_t blobs_hash_chunk(int fd, uint64_t at, char *chunk, size_t size,
                         struct digest *digest);
void blobs_scrub_stop(struct scrub *scrub);

/* --- spools ----------------------------------------------------------------- */

struct spool {
    struct blobs *blobs;
    int fd;
    char name[NAME_SIZE]; /* file name in STATE/tmp */
    struct digest *digest;
    uint64_t size;        /* bytes, counted in blobs->spooled */
    uint64_t lent;        /* the same, of a file that another process writes */
    char id[DIGEST_SIZE]; /* "" until finished */
    bool replaces;        /* replaces a blob of the same name, if there is one */
    bool stored;          /* the blob of that name is durable */
    bool is_lent;         /* fd is a worker's file, of which the blob is a copy */
    bool is_borrowed;     /* fd is the caller's */
    bool is_deferred;     /* the blob is synced later */
};

/* Copies a worker's file after all, because its blob is gone. The file must not have
   changed since it was hashed. */
bool spool_copy_lent(struct spool *spool, struct api_problem *p);

/* --- objects of a bucket (bucket/objects.c) ----------------------------------- */

/* Two objects belong to the removal of a blob (sweep/bucket_objects.c): its mark, and the
   announcement of its removal. */

/* in their keys, behind the tenant */
#define MARKS "marks/"
#define REMOVALS "removals/"

#define STALE_S 60 /* since an announcement, until it delays nobody any more */

/* Writes the key of a tenant's blob, of its mark, or of the announcement of its removal. */
void object_key(const struct blobs *blobs, const char *id, char ret[BUCKET_KEY]);
void object_mark_key(const struct blobs *blobs, const char *id, char ret[BUCKET_KEY]);
void object_removal_key(const struct blobs *blobs, const char *id,
                        char ret[BUCKET_KEY]);

/* Finds when an object was stored, by the bucket's time; 0 when there is none. */
bool object_find_moment(const struct bucket *bucket, const char *key, int64_t *ret,
                        int64_t *ret_now, struct api_problem *p);
/* Stores an object without bytes. */
bool object_put_empty(const struct bucket *bucket, const char *key, bool *ret_was_there,
                      struct api_problem *p);
/* Stores the file of a finished spool as the object of its blob. The caller holds no lock of the
   library. UNAVAILABLE. */
bool object_upload(struct blobs *blobs, const struct spool *spool,
                   struct api_problem *p);

/* --- the library ------------------------------------------------------------- */

/*
 * Blobs that a thread is publishing. Syncing takes long and happens without the lock,
 * so this list keeps other threads from removing the blobs until the rows that refer to
 * them exist. It lies on the stack of the publishing thread.
 */
struct incoming {
    size_t n;
    struct spool ***spools;
    char (*ids)[DIGEST_SIZE];
    struct incoming *next;
    /* filled in with those whose sync is deferred; NULL: none may be */
    struct deferred_files *deferred;
};

/* Files of a result whose sync is deferred (folder/deferred_sync.c). */
enum { DEFERRED_MOST = 4 };

struct deferred_files {
    size_t n;
    struct store_text files[DEFERRED_MOST];
};

struct library {
    int dir, ballast;
    const char *tenant;         /* name for the log; NULL: not set */
    library_sharers_fn sharers; /* who shares the disk; NULL: nobody */
    void *sharers_arg;
    struct blobs *blobs;
    struct store *store;
    int64_t opened_at; /* steady clock, in ms */
    int64_t scrub_at;  /* time of the next scrub by that clock */
    /* The bytes of the blobs that rows name, where those alone count, and since when they are
       known, by steady clock; 0: they have to be counted. */
    _Atomic int64_t stored_bytes, stored_at;
    /* Likewise the bytes of the rows, where a database elsewhere has to be asked for them. */
    _Atomic int64_t record_bytes, record_at;
    /* steady clock of the next look at blobs that others share and at their next count; only the
       thread that sweeps uses these */
    int64_t sweep_at, count_at;
    /* the next page of the bucket's list; "": the first */
    char bucket_token[BUCKET_TOKEN];
    bool owns_prefix; /* the objects are known to be this record's */
    bool has_leftovers;
    struct lock lock;          /* held while rows and blobs change together */
    struct incoming *incoming; /* guarded by lock */
    atomic_int unsynced;       /* files whose sync is deferred (deferred_sync.c) */
    atomic_bool is_syncing;    /* a thread is syncing them */
};

/* Publishes spools as blobs. Locks the library, also on failure: the caller adds the rows and
   unlocks. */
bool library_publish(struct library *library, struct incoming *incoming,
                     struct api_problem *p);
/* Returns whether a thread is publishing the blob. The caller holds the lock. */
bool library_is_incoming(const struct library *library, const char *id);
/* Returns whether a row names the blob, or a thread is publishing it. The caller holds the
   lock. */
bool library_needs_blob(struct library *library, const char *id);
/* Does the same for a caller that does not hold it. */
bool library_is_needed(struct library *library, const char *id);
/* Removes a blob that is not needed. Where the record is shared, another daemon may be about to
   add a row for it: then the blob stays. The caller holds the lock. */
void library_discard(struct library *library, const char *id);
/* Removes the published blobs that are not needed, because adding a row failed. */
void library_discard_incoming(struct library *library, const struct incoming *incoming);
/* Removes the blobs of a model that is removed. */
void library_discard_files(struct library *library,
                           const struct store_model_files *files);
/* Removes the observations of a model or dataset. A failure is ignored: observations
   expire. The caller holds the lock. */
void library_forget_observations(struct library *library, enum store_kind kind,
                                 const char *id);
/*
 * Prepares for another try of a removal that failed because the disk is full: frees the
 * ballast, and moves the log's contents into the database, so that the log's space is
 * used again. Returns whether another try makes sense.
 */
bool library_make_room(struct library *library, struct api_problem *p);

/* --- deferred syncs ---------------------------------------------------------- */

/*
 * Chooses the files of a result whose sync is deferred, and reads them into incoming->deferred.
 * The first spool is the model, and all spools that are stored are known. A result whose model is
 * new, or that has another large file, waits for its files: none is then chosen.
 */
void deferred_choose(struct library *library, struct incoming *incoming);
/* Counts those whose rows were added, and frees what was read. */
void deferred_added(struct library *library, struct deferred_files *files,
                    bool were_added);
/* Writes the files again that a crash has lost, when the library is opened. */
bool deferred_restore(struct library *library, struct api_problem *p);

/* --- the ballast ------------------------------------------------------------- */

/* A file that occupies a little of the disk, so that a full disk is not the end: removing
   something needs room for its transaction, and gives up the ballast for it. */

/* Opens the ballast of a state folder and fills it. Returns -1 when it cannot be
   opened; the other calls then do nothing. */
int ballast_open(int dir);
/* Occupies the room again, where the disk has it. */
void ballast_fill(int ballast);
/* Frees the room. Returns whether there was any. */
bool ballast_drop(int ballast);

/* --- the sweep --------------------------------------------------------------- */

/* Logs the blobs that no row names. */
bool library_find_leftovers(struct library *library, struct api_problem *p);

/* The sweep looks at each blob that others share so many times in the grace period. */
#define PARTS_OF_GRACE 8
#define MOST_BETWEEN_MS (INT64_C(3600) * 1000)

/* Returns when the next look is due, by steady clock. */
int64_t library_next_look(int64_t grace);

/* Looks at the next page of the objects of a library in a bucket, if it is time to, and removes
   objects that no row has named for `grace` ms. *ret_more: there is another page. */
bool bucket_objects_sweep(struct library *library, int64_t grace, bool *ret_more,
                          struct api_problem *p);

/* Looks at the files of the folder, if it is time to, and removes those that no row has named for
   `grace` ms. */
bool shared_folder_sweep(struct library *library, int64_t grace, struct api_problem *p);
/* Counts the files again, if it is time to: other daemons add and remove some. */
bool shared_folder_recount(struct library *library, int64_t grace,
                           struct api_problem *p);

#endif
