/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the files of a model for a worker. */
#ifndef QDQD_POOL_MODEL_FDS_H
#define QDQD_POOL_MODEL_FDS_H

#include "library/library.h"
#include "workers/message.h"

/* The open files of one model, the model first, and the paths of the others in the
   form of a message. */
struct model_fds {
    size_t n;
    int fds[1 + API_MAX_EXTERNAL];
    char *names;
    size_t names_len;
};

/* Opens a stored model's files; model_fds_fini() closes them. NOT_FOUND. */
bool model_fds_open(struct library *library, const char *id, struct model_fds *ret,
                    struct api_problem *p);
/* Adds the path of a file that is not the model; NULL: its sender gave none. */
bool model_fds_name(struct model_fds *files, const char *name, struct api_problem *p);
void model_fds_fini(struct model_fds *files);
/* Attaches the files to a message that has its own descriptors already; borrowed. */
void model_fds_attach(const struct model_fds *files, struct message *message);

#endif
