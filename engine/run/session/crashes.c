/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "run/session/crashes.h"

#include <stdio.h>
#include <string.h>

static const Onnx__NodeProto *find(Onnx__NodeProto *const *nodes, size_t n);

static bool
lacks_bias(const Onnx__NodeProto *node)
{
    enum { BIAS = 2 };
    return qdqi_node_is_microsoft(node) && strcmp(node->op_type, "Attention") == 0 &&
           (node->n_input <= BIAS || !*node->input[BIAS]);
}

static const Onnx__NodeProto *
find_inside(const Onnx__NodeProto *node)
{
    const Onnx__NodeProto *found = NULL;
    for (size_t i = 0; i < node->n_attribute && !found; i++) {
        const Onnx__AttributeProto *a = node->attribute[i];
        if (a->g)
            found = find(a->g->node, a->g->n_node);
        for (size_t k = 0; k < a->n_graphs && !found; k++)
            found = find(a->graphs[k]->node, a->graphs[k]->n_node);
    }
    return found;
}

/* Returns the first such node, also of graphs inside; NULL: there is none. */
static const Onnx__NodeProto *
find(Onnx__NodeProto *const *nodes, size_t n)
{
    const Onnx__NodeProto *found = NULL;
    for (size_t i = 0; i < n && !found; i++)
        found = lacks_bias(nodes[i]) ? nodes[i] : find_inside(nodes[i]);
    return found;
}

enum qdq_code
qdqi_refuse_crash(const Onnx__ModelProto *proto, struct qdq_error *err)
{
    const Onnx__NodeProto *found = find(proto->graph->node, proto->graph->n_node);
    for (size_t i = 0; i < proto->n_functions && !found; i++)
        found = find(proto->functions[i]->node, proto->functions[i]->n_node);
    if (!found)
        return QDQ_OK;
    char name[sizeof err->where];
    const bool is_named = found->name && *found->name;
    snprintf(name, sizeof name, "%s%s", is_named ? "" : "@",
             is_named              ? found->name
             : found->n_output > 0 ? found->output[0]
                                   : "");
    return qdq_error_set(
        err, QDQ_UNSUPPORTED, QDQ_AT_NODE, name,
        "node '%s' (Attention of com.microsoft) has no bias, and ONNX "
        "Runtime ends the process where it runs such a node: give it a "
        "bias of zeros",
        name);
}
