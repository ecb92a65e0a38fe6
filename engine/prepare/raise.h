/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of an older opset as one of a later opset: nodes whose schema changed are
 * adapted by the rows of tbl/opsets.h, in nested graphs and in local functions, too.
 * Weights, names of values, and the order of inputs and outputs stay as they are.
 */
#ifndef QDQI_PREPARE_RAISE_H
#define QDQI_PREPARE_RAISE_H

#include "model/write.h"

enum { QDQI_OPSET_MIN = 7, QDQI_OPSET_MAX = 25 };

/* The node that stands in the way. */
struct qdqi_obstacle {
    int64_t opset; /* that it cannot be brought to; 0: there is no obstacle */
    char node[128], op[64];
    char why[128];
};

/*
 * Raises `source` from its opset to `to`, both from QDQI_OPSET_MIN to QDQI_OPSET_MAX.
 * *ret lies in the arena and borrows from the source; it is set where obstacle->opset
 * is 0. INVALID_MODEL names a node that lacks what its schema asks for; NO_MEMORY.
 */
enum qdq_code qdqi_raise(const struct qdq_model *source, int64_t to,
                         struct qdqi_arena *arena, struct qdqi_edited *ret,
                         struct qdqi_obstacle *obstacle,
                         struct qdq_error *err) QDQ_MUST_CHECK;

#endif
