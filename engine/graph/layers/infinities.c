/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/layers/infinities.h"

#include "files/model/constant.h"
#include "numbers/arithmetic/both.h"

#include <math.h>
#include <string.h>

enum {
    MOST = 1 << 22
}; /* elements of a constant that is looked at: a mask of 2048 by 2048 */

/* --- constants --------------------------------------------------------------- */

/* Returns whether element i is no number, or is as far from 0 as `least`. */
static bool
is_far(const struct qdqi_constant *c, size_t i, double least)
{
    float single;
    double wide;
    uint16_t half;
    switch (c->dtype) {
    case QDQI_FLOAT32:
        memcpy(&single, c->bytes + i * sizeof single, sizeof single);
        return !(fabs((double)single) < least);
    case QDQI_FLOAT64:
        memcpy(&wide, c->bytes + i * sizeof wide, sizeof wide);
        return !(fabs(wide) < least);
    case QDQI_FLOAT16:
        memcpy(&half, c->bytes + i * sizeof half, sizeof half);
        return (half & 0x7c00) == 0x7c00 ||
               !(fabs((double)qdqi_half_widened(half)) < least);
    default:
        return false;
    }
}

bool
qdqi_constant_is_far(const struct qdq_model *model, const struct qdqi_tensor *t,
                     double least)
{
    struct qdqi_constant c;
    if (!t->is_fixed || qdqi_constant_read(model, t, &c, NULL) != QDQ_OK ||
        (c.strides && !qdqi_constant_is_fill(&c)))
        return false;
    const size_t n = c.strides ? c.n > 0 : c.n;
    for (size_t i = 0; i < n && n <= MOST; i++)
        if (is_far(&c, i, least))
            return true;
    return false;
}

bool
qdqi_constant_is_infinite(const struct qdq_model *model, const struct qdqi_tensor *t)
{
    return qdqi_constant_is_far(model, t, INFINITY);
}

/* --- nodes --------------------------------------------------------------------- */

static bool
holds(const struct qdq_model *model, const bool *nodes, const struct qdqi_tensor *t,
      double least)
{
    return t && (t->producer >= 0 ? nodes[t->producer]
                                  : qdqi_constant_is_far(model, t, least));
}

/* Returns whether an infinity that input i holds is one of what the node makes. */
static bool
passes(const struct qdqi_node *node, size_t i)
{
    static const char *const all[] = {
        "Identity", "Reshape",  "Transpose", "Squeeze",   "Unsqueeze",
        "Flatten",  "Expand",   "Tile",      "Slice",     "Split",
        "Concat",   "Add",      "Sum",       "Sub",       "Neg",
        "Mul",      "Trilu",    "Cast",      "ScatterND", "ScatterElements",
        "Pad",      "CastLike", NULL};
    static const char *const firsts[] = {"Gather", "GatherElements", "GatherND", "Div",
                                         NULL};
    if (qdqi_node_is(node->proto, "Where"))
        return i > 0;
    return qdqi_node_is_one_of(node->proto, all) ||
           (i == 0 && qdqi_node_is_one_of(node->proto, firsts));
}

/* --- logarithms of masks --------------------------------------------------------- */

/* Flags by node, in the arena. */
struct masks {
    bool *zeros; /* what it makes may be a mask with zeros */
    bool *leads; /* what it makes leads to a Softmax, as a mask that is added does */
};

/* Returns whether the tensor may be a mask that holds zeros: an input of the model, or what is no float,
   behind operators that move elements or change zeros to ones. */
static bool
may_hold_zeros(const bool *zeros, const struct qdqi_tensor *t)
{
    const bool is_float = t->dtype == QDQI_UNKNOWN || t->dtype == QDQI_FLOAT32 ||
                          t->dtype == QDQI_FLOAT16 || t->dtype == QDQI_FLOAT64;
    return !t->is_fixed && (t->producer < 0 || !is_float || zeros[t->producer]);
}

static bool
keeps_zeros(const bool *zeros, const struct qdqi_node *node)
{
    static const char *const ops[] = {
        "Identity", "Reshape", "Transpose", "Squeeze", "Flatten", "Unsqueeze",
        "Expand",   "Tile",    "Slice",     "Concat",  "Trilu",   "Gather",
        "Cast",     "Sub",     "Mul",       "Where",   NULL};
    for (size_t i = 0; i < node->proto->n_input; i++)
        if (node->inputs[i] && may_hold_zeros(zeros, node->inputs[i]))
            return qdqi_node_is_one_of(node->proto, ops);
    return false;
}

