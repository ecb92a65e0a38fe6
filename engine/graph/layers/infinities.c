/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/layers/infinities.h"

#include "files/model/constant.h"

#include <math.h>
#include <string.h>

enum {
    MOST = 1 << 22
}; /* elements of a constant that is looked at: a mask of 2048 by 2048 */

/* --- constants --------------------------------------------------------------- */

static bool
is_infinite(const struct qdqi_constant *c, size_t i)
{
    float single;
    double wide;
    uint16_t half;
    switch (c->dtype) {
    case QDQI_FLOAT32:
        memcpy(&single, c->bytes + i * sizeof single, sizeof single);
        return !isfinite(single);
    case QDQI_FLOAT64:
        memcpy(&wide, c->bytes + i * sizeof wide, sizeof wide);
        return !isfinite(wide);
    case QDQI_FLOAT16:
        memcpy(&half, c->bytes + i * sizeof half, sizeof half);
        return (half & 0x7c00) == 0x7c00;
    default:
        return false;
    }
}

bool
qdqi_constant_is_infinite(const struct qdq_model *model, const struct qdqi_tensor *t)
{
    struct qdqi_constant c;
    if (!t->is_fixed || qdqi_constant_read(model, t, &c, NULL) != QDQ_OK ||
        (c.strides && !qdqi_constant_is_fill(&c)))
        return false;
    const size_t n = c.strides ? c.n > 0 : c.n;
    for (size_t i = 0; i < n && n <= MOST; i++)
        if (is_infinite(&c, i))
            return true;
    return false;
}

/* --- nodes --------------------------------------------------------------------- */

static bool
holds(const struct qdq_model *model, const bool *nodes, const struct qdqi_tensor *t)
{
    return t && (t->producer >= 0 ? nodes[t->producer]
                                  : qdqi_constant_is_infinite(model, t));
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

static bool
makes_infinities(const struct qdq_model *model, const bool *nodes,
                 const struct qdqi_node *node)
{
    /* A constant that a Constant has, or that fills a ConstantOfShape */
    const Onnx__AttributeProto *value = qdqi_node_attribute(node->proto, "value");
    struct qdqi_constant c;
    if (value && value->t && qdqi_node_is(node->proto, "ConstantOfShape"))
        return qdqi_stored_read(model, value->t, node->name, &c, NULL) == QDQ_OK &&
               c.n == 1 && !c.strides && is_infinite(&c, 0);
    if (qdqi_node_is(node->proto, "Constant"))
        return node->proto->n_output == 1 && node->outputs[0] &&
               qdqi_constant_is_infinite(model, node->outputs[0]);
    for (size_t i = 0; i < node->proto->n_input; i++)
        if (passes(node, i) && holds(model, nodes, node->inputs[i]))
            return true;
    return false;
}

const bool *
qdqi_infinities_find(const struct qdq_model *model, struct qdqi_arena *arena)
{
    bool *nodes = qdqi_arena_array(arena, model->graph.n_nodes + 1, sizeof *nodes);
    for (size_t i = 0; nodes && i < model->graph.n_nodes; i++)
        nodes[i] = makes_infinities(model, nodes, &model->graph.nodes[i]);
    return nodes;
}
