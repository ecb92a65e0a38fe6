/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts that follow from a job's model, calibration data and spec. They are derived
 * once, when the job is submitted, and stored in its row. Afterwards only the worker
 * that runs the job decodes a spec.
 */
#ifndef QDQD_STORE_DERIVE_H
#define QDQD_STORE_DERIVE_H

#include "store/store.h"
#include "qdq/spec.h"

struct sqlite3;

/* Returns the class of this machine's processor, as specs name it; "" without a name. */
const char *store_own_processor(void);

/* Fills wants_gpu, processor and observations from the job's model and calibration and its
   decoded spec. Returns false when there is no memory. */
bool store_derive(const struct qdq_spec *spec, struct store_job *job,
                  struct api_problem *p);

/*
 * The same facts as functions for SQL, for steps that add columns, and for a new record:
 *
 *     effective_spec(spec)                       a spec that cannot be decoded stays as
 *                                                it is: the worker names its mistake
 *     wants_gpu(spec, calibration)               0 or 1; 0 where it cannot be decoded
 *     observations_key(spec, model, calibration) a digest or NULL
 *     processor(spec, calibration)               this machine's class, where the job has
 *                                                to run on it; else NULL
 */
bool store_derive_functions(struct sqlite3 *db);

#endif
