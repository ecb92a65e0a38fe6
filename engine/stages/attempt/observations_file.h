/* SPDX-License-Identifier: Apache-2.0 */
/* The file in which a job keeps observations for later ones. */
#ifndef QDQI_STAGES_ATTEMPT_OBSERVATIONS_FILE_H
#define QDQI_STAGES_ATTEMPT_OBSERVATIONS_FILE_H

#include "stages/attempt/attempt.h"
#include "numbers/range/observations.h"

/* Returns whether the caller keeps observations, and whether the job does, for the caller or
   for itself. */
bool qdqi_keeps_observations(const struct qdq_work *work);
bool qdqi_attempt_keeps(const struct qdqi_attempt *a);

/* Returns the descriptor of the file. */
int qdqi_observations_file(const struct qdqi_attempt *a);

/*
 * Returns the text that identifies observations: the caller's key, the size and time of
 * the ONNX Runtime library where its file is known, because versions round differently,
 * and whether the model ran on a GPU. NULL when out of memory.
 */
char *qdqi_observations_file_identity(const struct qdqi_attempt *a);

/* Writes the file. A failure is only a warning. NO_MEMORY. */
enum qdq_code qdqi_observations_file_write(const struct qdqi_attempt *a,
                                           const char *identity,
                                           const struct qdqi_observed *all,
                                           const struct qdqi_observations *earlier,
                                           const struct qdqi_observed_rows *rows,
                                           struct qdq_error *err) QDQ_MUST_CHECK;

#endif
