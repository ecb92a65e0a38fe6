/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of a request: its X-Request-Id, and its place in a trace that a client
 * began (traceparent, W3C Trace Context). Both are copied from the request where they
 * are well formed, and stand in its answer and in the log.
 */
#ifndef QDQD_WATCH_TRACE_H
#define QDQD_WATCH_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#define TRACE_ID 65     /* length of a request's id, 64 characters at most */
#define TRACE_PARENT 56 /* "00-" 32 hex "-" 16 hex "-" 2 hex */

struct trace {
    char id[TRACE_ID];
    /* traceparent of the answer, with the same trace and a span of ours; "": none */
    char parent[TRACE_PARENT];
};

/*
 * Fills *ret from the headers' values (NULL: the header is absent). Missing names are
 * generated from `start`, the daemon's start, and `n`, the number of the request from
 * 1.
 */
void trace_begin(struct trace *ret, const char *id, const char *parent, uint32_t start,
                 uint64_t n);

#endif
