/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members of an .npz file, which is a zip archive: stored or deflated, of any size
 * (zip64). Their names are keys and never touch the file system.
 *
 * All reading is by pread on the descriptor that was given, so that nobody's file
 * offset moves and several members may be open at once. One thread at a time.
 */
#ifndef QDQI_DATA_NPZ_H
#define QDQI_DATA_NPZ_H

#include "qdq/error.h"

enum {
    QDQI_NPZ_MAX_MEMBERS = 60000,
    QDQI_NPZ_MAX_DIRECTORY = 8 << 20, /* bytes read to find the members */
    QDQI_NPZ_MAX_NAME = 255,          /* bytes, without ".npy" */
};

struct qdqi_npz;
struct qdqi_member;

/* The descriptor is borrowed and must outlive the npz. */
enum qdq_code qdqi_npz_open(int fd, uint64_t size, struct qdqi_npz **ret,
                            struct qdq_error *err) QDQ_MUST_CHECK;
/* Members must be closed before. */
void qdqi_npz_close(struct qdqi_npz **npz);

size_t qdqi_npz_count(const struct qdqi_npz *npz);

/* What the directory says of a member. */
struct qdqi_npz_entry {
    char name[QDQI_NPZ_MAX_NAME + 1]; /* of the array: the member's less ".npy" */
    uint64_t size;                    /* uncompressed bytes */
    bool folder;                      /* a folder's entry, which holds nothing */
    bool npy;                         /* the member's name ends in ".npy" */
};

/* INVALID_DATASET for members that cannot be read: encrypted, unknown compression. */
enum qdq_code qdqi_npz_entry(struct qdqi_npz *npz, size_t i, struct qdqi_npz_entry *ret,
                             struct qdq_error *err) QDQ_MUST_CHECK;

enum qdq_code qdqi_member_open(struct qdqi_npz *npz, size_t i, struct qdqi_member **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;
/*
 * Up to `size` (> 0) bytes; *ret_got is less only at the end, where the checksum was
 * found right: INVALID_DATASET otherwise.
 */
enum qdq_code qdqi_member_read(struct qdqi_member *member, void *to, size_t size,
                               size_t *ret_got, struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_member_close(struct qdqi_member **member);

#endif
