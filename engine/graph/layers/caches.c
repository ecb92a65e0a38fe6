/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/layers/caches.h"

#include "graph/layers/operators.h"

#include <string.h>

enum { QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE };

enum { MOST_HEADS = 1 << 20 }; /* a file with more is not believed */

/* Returns the outputs of the projection that makes a tensor, which a bias may follow; 0: unknown. */
static int64_t
width_of(const struct qdqi_graph *graph, const struct qdqi_tensor *t)
{
    const struct qdqi_node *node = qdqi_maker_of(graph, t);
    if (node && qdqi_node_is(node->proto, "Add") && node->proto->n_input == 2) {
        const int computed = node->inputs[0] && node->inputs[0]->is_fixed;
        node = qdqi_maker_of(graph, node->inputs[computed]);
    }
    if (!node || !qdqi_node_is(node->proto, "MatMul") || node->proto->n_input < 2)
        return 0;
    const struct qdqi_tensor *w = node->inputs[1];
    return w && w->is_fixed && w->view.rank == 2 ? w->view.dims[1] : 0;
}

/* Returns the size of a head of the attention that reads the cache; 0: unknown. */
static int64_t
head_size(const struct qdqi_graph *graph, const struct qdqi_use *use)
{
    const struct qdqi_node *node = &graph->nodes[use->node];
    if (strcmp(node->proto->op_type, "GroupQueryAttention") != 0 ||
        !qdqi_node_is_microsoft(node->proto) || use->input < PAST_KEY ||
        use->input > PAST_VALUE)
        return 0;
    const bool is_packed =
        !node->inputs[KEY]; /* it has the input `use`, and all before */
    int64_t heads = qdqi_node_int(node->proto, "num_heads", 0);
    const int64_t others = qdqi_node_int(node->proto, "kv_num_heads", 0);
    if (heads < 0 || heads > MOST_HEADS || others < 0 || others > MOST_HEADS)
        return 0;
    if (is_packed)
        heads += 2 * others;
    const int64_t width = width_of(graph, node->inputs[QUERY]);
    return heads > 0 && width % heads == 0 ? width / heads : 0;
}

void
qdqi_caches_fix(const struct qdq_model *model, struct qdq_model_info *fixed)
{
    for (size_t i = 0; i < fixed->n_inputs; i++) {
        const struct qdq_value *input = &fixed->inputs[i];
        const struct qdqi_tensor *t = qdqi_map_get(model->graph.tensors, input->name);
        if (!input->has_shape || input->rank != 4 || input->dims[3].value > 0)
            continue;
        int64_t size = 0;
        for (const struct qdqi_use *use = t ? t->uses : NULL; use && !size;
             use = use->next)
            size = head_size(&model->graph, use);
        /* The const is cast away: the sizes are the copy that the caller made. */
        if (size > 0)
            ((struct qdq_dim *)(uintptr_t)input->dims)[3].value = size;
    }
}
