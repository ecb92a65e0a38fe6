/* SPDX-License-Identifier: Apache-2.0 */
/* The id of a model, computed by a second thread while the model is quantized. */
#ifndef CLI_LATE_ID_H
#define CLI_LATE_ID_H

#include "external.h"
#include "files.h"
#include "qdq/executor.h"

/* Stands for an id that is not yet known; of the same length. */
#define LATE_ID_PLACEHOLDER \
    "sha256:0000000000000000000000000000000000000000000000000000000000000000"

struct late_id;

/*
 * Starts a thread that computes the digest of a model and of its external data; it borrows
 * all arguments, which must not change until late_id_free(). Where no thread can be
 * started the digest is computed by late_id_wait(). NULL: out of memory.
 */
struct late_id *late_id_start(const struct external *external, int model,
                              const char *path);

/* Waits for the id, which `late` owns; NULL when it could not be computed. May be called
   more than once. Its form is that of qdq_work.late_id. */
const char *late_id_wait(void *late);

/* Copies the reason why there is no id to *problem. Returns false when there is an id. */
bool late_id_failed(struct late_id *late, struct api_problem *problem);

/* Returns an executor that lends the engine one thread less while the id is computed, so that both
   together use as many as were asked for. It borrows `late`. */
struct qdq_executor late_id_executor(struct late_id *late);

/* Waits for the thread. */
void late_id_free(struct late_id **late);

#endif
