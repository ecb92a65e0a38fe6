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
#define QDQ_LIMITS(ROW)                                                                \
    ROW(graph_nodes, 1000000, 0, INT64_MAX, COUNT,                                     \
        "Nodes of a model, with those of nested graphs and of functions that are "     \
        "called; 0: no limit.")                                                        \
    ROW(graph_depth, 32, 1, 100, COUNT,                                                \
        "Graphs of a model in one another (If, Loop, Scan); 1: the main one alone.")   \
    ROW(tensor_rank, 64, 0, INT64_MAX, COUNT,                                          \
        "Dimensions of an input, an output or a stored tensor; 0: no limit.")          \
    ROW(tensor_bytes, 0, 0, INT64_MAX, BYTES,                                          \
        "Bytes of one stored tensor of a model, in its file or beside it; 0: as many " \
        "as its file has.")                                                            \
    ROW(archive_bytes, INT64_C(8) << 30, 1, INT64_MAX, BYTES,                          \
        "Bytes that a packed archive of calibration data (.tar.gz) may unpack to.")

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
