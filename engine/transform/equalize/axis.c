/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/equalize/axis.h"

#include <string.h>

bool
qdqi_axes_read(const struct qdq_model *model, const struct qdqi_node *node,
               size_t input, struct qdqi_axes *ret)
{
    const Onnx__AttributeProto *a = qdqi_node_attribute(node->proto, "axes");
    if (!a)
        return node->proto->n_input > input && node->inputs[input] &&
               qdqi_constant_ints(model, node->inputs[input], ret->list, QDQI_MAX_AXES,
                                  &ret->n) &&
               ret->n > 0;
    if (a->n_ints == 0 || a->n_ints > QDQI_MAX_AXES)
        return false;
    memcpy(ret->list, a->ints, a->n_ints * sizeof *ret->list);
    ret->n = a->n_ints;
    return true;
}

/* Returns whether `axis` of a tensor of that rank is one of them. An axis that is counted
   from the other end may be, if the rank is not known. */
static bool
has_axis(const struct qdqi_axes *axes, size_t axis, size_t rank)
{
    for (size_t i = 0; i < axes->n; i++) {
        int64_t a = axes->list[i];
        if (rank ? (a < 0 ? a + (int64_t)rank : a) == (int64_t)axis : a >= -1)
            return true;
    }
    return false;
}

/* Returns the index of the axis; `rank` is known. */
static size_t
index_of(const struct qdqi_channel_axis *axis)
{
    return axis->is_last ? axis->rank - 1 : 1;
}

/* Sets the axis by its index. Returns false when channels are neither the last axis nor
   axis 1. */
static bool
set_axis(struct qdqi_channel_axis *axis, size_t rank, size_t index)
{
    axis->rank = rank;
    axis->is_last = index + 1 == rank;
    return axis->is_last || index == 1;
}

/* --- the operators ---------------------------------------------------------- */

static const char *const reductions[] = {"ReduceMean", "ReduceSum", "ReduceMax",
                                         "ReduceMin", NULL};

bool
qdqi_keeps_rank(const struct qdqi_node *node)
{
    return qdqi_node_is_one_of(node->proto, reductions) &&
           qdqi_node_int(node->proto, "keepdims", 1);
}

static bool
reduce_back(const struct qdq_model *model, const struct qdqi_node *node,
            struct qdqi_channel_axis *axis)
{
    bool keeps = qdqi_keeps_rank(node);
    struct qdqi_axes axes;
    if (!qdqi_axes_read(model, node, 1, &axes))
        return false;
    if (axis->rank == 0)
        return !has_axis(&axes, 0, 0);
    size_t rank = axis->rank + (keeps ? 0 : axes.n), left = index_of(axis), i = 0;
    for (; !keeps && i < rank; i++)
        if (!has_axis(&axes, i, rank) && left-- == 0)
            break;
    i = keeps ? left : i;
    return !has_axis(&axes, i, rank) && i < rank && set_axis(axis, rank, i);
}

static bool
gather_back(const struct qdqi_node *node, struct qdqi_channel_axis *axis)
{
    const struct qdqi_tensor *indices = node->inputs[1];
    int64_t at = qdqi_node_int(node->proto, "axis", 0);
    if (!indices || !indices->is_fixed || axis->rank == 0 ||
        axis->rank < indices->view.rank)
        return false;
    size_t rank = axis->rank + 1 - indices->view.rank, index = index_of(axis);
    at += at < 0 ? (int64_t)rank : 0;
    if (at < 0 || at >= (int64_t)rank)
        return false;
    if (index < (size_t)at)
        return set_axis(axis, rank, index);
    return index >= (size_t)at + indices->view.rank &&
           set_axis(axis, rank, index + 1 - indices->view.rank);
}

static bool
slice_back(const struct qdq_model *model, const struct qdqi_node *node,
           const struct qdqi_channel_axis *axis)
{
    struct qdqi_axes axes;
    return qdqi_axes_read(model, node, 3, &axes) &&
           !has_axis(&axes, axis->rank ? index_of(axis) : 0, axis->rank);
}

/* The last axis stays whole where the shape ends with the number of channels: nothing but
   a tensor with so many elements along its last axis can take the factors in. */
static bool
reshape_back(const struct qdq_model *model, const struct qdqi_node *node,
             size_t channels, struct qdqi_channel_axis *axis)
{
    struct qdqi_axes shape;
    if (!axis->is_last || !node->inputs[1] ||
        !qdqi_constant_ints(model, node->inputs[1], shape.list, QDQI_MAX_AXES,
                            &shape.n) ||
        shape.n == 0 || shape.list[shape.n - 1] != (int64_t)channels)
        return false;
    axis->rank = 0;
    return true;
}

static bool
transpose_back(const struct qdqi_node *node, struct qdqi_channel_axis *axis)
{
    const Onnx__AttributeProto *perm = qdqi_node_attribute(node->proto, "perm");
    if (!perm || perm->n_ints < 2 || (axis->rank && axis->rank != perm->n_ints))
        return false;
    axis->rank = perm->n_ints;
    int64_t from = perm->ints[index_of(axis)];
    return from >= 0 && from < (int64_t)axis->rank &&
           set_axis(axis, axis->rank, (size_t)from);
}

bool
qdqi_channel_axis_back(const struct qdq_model *model, const struct qdqi_node *node,
                       size_t channels, struct qdqi_channel_axis *axis)
{
    if (node->proto->n_input == 0 || !node->inputs[0])
        return false;
    if (qdqi_node_is_one_of(node->proto, reductions))
        return reduce_back(model, node, axis);
    if (qdqi_node_is(node->proto, "Transpose"))
        return transpose_back(node, axis);
    if (node->proto->n_input < 2)
        return false;
    if (qdqi_node_is(node->proto, "Gather"))
        return gather_back(node, axis);
    if (qdqi_node_is(node->proto, "Slice"))
        return slice_back(model, node, axis);
    return qdqi_node_is(node->proto, "Reshape") &&
           reshape_back(model, node, channels, axis);
}
