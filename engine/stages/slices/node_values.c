/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/slices/node_values.h"

#include "files/model/constant.h"

bool
qdqi_node_constant_ints(const struct qdq_model *model, const struct qdqi_node *node,
                        size_t input, const char *attribute, int64_t *ret,
                        size_t *ret_n)
{
    if (input < node->proto->n_input && node->inputs[input])
        return qdqi_constant_ints(model, node->inputs[input], ret, QDQI_SHAPE_AXES,
                                  ret_n);
    const Onnx__AttributeProto *a =
        attribute ? qdqi_node_attribute(node->proto, attribute) : NULL;
    if (!a || a->n_ints > QDQI_SHAPE_AXES)
        return false;
    for (size_t i = 0; i < a->n_ints; i++)
        ret[i] = a->ints[i];
    *ret_n = a->n_ints;
    return true;
}

int64_t
qdqi_node_axis(const struct qdqi_node *node, int64_t otherwise, size_t rank)
{
    const int64_t axis = qdqi_node_int(node->proto, "axis", otherwise);
    const int64_t at = axis < 0 ? axis + (int64_t)rank : axis;
    return at >= 0 && at < (int64_t)rank ? at : -1;
}

bool
qdqi_split_sizes(const struct qdq_model *model, const struct qdqi_node *split,
                 int64_t whole, int64_t *ret)
{
    const size_t n = split->proto->n_output;
    const Onnx__AttributeProto *a = qdqi_node_attribute(split->proto, "split");
    size_t given = 0;
    if (n > QDQI_MOST_SPLITS)
        return false;
    if (split->proto->n_input > 1 && split->inputs[1])
        return qdqi_constant_ints(model, split->inputs[1], ret, QDQI_MOST_SPLITS,
                                  &given) &&
               given == n;
    for (size_t i = 0; a && i < a->n_ints && i < n; i++)
        ret[given++] = a->ints[i];
    if (given == n)
        return true;
    const int64_t each = whole < 0 ? -1 : (whole + (int64_t)n - 1) / (int64_t)n;
    for (size_t i = 0; i < n; i++)
        ret[i] = i + 1 < n || whole < 0 ? each : whole - each * (int64_t)(n - 1);
    return whole >= 0;
}
