/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that a model keeps data in, found beside it: in its folder and below, never
 * through a symbolic link. All calls return false with a problem that names the file.
 */
#ifndef CLI_EXTERNAL_H
#define CLI_EXTERNAL_H

#include "api/problem.h"
#include "files.h"
#include "qdq/model.h"

struct external {
    struct qdq_locations *locations;
    struct qdq_external *files; /* of those locations that there is a file for */
    size_t n;
};

/* Opens the files that the model in `fd` names; `path` is where it lies. A file that is
   not there is left out, and the engine says who misses it. */
bool external_open(int fd, const char *path, struct external *ret,
                   struct api_problem *problem);
/* Fine on one that is zeroed. */
void external_close(struct external *external);

/* The daemon's id of a model of several files: `digest` is that of the model file itself,
   which is `fd` and called as in `path`, and is replaced. One file's digest stays. */
bool external_digest(const struct external *external, int fd, const char *path,
                     char digest[DIGEST_SIZE], struct api_problem *problem);

#endif
