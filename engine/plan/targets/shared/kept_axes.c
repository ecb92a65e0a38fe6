/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/targets/shared/kept_axes.h"

const char *
qdqi_axes_of(struct qdqi_edit *edit, const struct qdqi_node *node)
{
    const Onnx__AttributeProto *axes = qdqi_node_attribute(node->proto, "axes");
    if (node->proto->n_input > 1)
        return node->inputs[1] ? node->inputs[1]->name : NULL;
    if (!axes || axes->n_ints == 0)
        return NULL;
    const char *name = qdqi_edit_name(edit, node->outputs[0]->name, "_axes");
    qdqi_edit_add_initializer(edit, name, QDQI_INT64, axes->n_ints, false, axes->ints);
    return name;
}

bool
qdqi_drops_axes(const struct qdqi_node *node, const char *op)
{
    return qdqi_node_is(node->proto, op) && node->proto->n_input > 0 &&
           node->proto->n_output == 1 && node->outputs[0] &&
           !qdqi_node_int(node->proto, "keepdims", 1) &&
           node->outputs[0]->dtype != QDQI_INT64 &&
           node->outputs[0]->dtype != QDQI_INT32;
}

bool
qdqi_keep_axes(const struct qdq_model *model, struct qdqi_edit *edit, size_t i)
{
    const struct qdqi_node *node = &model->graph.nodes[i];
    const struct qdqi_tensor *out = node->outputs[0];
    const char *axes = qdqi_axes_of(edit, node);
    if (!axes)
        return false;
    const char *inputs[] = {qdqi_edit_name(edit, out->name, "_with_axes"), axes};
    qdqi_edit_retype(edit, i, node->proto->op_type, "", "keepdims");
    qdqi_edit_set_output(edit, i, 0, inputs[0]);
    qdqi_edit_add_node(edit, qdqi_edit_behind(model, out), "Squeeze",
                       qdqi_edit_name(edit, node->name, "_axes"), inputs, 2, out->name);
    return true;
}

bool
qdqi_is_norm(const struct qdqi_node *node)
{
    return qdqi_node_is(node->proto, "ReduceL2") && node->proto->n_output == 1 &&
           node->proto->n_input > 0 && node->inputs[0] && !node->inputs[0]->is_fixed &&
           node->outputs[0] && node->inputs[0]->dtype == QDQI_FLOAT32;
}
