/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts a model from an older opset to a later one: nodes whose schema changed are
 * adapted by the rows of ground/tbl/opsets.h, in nested graphs and local functions, too.
 * Weights, names of values, and the order of inputs and outputs do not change.
 */
#ifndef QDQI_TRANSFORM_PREPARE_CONVERT_OPSET_H
#define QDQI_TRANSFORM_PREPARE_CONVERT_OPSET_H

#include "files/model/write.h"

enum { QDQI_OPSET_MIN = 7, QDQI_OPSET_MAX = 28 };

/* The first node that prevents a conversion. */
struct qdqi_obstacle {
    /* the opset that the node cannot be converted to; 0: no node prevents it */
    int64_t opset;
    char node[128], op[64];
    char why[128];
};

/*
 * Converts `source` from its opset to `to`, both from QDQI_OPSET_MIN to QDQI_OPSET_MAX.
 * *ret lies in the arena and borrows from the source; it is set when obstacle->opset is
 * 0. INVALID_MODEL names a node that lacks something its schema requires; NO_MEMORY.
 */
enum qdq_code qdqi_convert_opset(const struct qdq_model *source, int64_t to,
                                 struct qdqi_arena *arena, struct qdqi_edited *ret,
                                 struct qdqi_obstacle *obstacle,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

#endif
