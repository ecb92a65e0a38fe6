/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/plausible/probe.h"

#include "transform/rewrite/needed_nodes.h"

#include <math.h>
#include <string.h>

/* Operators of a bounded activation; a Clip's bounds are in the model. */
static const struct bounded {
    const char *op;
    double low, high;
} operators[] = {
    {"Relu", 0, INFINITY}, {"Sigmoid", 0, 1}, {"HardSigmoid", 0, 1},
    {"Tanh", -1, 1},       {"Clip", 0, 6}, /* the usual bounds: others find no element at them */
};

static bool
is_probe(const struct qdqi_node *node, struct qdqi_probe *ret)
{
    const struct qdqi_tensor *tensor =
        node->proto->n_output > 0 ? node->outputs[0] : NULL;
    if (!tensor || tensor->scope != 0 || tensor->is_fixed || tensor->is_output ||
        tensor->dtype != QDQI_FLOAT32)
        return false;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (qdqi_node_is(node->proto, operators[i].op)) {
            *ret =
                (struct qdqi_probe){tensor->name, operators[i].low, operators[i].high};
            return true;
        }
    return false;
}

/* Adds an output without a type, which the runtime infers. */
static bool
add_output(struct qdqi_probed *to, const char *name, struct qdqi_arena *arena)
{
    Onnx__ValueInfoProto *value = qdqi_arena_alloc(arena, sizeof *value);
    if (!value)
        return false;
    onnx__value_info_proto__init(value);
    value->name = qdqi_arena_strdup(arena, name);
    to->graph.output[to->graph.n_output++] = value;
    return value->name;
}

/* Makes the part of the graph that the probes need. */
static bool
cut_front(const struct qdq_model *model, struct qdqi_probed *to,
          struct qdqi_arena *arena)
{
    const Onnx__GraphProto *all = &to->graph;
    Onnx__GraphProto *g = &to->front_graph;
    struct qdqi_map *needed = qdqi_map_new(arena);
    bool *marks = qdqi_arena_array(arena, all->n_node, sizeof *marks);
    *g = *all;
    g->node = qdqi_arena_array(arena, all->n_node, sizeof *g->node);
    g->initializer =
        qdqi_arena_array(arena, all->n_initializer, sizeof *g->initializer);
    g->n_node = g->n_initializer = 0;
    if (!needed || !marks || !g->node || !g->initializer ||
        !qdqi_drop_constant_inputs(model, arena, g))
        return false;
    g->output += all->n_output - to->n;
    g->n_output = to->n;
    for (size_t i = 0; i < to->n; i++)
        if (!qdqi_map_put(needed, to->probes[i].tensor, to))
            return false;
    if (qdqi_has_nested_graphs(all))
        return true;
    if (!qdqi_mark_needed(all, needed, marks))
        return false;
    for (size_t i = 0; i < all->n_node; i++)
        if (marks[i])
            g->node[g->n_node++] = all->node[i];
    for (size_t i = 0; i < all->n_initializer; i++)
        if (qdqi_map_get(needed, all->initializer[i]->name))
            g->initializer[g->n_initializer++] = all->initializer[i];
    return true;
}

enum qdq_code
qdqi_probe(const struct qdq_model *model, struct qdqi_arena *arena,
           struct qdqi_probed *ret, struct qdq_error *err)
{
    const size_t n = model->proto->graph->n_output;
    *ret = (struct qdqi_probed){.model = *model->proto, .graph = *model->proto->graph};
    ret->graph.output =
        qdqi_arena_array(arena, n + QDQI_MOST_PROBES, sizeof *ret->graph.output);
    if (!ret->graph.output)
        return qdqi_no_memory(err);
    memcpy(ret->graph.output, model->proto->graph->output,
           n * sizeof *ret->graph.output);
    for (size_t i = 0; i < model->graph.n_nodes && ret->n < QDQI_MOST_PROBES; i++)
        if (is_probe(&model->graph.nodes[i], &ret->probes[ret->n]) &&
            !add_output(ret, ret->probes[ret->n++].tensor, arena))
            return qdqi_no_memory(err);
    ret->front = ret->model;
    ret->front.graph = &ret->front_graph;
    ret->model.graph = &ret->graph;
    return cut_front(model, ret, arena) ? QDQ_OK : qdqi_no_memory(err);
}
