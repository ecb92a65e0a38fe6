/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files as one tar archive (POSIX pax; plain ustar where that suffices), generated
 * while it is read: no file is held in memory, and any part can be read. The same files
 * under the same names give the same bytes.
 *
 * One thread at a time reads a bundle.
 */
#ifndef QDQD_LIBRARY_BUNDLE_H
#define QDQD_LIBRARY_BUNDLE_H

#include "api/problem.h"

#include <sys/types.h>

struct bundle;

struct bundle_file {
    const char *path;
    int fd; /* a regular file that must not change; bundle_open() takes ownership */
    uint64_t size;
};

/* Opens a bundle and takes ownership of the descriptors, also on failure. NO_MEMORY. */
bool bundle_open(const struct bundle_file *files, size_t n, struct bundle **ret,
                 struct api_problem *p);
uint64_t bundle_size(const struct bundle *bundle);
/* Reads some bytes at offset `at`, at most `size`. Returns 0 at the end, and a
   negative number when a file cannot be read. */
ssize_t bundle_read(struct bundle *bundle, uint64_t at, char *to, size_t size);
void bundle_close(struct bundle **bundle);

#endif
