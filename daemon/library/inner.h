/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `struct blobs` that the files of the blobs share. No other file includes
   this header. */
#ifndef QDQD_LIBRARY_INNER_H
#define QDQD_LIBRARY_INNER_H

#include "base/errno_code.h"
#include "base/lock.h"
#include "library/blob.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define NAME_SIZE 96 /* room for "ab/" and 64 digits, or for a spool's name */

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
    /* Where the blobs are kept, and these files are a cache; NULL: the files are the blobs. */
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

/* Allocates the table of verified files. */
bool blobs_integrity_open(struct blobs *blobs);
void blobs_integrity_close(struct blobs *blobs);
/* Returns whether the file of this name was verified and has not changed since. *ret_size is
   its size; 0: there is none. The caller holds the lock. */
bool blobs_is_verified(struct blobs *blobs, const char *id, uint64_t *ret_size);
/* Returns whether the blob was found to be damaged. */
bool blobs_is_set_aside(struct blobs *blobs, const char *id);
/* Remembers that the open file has the right bytes. The caller holds the lock. */
void blobs_set_verified(struct blobs *blobs, const char *id, int fd);
/* Remembers, of an open file that was verified, that it and its name were synced. */
void blobs_set_durable(struct blobs *blobs, const char *id, int fd);

#endif
