/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request is called: by X-Request-Id, and in a trace that others began
 * (traceparent, W3C Trace Context). Both are taken from the request where they are well
 * formed, and stand in its answer and in the log.
 */
#ifndef QDQD_WATCH_TRACE_H
#define QDQD_WATCH_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#define TRACE_ID 65     /* of a request: 64 characters at most */
#define TRACE_PARENT 56 /* "00-" 32 hex "-" 16 hex "-" 2 hex */

struct trace {
    char id[TRACE_ID];
    char parent[TRACE_PARENT]; /* for the answer: the same trace, our span; "": none */
};

/*
 * Fills *ret from the headers' values (NULL: none). `start` and `n` make the names that
 * are ours: the daemon's start and the number of the request, from 1.
 */
void trace_begin(struct trace *ret, const char *id, const char *parent, uint32_t start,
                 uint64_t n);

#endif
