/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the files of a tar archive (ustar, pax, GNU), optionally packed with gzip, in
 * any order. Files of an unpacked archive are read in place. A packed archive is
 * unpacked once into a file without a name in TMPDIR, or in /var/tmp. Names are keys
 * and never reach the file system.
 */
#ifndef QDQI_FILES_DATA_TAR_H
#define QDQI_FILES_DATA_TAR_H

#include "ground/base/arena.h"
#include "qdq/error.h"

enum {
    QDQI_TAR_MAX_MEMBERS = 1 << 17, /* members of any kind */
    QDQI_TAR_MAX_NAME = 1023,       /* bytes in the name of a wanted file */
};

struct qdqi_tar;

struct qdqi_tar_file {
    const char *name;
    uint64_t offset, size; /* offset and size within the file of qdqi_tar_fd() */
};

struct qdqi_tar_options {
    bool gzip;
    uint64_t most; /* limit of the bytes that a packed archive may unpack to */
    bool (*wants)(const char *name); /* selects the files to list */
};

/*
 * Reads all headers of the archive, and all data of a packed one. The descriptor, of a
 * file of `size` bytes, is borrowed and must outlive the tar; names lie in the arena.
 * LIMIT_EXCEEDED; INVALID_DATASET for an archive that is damaged or cut short (naming
 * the member or the byte) and for a wanted member that is a link or a sparse file.
 */
enum qdq_code qdqi_tar_open(int fd, uint64_t size,
                            const struct qdqi_tar_options *options,
                            struct qdqi_arena *arena, struct qdqi_tar **ret,
                            struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_tar_close(struct qdqi_tar **tar);

size_t qdqi_tar_count(const struct qdqi_tar *tar);
const struct qdqi_tar_file *qdqi_tar_file(const struct qdqi_tar *tar, size_t i);
/* Returns the descriptor of the file that holds the members. The tar owns it. */
int qdqi_tar_fd(const struct qdqi_tar *tar);

#endif
