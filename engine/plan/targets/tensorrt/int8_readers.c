/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes feed layers that read int8. TensorRT gains nothing from others in int8. */
#include "config.h"
#include "plan/targets/tensorrt/patterns.h"

#include "graph/layers/operators.h"
#include "plan/placement/rules.h"

/*
 * Returns whether a node is fused into the layer before it, so that a reader of the
 * node reads that layer. Copies and activations are fused, and MaxPool commutes with a
 * pair.
 */
static bool
is_seen_through(const struct planner *p, const struct qdqi_use *use)
{
    const struct qdqi_node *node = &p->model->graph.nodes[use->node];
    return p->graph->passes[use->node] == use->input ||
           (use->input == 0 && qdqi_is_pointwise(node)) ||
           (p->graph->classes[use->node] && qdqi_is_swish(p->graph, node)) ||
           qdqi_node_is(node->proto, "MaxPool");
}

static bool
is_read_as_int8(const struct planner *p, const struct qdqi_use *use)
{
    const struct qdq_layer *layer = p->by_node[use->node];
    if (layer && qdqi_layer_has_pair(layer, use->input))
        return true;
    return is_seen_through(p, use) && qdqi_patterns_of(p)->feeds_int8[use->node];
}

static bool
feeds_int8(const struct planner *p, size_t i)
{
    const struct qdqi_node *node = &p->model->graph.nodes[i];
    for (size_t k = 0; k < node->proto->n_output; k++) {
        const struct qdqi_tensor *t = node->outputs[k];
        /* The readers of a nested graph's outputs are not searched; they count as
           int8. */
        if (t && (t->is_captured || (t->is_output && t->scope > 0)))
            return true;
        for (const struct qdqi_use *use = t ? t->uses : NULL; use; use = use->next)
            if (is_read_as_int8(p, use))
                return true;
    }
    return false;
}

void
qdqi_mark_int8_reader(struct planner *p, size_t node)
{
    qdqi_patterns_of(p)->feeds_int8[node] = feeds_int8(p, node);
}
