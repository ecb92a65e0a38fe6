/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tensor whose elements are numbers of channels. Operators that move, split and choose
 * elements are carried out on it, so that it shows which channel each element of their
 * output comes from.
 */
#ifndef QDQI_TRANSFORM_EQUALIZE_LABELS_H
#define QDQI_TRANSFORM_EQUALIZE_LABELS_H

#include "files/model/constant.h"

enum { QDQI_LABEL_AXES = 8 };

struct qdqi_labels {
    size_t rank;
    int64_t dims[QDQI_LABEL_AXES];
    size_t n; /* elements */
    uint32_t *all;
};

/* Makes a tensor of that shape, whose element is its index along the last axis. Returns
   false when it would be too large, or when out of memory. */
bool qdqi_labels_init(struct qdqi_arena *arena, size_t rank, const int64_t *dims,
                      struct qdqi_labels *ret);

/*
 * Computes an output of a node: of Reshape, Transpose, Squeeze, Unsqueeze, Gather, Slice and
 * Split, whose input 0 has these labels, and of MatMul, whose input 1 has them: a sum over
 * rows of equal labels has their label. Other operators leave labels as they are. Returns
 * false when the node does not fit, or when out of memory.
 */
bool qdqi_labels_pass(const struct qdq_model *model, const struct qdqi_node *node,
                      size_t output, struct qdqi_arena *arena,
                      const struct qdqi_labels *from, struct qdqi_labels *ret);

#endif
