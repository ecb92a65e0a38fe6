/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/rewrite/typed_pair.h"

enum { OPSET_OUTPUT_DTYPE = 21 };

static bool
is_read_by_add(const struct qdq_model *source, const struct qdqi_node *node)
{
    const struct qdqi_use *use = node->outputs[0] ? node->outputs[0]->uses : NULL;
    for (; use; use = use->next)
        if (qdqi_node_is(source->graph.nodes[use->node].proto, "Add"))
            return true;
    return false;
}

bool
qdqi_is_typed_pair(const struct qdq_model *source, const struct qdqi_tensor *t,
                   const struct qdqi_params *params)
{
    if (params->format != QDQI_TO_INT8 || qdqi_has_zero_points(params) ||
        qdqi_model_opset(source->proto) < OPSET_OUTPUT_DTYPE)
        return false;
    for (const struct qdqi_use *use = t->uses; use; use = use->next) {
        const struct qdqi_node *node = &source->graph.nodes[use->node];
        if (qdqi_node_is(node->proto, "MatMul") && is_read_by_add(source, node))
            return true;
    }
    return false;
}
