/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes constants out of Loops and Scans that carry them from step to step and never change them, as tf2onnx
 * writes the weights of an LSTM of Keras (the hook `uncarries` of plan/placement/target.h). The body reads the
 * constant from outside, and so does what reads the value behind the last step, so that a layer in the body
 * has a weight.
 */
#include "config.h"
#include "transform/prepare/named.h"
#include "transform/prepare/prepare.h"

#include "files/model/constant.h"
#include "graph/edit/edit.h"
#include "plan/placement/carried_weights.h"
#include "plan/placement/target.h"

#include <string.h>

struct taking {
    const struct qdq_model *model;
    struct qdqi_edit *edit;
    const struct qdqi_map *named; /* by the spec */
    const char *first;
    size_t n;
};

/* Returns whether nodes of one graph alone read the tensor, if any do. */
static bool
is_read_in(const struct taking *t, const struct qdqi_tensor *tensor, size_t scope)
{
    for (const struct qdqi_use *use = tensor->uses; use; use = use->next)
        if (t->model->graph.nodes[use->node].scope != scope)
            return false;
    return !tensor->is_captured && !qdqi_map_get(t->named, tensor->name);
}

/* Returns the number of outputs of a graph that are the tensor, perhaps behind Identities. */
static size_t
count_ends(const struct taking *t, const Onnx__GraphProto *body,
           const struct qdqi_tensor *tensor)
{
    size_t n = 0;
    for (size_t i = 0; i < body->n_output; i++)
        n += qdqi_before_identities(&t->model->graph,
                                    qdqi_map_get(t->model->graph.tensors,
                                                 body->output[i]->name)) == tensor;
    return n;
}

/* Returns what the node makes of what it carries by input i, or NULL. */
static const struct qdqi_tensor *
end_of(const struct qdqi_node *node, size_t i)
{
    const size_t out = qdqi_node_is(node->proto, "Loop") ? i - 2 : i;
    return out < node->proto->n_output ? node->outputs[out] : NULL;
}

/* Returns whether the chain of Identities in front of the body's output can go: nothing else reads what they
   make from another graph. */
static bool
is_plain_chain(const struct taking *t, const struct qdqi_tensor *end, size_t scope)
{
    const struct qdqi_graph *graph = &t->model->graph;
    for (; end->producer >= 0; end = graph->nodes[end->producer].inputs[0])
        if (!is_read_in(t, end, scope) || graph->nodes[end->producer].scope != scope)
            return false;
    return true;
}

static void
read_instead(struct taking *t, const struct qdqi_tensor *tensor, const char *name)
{
    for (const struct qdqi_use *use = tensor->uses; use; use = use->next)
        qdqi_edit_set_input(t->edit, use->node, (size_t)use->input, name);
}

/* Takes the constant out that the node carries by input i, if nothing keeps it there. */
static void
take_out(struct taking *t, size_t node_index, size_t i)
{
    const struct qdqi_graph *graph = &t->model->graph;
    const struct qdqi_node *node = &graph->nodes[node_index];
    const Onnx__GraphProto *body = graph->scopes[node->body].proto;
    const struct qdqi_tensor *inner =
        i < body->n_input && body->input[i]->name
            ? qdqi_map_get(graph->tensors, body->input[i]->name)
            : NULL;
    const struct qdqi_tensor *after = end_of(node, i);
    if (!inner || qdqi_carried_input(graph, inner) != (int64_t)i ||
        node->inputs[i]->dtype != QDQI_FLOAT32 ||
        qdqi_constant_is_overridable(t->model, node->inputs[i]) ||
        !is_read_in(t, inner, node->body) || count_ends(t, body, inner) != 1 ||
        (after && (after->is_output || !is_read_in(t, after, node->scope))))
        return;
    const size_t out = qdqi_node_is(node->proto, "Loop") ? i - 1 : i;
    const struct qdqi_tensor *end =
        qdqi_map_get(graph->tensors, body->output[out]->name);
    if (!is_plain_chain(t, end, node->body))
        return;
    const char *outer = node->inputs[i]->name;
    read_instead(t, inner, outer);
    if (after)
        read_instead(t, after, outer);
    for (; end->producer >= 0; end = graph->nodes[end->producer].inputs[0]) {
        read_instead(t, end, outer);
        qdqi_edit_drop_node(t->edit, (size_t)end->producer);
    }
    qdqi_edit_drop_carried(t->edit, node_index, i);
    if (t->n++ == 0)
        t->first = node->name;
}

/* Returns whether the node carries values in a body of its own, in the main graph. */
static bool
carries(const struct qdqi_graph *graph, const struct qdqi_node *node)
{
    static const char *const ops[] = {"Loop", "Scan", NULL};
    const struct qdqi_scope *body = &graph->scopes[node->body];
    return node->scope == 0 && node->body > 0 && body->next == 0 &&
           qdqi_node_is_one_of(node->proto, ops) &&
           node->proto->attribute[body->attribute]->g == body->proto;
}

static void
take_all(struct taking *t)
{
    for (size_t i = 0; i < t->model->graph.n_nodes; i++)
        if (carries(&t->model->graph, &t->model->graph.nodes[i]))
            for (size_t k = 0; k < t->model->graph.nodes[i].proto->n_input; k++)
                take_out(t, i, k);
}

enum qdq_code
qdqi_step_uncarry(struct qdqi_preparing *p, struct qdq_model **ret,
                  struct qdq_error *err)
{
    struct qdq_spec spec = *p->spec;
    qdq_spec_complete(&spec);
    const struct qdqi_hooks *hooks = spec.target->hooks;
    if (!hooks->uncarries || !hooks->uncarries(&spec) ||
        p->model->proto->n_training_info)
        return QDQ_OK;
    struct qdqi_arena *arena = qdqi_arena_new();
    struct taking t = {.model = p->model,
                       .edit = arena ? qdqi_edit_new(p->model, arena) : NULL,
                       .named = arena ? qdqi_named_by_spec(p->spec, arena) : NULL};
    enum qdq_code code = t.edit && t.named ? QDQ_OK : qdqi_no_memory(err);
    if (!code)
        take_all(&t);
    if (!code && t.n > 0)
        code = qdqi_edit_derive(t.edit, &arena, ret, err);
    if (!code && t.n > 0)
        code = qdqi_warn(&p->warnings, p->arena, err, "weights_uncarried", t.first,
                         "%zu constants that Loops carried from step to step, this "
                         "one's first, are read from outside, as they never change",
                         t.n);
    qdqi_arena_free(&arena);
    return code;
}
