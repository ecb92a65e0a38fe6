/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a tar archive (ustar, pax, GNU's), plain or packed with gzip, to be read
 * in any order. Those of a plain archive are read where they lie. Those of a packed one
 * are unpacked once into a file without a name in TMPDIR, or in /var/tmp. Names are keys
 * and never touch the file system.
 */
#ifndef QDQI_DATA_TAR_H
#define QDQI_DATA_TAR_H

#include "base/arena.h"
#include "qdq/error.h"

enum {
    QDQI_TAR_MAX_MEMBERS = 1 << 17, /* of any kind */
    QDQI_TAR_MAX_NAME = 1023,       /* bytes, of a file that is wanted */
};

struct qdqi_tar;

struct qdqi_tar_file {
    const char *name;
    uint64_t offset, size; /* in qdqi_tar_fd(); within that file */
};

struct qdqi_tar_options {
    bool gzip;
    uint64_t most; /* bytes that a packed archive may unpack to; more: LIMIT_EXCEEDED */
    bool (*wants)(const char *name); /* which files are taken */
};

/*
 * Reads all of the archive's headers, and all of a packed one. The descriptor, of a file
 * of `size` bytes, is borrowed and must outlive the tar; names live in the arena.
 * INVALID_DATASET for an archive that is damaged or cut short (naming the member or the
 * byte) and for a wanted member that is a link or a sparse file.
 */
enum qdq_code qdqi_tar_open(int fd, uint64_t size,
                            const struct qdqi_tar_options *options,
                            struct qdqi_arena *arena, struct qdqi_tar **ret,
                            struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_tar_close(struct qdqi_tar **tar);

size_t qdqi_tar_count(const struct qdqi_tar *tar);
const struct qdqi_tar_file *qdqi_tar_file(const struct qdqi_tar *tar, size_t i);
/* What holds the files; the tar's. */
int qdqi_tar_fd(const struct qdqi_tar *tar);

#endif
