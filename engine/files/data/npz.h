/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the members of an .npz file, which is a zip archive: stored or deflated, of any
 * size (zip64). Their names are keys and never reach the file system.
 *
 * All reads use pread() on the given descriptor, so no file offset moves and several
 * members may be open at once. For one thread at a time.
 */
#ifndef QDQI_FILES_DATA_NPZ_H
#define QDQI_FILES_DATA_NPZ_H

#include "qdq/error.h"

enum {
    QDQI_NPZ_MAX_MEMBERS = 60000,
    QDQI_NPZ_MAX_DIRECTORY = 8 << 20, /* bytes that may be read to find the members */
    QDQI_NPZ_MAX_NAME = 255,          /* bytes without ".npy" */
};

struct qdqi_npz;
struct qdqi_member;

/* Opens the archive. The descriptor is borrowed and must outlive the npz. */
enum qdq_code qdqi_npz_open(int fd, uint64_t size, struct qdqi_npz **ret,
                            struct qdq_error *err) QDQ_MUST_CHECK;
/* Does the same for an archive that is a part of the file, from byte `start` on. */
enum qdq_code qdqi_npz_open_within(int fd, uint64_t start, uint64_t size,
                                   struct qdqi_npz **ret,
                                   struct qdq_error *err) QDQ_MUST_CHECK;
/* Closes the archive. All its members must be closed before. */
void qdqi_npz_close(struct qdqi_npz **npz);

size_t qdqi_npz_count(const struct qdqi_npz *npz);

/* A member as the directory lists it. */
struct qdqi_npz_entry {
    /* the array's name: the member's without ".npy" */
    char name[QDQI_NPZ_MAX_NAME + 1];
    uint64_t size; /* bytes after decompression */
    bool folder;   /* the entry of a folder, which has no data */
    bool npy;      /* the member's name ends in ".npy" */
};

/* Describes member i. INVALID_DATASET for a member that cannot be read: encrypted,
   or with an unknown compression. */
enum qdq_code qdqi_npz_entry(struct qdqi_npz *npz, size_t i, struct qdqi_npz_entry *ret,
                             struct qdq_error *err) QDQ_MUST_CHECK;

enum qdq_code qdqi_member_open(struct qdqi_npz *npz, size_t i, struct qdqi_member **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;
/* Reads up to `size` (> 0) bytes. *ret_got is less only at the end, where the
   checksum was verified: INVALID_DATASET if it is wrong. */
enum qdq_code qdqi_member_read(struct qdqi_member *member, void *to, size_t size,
                               size_t *ret_got, struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_member_close(struct qdqi_member **member);

#endif
