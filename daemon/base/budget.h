/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that all requests together may use for large texts: JSON that is received,
 * decoded or encoded, and reports. It has one bound for the whole process, so that no
 * number of clients can exhaust the machine.
 */
#ifndef QDQD_BASE_BUDGET_H
#define QDQD_BASE_BUDGET_H

#include "api/problem.h"

/* Decoding JSON takes at most about so many times its bytes: the worst text is a list of
   empty objects. */
#define BUDGET_JSON 80

/* The most bytes that one request can take. */
#define BUDGET_MOST (96u << 20)

/* Takes so many bytes of the budget, and waits for them for a moment. BUSY. TOO_LARGE for more than
   BUDGET_MOST. */
bool budget_take(uint64_t bytes, struct api_problem *p);
/* Gives back bytes that were taken with one call. */
void budget_give(uint64_t bytes);

#endif
