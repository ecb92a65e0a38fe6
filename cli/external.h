/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The external data files of a model. They are looked for in the model's folder and below
 * it, never through a symbolic link. All calls return false with a problem that names the
 * file.
 */
#ifndef CLI_EXTERNAL_H
#define CLI_EXTERNAL_H

#include "api/problem.h"
#include "files.h"
#include "qdq/model.h"

struct external {
    struct qdq_locations *locations;
    struct qdq_external *files; /* one for each location that has a file */
    size_t n;
};

/* Opens the files that the model in `fd` names; `path` is the model's own. A missing file
   is left out: the engine names the tensors that need it. */
bool external_open(int fd, const char *path, struct external *ret,
                   struct api_problem *problem);
/* Closes the files; accepts a zeroed struct. */
void external_close(struct external *external);

/* Opens a model with its files. */
bool external_open_model(const char *path, struct qdq_model **ret,
                         struct api_problem *problem);

/* Computes the digest of a file: digest_file(), or kept_digest() in kept/digests.h. */
typedef bool external_digest_fn(int fd, const char *path, char ret[DIGEST_SIZE],
                                struct api_problem *problem);

/* Replaces the digest of the model file (`fd`, `path`) by the id that the daemon gives a
   model of several files. Without external files the digest is the id and stays. */
bool external_digest(const struct external *external, int fd, const char *path,
                     char digest[DIGEST_SIZE], external_digest_fn *digest_of_file,
                     struct api_problem *problem);

#endif
