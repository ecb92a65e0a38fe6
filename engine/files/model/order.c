/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorts the nodes of a graph. ONNX requires an order of computation, and some files
 * break that. The sort is a depth-first walk from the first node on; each node comes
 * behind the producers of everything that it or a graph nested in it reads. An order
 * that is right already does not change.
 */
#include "config.h"
#include "files/model/model.h"

#include <string.h>

struct order {
    struct qdq_model *m;
    const Onnx__GraphProto *graph;
    /* from a tensor to a pointer to its producer in graph->node */
    struct qdqi_map *makers;
    size_t place;  /* position of the current node */
    size_t *reads; /* positions of the producers that nodes read from, node by node */
    size_t n_reads, room;
    bool disordered;
};

/* Adds the producers that a node reads from. Recurses into nested graphs, whose
   depth the skeleton bounds. */
static void
add_reads(struct order *o, const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_input; i++) {
        Onnx__NodeProto **maker =
            *node->input[i] ? qdqi_map_get(o->makers, node->input[i]) : NULL;
        if (!maker)
            continue;
        size_t at = (size_t)(maker - o->graph->node);
        o->disordered |= at >= o->place;
        if (o->n_reads < o->room)
            o->reads[o->n_reads] = at;
        o->n_reads++;
    }
    for (size_t i = 0; i < node->n_attribute; i++) {
        const Onnx__AttributeProto *a = node->attribute[i];
        for (size_t k = 0; k < a->n_graphs + (a->g != NULL); k++) {
            const Onnx__GraphProto *g = k < a->n_graphs ? a->graphs[k] : a->g;
            for (size_t n = 0; n < g->n_node; n++)
                add_reads(o, g->node[n]);
            for (size_t n = 0; n < g->n_output; n++) {
                char *names[] = {g->output[n]->name};
                const Onnx__NodeProto reader = {.n_input = 1, .input = names};
                if (names[0])
                    add_reads(o, &reader);
            }
        }
    }
}

/* Collects the reads of all nodes; those of node i end at ends[i]. */
static void
read_all(struct order *o, size_t *ends)
{
    o->n_reads = 0;
    for (o->place = 0; o->place < o->graph->n_node; o->place++) {
        add_reads(o, o->graph->node[o->place]);
        if (ends)
            ends[o->place] = o->n_reads;
    }
}

enum state { NEW, OPEN, DONE };

/* Runs the depth-first walk. next[i] is the read of node i that is followed next. */
static enum qdq_code
sort(struct order *o, const size_t *ends, size_t *next, uint8_t *states, size_t *stack,
     Onnx__NodeProto **ret, struct qdq_error *err)
{
    size_t n_done = 0, depth = 0;
    for (size_t i = 0; i < o->graph->n_node; i++)
        next[i] = i ? ends[i - 1] : 0;
    for (size_t i = 0; i < o->graph->n_node; i++) {
        if (states[i] == DONE)
            continue;
        stack[depth++] = i;
        while (depth > 0) {
            size_t node = stack[depth - 1];
            states[node] = OPEN;
            if (next[node] == ends[node]) {
                states[node] = DONE;
                ret[n_done++] = o->graph->node[node];
                depth--;
                continue;
            }
            size_t maker = o->reads[next[node]++];
            if (states[maker] == OPEN)
                return qdq_error_set(
                    err, QDQ_INVALID_MODEL, QDQ_AT_NODE, o->graph->node[maker]->name,
                    "node '%s' (%s) waits for what is made of its own "
                    "output",
                    o->graph->node[maker]->name ? o->graph->node[maker]->name : "",
                    o->graph->node[maker]->op_type);
            if (states[maker] == NEW)
                stack[depth++] = maker;
        }
    }
    return QDQ_OK;
}

static enum qdq_code
put_in_order(struct order *o, Onnx__GraphProto *graph, struct qdq_error *err)
{
    struct qdqi_arena *arena = o->m->arena;
    size_t n = graph->n_node;
    size_t *ends = qdqi_arena_array(arena, n, sizeof *ends);
    size_t *next = qdqi_arena_array(arena, n, sizeof *next);
    size_t *stack = qdqi_arena_array(arena, n, sizeof *stack);
    uint8_t *states = qdqi_arena_array(arena, n, sizeof *states);
    Onnx__NodeProto **sorted = qdqi_arena_array(arena, n, sizeof *sorted);
    o->room = o->n_reads;
    o->reads = qdqi_arena_array(arena, o->room, sizeof *o->reads);
    if (!ends || !next || !stack || !states || !sorted || !o->reads)
        return qdqi_no_memory(err);
    read_all(o, ends);
    enum qdq_code code = sort(o, ends, next, states, stack, sorted, err);
    if (!code)
        graph->node = sorted;
    return code;
}

enum qdq_code
qdqi_graph_order(struct qdq_model *m, Onnx__GraphProto *graph, bool *ret_changed,
                 struct qdq_error *err)
{
    struct order o = {.m = m, .graph = graph, .makers = qdqi_map_new(m->arena)};
    bool ok = o.makers;
    for (size_t i = 0; ok && i < graph->n_node; i++)
        for (size_t k = 0; ok && k < graph->node[i]->n_output; k++)
            ok = !*graph->node[i]->output[k] ||
                 qdqi_map_put(o.makers, graph->node[i]->output[k], &graph->node[i]);
    if (!ok)
        return qdqi_no_memory(err);
    read_all(&o, NULL);
    if (!o.disordered)
        return QDQ_OK;
    *ret_changed = true;
    return put_in_order(&o, graph, err);
}
