/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operators that pass a factor of a channel through: if a channel of their input is
 * multiplied by a positive number, the same channel of their output is, too. Channels are
 * axis 1, or the last axis of a matrix.
 */
#ifndef QDQI_TRANSFORM_EQUALIZE_PASS_H
#define QDQI_TRANSFORM_EQUALIZE_PASS_H

#include "files/model/constant.h"

/* Returns whether the operator passes factors of its input 0 to its output. `rank` is the
   rank of that input; 0: not known, and channels are the last axis. */
bool qdqi_passes_factor(const struct qdq_model *model, const struct qdqi_node *node,
                        size_t rank);

/* Returns whether a node multiplies two computed matrices. */
bool qdqi_multiplies_activations(const struct qdqi_node *node);

/* Returns whether a tensor is a constant of one element and of rank 0 or 1. */
bool qdqi_is_scalar(const struct qdq_model *model, const struct qdqi_tensor *tensor);

/* Returns whether the node is Flatten at axis 1, or its equivalent Reshape to [0, -1]. */
bool qdqi_is_flatten(const struct qdq_model *model, const struct qdqi_node *node);

/* Returns whether a constant has one element for each channel. `from_end` is the
   axis of the channels, counted from the end of the result's shape. */
bool qdqi_is_per_channel(const struct qdqi_constant *constant, size_t from_end,
                         size_t channels);

#endif
