/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digests of files that the command has read before, in digests/ of its cache folder (folder.h): a
 * file for each device and inode, with the size, the times of the last change of bytes and of attributes
 * in nanoseconds, and the digest. A file whose size or times are others is read again. No program can
 * set the second of these times, so a copy with the times of the original is another file.
 *
 * No digest is kept of a file under a mebibyte, of one that changed within the last two seconds or
 * while it was read (a clock of the file system moves in steps, within which a second change has the
 * same time), and of one in memory (tmpfs), whose mapped pages may be written without a change of its
 * times. A mapped page of a file on a disk has that fault, too, until the system has written it back:
 * programs that write models by mappings are rare, and close them when they are done.
 */
#ifndef CLI_KEPT_DIGESTS_H
#define CLI_KEPT_DIGESTS_H

#include "files.h"

/* Writes the digest of the whole file, kept or computed, as digest_file() does. For files that the
   command was given, whose digest names them; not to check what a file is. It may be called by
   several threads. */
bool kept_digest(int fd, const char *path, char ret[DIGEST_SIZE],
                 struct api_problem *problem);

#endif
