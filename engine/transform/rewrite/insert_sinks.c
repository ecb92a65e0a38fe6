/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes that observe tensors: Observe, Moment and Peak.
 *
 * They stand at the end of the graphs, that of the first tensor last. ONNX Runtime orders the
 * nodes of a graph by a depth-first search from the last node that no other node reads, so each
 * of them runs directly behind the node that makes its tensor: the tensor is still in the
 * cache, and its memory can be used again. Between the other nodes they would all run last.
 */
#include "config.h"
#include "transform/rewrite/insert.h"

#include "graph/edit/edit.h"
#include "transform/rewrite/blocked.h"
#include "transform/rewrite/needed_nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A node that reads a tensor and that no other node reads. */
struct sink {
    const struct qdqi_tensor *tensor;
    const char *op;
    size_t slot;
    bool blocked; /* the tensor may be in blocks (transform/rewrite/blocked.h) */
};

/* Orders sinks by the producers of their tensors, the last one first. */
static int
compare_sinks(const void *a, const void *b)
{
    const struct sink *x = a, *y = b;
    if (x->tensor->producer != y->tensor->producer)
        return x->tensor->producer > y->tensor->producer ? -1 : 1;
    return (x->slot < y->slot) - (x->slot > y->slot);
}

static void
add_sink(const struct qdq_model *source, struct qdqi_edit *e, const struct sink *sink)
{
    const struct qdqi_tensor *t = sink->tensor;
    char suffix[16];
    snprintf(suffix, sizeof suffix, "_%s", sink->op);
    const char *name = qdqi_edit_name(e, t->name, suffix);
    const char *output =
        sink->blocked ? qdqi_edit_name(e, t->name, "_" QDQI_OBSERVE "_Output") : NULL;
    Onnx__NodeProto *node = qdqi_edit_add_node(
        e, source->graph.n_nodes + t->scope,
        sink->blocked ? QDQI_OBSERVE_BLOCKED : sink->op, name, &t->name, 1, output);
    qdqi_edit_set_domain(
        node, (char *)(uintptr_t)(sink->blocked ? QDQI_RUNTIME_DOMAIN : QDQI_DOMAIN));
    qdqi_edit_add_int(e, node, "slot", (int64_t)sink->slot);
}

static void
add_sinks(const struct qdq_model *source, struct qdqi_edit *e, struct sink *sinks,
          size_t n)
{
    qsort(sinks, n, sizeof *sinks, compare_sinks);
    for (size_t i = 0; i < n; i++)
        add_sink(source, e, &sinks[i]);
    qdqi_edit_import(e, QDQI_DOMAIN, 1);
}

/* --- nodes that no sink needs -------------------------------------------------- */

/* Marks the Moment nodes, and the nodes that they need. Returns false when out of memory. */
static bool
find_needed(const Onnx__GraphProto *graph, struct qdqi_map *needed, bool *marks)
{
    for (size_t i = 0; i < graph->n_node; i++) {
        Onnx__NodeProto *node = graph->node[i];
        if (strcmp(node->op_type, QDQI_MOMENT) != 0)
            continue;
        marks[i] = true;
        if (!qdqi_map_put(needed, node->input[0], node))
            return false;
    }
    return qdqi_mark_needed(graph, needed, marks);
}

/* Returns whether a node with a mark makes the tensor, or no node does. */
static bool
is_still_made(const Onnx__GraphProto *graph, const bool *marks, const char *tensor)
{
    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t k = 0; k < graph->node[i]->n_output; k++)
            if (strcmp(graph->node[i]->output[k], tensor) == 0)
                return marks[i];
    return true;
}

/*
 * Leaves out the nodes that no Moment node needs, and the outputs that they make: behind the last
 * layer there may be much work, such as a language model's product with its vocabulary. A model
 * none of whose outputs would be left stays as it is. Returns false when out of memory.
 */
static bool
leave_out_unneeded(const Onnx__ModelProto *model, struct qdqi_arena *arena)
{
    Onnx__GraphProto *graph = model->graph;
    struct qdqi_map *needed = qdqi_map_new(arena);
    bool *marks = qdqi_arena_array(arena, graph->n_node, sizeof *marks);
    Onnx__ValueInfoProto **outputs =
        qdqi_arena_array(arena, graph->n_output, sizeof *outputs);
    size_t n = 0, nodes = 0;
    if (!needed || !marks || !outputs)
        return false;
    if (qdqi_has_nested_graphs(graph))
        return true;
    if (!find_needed(graph, needed, marks))
        return false;
    for (size_t i = 0; i < graph->n_output; i++)
        if (is_still_made(graph, marks, graph->output[i]->name))
            outputs[n++] = graph->output[i];
    if (n == 0 || n == graph->n_output)
        return true;
    for (size_t i = 0; i < graph->n_node; i++)
        if (marks[i])
            graph->node[nodes++] = graph->node[i];
    graph->n_node = nodes;
    graph->output = outputs;
    graph->n_output = n;
    return true;
}

enum qdq_code
qdqi_insert_observers(const struct qdq_model *source, const struct qdq_plan *plan,
                      const bool *wanted, const size_t *blocked,
                      const struct qdqi_tensor *const *inputs, size_t n,
                      struct qdqi_arena *arena, const Onnx__ModelProto **ret,
                      struct qdq_error *err)
{
    size_t n_tensors = plan->view.n_tensors, n_sinks = 0;
    struct sink *sinks = qdqi_arena_array(arena, n_tensors + n, sizeof *sinks);
    struct qdqi_edit *e = qdqi_edit_new(source, arena);
    if (!sinks)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n_tensors; i++)
        if (wanted[i])
            sinks[n_sinks++] = (struct sink){plan->activations[i].tensor, QDQI_OBSERVE,
                                             i, blocked && blocked[i] > 0};
    for (size_t i = 0; i < n; i++)
        sinks[n_sinks++] = (struct sink){inputs[i], QDQI_MOMENT, i, false};
    add_sinks(source, e, sinks, n_sinks);
    if (blocked && !qdqi_import_of(source->proto->opset_import,
                                   source->proto->n_opset_import, QDQI_RUNTIME_DOMAIN))
        qdqi_edit_import(e, QDQI_RUNTIME_DOMAIN, 1);
    enum qdq_code code = qdqi_edit_finish(e, ret, err);
    if (code || n_sinks > n)
        return code;
    return leave_out_unneeded(*ret, arena) ? QDQ_OK : qdqi_no_memory(err);
}

enum qdq_code
qdqi_insert_sinks(const struct qdq_model *source, const char *op,
                  const struct qdqi_tensor *const *tensors, size_t n,
                  struct qdqi_arena *arena, const Onnx__ModelProto **ret,
                  struct qdq_error *err)
{
    struct sink *sinks = qdqi_arena_array(arena, n, sizeof *sinks);
    struct qdqi_edit *e = qdqi_edit_new(source, arena);
    if (!sinks)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n; i++)
        sinks[i] = (struct sink){tensors[i], op, i, false};
    add_sinks(source, e, sinks, n);
    return qdqi_edit_finish(e, ret, err);
}