/* Returns whether a Softmax reads what the node makes, perhaps behind sums and what moves elements. */
static bool
leads_to_softmax(const struct qdqi_graph *graph, const bool *leads,
                 const struct qdqi_node *node)
{
    for (size_t i = 0; i < node->proto->n_output; i++) {
        const struct qdqi_use *use = node->outputs[i] ? node->outputs[i]->uses : NULL;
        for (; use; use = use->next) {
            const struct qdqi_node *reader = &graph->nodes[use->node];
            if (qdqi_node_is(reader->proto, "Softmax") ||
                (leads[use->node] && passes(reader, (size_t)use->input)))
                return true;
        }
    }
    return false;
}

static bool
find_masks(const struct qdq_model *model, struct qdqi_arena *arena, struct masks *ret)
{
    const struct qdqi_graph *graph = &model->graph;
    ret->zeros = qdqi_arena_array(arena, graph->n_nodes + 1, sizeof *ret->zeros);
    ret->leads = qdqi_arena_array(arena, graph->n_nodes + 1, sizeof *ret->leads);
    if (!ret->zeros || !ret->leads)
        return false;
    for (size_t i = 0; i < graph->n_nodes; i++)
        ret->zeros[i] = keeps_zeros(ret->zeros, &graph->nodes[i]);
    for (size_t i = graph->n_nodes; i-- > 0;)
        ret->leads[i] = leads_to_softmax(graph, ret->leads, &graph->nodes[i]);
    return true;
}

/* Returns whether the node is the logarithm of a mask, which makes an infinity of each zero. */
static bool
is_log_of_mask(const struct masks *masks, size_t i, const struct qdqi_node *node)
{
    return qdqi_node_is(node->proto, "Log") && node->proto->n_input == 1 &&
           node->inputs[0] && may_hold_zeros(masks->zeros, node->inputs[0]) &&
           masks->leads[i];
}

static bool
makes_far_ones(const struct qdq_model *model, const bool *nodes,
               const struct qdqi_node *node, double least)
{
    /* A constant that a Constant has, or that fills a ConstantOfShape */
    const Onnx__AttributeProto *value = qdqi_node_attribute(node->proto, "value");
    struct qdqi_constant c;
    if (value && value->t && qdqi_node_is(node->proto, "ConstantOfShape"))
        return qdqi_stored_read(model, value->t, node->name, &c, NULL) == QDQ_OK &&
               c.n == 1 && !c.strides && is_far(&c, 0, least);
    if (qdqi_node_is(node->proto, "Constant"))
        return node->proto->n_output == 1 && node->outputs[0] &&
               qdqi_constant_is_far(model, node->outputs[0], least);
    for (size_t i = 0; i < node->proto->n_input; i++)
        if (passes(node, i) && holds(model, nodes, node->inputs[i], least))
            return true;
    return false;
}

const bool *
qdqi_infinities_find(const struct qdq_model *model, struct qdqi_arena *arena)
{
    const struct qdqi_graph *graph = &model->graph;
    bool *nodes = qdqi_arena_array(arena, graph->n_nodes + 1, sizeof *nodes);
    struct masks masks;
    if (!nodes || !find_masks(model, arena, &masks))
        return NULL;
    for (size_t i = 0; i < graph->n_nodes; i++)
        nodes[i] = makes_far_ones(model, nodes, &graph->nodes[i], INFINITY) ||
                   is_log_of_mask(&masks, i, &graph->nodes[i]);
    return nodes;
}

const bool *
qdqi_far_ones_find(const struct qdq_model *model, struct qdqi_arena *arena,
                   double least)
{
    const struct qdqi_graph *graph = &model->graph;
    bool *nodes = qdqi_arena_array(arena, graph->n_nodes + 1, sizeof *nodes);
    for (size_t i = 0; nodes && i < graph->n_nodes; i++)
        nodes[i] = makes_far_ones(model, nodes, &graph->nodes[i], least);
    return nodes;
}
