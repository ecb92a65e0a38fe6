/* SPDX-License-Identifier: Apache-2.0 */
/* Drops constants that nothing reads any more, with the nodes that make them. */
#include "config.h"
#include "graph/edit/state.h"

#include <stddef.h>
#include <string.h>

/* The number of readers of a tensor of the source, counted when it is first needed. */
struct usage {
    size_t left;
    bool dropped;
};

static bool
still_reads(const struct qdqi_edit *e, const struct qdqi_use *use, const char *name)
{
    const Onnx__NodeProto *copy = e->changed[use->node];
    if (e->dropped[use->node])
        return false;
    return !copy || strcmp(copy->input[use->input], name) == 0;
}

/* Returns the usage of a tensor, or NULL when out of memory. Uses that an edit
   cannot remove count, too, for example as an output of the graph. */
static struct usage *
usage_of(struct qdqi_edit *e, const struct qdqi_tensor *t)
{
    struct usage *u = qdqi_map_get(e->usages, t->name);
    if (u || !(u = qdqi_edit_array(e, 1, sizeof *u)))
        return u;
    u->left = t->is_output || t->is_captured || t->is_overridable ||
              qdqi_map_get(e->read, t->name);
    for (const struct qdqi_use *use = t->uses; use; use = use->next)
        u->left += still_reads(e, use, t->name);
    if (!qdqi_map_put(e->usages, t->name, u))
        e->out_of_memory = true;
    return u;
}

/* Drops a node if none of its outputs is read, and adds its inputs to the tensors to
   check. */
static void
drop_node(struct qdqi_edit *e, size_t i, struct qdqi_rows *todo)
{
    const struct qdqi_node *node = &e->source->graph.nodes[i];
    if (e->dropped[i] || e->changed[i])
        return;
    for (size_t k = 0; k < node->proto->n_output; k++) {
        struct usage *u = node->outputs[k] ? usage_of(e, node->outputs[k]) : NULL;
        if (node->outputs[k] && (!u || u->left))
            return;
    }
    for (size_t k = 0; k < node->proto->n_output; k++)
        if (node->outputs[k])
            usage_of(e, node->outputs[k])->dropped = true;
    for (size_t k = 0; k < node->proto->n_input; k++) {
        struct usage *u = node->inputs[k] ? usage_of(e, node->inputs[k]) : NULL;
        if (!u)
            continue;
        u->left--;
        qdqi_edit_append(e, todo, node->inputs[k]);
    }
    e->dropped[i] = true;
    e->n_dropped++;
}

static void
drop_tensor(struct qdqi_edit *e, const struct qdqi_tensor *t, struct qdqi_rows *todo)
{
    struct usage *u = usage_of(e, t);
    if (!u || u->left || u->dropped)
        return;
    if (t->producer >= 0) {
        drop_node(e, (size_t)t->producer, todo);
    } else if (t->constant) {
        u->dropped = true;
        e->n_dropped++;
    }
}

void
qdqi_edit_drop_unused(struct qdqi_edit *e, const char *tensor)
{
    struct qdqi_rows todo = {.n = 0};
    void *t = e ? qdqi_map_get(e->source->graph.tensors, tensor) : NULL;
    /* training info can name initializers, too */
    if (!t || e->source->proto->n_training_info)
        return;
    qdqi_edit_append(e, &todo, t);
    while (todo.n > 0 && !e->out_of_memory)
        drop_tensor(e, todo.rows[--todo.n], &todo);
}

void
qdqi_edit_absorb(struct qdqi_edit *e, size_t node, size_t into)
{
    Onnx__NodeProto *copy = e ? qdqi_edit_change_node(e, into) : NULL;
    struct qdqi_tensor *t =
        copy ? qdqi_map_get(e->source->graph.tensors, copy->output[0]) : NULL;
    struct usage *u = t ? usage_of(e, t) : NULL;
    if (!u)
        return;
    u->dropped = true;
    qdqi_edit_set_output(e, into, 0, e->source->graph.nodes[node].outputs[0]->name);
    e->dropped[node] = true;
    e->n_dropped++;
}

static bool
is_dropped(const struct qdqi_edit *e, const char *tensor)
{
    const struct usage *u = tensor ? qdqi_map_get(e->usages, tensor) : NULL;
    return u && u->dropped;
}

/* Returns the messages that do not refer to a dropped tensor. `name` is the offset
   of the member with the tensor's name. */
static void *
without_dropped(struct qdqi_edit *e, void *rows, size_t *n, size_t name)
{
    void **all = qdqi_edit_array(e, *n, sizeof *all);
    size_t left = 0;
    for (size_t i = 0; all && i < *n; i++) {
        void *row;
        const char *tensor;
        memcpy(&row, (char *)rows + i * sizeof row, sizeof row);
        memcpy(&tensor, (char *)row + name, sizeof tensor);
        if (!is_dropped(e, tensor))
            all[left++] = row;
    }
    *n = left;
    return all;
}

void
qdqi_edit_leave_out_dropped(struct qdqi_edit *e, Onnx__GraphProto *graph)
{
    if (!e->n_dropped)
        return;
    graph->initializer = without_dropped(e, graph->initializer, &graph->n_initializer,
                                         offsetof(Onnx__TensorProto, name));
    graph->value_info = without_dropped(e, graph->value_info, &graph->n_value_info,
                                        offsetof(Onnx__ValueInfoProto, name));
    graph->quantization_annotation = without_dropped(
        e, graph->quantization_annotation, &graph->n_quantization_annotation,
        offsetof(Onnx__TensorAnnotation, tensor_name));
}
