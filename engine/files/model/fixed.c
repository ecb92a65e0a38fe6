/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the tensors whose elements are the same in every run: the outputs of
 * deterministic operators with fixed inputs alone. Then finds those that are the same
 * for all inputs of one shape. The walk starts at the constants, then at the outputs of
 * Shape and Size, and follows the uses. It is linear in the size of the graph, whatever
 * the order of the file; nodes in a cycle are never reached.
 */
#include "config.h"
#include "files/model/model.h"

#include "files/model/constant.h"

#include <string.h>

struct walk {
    struct qdq_model *model;
    int64_t opset;
    size_t *waits; /* for each node: inputs that are not known to be fixed yet */
    size_t *ready; /* queue of nodes whose inputs are all fixed */
    size_t n_ready, n_done;
    bool shapes; /* the second part of the walk, from shapes */
};

/* From this opset on Dropout is the identity unless training_mode is true. */
enum { OPSET_INFERENCE = 7 };

static const char *const random_ops[] = {
    "Bernoulli",     "Multinomial",       "RandomNormal", "RandomNormalLike",
    "RandomUniform", "RandomUniformLike", NULL,
};

/* Returns whether a fixed tensor is the single boolean `false`. */
static bool
is_false(const struct qdq_model *m, const struct qdqi_tensor *t)
{
    const Onnx__TensorProto *stored = t->view.stored;
    struct qdqi_constant c;
    if (!stored || stored->data_type != QDQI_BOOL)
        return false;
    if (stored->n_int32_data == 1)
        return stored->int32_data[0] == 0;
    return !qdqi_constant_read(m, t, &c, NULL) && c.n == 1 && c.bytes[0] == 0;
}

/* Returns whether a Dropout may be in training mode. From Dropout-12 on
   training_mode is an input. */
static bool
is_training(const struct walk *w, const struct qdqi_node *node)
{
    if (node->proto->n_input > 2 && node->inputs[2])
        return !is_false(w->model, node->inputs[2]);
    return w->opset < OPSET_INFERENCE && !qdqi_node_int(node->proto, "is_test", 0);
}

static bool
is_deterministic(const struct walk *w, const struct qdqi_node *node)
{
    if (!qdqi_is_onnx_domain(node->proto->domain) || node->body ||
        qdqi_node_is_one_of(node->proto, random_ops))
        return false;
    return !qdqi_node_is(node->proto, "Dropout") || !is_training(w, node);
}

/* A node without inputs never becomes ready: it is a Constant, or it generates its
   values. */
static void
count_waits(struct walk *w, size_t i)
{
    const struct qdqi_node *node = &w->model->graph.nodes[i];
    size_t inputs = 0;
    if (qdqi_node_is(node->proto, "Constant"))
        return;
    for (size_t k = 0; k < node->proto->n_input; k++) {
        inputs += node->inputs[k] != NULL;
        w->waits[i] += node->inputs[k] && !node->inputs[k]->is_fixed;
    }
    if (inputs && !w->waits[i])
        w->ready[w->n_ready++] = i;
}

static enum qdq_code
mark_outputs(struct walk *w, const struct qdqi_node *node, struct qdq_error *err)
{
    for (size_t k = 0; k < node->proto->n_output; k++) {
        struct qdqi_tensor *t = node->outputs[k];
        if (!t || t->is_fixed || t->is_shape)
            continue;
        t->is_fixed = !w->shapes;
        t->is_shape = w->shapes;
        for (const struct qdqi_use *use = t->uses; use; use = use->next)
            if (--w->waits[use->node] == 0)
                w->ready[w->n_ready++] = use->node;
    }
    return w->shapes ? QDQ_OK : qdqi_view_infer(w->model, node, err);
}

static enum qdq_code
follow(struct walk *w, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (; w->n_done < w->n_ready && !code; w->n_done++) {
        const struct qdqi_node *node = &w->model->graph.nodes[w->ready[w->n_done]];
        if (is_deterministic(w, node))
            code = mark_outputs(w, node, err);
    }
    return code;
}

static bool
asks_for_shape(const struct qdqi_node *node)
{
    return qdqi_node_is(node->proto, "Shape") || qdqi_node_is(node->proto, "Size");
}

enum qdq_code
qdqi_graph_mark_fixed(struct qdq_model *m, struct qdq_error *err)
{
    size_t n = m->graph.n_nodes;
    struct walk w = {.model = m,
                     .opset = qdqi_model_opset(m->proto),
                     .waits = qdqi_arena_array(m->arena, n, sizeof *w.waits),
                     .ready = qdqi_arena_array(m->arena, n, sizeof *w.ready)};
    if (!w.waits || !w.ready)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n; i++)
        count_waits(&w, i);
    enum qdq_code code = follow(&w, err);
    w.shapes = true;
    for (size_t i = 0; i < n && !code; i++)
        if (asks_for_shape(&m->graph.nodes[i]))
            code = mark_outputs(&w, &m->graph.nodes[i], err);
    return code ? code : follow(&w, err);
}

bool
qdqi_node_is_fixed(const struct qdqi_node *node)
{
    bool any = false;
    for (size_t i = 0; i < node->proto->n_output; i++) {
        if (node->outputs[i] && !node->outputs[i]->is_fixed)
            return false;
        any |= node->outputs[i] != NULL;
    }
    return any;
}
