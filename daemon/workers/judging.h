/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of a QUANTIZE that the result is judged by, and the bounds of a foreign metric: a
   timer's signal ends the worker, after it has told the daemon why. */
#ifndef QDQD_WORKERS_JUDGING_H
#define QDQD_WORKERS_JUDGING_H

#include "qdq/quantize.h"
#include "workers/message.h"

/* Returns the inputs to judge by, whose descriptors are behind the dataset's. It borrows from the
   request. */
struct qdq_judging judging_of(const struct message *request);

#endif
