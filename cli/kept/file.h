/* SPDX-License-Identifier: Apache-2.0 */
/* A file that a later command of the user's reads again, in a folder of the cache (folder.h). */
#ifndef CLI_KEPT_FILE_H
#define CLI_KEPT_FILE_H

#include <stddef.h>

#include "files.h"

/* Opens a copy of the file whose name is the digest of `identity`; it is empty where there is no such
   file, or one of more than `most` bytes. *ret stays OUTPUT_NONE where there is no such folder. */
void kept_file_open(const char *folder, const char *identity, size_t most,
                    struct output *ret);

/* Closes the copy, and puts it in the place of the file where it has changed, is wanted and has at most
   so many bytes; the files of the folder beyond those that stay are removed then. A failure is no
   failure of the command. */
void kept_file_close(struct output *file, bool is_wanted, size_t most);

#endif
