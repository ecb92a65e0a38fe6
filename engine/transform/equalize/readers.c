/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/equalize/readers.h"

size_t
qdqi_reader_rank(const struct qdqi_node *layer)
{
    if (qdqi_weight_is_conv(layer))
        return layer->inputs[1]->view.rank;
    return qdqi_node_is(layer->proto, "Gemm") ? 2 : 0;
}

bool
qdqi_readers_begin(struct qdqi_chain *chain, struct qdqi_arena *arena)
{
    size_t n = 0;
    for (const struct qdqi_use *use = chain->at->uses; use; use = use->next)
        n++;
    chain->n_readers = chain->rank = 0;
    chain->readers = qdqi_arena_array(arena, n, sizeof *chain->readers);
    return chain->readers;
}

/* Returns whether the layer has the channels of those before it. */
static bool
fits(const struct qdqi_chain *chain, size_t rank, size_t channels)
{
    return chain->n_readers == 0 ||
           (channels == chain->channels && (rank > 2) == (chain->rank > 2));
}

const char *
qdqi_readers_add(const struct qdq_model *model, struct qdqi_chain *chain,
                 const struct qdqi_use *use, struct qdqi_arena *arena)
{
    const struct qdqi_node *node = &model->graph.nodes[use->node];
    struct qdqi_reader *reader = &chain->readers[chain->n_readers];
    if (node->scope != chain->at->scope)
        return "it is read in a nested graph";
    if (use->input != 0 || !qdqi_weight_has(node))
        return qdqi_arena_printf(arena, "%s reads it, too", node->proto->op_type);
    const char *why = qdqi_weight_read(model, node, &reader->weight);
    if (why)
        return qdqi_arena_printf(arena, "a weight that it meets is %s", why);
    if (qdqi_node_is(node->proto, "Gemm") && qdqi_node_int(node->proto, "transA", 0))
        return "a layer reads it transposed";
    const size_t rank = qdqi_reader_rank(node), channels = reader->weight.n_in;
    if (!fits(chain, rank, channels))
        return "layers read different axes of it";
    chain->rank = rank > chain->rank ? rank : chain->rank;
    chain->from_end = chain->rank <= 2 ? 1 : chain->rank - 1;
    chain->channels = channels;
    reader->node = use->node;
    chain->n_readers++;
    return NULL;
}

enum { MOST_LAYOUTS = 8 }; /* the most layouts that are looked through */

/* Returns whether a DequantizeLinear of the model makes the tensor, perhaps in another
   layout. */
static bool
is_dequantized(const struct qdq_model *model, const struct qdqi_tensor *t)
{
    static const char *const layouts[] = {"Identity", "Dropout", "Transpose", "Reshape",
                                          "Flatten",  "Squeeze", "Unsqueeze", NULL};
    for (int i = 0; i < MOST_LAYOUTS && t && t->producer >= 0; i++) {
        const struct qdqi_node *node = &model->graph.nodes[t->producer];
        if (!qdqi_node_is_one_of(node->proto, layouts) || node->proto->n_input == 0)
            return qdqi_node_is(node->proto, "DequantizeLinear");
        t = node->inputs[0];
    }
    return false;
}

void
qdqi_readers_multiply(const struct qdq_model *model, struct qdqi_chain *chain,
                      struct qdqi_arena *arena)
{
    struct qdqi_chain made = {
        .at = chain->at, .block = 1, .end = chain->end, .is_multiplied = true};
    made.maker.layer = model->graph.n_nodes;
    if (chain->at->scope != 0 || is_dequantized(model, chain->at) ||
        !qdqi_readers_begin(&made, arena))
        return;
    for (const struct qdqi_use *use = chain->at->uses; use; use = use->next)
        (void)qdqi_readers_add(model, &made, use, arena);
    if (made.n_readers > 0)
        *chain = made;
}
