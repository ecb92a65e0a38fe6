/* SPDX-License-Identifier: Apache-2.0 */
/* The id of a model, computed by a second thread while the model is quantized. */
#ifndef CLI_PENDING_ID_H
#define CLI_PENDING_ID_H

#include "external.h"
#include "files.h"
#include "qdq/executor.h"

/* Stands for an id that is not yet known; of the same length. */
#define PENDING_ID_PLACEHOLDER \
    "sha256:0000000000000000000000000000000000000000000000000000000000000000"

struct pending_id;

/*
 * Starts a thread that computes the digest of a model and of its external data; it borrows
 * all arguments, which must not change until pending_id_free(). Where no thread can be
 * started the digest is computed by pending_id_wait(). NULL: out of memory.
 */
struct pending_id *pending_id_start(const struct external *external, int model,
                                    const char *path);

/* Waits for the id, which `pending` owns; NULL when it could not be computed. May be called
   more than once. Its form is that of qdq_work.late_id. */
const char *pending_id_wait(void *pending);

/* Copies the reason why there is no id to *problem. Returns false when there is an id. */
bool pending_id_failed(struct pending_id *pending, struct api_problem *problem);

/* Returns an executor that lends the engine one thread less while the id is computed, so that both
   together use as many as were asked for. It borrows `pending`. */
struct qdq_executor pending_id_executor(struct pending_id *pending);

/* Waits for the thread. */
void pending_id_free(struct pending_id **pending);

#endif
