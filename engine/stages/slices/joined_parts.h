/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors of which a node makes one along an axis: by themselves, or as a sequence of the graph around them. */
#ifndef QDQI_STAGES_SLICES_JOINED_PARTS_H
#define QDQI_STAGES_SLICES_JOINED_PARTS_H

#include "files/model/model.h"

enum { QDQI_MOST_PARTS = 64 }; /* of a sequence */

struct qdqi_joined {
    size_t n;
    struct qdqi_tensor *const *tensors; /* borrowed from the model; or `own` */
    struct qdqi_tensor *own[QDQI_MOST_PARTS];
};

/* Finds the parts of a Concat or ConcatFromSequence. Returns false for another node, and where a part is not
   known or a sequence has more than QDQI_MOST_PARTS. */
bool qdqi_joined_parts(const struct qdq_model *model, const struct qdqi_node *node,
                       struct qdqi_joined *ret);

/* Returns whether the node puts its parts along an axis of their own, as a stack. */
bool qdqi_stacks(const struct qdqi_node *node);

/* Returns the tensor that a SequenceAt takes out of its sequence; NULL for another node, and where that is not
   known. */
const struct qdqi_tensor *qdqi_taken_part(const struct qdq_model *model,
                                          const struct qdqi_node *node);

#endif
