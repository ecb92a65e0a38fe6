/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How large what a stranger sends may be. The engine has bounds of its own for what would
 * cost it more than its sender (messages in one another, fields, members of archives);
 * these come on top. 0: no other than those.
 */
#ifndef QDQ_LIMITS_H
#define QDQ_LIMITS_H

#include "qdq/model.h"

/* ROW(name): a member of the struct; messages call it limits.name, after the daemon's
   setting. */
#define QDQ_LIMITS(ROW) \
    ROW(graph_nodes)    \
    ROW(graph_depth)    \
    ROW(tensor_rank)    \
    ROW(tensor_bytes)   \
    ROW(archive_bytes)

struct qdq_limits {
    uint64_t graph_nodes;   /* of a model: of all its graphs */
    uint64_t graph_depth;   /* graphs in one another; 1: the main graph alone */
    uint64_t tensor_rank;   /* dimensions of an input, an output or a stored tensor */
    uint64_t tensor_bytes;  /* of one stored tensor */
    uint64_t archive_bytes; /* that a packed archive of calibration data unpacks to */
};

/* LIMIT_EXCEEDED, naming limit and tensor, for an open model that is larger. Local
   functions count once they are inlined (qdq/prepare.h). */
QDQ_API enum qdq_code qdq_limits_check(const struct qdq_limits *limits,
                                       const struct qdq_model *model,
                                       struct qdq_error *err) QDQ_MUST_CHECK;

#endif
