/* SPDX-License-Identifier: Apache-2.0 */
/* What is seen of each request from outside: what it is called, counted and logged as. */
#ifndef QDQD_HTTP_ACCESS_LOG_H
#define QDQD_HTTP_ACCESS_LOG_H

#include "http/request.h"

/* The head has come; `start` and `n` as for trace_begin(). */
void access_log_begin(struct request *request, uint32_t start, uint64_t n);
/* It has been answered, or its connection is gone. */
void access_log_end(const struct request *request);

#endif
