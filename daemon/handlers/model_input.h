/* SPDX-License-Identifier: Apache-2.0 */
/* The model of a request: files that came with it, and stored files that it names. */
#ifndef QDQD_HANDLERS_MODEL_INPUT_H
#define QDQD_HANDLERS_MODEL_INPUT_H

#include "http/body.h"
#include "library/library.h"
#include "pool/model_fds.h"

struct service;

/* The model of a request after it was checked. */
struct model_input {
    size_t n; /* number of files; 0: the request has none, or it was not checked */
    struct library_part *parts;
    struct model_fds open;
    uint64_t size; /* bytes of all files */
    char id[DIGEST_SIZE];
};

/* Returns whether the body contains a model, other than by the id of a stored one. */
bool model_input_is_brought(const struct body *body);
/*
 * Has a worker check the body's model and find the location that each other file
 * serves. The input borrows the body's files. NOT_FOUND (a digest that is not stored),
 * and the errors of the model.
 */
bool model_input_check(const struct service *service, struct body *body,
                       struct model_input *ret, struct api_problem *p);
/* Stores the model and consumes the body's files. */
bool model_input_store(struct library *library, struct model_input *input,
                       struct store_file *ret, bool *ret_new, struct api_problem *p);
void model_input_fini(struct model_input *input);

#endif
