/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks on a tensor: the places along its axes where the parts begin that it is made of. Each
 * operator that moves elements moves them.
 */
#ifndef QDQI_STAGES_SLICES_MARKS_H
#define QDQI_STAGES_SLICES_MARKS_H

#include "stages/slices/static_shape.h"

enum { QDQI_MOST_MARKS = 96 }; /* a tensor with more of them has none */

struct qdqi_mark {
    size_t axis;
    int64_t at; /* the element along the axis where the part begins */
    const char
        *name; /* of the tensor that the part comes from; borrowed from the model */
};

struct qdqi_marks {
    struct qdqi_static_shape shape;
    int64_t period
        [QDQI_SHAPE_AXES]; /* the marks of an axis are those of so many elements, again
                                        and again; 0: of the whole axis */
    size_t n;
    struct qdqi_mark rows[QDQI_MOST_MARKS]; /* in no order */
};

/* Finds the marks of a tensor; none where its shape is not known. */
void qdqi_find_marks(struct qdqi_shapes *shapes, const struct qdqi_tensor *tensor,
                     struct qdqi_marks *ret);

#endif
