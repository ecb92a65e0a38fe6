/* SPDX-License-Identifier: Apache-2.0 */
/* The file that ONNX Runtime's profiler writes, one event on each line. */
#ifndef QDQI_RUN_SESSION_TRACE_H
#define QDQI_RUN_SESSION_TRACE_H

#include "ground/base/arena.h"
#include "qdq/runtime.h"

#include <stdint.h>

/* A node of the optimized model that ran, with the sum over its runs. */
struct qdqi_traced_node {
    const char *name, *op, *provider;
    enum qdq_node_kind kind; /* BY_NAME unless the runtime says it */
    double ms;               /* sum of all runs */
    /* the fastest run, and the bytes of the activations that it reads and makes; 0 where the
       runtime does not say it */
    double least_ms, read_bytes, made_bytes;
    /* the model's nodes that it computes, where the runtime names several */
    const char *const *names;
    size_t n_names;
    const char
        *reason; /* why the runtime's device left it to another one; NULL: unknown */
};

struct qdqi_trace {
    struct qdqi_traced_node *nodes; /* in the order in which they first ran */
    size_t n_nodes;
    /* the most bytes that the session's allocator had handed out at one time; 0 when the
       runtime does not write it */
    uint64_t peak_bytes;
};

/* Reads the text of a trace, which is changed. Lines that are no events of nodes are
   skipped. NO_MEMORY. */
enum qdq_code qdqi_trace_parse(char *text, struct qdqi_arena *arena,
                               struct qdqi_trace *ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;

#endif
