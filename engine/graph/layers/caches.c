/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/layers/caches.h"

#include "graph/layers/operators.h"

#include <stdlib.h>
#include <string.h>

enum { PRESENT_KEY = 1, PRESENT_VALUE }; /* outputs */
enum { QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE };

enum { MOST_HEADS = 1 << 20 }; /* a file with more is not believed */

static bool
has_caches(const struct qdqi_node *node)
{
    return strcmp(node->proto->op_type, "GroupQueryAttention") == 0 &&
           qdqi_node_is_microsoft(node->proto);
}

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
    if (!has_caches(node) || use->input < PAST_KEY || use->input > PAST_VALUE)
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

/* --- outputs ------------------------------------------------------------------------- */

/* Returns the keys, or values, that a node hands to the model's next run; NULL: none. */
static const struct qdqi_tensor *
present_of(const struct qdqi_node *node, size_t output)
{
    const struct qdqi_tensor *t =
        has_caches(node) && node->scope == 0 && node->proto->n_output > output
            ? node->outputs[output]
            : NULL;
    return t && t->is_output ? t : NULL;
}

/* Returns the only number in a name; -1: there is none, or another one. */
static long
number_in(const char *name)
{
    static const char digits[] = "0123456789";
    const char *first = strpbrk(name, digits);
    const size_t length = first ? strspn(first, digits) : 0;
    enum { MOST_DIGITS = 6 };
    return first && length <= MOST_DIGITS && !strpbrk(first + length, digits)
               ? strtol(first, NULL, 10)
               : -1;
}

/* Returns whether the numbers in the names of all caches are those of layers, which ascend. */
static bool
names_count(const struct qdqi_graph *graph)
{
    long last = -1;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct qdqi_tensor *key = present_of(&graph->nodes[i], PRESENT_KEY);
        const struct qdqi_tensor *value = present_of(&graph->nodes[i], PRESENT_VALUE);
        if (!key || !value)
            continue;
        const long number = number_in(key->name);
        if (number <= last || number_in(value->name) != number)
            return false;
        last = number;
    }
    return true;
}

long
qdqi_caches_layer(const struct qdq_model *model, const char *output, bool *ret_is_key)
{
    const struct qdqi_graph *graph = &model->graph;
    long place = 0;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct qdqi_tensor *key = present_of(&graph->nodes[i], PRESENT_KEY);
        const struct qdqi_tensor *value = present_of(&graph->nodes[i], PRESENT_VALUE);
        if (!key || !value)
            continue;
        *ret_is_key = strcmp(key->name, output) == 0;
        if (*ret_is_key || strcmp(value->name, output) == 0)
            return names_count(graph) ? number_in(output) : place;
        place++;
    }
    return -1;
}
