/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/targets/tensorrt/patterns.h"

#include "graph/layers/operators.h"

#include <string.h>

/* --- single nodes --------------------------------------------------------- */

bool
qdqi_is_conv(const struct qdqi_node *node)
{
    static const char *const ops[] = {"Conv", "ConvTranspose", NULL};
    return node && qdqi_node_is_one_of(node->proto, ops);
}

static const struct qdqi_class *
class_of(const struct qdqi_layers *graph, const struct qdqi_node *node)
{
    return graph->classes[qdqi_layer_index(graph, node)];
}

bool
qdqi_is_pooling(const struct qdqi_layers *graph, const struct qdqi_node *node)
{
    static const char *const ops[] = {"AveragePool", "GlobalAveragePool", "MaxPool",
                                      "ReduceMean", NULL};
    return class_of(graph, node) && qdqi_node_is_one_of(node->proto, ops);
}

/* Returns the node in front of a BatchNormalization, or the node itself if it is
   another operator. */
static const struct qdqi_node *
before_norm(const struct qdqi_layers *graph, const struct qdqi_node *node)
{
    return node && qdqi_node_is(node->proto, "BatchNormalization")
               ? qdqi_layer_producer(graph, node, 0)
               : node;
}

bool
qdqi_ends_conv(const struct qdqi_layers *graph, const struct qdqi_node *node)
{
    return qdqi_is_conv(before_norm(graph, node));
}

bool
qdqi_ends_weighted(const struct qdqi_layers *graph, const struct qdqi_node *node)
{
    node = before_norm(graph, node);
    return node && class_of(graph, node) && class_of(graph, node)->kind == QDQ_WEIGHTED;
}

/* --- gates ---------------------------------------------------------------- */

/* Returns whether the node is a Mul of a tensor and its own HardSigmoid. */
static bool
is_hard_swish(const struct qdqi_layers *graph, const struct qdqi_node *node)
{
    for (int i = 0; node->proto->n_input == 2 && i < 2; i++) {
        const struct qdqi_node *gate =
            qdqi_maker_of(&graph->model->graph, node->inputs[i]);
        if (gate && qdqi_node_is(gate->proto, "HardSigmoid") &&
            gate->proto->n_input > 0 && gate->inputs[0] &&
            gate->inputs[0] == node->inputs[1 - i])
            return true;
    }
    return false;
}

bool
qdqi_is_swish(const struct qdqi_layers *graph, const struct qdqi_node *node)
{
    const struct qdqi_class *cls = class_of(graph, node);
    return cls && qdqi_node_is(node->proto, "Mul") &&
           (cls->state == QDQI_NAMED || is_hard_swish(graph, node));
}

bool
qdqi_is_gated(const struct qdqi_layers *graph, const struct qdqi_node *node)
{
    static const char *const gates[] = {"Sigmoid", "HardSigmoid", NULL};
    if (!qdqi_node_is(node->proto, "Mul") || !class_of(graph, node) ||
        qdqi_is_swish(graph, node))
        return false;
    for (int i = 0; i < 2; i++) {
        const struct qdqi_node *maker = qdqi_layer_producer(graph, node, i);
        if (maker && qdqi_node_is_one_of(maker->proto, gates))
            return true;
    }
    return false;
}

/* --- LayerNormalization and Gelu made of several nodes ------------------- */

/* the most nodes with constants that exporters put between the parts of a pattern */
enum { MOST_CONSTANT_STEPS = 3 };

/* Returns the node that makes input i if it has that operator and at least n inputs,
   or NULL. */
static const struct qdqi_node *
made_by(const struct qdqi_layers *graph, const struct qdqi_node *node, int i,
        const char *op, size_t n)
{
    if ((size_t)i >= node->proto->n_input)
        return NULL;
    const struct qdqi_node *maker =
        qdqi_maker_of(&graph->model->graph, node->inputs[i]);
    return maker && qdqi_node_is(maker->proto, op) && maker->proto->n_input >= n ? maker
                                                                                 : NULL;
}

/* Returns the index of the computed input of a node with one computed and one
   constant input; -1 for any other node. */
static int
computed_one(const struct qdqi_node *node)
{
    if (node->proto->n_input != 2 ||
        qdqi_input_is_constant(node, 0) == qdqi_input_is_constant(node, 1))
        return -1;
    return qdqi_input_is_constant(node, 0) ? 1 : 0;
}

