/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/placement/kept_weights.h"

#include "files/model/constant.h"
#include "graph/layers/operators.h"

/* The elements of the smallest weight that matters to the size of a file. */
enum { LEAST_ELEMENTS = 1 << 14 };

/* Transposes behind each other that are looked at; what is behind more may need anything. */
enum { MOST_TURNS = 8 };

/* Returns whether the node reads the shape of its input alone. */
static bool
reads_shape(const struct qdqi_node *node)
{
    static const char *const ops[] = {"Shape", "Size", NULL};
    return qdqi_node_is_one_of(node->proto, ops);
}

static bool
selects_rows(const struct qdqi_node *node, int input)
{
    const int64_t axis = qdqi_node_int(node->proto, "axis", 0);
    return qdqi_node_is(node->proto, "Gather") && input == 0 &&
           (axis == 0 || axis == -2);
}

/* Returns whether a node that reads the tensor, or its transpose, needs it in floating point. */
static bool
is_read_as_floats(const struct qdqi_graph *graph, struct qdq_layer *const *by_node,
                  const struct qdqi_tensor *t, bool gathers, int turns)
{
    for (const struct qdqi_use *use = t->uses; use; use = use->next) {
        const struct qdqi_node *node = &graph->nodes[use->node];
        const struct qdq_layer *layer = by_node[use->node];
        if ((layer && layer->weight_input == use->input) || reads_shape(node) ||
            (!gathers && selects_rows(node, use->input)))
            continue;
        if (!qdqi_swaps_axes(node) || turns == 0 ||
            is_read_as_floats(graph, by_node, node->outputs[0], gathers, turns - 1))
            return true;
    }
    return t->is_output;
}

bool
qdqi_weight_is_kept(const struct qdqi_graph *graph, struct qdq_layer *const *by_node,
                    const struct qdq_layer *layer, bool gathers)
{
    size_t n;
    if (layer->weight_input < 0)
        return false;
    const struct qdqi_tensor *t = graph->nodes[layer->node].inputs[layer->weight_input];
    const struct qdqi_node *maker = qdqi_maker_of(graph, t);
    if (!t->view.stored || !qdqi_count_elements(t->view.dims, t->view.rank, &n) ||
        n < LEAST_ELEMENTS)
        return false;
    return is_read_as_floats(graph, by_node,
                             maker && qdqi_swaps_axes(maker) ? maker->inputs[0] : t,
                             gathers, MOST_TURNS);
}

/* Returns whether the weight is stored as integers for its layers alone. */
static bool
is_stored_for_layers(const struct qdq_plan *plan, const struct qdq_layer *layer)
{
    if (layer->weight_input < 0 || plan->decoder != QDQ_DECODER_AS_IS)
        return false;
    const struct qdqi_planned_weight *w = &plan->weights[layer->weight_row];
    return w->storage == QDQ_STORE_DQ && !w->table && !w->is_table && !w->is_gates;
}

struct qdqi_layer_count
qdqi_count_stored_twice(const struct qdq_plan *plan, const struct qdqi_graph *graph,
                        struct qdq_layer *const *by_node)
{
    struct qdqi_layer_count count = {0, NULL};
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (by_node[i] && is_stored_for_layers(plan, by_node[i]) &&
            qdqi_weight_is_kept(graph, by_node, by_node[i], true) && count.n++ == 0)
            count.first = by_node[i]->name;
    return count;
}
