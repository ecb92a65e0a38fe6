/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The axis of the channels of a tensor, followed back through the operators that choose,
 * average or move elements and leave each channel whole: ReduceMean, ReduceSum, ReduceMax,
 * ReduceMin, Gather, Slice, Reshape and Transpose. A factor of a channel of their input is
 * one of the same channel of their output.
 */
#ifndef QDQI_TRANSFORM_EQUALIZE_AXIS_H
#define QDQI_TRANSFORM_EQUALIZE_AXIS_H

#include "files/model/constant.h"

enum { QDQI_MAX_AXES = 16 };

/* Axes that are named by an attribute or an input, or the sizes of a shape. */
struct qdqi_axes {
    int64_t list[QDQI_MAX_AXES];
    size_t n;
};

/* Reads the attribute `axes`, or the input in its place. Returns false when there is none, or
   when it is not constant. */
bool qdqi_axes_read(const struct qdq_model *model, const struct qdqi_node *node,
                    size_t input, struct qdqi_axes *ret);

/* Returns whether the node is a reduction whose output has the rank of its input. */
bool qdqi_keeps_rank(const struct qdqi_node *node);

/* Channels are the last axis, or axis 1. */
struct qdqi_channel_axis {
    size_t rank; /* of the tensor; 0: not known, and channels are the last axis */
    bool is_last;
};

/* Returns whether the node is one of these and leaves the `channels` of its output whole.
   The axis is then that of its input 0. */
bool qdqi_channel_axis_back(const struct qdq_model *model, const struct qdqi_node *node,
                            size_t channels, struct qdqi_channel_axis *axis);

#endif
