/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model as a request brings it: files that came with it and files that are stored, and
 * how the files of a stored model get to a worker.
 */
#ifndef QDQD_MODEL_FILES_H
#define QDQD_MODEL_FILES_H

#include "library/bundle.h"
#include "http/body.h"
#include "library/library.h"
#include "workers/message.h"

struct service;

/* Open files of one model, the model first, and the paths of the others as in a message. */
struct model_fds {
    size_t n;
    int fds[1 + API_MAX_EXTERNAL];
    char *names;
    size_t names_len;
};

/* Opens a stored model's files; model_fds_fini() closes them. NOT_FOUND. */
bool model_fds_open(struct library *library, const char *id, struct model_fds *ret,
                    struct api_problem *p);
void model_fds_fini(struct model_fds *files);
/* Puts them into a message that has its own descriptors already; borrowed. */
void model_fds_attach(const struct model_fds *files, struct message *message);

/* A stored model of several files as one bundle. NOT_FOUND. */
bool model_files_pack(struct library *library, const struct store_model_files *files,
                      struct bundle **ret, struct api_problem *p);

/* --- what a request brings ------------------------------------------------ */

/* What a request brings as its model, once it was checked. */
struct model_input {
    size_t n; /* files; 0: nothing was brought, or it was not checked */
    struct library_part *parts;
    struct model_fds open;
    uint64_t size; /* of all of them */
    char id[DIGEST_SIZE];
};

/* Does the body bring a model, other than by the id of a stored one? */
bool model_input_is_brought(const struct body *body);
/*
 * Has the body's model checked by a worker, which finds out what each other file is to
 * the model. The input borrows the body's files. NOT_FOUND (a digest that is not stored),
 * and what is wrong with the model.
 */
bool model_input_check(const struct service *service, struct body *body,
                       struct model_input *ret, struct api_problem *p);
/* Stores it: consumes the body's files. */
bool model_input_store(struct library *library, struct model_input *input,
                       struct store_file *ret, bool *ret_new, struct api_problem *p);
void model_input_fini(struct model_input *input);

#endif
