/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files as one tar (POSIX pax, plain ustar where that can say it all), made while it is
 * read: of the files nothing is kept in memory, and any part can be read. The same files
 * under the same names give the same bytes.
 *
 * A bundle is read by one thread at a time.
 */
#ifndef QDQD_LIBRARY_BUNDLE_H
#define QDQD_LIBRARY_BUNDLE_H

#include "api/problem.h"

#include <sys/types.h>

struct bundle;

struct bundle_file {
    const char *path;
    int fd; /* a regular file, which must not change; taken by bundle_open() */
    uint64_t size;
};

/* Takes the descriptors, also when it fails. NO_MEMORY. */
bool bundle_open(const struct bundle_file *files, size_t n, struct bundle **ret,
                 struct api_problem *p);
uint64_t bundle_size(const struct bundle *bundle);
/* Some of the bytes at `at`, at most `size`: 0 at the end, below 0 when a file cannot be
   read. */
ssize_t bundle_read(struct bundle *bundle, uint64_t at, char *to, size_t size);
void bundle_close(struct bundle **bundle);

#endif
