/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/rewrite/table_rows.h"

static bool
has_pair_everywhere(const struct qdqi_pairs *p, const struct qdqi_tensor *t)
{
    for (size_t i = 0; i < p->plan->view.n_tensors; i++)
        if (p->plan->activations[i].tensor == t && p->plan->activations[i].everywhere)
            return true;
    return false;
}

static bool
has_pair(const struct qdqi_pairs *p, const struct qdqi_tensor *t)
{
    for (size_t i = 0; i < p->plan->view.n_tensors; i++)
        if (p->plan->activations[i].tensor == t)
            return true;
    return false;
}

/* Adds the DequantizeLinear that makes a tensor of integers; an axis < 0 counts from the end. */
static bool
dequantize(struct qdqi_pairs *p, const struct qdqi_tensor *t, const char *integers,
           const struct qdqi_beside *beside, bool has_axis, int64_t axis,
           const char *makes)
{
    const char *inputs[] = {integers, beside->scale, beside->zero};
    const char *name = qdqi_pairs_name(p, t->name, "_DequantizeLinear");
    if (!name)
        return false;
    Onnx__NodeProto *dq =
        qdqi_edit_add_node(p->edit, qdqi_edit_behind(p->source, t), "DequantizeLinear",
                           name, inputs, 3, makes);
    if (has_axis)
        qdqi_edit_add_int(p->edit, dq, "axis", axis);
    return dq != NULL;
}

/* Returns where a Transpose puts the last axis; < 0: the node is none, or its tensors have pairs. */
static int64_t
last_axis_behind(const struct qdqi_pairs *p, const struct qdqi_node *node)
{
    const Onnx__AttributeProto *perm = qdqi_node_attribute(node->proto, "perm");
    if (!qdqi_node_is(node->proto, "Transpose") || node->proto->n_output != 1 ||
        !node->outputs[0] || has_pair(p, node->inputs[0]) ||
        has_pair(p, node->outputs[0]))
        return -1;
    for (size_t i = 0; perm && i < perm->n_ints; i++)
        if (perm->ints[i] + 1 == (int64_t)perm->n_ints)
            return (int64_t)i;
    return perm ? -1 : 0;
}

/* Makes the nodes that only move or measure rows read integers. Sets *ret_all to whether nothing
   else reads the rows. */
static bool
move_rows(struct qdqi_pairs *p, const struct qdqi_tensor *rows, const char *integers,
          const struct qdqi_beside *beside, bool *ret_all)
{
    *ret_all = rows->uses && !rows->is_output && !rows->is_captured;
    for (const struct qdqi_use *use = rows->uses; use; use = use->next) {
        const struct qdqi_node *node = &p->source->graph.nodes[use->node];
        const int64_t axis = last_axis_behind(p, node);
        if (axis < 0 && !qdqi_node_is(node->proto, "Shape")) {
            *ret_all = false;
            continue;
        }
        qdqi_edit_set_input(p->edit, use->node, (size_t)use->input, integers);
        if (axis < 0)
            continue;
        const struct qdqi_tensor *t = node->outputs[0];
        const char *moved = qdqi_pairs_name(p, t->name, "_quantized");
        if (!moved)
            return false;
        qdqi_edit_set_output(p->edit, use->node, 0, moved);
        if (!dequantize(p, t, moved, beside, true, axis, t->name))
            return false;
    }
    return true;
}

/* Returns whether a Transpose of the rows that this Gather selects moves integers. */
static bool
moves_rows(const struct qdqi_pairs *p, size_t gather)
{
    const struct qdq_plan_view *view = &p->plan->view;
    for (size_t i = 0; i < view->n_layers; i++)
        if (view->layers[i].node == gather && view->layers[i].weight_input >= 0)
            return p->plan->weights[view->layers[i].weight_row].moves_rows &&
                   !has_pair(p, p->source->graph.nodes[gather].outputs[0]);
    return false;
}

bool
qdqi_dequantize_rows(struct qdqi_pairs *p, size_t gather,
                     const struct qdqi_quantized *q, const char *integers,
                     const struct qdqi_beside *beside)
{
    const struct qdqi_node *node = &p->source->graph.nodes[gather];
    const struct qdqi_tensor *t = node->outputs[0];
    const char *rows = qdqi_pairs_name(p, t->name, "_quantized"), *makes = t->name;
    bool all = false;
    if (!rows)
        return false;
    if (has_pair_everywhere(p, t)) {
        makes = qdqi_pairs_name(p, t->name, "_QuantizeLinear_Input");
        if (!makes || !qdqi_map_put(p->raw, t->name, (void *)(uintptr_t)makes))
            return false;
    }
    qdqi_edit_set_input(p->edit, gather, 0, integers);
    qdqi_edit_set_output(p->edit, gather, 0, rows);
    if (moves_rows(p, gather) && !move_rows(p, t, rows, beside, &all))
        return false;
    return all || dequantize(p, t, rows, beside, q->params->axis >= 0, -1, makes);
}
