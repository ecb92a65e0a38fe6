/* SPDX-License-Identifier: Apache-2.0 */
/* A model as a request brings it: files that came with it and files that are stored. */
#ifndef QDQD_HANDLERS_MODEL_INPUT_H
#define QDQD_HANDLERS_MODEL_INPUT_H

#include "http/body.h"
#include "library/library.h"
#include "pool/model_fds.h"

struct service;

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
