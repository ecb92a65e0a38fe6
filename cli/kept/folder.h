/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folders of the user's in which the command keeps what it found out: $XDG_CACHE_HOME/qdq or
 * ~/.cache/qdq. They may be called by several threads.
 */
#ifndef CLI_KEPT_FOLDER_H
#define CLI_KEPT_FOLDER_H

/* Returns the path of that folder in the cache, which is there then; the caller frees it. NULL: there
   is none, or it cannot be made. */
char *kept_folder_open(const char *name);
/* Returns the path of the file there whose name is the digest of `identity`; the caller frees it.
   NULL: there is no such folder. */
char *kept_folder_path(const char *name, const char *identity);

/* Removes the files beside that one, and it itself, that were not used for longest: the 200 that were
   used last stay. */
void kept_folder_trim(const char *path);

#endif
