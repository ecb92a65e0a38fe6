/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/layers/layers.h"

#include "graph/layers/infinities.h"

#include <string.h>

/* --- inputs that can be quantized ---------------------------------------- */

enum qdqi_input_kind
qdqi_input_of_dtype(const struct qdq_model *model, enum qdqi_dtype dtype)
{
    switch (dtype) {
    case QDQI_FLOAT32:
        return QDQI_INPUT_DATA;
    case QDQI_UNKNOWN:
        return QDQI_INPUT_UNKNOWN;
    case QDQI_FLOAT16:
        return qdqi_model_opset(model->proto) >= QDQI_OPSET_FLOAT16
                   ? QDQI_INPUT_DATA
                   : QDQI_INPUT_FLOAT16;
    case QDQI_BFLOAT16:
    case QDQI_FLOAT64:
        return QDQI_INPUT_NOT_FLOAT32;
    default:
        return QDQI_INPUT_INTEGER;
    }
}

const char *
qdqi_input_reason(enum qdqi_input_kind input)
{
    static const char *const reasons[] = {
        [QDQI_INPUT_DATA] = "",
        [QDQI_INPUT_NO_DATA] = "no data input",
        [QDQI_INPUT_CONSTANT] = "input is constant",
        [QDQI_INPUT_SHAPE] = "shape arithmetic",
        [QDQI_INPUT_PAIRED] = "", /* does not prevent quantization */
        [QDQI_INPUT_INTEGER] = "integer tensor",
        [QDQI_INPUT_FLOAT16] = "float16 needs opset 19",
        [QDQI_INPUT_NOT_FLOAT32] = "element type is not float32",
        [QDQI_INPUT_UNKNOWN] = "element type unknown",
        [QDQI_INPUT_INFINITE] =
            "a mask of the model makes it infinite, so it has no range",
    };
    return reasons[input];
}

/* Returns whether input i is data by its position. In a weighted layer, the weight
   and the inputs behind it (the bias) are not data. */
static bool
is_data_place(const struct qdqi_class *cls, int i, int weight)
{
    if (!cls || cls->kind == QDQ_MULTI_INPUT)
        return true;
    if (cls->kind == QDQ_NON_WEIGHTED)
        return i == 0;
    return i != weight && i <= (weight > 1 ? weight : 1);
}

enum qdqi_dtype
qdqi_layer_dtype(const struct qdqi_class *cls, const struct qdqi_node *node, int i)
{
    int weight = cls && cls->kind == QDQ_WEIGHTED ? qdqi_weight_input(cls, node) : -1;
    enum qdqi_dtype dtype = node->inputs[i]->dtype;
    if (dtype == QDQI_UNKNOWN && qdqi_input_is_constant(node, weight))
        dtype = node->inputs[weight]->dtype;
    return dtype;
}

/* Returns whether a layer has a pair on an input that no data reach: the layer computes with data. */
static bool
pairs_size(const struct qdqi_layers *layers, const struct qdqi_node *node, int i)
{
    static const char *const joins[] = {"Concat", "Where", NULL};
    const struct qdqi_tensor *t = node->inputs[i];
    const struct qdqi_tensor *out = node->proto->n_output ? node->outputs[0] : NULL;
    return layers->pairs_sizes && t->dtype == QDQI_FLOAT32 && out && !out->is_shape &&
           !out->is_fixed &&
           (t->is_shape || (qdqi_node_is_one_of(node->proto, joins) &&
                            !qdqi_constant_is_infinite(layers->model, t)));
}

