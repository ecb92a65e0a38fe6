/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/placement/carried_weights.h"

#include "plan/placement/lint.h"

#include <string.h>

enum { RIGHT = 1 };

/* Returns the position of an input of a graph, or -1. */
static int64_t
find_input(const Onnx__GraphProto *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_input; i++)
        if (graph->input[i]->name && strcmp(graph->input[i]->name, name) == 0)
            return (int64_t)i;
    return -1;
}

const struct qdqi_tensor *
qdqi_before_identities(const struct qdqi_graph *graph, const struct qdqi_tensor *t)
{
    while (t && t->producer >= 0 &&
           qdqi_node_is(graph->nodes[t->producer].proto, "Identity") &&
           graph->nodes[t->producer].proto->n_input == 1 &&
           graph->nodes[t->producer].inputs[0])
        t = graph->nodes[t->producer].inputs[0];
    return t;
}

/* Returns the number of the inputs in front of what a Loop or Scan carries, and stores the number of the inputs up to
   its end in *ret_end. A Scan of opset 8 has lengths in front, and is none. */
static int64_t
find_states(const struct qdqi_node *node, const Onnx__GraphProto *body,
            int64_t *ret_end)
{
    const int64_t n = (int64_t)node->proto->n_input;
    *ret_end = 0;
    if (qdqi_node_is(node->proto, "Loop")) {
        *ret_end = n;
        return 2;
    }
    if (qdqi_node_is(node->proto, "Scan") && node->proto->n_input == body->n_input)
        *ret_end = n - qdqi_node_int(node->proto, "num_scan_inputs", n);
    return 0;
}

int64_t
qdqi_carried_input(const struct qdqi_graph *graph, const struct qdqi_tensor *t)
{
    const struct qdqi_scope *body = t ? &graph->scopes[t->scope] : NULL;
    if (!body || body->owner < 0 || !t->is_input)
        return -1;
    const struct qdqi_node *node = &graph->nodes[body->owner];
    int64_t end;
    const int64_t first = find_states(node, body->proto, &end);
    const int64_t i = find_input(body->proto, t->name), out = i - (first > 0);
    if (i < first || i >= end || (size_t)i >= node->proto->n_input ||
        !node->inputs[i] || !node->inputs[i]->is_fixed ||
        (size_t)out >= body->proto->n_output || !body->proto->output[out]->name)
        return -1;
    const struct qdqi_tensor *last =
        qdqi_map_get(graph->tensors, body->proto->output[out]->name);
    return qdqi_before_identities(graph, last) == t ? i : -1;
}

static bool
has_carried_weight(const struct planner *p, const struct qdq_layer *layer)
{
    static const char *const ops[] = {"MatMul", "Gemm", NULL};
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    return qdqi_node_is_one_of(node->proto, ops) && node->proto->n_input > RIGHT &&
           qdqi_carried_input(
               &p->model->graph,
               qdqi_before_identities(&p->model->graph, node->inputs[RIGHT])) >= 0;
}

enum qdq_code
qdqi_warn_carried(struct planner *p, struct qdq_error *err)
{
    const struct qdqi_layer_count count = qdqi_count_layers(p, has_carried_weight);
    return qdqi_warn_count(
        p, &count, "weights_in_loop",
        "a Loop or Scan carries their weights from step to step, so that these are no "
        "constants and stay in float: export the model with its LSTM or GRU as one "
        "operator, or with constants that the body reads from outside",
        err);
}