/* Returns whether input i comes from Erf, with only additions, multiplications and
   divisions by constants between. */
static bool
comes_from_erf(const struct qdqi_layers *graph, const struct qdqi_node *node, int i)
{
    static const char *const between[] = {"Add", "Mul", "Div", NULL};
    for (int steps = 0; steps <= MOST_CONSTANT_STEPS && i >= 0; steps++) {
        node = qdqi_maker_of(&graph->model->graph, node->inputs[i]);
        if (!node)
            return false;
        if (qdqi_node_is(node->proto, "Erf"))
            return true;
        i = qdqi_node_is_one_of(node->proto, between) ? computed_one(node) : -1;
    }
    return false;
}

/* Returns whether input i is the reciprocal of a square root, perhaps times
   constants. */
static bool
is_inverse_root(const struct qdqi_layers *graph, const struct qdqi_node *node, int i)
{
    for (int steps = 0; steps <= MOST_CONSTANT_STEPS && i >= 0; steps++) {
        if (made_by(graph, node, i, "Reciprocal", 1))
            return made_by(graph, qdqi_maker_of(&graph->model->graph, node->inputs[i]),
                           0, "Sqrt", 1);
        if (made_by(graph, node, i, "Div", 2))
            return made_by(graph, qdqi_maker_of(&graph->model->graph, node->inputs[i]),
                           1, "Sqrt", 1);
        node = made_by(graph, node, i, "Mul", 2);
        if (!node)
            return false;
        i = computed_one(node);
    }
    return false;
}

/* Returns whether the node computes the square of x - ReduceMean(x). */
static bool
is_square_of_centred(const struct qdqi_layers *graph, const struct qdqi_node *node)
{
    const struct qdqi_node *centred = made_by(graph, node, 0, "Sub", 2);
    const struct qdqi_node *mean =
        centred ? made_by(graph, centred, 1, "ReduceMean", 1) : NULL;
    return mean && node->inputs[0] == node->inputs[1] &&
           mean->inputs[0] == centred->inputs[0];
}

static bool
is_normalized(const struct qdqi_layers *graph, const struct qdqi_node *mul)
{
    return mul && (is_inverse_root(graph, mul, 0) || is_inverse_root(graph, mul, 1));
}

/* Returns whether the node computes x * m + (constant - mean * m), where m is the
   reciprocal of a square root. */
static bool
is_shifted(const struct qdqi_layers *graph, const struct qdqi_node *node)
{
    for (int i = 0; i < 2; i++) {
        const struct qdqi_node *shift = made_by(graph, node, 1 - i, "Sub", 2);
        if (shift && is_normalized(graph, made_by(graph, node, i, "Mul", 2)) &&
            is_normalized(graph, made_by(graph, shift, 1, "Mul", 2)))
            return true;
    }
    return false;
}

bool
qdqi_is_norm_or_gelu(const struct qdqi_layers *graph, const struct qdqi_node *node)
{
    if (node->proto->n_input != 2 || !node->inputs[0] || !node->inputs[1])
        return false;
    if (qdqi_node_is(node->proto, "Add"))
        return is_shifted(graph, node);
    return qdqi_node_is(node->proto, "Mul") &&
           (comes_from_erf(graph, node, 0) || comes_from_erf(graph, node, 1) ||
            is_square_of_centred(graph, node) || is_normalized(graph, node));
}

/* --- attention ------------------------------------------------------------ */

enum {
    MOST_SCORE_STEPS = 6, /* the most nodes between the scores and the Softmax */
    /* the longest sequence that TensorRT's int8 attention supports */
    LONGEST_SEQUENCE = 512,
};

/* The state of a search for attention patterns, with the shapes that the file
   states, by tensor. */
struct search {
    struct qdqi_patterns *patterns;
    struct qdqi_map *shapes; /* tensor -> Onnx__TensorShapeProto */
    bool is_long;
    const struct qdqi_node *scores;
};

/* Returns whether the node is a MatMul of two computed operands. */
static bool
is_product(const struct qdqi_layers *graph, const struct qdqi_node *node)
{
    return qdqi_node_is(node->proto, "MatMul") && node->proto->n_input == 2 &&
           qdqi_input_is_computed(node, 0) && qdqi_input_is_computed(node, 1) &&
           class_of(graph, node);
}

