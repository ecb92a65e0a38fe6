/* SPDX-License-Identifier: Apache-2.0 */
/* The threads that programs lend the engine. */
#ifndef THREADS_EXECUTOR_H
#define THREADS_EXECUTOR_H

#include "qdq/executor.h"

/* An executor that starts its threads for each call and joins them before it returns, so
   that they are bound by what binds its caller. The calling thread works, too. Signals
   are blocked in the others. It has no state. */
extern const struct qdq_executor threads_executor;

#endif
