/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a runner's program: made, measured and removed. */
#ifndef JUDGES_RUNNER_FOLDER_H
#define JUDGES_RUNNER_FOLDER_H

#include "qdq/error.h"

#include <limits.h>

struct runner_folder {
    char path[PATH_MAX];
    int fd; /* -1: there is none */
};

/* Makes a folder with a new name in the folder `above`, and locks it. IO. */
enum qdq_code runner_folder_make(const char *above, struct runner_folder *ret,
                                 struct qdq_error *err) QDQ_MUST_CHECK;
/* Removes it with everything in it. */
void runner_folder_remove(struct runner_folder *folder);
/* Removes the folders in `above` that runner_folder_make() made for processes that have ended without
   removing them. Others leave `above` alone. */
void runner_folder_sweep(const char *above);

struct runner_folder_use {
    uint64_t bytes, files;
};
/* Measures the room on the disk of all files in the folder, and of those that the process `pid`
   has open without a name. More than 10,000 files are not counted on. */
struct runner_folder_use runner_folder_measure(const struct runner_folder *folder,
                                               int pid);

/* Writes a file. IO. */
enum qdq_code runner_folder_write(const struct runner_folder *folder, const char *name,
                                  const void *data, size_t size,
                                  struct qdq_error *err) QDQ_MUST_CHECK;
/* Opens a plain file of exactly that size for reading, and reads it into memory that the caller
   frees. Returns false, and says why in `why`, when it is none or has another size. */
bool runner_folder_read(const struct runner_folder *folder, const char *name,
                        size_t size, void **ret, char why[160]);
void runner_folder_drop(const struct runner_folder *folder, const char *name);

#endif