static bool
put_shape(struct qdqi_map *shapes, const Onnx__ValueInfoProto *value)
{
    const Onnx__TypeProto *type = value->type;
    if (!value->name || !type ||
        type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ||
        !type->tensor_type->shape)
        return true;
    return qdqi_map_put(shapes, value->name, type->tensor_type->shape);
}

static struct qdqi_map *
read_shapes(const struct qdq_model *model, struct qdqi_arena *arena)
{
    const Onnx__GraphProto *graph = model->proto->graph;
    struct qdqi_map *shapes = qdqi_map_new(arena);
    bool ok = shapes;
    for (size_t i = 0; ok && i < graph->n_value_info; i++)
        ok = put_shape(shapes, graph->value_info[i]);
    for (size_t i = 0; ok && i < graph->n_output; i++)
        ok = put_shape(shapes, graph->output[i]);
    return ok ? shapes : NULL;
}

/* Returns whether the file states that one of the last two axes of a tensor is
   longer than LONGEST_SEQUENCE. */
static bool
is_long(const struct search *s, const struct qdqi_tensor *t)
{
    const Onnx__TensorShapeProto *shape = t ? qdqi_map_get(s->shapes, t->name) : NULL;
    size_t rank = shape ? shape->n_dim : 0;
    for (size_t k = rank < 2 ? 0 : rank - 2; k < rank; k++)
        if (shape->dim[k]->value_case ==
                ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
            shape->dim[k]->dim_value > LONGEST_SEQUENCE)
            return true;
    return false;
}

/*
 * Searches for the MatMul that computes the scores in front of a tensor, through their
 * scaling and masking, and marks the Add of a mask on the way. It goes at most `deep`
 * nodes back, along at most three inputs of each node.
 */
static bool
find_scores(struct search *s, const struct qdqi_tensor *tensor, int deep)
{
    static const char *const between[] = {"Add",       "Mul",      "Div",     "Where",
                                          "Cast",      "Identity", "Reshape", "Dropout",
                                          "Transpose", NULL};
    const struct qdqi_layers *graph = s->patterns->graph;
    const struct qdqi_node *node = qdqi_maker_of(&graph->model->graph, tensor);
    bool found = false;
    if (!node || deep == 0)
        return false;
    s->is_long = s->is_long || is_long(s, tensor);
    if (is_product(graph, node)) {
        s->scores = node;
        return true;
    }
    if (!qdqi_node_is_one_of(node->proto, between))
        return false;
    for (size_t i = 0; i < node->proto->n_input && i < 3; i++)
        found = find_scores(s, node->inputs[i], deep - 1) || found;
    if (found && qdqi_node_is(node->proto, "Add"))
        s->patterns->attention[qdqi_layer_index(graph, node)] = QDQI_ATTENTION_SOFT;
    return found;
}

static void
mark_product(void *arg, const struct qdqi_node *node)
{
    struct search *s = arg;
    const struct qdqi_layers *graph = s->patterns->graph;
    uint8_t *mark = &s->patterns->attention[qdqi_layer_index(graph, node)];
    if (is_product(graph, node) && *mark != QDQI_ATTENTION_LONG)
        *mark = s->is_long ? QDQI_ATTENTION_LONG : QDQI_ATTENTION_MATMUL;
}

/* Marks the attention around a Softmax of scores, to which the MatMul behind it
   belongs. */
static void
mark_attention(struct search *s, const struct qdqi_node *softmax)
{
    const struct qdqi_layers *graph = s->patterns->graph;
    if (softmax->proto->n_input != 1 ||
        !find_scores(s, softmax->inputs[0], MOST_SCORE_STEPS))
        return;
    if (softmax->proto->n_output == 1)
        s->is_long = s->is_long || is_long(s, softmax->outputs[0]);
    s->patterns->attention[qdqi_layer_index(graph, softmax)] = QDQI_ATTENTION_SOFT;
    mark_product(s, s->scores);
    qdqi_layer_consumers(graph, softmax, mark_product, s);
}

