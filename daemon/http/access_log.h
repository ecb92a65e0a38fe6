/* SPDX-License-Identifier: Apache-2.0 */
/* Logs and counts each request, and gives it its trace identifiers. */
#ifndef QDQD_HTTP_ACCESS_LOG_H
#define QDQD_HTTP_ACCESS_LOG_H

#include "http/request.h"

/* Call this when the head of a request has arrived; `start` and `n` as for
   trace_begin(). */
void access_log_begin(struct request *request, uint32_t start, uint64_t n);
/* Call this when the request was answered, or its connection was closed. */
void access_log_end(const struct request *request);

#endif
