/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of untrusted models and data, beside the engine's own bounds on nested
   messages, fields and archive members. 0: no limit but those bounds. */
#ifndef QDQ_LIMITS_H
#define QDQ_LIMITS_H

#include <stdint.h>

#include "qdq/model.h"

/*
 * ROW(name, default, least, most, COUNT or BYTES, "meaning"): a member of the struct.
 * The last five columns are for a program that makes a setting of each limit. Messages
 * call a limit limits.name.
 */
#define QDQ_LIMITS(ROW)                                                             \
    ROW(graph_nodes, 1000000, 0, INT64_MAX, COUNT,                                  \
        "Most nodes of a model, including those of nested graphs and of called "    \
        "functions; 0: no limit.")                                                  \
    ROW(graph_depth, 32, 1, 100, COUNT,                                             \
        "Deepest nesting of a model's graphs (If, Loop, Scan); 1: the main graph "  \
        "alone.")                                                                   \
    ROW(tensor_rank, 64, 0, INT64_MAX, COUNT,                                       \
        "Most dimensions of an input, an output or a stored tensor; 0: no limit.")  \
    ROW(tensor_bytes, 0, 0, INT64_MAX, BYTES,                                       \
        "Most bytes of one stored tensor, in the model's file or beside it; 0: no " \
        "limit but the size of its file.")                                          \
    ROW(archive_bytes, INT64_C(8) << 30, 1, INT64_MAX, BYTES,                       \
        "Most unpacked bytes of a packed archive of calibration data (.tar.gz).")

struct qdq_limits {
#define QDQ_LIMIT(name, ...) uint64_t name;
    QDQ_LIMITS(QDQ_LIMIT)
#undef QDQ_LIMIT
};

/* Checks an open model. LIMIT_EXCEEDED names the limit and the tensor. Local
   functions count after they are inlined (qdq/prepare.h). */
QDQ_API enum qdq_code qdq_limits_check(const struct qdq_limits *limits,
                                       const struct qdq_model *model,
                                       struct qdq_error *err) QDQ_MUST_CHECK;

#endif
