/* SPDX-License-Identifier: Apache-2.0 */
/* The data to judge by, sample by sample: the model's inputs, and behind them the arrays that are
   labels. Labels keep their axis 0, whose size is that of the run. */
#ifndef QDQI_STAGES_TASK_LABELLED_H
#define QDQI_STAGES_TASK_LABELLED_H

#include "stages/attempt/attempt.h"

/* Returns whether the data has an array of that name. */
bool qdqi_labelled_has(const struct qdq_dataset *dataset, const char *name);

/* Opens the data, with n labels. Errors are those of qdqi_feed_open(); a label that is missing is
   CALIBRATION_MISMATCH. */
enum qdq_code qdqi_labelled_open(const struct qdqi_attempt *attempt,
                                 const char *const *labels, size_t n,
                                 struct qdqi_arena *arena, struct qdqi_feed **ret,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

#endif