enum qdqi_input_kind
qdqi_layer_input(const struct qdqi_layers *layers, const struct qdqi_node *node, int i)
{
    const struct qdqi_class *cls = layers->classes[qdqi_layer_index(layers, node)];
    int weight = cls && cls->kind == QDQ_WEIGHTED ? qdqi_weight_input(cls, node) : -1;
    if (i < 0 || (size_t)i >= node->proto->n_input || !node->inputs[i] ||
        !is_data_place(cls, i, weight))
        return QDQI_INPUT_NO_DATA;
    if ((qdqi_input_is_constant(node, i) || node->inputs[i]->is_shape) &&
        pairs_size(layers, node, i))
        return QDQI_INPUT_DATA;
    if (qdqi_input_is_constant(node, i))
        return QDQI_INPUT_CONSTANT;
    if (qdqi_layer_is_paired(layers, node, i))
        return QDQI_INPUT_PAIRED;
    enum qdqi_input_kind input =
        qdqi_input_of_dtype(layers->model, qdqi_layer_dtype(cls, node, i));
    return node->inputs[i]->is_shape && input == QDQI_INPUT_DATA ? QDQI_INPUT_SHAPE
                                                                 : input;
}

/* --- nodes that pass data on --------------------------------------------- */

/* Returns the node that makes a tensor, skipping nodes that pass data on, or -1 for
   none. */
static int64_t
source_of(const struct qdqi_layers *layers, const struct qdqi_tensor *tensor)
{
    int64_t maker = tensor ? tensor->producer : -1;
    if (maker < 0 || tensor->is_fixed)
        return -1;
    return layers->passes[maker] >= 0 ? layers->sources[maker] : maker;
}

/* If the node is an Add of a constant that belongs to a weighted layer (a bias),
   returns the index of its computed input; otherwise -1. */
static int
bias_add_input(const struct qdqi_layers *layers, const struct qdqi_node *node)
{
    if (!qdqi_node_is(node->proto, "Add") || node->proto->n_input != 2 ||
        qdqi_input_is_constant(node, 0) == qdqi_input_is_constant(node, 1))
        return -1;
    int i = qdqi_input_is_constant(node, 0) ? 1 : 0;
    int64_t source = source_of(layers, node->inputs[i]);
    if (source < 0 || !layers->classes[source] ||
        layers->classes[source]->kind != QDQ_WEIGHTED ||
        layers->model->graph.nodes[source].scope != node->scope)
        return -1;
    return i;
}

static int
passed_input(const struct qdqi_layers *layers, const struct qdqi_node *node,
             const struct qdqi_class *cls)
{
    if (cls)
        return cls->support.pass_through ? 0 : -1;
    return bias_add_input(layers, node);
}

static bool
comes_from_pair(const struct qdqi_layers *layers, const struct qdqi_tensor *t)
{
    return t && t->producer >= 0 && layers->dequantized[t->producer];
}

bool
qdqi_layer_is_paired(const struct qdqi_layers *layers, const struct qdqi_node *node,
                     int i)
{
    bool there = i >= 0 && (size_t)i < node->proto->n_input;
    return there && comes_from_pair(layers, node->inputs[i]);
}

/* --- consumers ------------------------------------------------------------ */

static bool
passes_on(const struct qdqi_layers *layers, const struct qdqi_use *use)
{
    return layers->passes[use->node] == use->input;
}

/* Counts the consumers of each node. It goes from the last node to the first, so
   that the counts of nodes that pass data on are known when they are needed. */
static void
count_consumers(const struct qdqi_layers *layers, int *counts)
{
    const struct qdqi_graph *graph = &layers->model->graph;
    for (size_t i = graph->n_nodes; i-- > 0;) {
        const struct qdqi_node *node = &graph->nodes[i];
        for (size_t k = 0; k < node->proto->n_output; k++) {
            const struct qdqi_tensor *t = node->outputs[k];
            if (!t)
                continue;
            counts[i] += t->is_output + t->is_captured;
            for (const struct qdqi_use *use = t->uses; use; use = use->next)
                counts[i] += passes_on(layers, use) ? counts[use->node] : 1;
        }
    }
}

