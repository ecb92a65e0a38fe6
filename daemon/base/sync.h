/* SPDX-License-Identifier: Apache-2.0 */
/* Makes several files durable in about the time that one takes. Any thread may call. */
#ifndef QDQD_BASE_SYNC_H
#define QDQD_BASE_SYNC_H

#include <stddef.h>

enum { SYNC_MOST = 8 }; /* descriptors of one call */

/*
 * Calls `sync` (fsync or fdatasync) for up to SYNC_MOST descriptors, each in a thread
 * of its own. So the file system puts them into one journal commit, and the disk has
 * them in its queue together. Returns 0, or the errno of the first descriptor that
 * failed.
 */
int sync_together(int (*sync)(int fd), const int *fds, size_t n);

#endif
