/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that come in and go out. All calls return false with a problem that names the
 * file. One thread.
 */
#ifndef CLI_FILES_H
#define CLI_FILES_H

#include "api/spec.h"

/* Opens a regular file for reading; *ret is a descriptor that the caller closes. */
bool file_open(const char *path, int *ret, struct api_problem *problem);

enum { DIGEST_SIZE = sizeof "sha256:" + 64 };
bool digest_bytes(const void *data, size_t len, char ret[DIGEST_SIZE],
                  struct api_problem *problem);
/* Of the whole file, whatever the descriptor's position. */
bool digest_file(int fd, const char *path, char ret[DIGEST_SIZE],
                 struct api_problem *problem);

/* The spec in a file, or the default one for a NULL path. Free with api_spec_free(). */
bool spec_read(const char *path, struct api_spec **ret, struct api_problem *problem);

/*
 * A file that appears under its name only when it is whole: until output_commit() it
 * has a temporary name in the same folder, with ".tmp" in it. SIGINT, SIGTERM and
 * SIGHUP remove temporary files and then end the process as they always do.
 */
struct output {
    char *path, *temporary; /* NULL when there is none */
    int fd;                 /* readable and writable */
};
#define OUTPUT_NONE ((struct output){.fd = -1})

bool output_open(const char *path, struct output *ret, struct api_problem *problem);
bool output_write(struct output *output, const char *text, struct api_problem *problem);
/* Writes all of another file. */
bool output_copy(struct output *output, int from, struct api_problem *problem);
/* Syncs the file and renames it into place. */
bool output_commit(struct output *output, struct api_problem *problem);
/* Removes what was not committed; fine on OUTPUT_NONE. */
void output_close(struct output *output);

#endif