void
qdqi_layer_consumers(const struct qdqi_layers *layers, const struct qdqi_node *node,
                     void (*see)(void *arg, const struct qdqi_node *consumer),
                     void *arg)
{
    const struct qdqi_graph *graph = &layers->model->graph;
    size_t n = 0;
    layers->queue[n++] = node;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < layers->queue[i]->proto->n_output; k++) {
            const struct qdqi_tensor *t = layers->queue[i]->outputs[k];
            for (const struct qdqi_use *use = t ? t->uses : NULL; use; use = use->next)
                if (!passes_on(layers, use))
                    see(arg, &graph->nodes[use->node]);
                else if (n < graph->n_nodes)
                    layers->queue[n++] = &graph->nodes[use->node];
        }
}

/* --- construction and lookups -------------------------------------------- */

enum qdq_code
qdqi_layers_new(const struct qdq_model *model, const struct qdqi_classes *rows,
                struct qdqi_arena *arena, struct qdqi_layers **ret,
                struct qdq_error *err)
{
    size_t n = model->graph.n_nodes;
    struct qdqi_layers *layers = qdqi_arena_alloc(arena, sizeof *layers);
    int8_t *passes = qdqi_arena_array(arena, n, sizeof *passes);
    int64_t *sources = qdqi_arena_array(arena, n, sizeof *sources);
    int *counts = qdqi_arena_array(arena, n, sizeof *counts);
    bool *dequantized = qdqi_arena_array(arena, n, sizeof *dequantized);
    if (!layers || !passes || !sources || !counts || !dequantized)
        return qdqi_no_memory(err);
    *layers = (struct qdqi_layers){
        .model = model,
        .rows = rows,
        .classes = qdqi_arena_array(arena, n, sizeof *layers->classes),
        .passes = passes,
        .sources = sources,
        .dequantized = dequantized,
        .n_consumers = counts,
        .named = qdqi_arena_array(arena, n, sizeof *layers->named),
        .queue = qdqi_arena_array(arena, n + 1, sizeof *layers->queue),
        .infinite = qdqi_infinities_find(model, arena),
    };
    if (!layers->classes || !layers->named || !layers->queue || !layers->infinite)
        return qdqi_no_memory(err);
    memset(passes, -1, n);
    for (size_t i = 0; i < n; i++) {
        const struct qdqi_node *node = &model->graph.nodes[i];
        dequantized[i] = qdqi_node_is(node->proto, "DequantizeLinear");
        if (model->graph.scopes[node->scope].is_opaque)
            continue;
        layers->classes[i] = qdqi_class_of(rows, model, node);
        int input = passed_input(layers, node, layers->classes[i]);
        if (input >= 0 && (size_t)input < node->proto->n_input) {
            sources[i] = source_of(layers, node->inputs[input]);
            passes[i] = (int8_t)input;
            dequantized[i] =
                dequantized[i] || comes_from_pair(layers, node->inputs[input]);
        }
    }
    count_consumers(layers, counts);
    *ret = layers;
    return QDQ_OK;
}

size_t
qdqi_layer_index(const struct qdqi_layers *layers, const struct qdqi_node *node)
{
    return (size_t)(node - layers->model->graph.nodes);
}

const struct qdqi_node *
qdqi_layer_producer(const struct qdqi_layers *layers, const struct qdqi_node *node,
                    int i)
{
    bool there = i >= 0 && (size_t)i < node->proto->n_input;
    int64_t source = there ? source_of(layers, node->inputs[i]) : -1;
    return source < 0 ? NULL : &layers->model->graph.nodes[source];
}

const struct qdqi_node *
qdqi_layer_find(const struct qdqi_layers *layers, const char *name)
{
    const struct qdqi_graph *graph = &layers->model->graph;
    const struct qdqi_node *node = qdqi_map_get(graph->by_name, name);
    if (!node && *name == '@') {
        const struct qdqi_tensor *t = qdqi_map_get(graph->tensors, name + 1);
        node = t && t->producer >= 0 ? &graph->nodes[t->producer] : NULL;
    }
    if (!node || layers->classes[qdqi_layer_index(layers, node)])
        return node;
    int input = layers->passes[qdqi_layer_index(layers, node)];
    const struct qdqi_node *owner =
        input < 0 ? NULL : qdqi_layer_producer(layers, node, input);
    return owner ? owner : node;
}