static enum qdq_code
mark_attentions(struct qdqi_patterns *patterns, struct qdqi_arena *arena,
                struct qdq_error *err)
{
    const struct qdqi_graph *graph = &patterns->graph->model->graph;
    struct qdqi_map *shapes = NULL;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        if (!qdqi_node_is(graph->nodes[i].proto, "Softmax"))
            continue;
        if (!shapes && !(shapes = read_shapes(patterns->graph->model, arena)))
            return qdqi_no_memory(err);
        struct search s = {.patterns = patterns, .shapes = shapes};
        mark_attention(&s, &graph->nodes[i]);
    }
    return QDQ_OK;
}

enum {
    MOST_PROJECTION_STEPS =
        8, /* the most nodes between a projection and its products */
    MOST_PROJECTION_READS = 256, /* the most that is looked at for one projection */
};

/* Returns whether a node passes the operand of an attention on: it moves elements, or adds to
   them or scales them by constants. */
static bool
passes_operand(const struct qdqi_node *node)
{
    static const char *const ops[] = {"Add",     "Mul",       "Div",      "Reshape",
                                      "Squeeze", "Unsqueeze", "Split",    "Transpose",
                                      "Slice",   "Gather",    "Identity", NULL};
    return qdqi_node_is_one_of(node->proto, ops);
}

/* Returns how many products read a node, counted to two. *left: how many readers may still be
   looked at. */
static size_t
count_products(const struct planner *p, const struct qdqi_node *node, int deep,
               int *left)
{
    const uint8_t *attention = qdqi_patterns_of(p)->attention;
    size_t n = 0;
    for (size_t k = 0; k < node->proto->n_output; k++) {
        const struct qdqi_use *use = node->outputs[k] ? node->outputs[k]->uses : NULL;
        for (; use && n < 2 && (*left)-- > 0; use = use->next) {
            const struct qdqi_node *reader = &p->model->graph.nodes[use->node];
            if (attention[use->node] == QDQI_ATTENTION_MATMUL ||
                attention[use->node] == QDQI_ATTENTION_LONG)
                n++;
            else if (deep > 0 && passes_operand(reader))
                n += count_products(p, reader, deep - 1, left);
        }
    }
    return n;
}

bool
qdqi_is_packed_projection(const struct planner *p, const struct qdqi_node *node)
{
    int left = MOST_PROJECTION_READS;
    return count_products(p, node, MOST_PROJECTION_STEPS, &left) > 1;
}

/* --- outputs -------------------------------------------------------------- */

/* Marks the nodes that make outputs of the graph. It goes from the last node to the
   first, so that nodes that pass data on are marked before the nodes that feed them. */
static void
mark_outputs(struct qdqi_patterns *patterns)
{
    const struct qdqi_graph *graph = &patterns->graph->model->graph;
    for (size_t i = graph->n_nodes; i-- > 0;) {
        const struct qdqi_node *node = &graph->nodes[i];
        for (size_t k = 0; k < node->proto->n_output; k++) {
            const struct qdqi_tensor *t = node->outputs[k];
            const struct qdqi_use *use = t ? t->uses : NULL;
            patterns->makes_output[i] |= t && t->is_output && t->scope == 0;
            for (; use; use = use->next)
                if (patterns->graph->passes[use->node] == use->input)
                    patterns->makes_output[i] |= patterns->makes_output[use->node];
        }
    }
}

enum qdq_code
qdqi_patterns_begin(struct planner *p, struct qdq_error *err)
{
    size_t n = p->model->graph.n_nodes;
    struct qdqi_arena *arena = p->plan->arena;
    struct qdqi_patterns *patterns = qdqi_arena_alloc(arena, sizeof *patterns);
    if (!patterns)
        return qdqi_no_memory(err);
    *patterns = (struct qdqi_patterns){
        .graph = p->graph,
        .attention = qdqi_arena_array(arena, n, sizeof *patterns->attention),
        .makes_output = qdqi_arena_array(arena, n, sizeof *patterns->makes_output),
        .feeds_int8 = qdqi_arena_array(arena, n, sizeof *patterns->feeds_int8),
    };
    p->marks = patterns;
    if (!patterns->attention || !patterns->makes_output || !patterns->feeds_int8)
        return qdqi_no_memory(err);
    mark_outputs(patterns);
    return mark_attentions(patterns, arena, err);
}
