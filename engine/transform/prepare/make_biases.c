/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bias correction adds the mean error of a layer's output to the layer's bias. This step
 * gives a bias of zeros to each Conv and Gemm that has none, and, for a target that computes
 * a MatMul and the Add of a constant behind it in one kernel, such an Add to each MatMul. The
 * model computes the same. The plan does not exist yet: the biases of layers whose weights
 * stay float are left out of the result (stages/scale/correct.c).
 */
#include "config.h"
#include "transform/prepare/prepare.h"

#include "graph/edit/edit.h"
#include "ground/base/map.h"
#include "graph/layers/bias.h"
#include "plan/placement/target.h"

#include <string.h>

enum { WEIGHT = 1, BIAS = 2 };

struct making {
    const struct qdq_model *model;
    struct qdqi_arena *arena;
    struct qdqi_edit *edit;
    bool fuses_matmul;
    struct qdqi_map *made; /* names of the biases */
    bool any;
};

/* Returns the number of outputs of a layer whose weight is a float32 constant; 0 for any
   other node. */
static size_t
count_outputs(const struct making *m, const struct qdqi_node *node)
{
    const Onnx__NodeProto *proto = node->proto;
    const struct qdqi_tensor *t = proto->n_input > WEIGHT ? node->inputs[WEIGHT] : NULL;
    struct qdqi_constant w;
    if (!t || !t->is_fixed || !node->inputs[0] || node->inputs[0]->is_fixed ||
        proto->n_output != 1 || !node->outputs[0] ||
        qdqi_constant_read(m->model, t, &w, NULL) || w.dtype != QDQI_FLOAT32 ||
        w.n == 0)
        return 0;
    if (qdqi_node_is(proto, "Conv"))
        return w.rank >= 3 ? (size_t)w.dims[0] : 0;
    if (qdqi_node_is(proto, "Gemm"))
        return w.rank == 2 && qdqi_gemm_is_unscaled(proto)
                   ? (size_t)w.dims[!qdqi_node_int(proto, "transB", 0)]
                   : 0;
    return m->fuses_matmul && qdqi_node_is(proto, "MatMul") && w.rank == 2
               ? (size_t)w.dims[1]
               : 0;
}

/* Returns whether a layer has a bias. The constant that is added behind a MatMul is one if
   it has a number for each output: a scalar or a table of positions is none, and gets
   another Add before it. */
static bool
has_bias(const struct making *m, const struct qdqi_node *node, size_t outputs)
{
    const struct qdqi_bias_place place = qdqi_bias_find(m->model, node);
    struct qdqi_constant bias;
    return qdqi_node_is(node->proto, "MatMul")
               ? qdqi_bias_read(m->model, &place, outputs, &bias)
               : place.tensor != NULL;
}

/* The Add makes the tensor that the MatMul made, so that names of tensors stay. */
static void
add_behind(struct making *m, size_t i, const char *bias)
{
    const struct qdqi_node *node = &m->model->graph.nodes[i];
    const struct qdqi_tensor *out = node->outputs[0];
    const char *product = qdqi_edit_name(m->edit, out->name, "_product");
    const char *inputs[] = {product, bias};
    qdqi_edit_set_output(m->edit, i, 0, product);
    qdqi_edit_add_node(m->edit, qdqi_edit_behind(m->model, out), "Add",
                       qdqi_edit_name(m->edit, node->name, "_bias"), inputs, 2,
                       out->name);
}

static enum qdq_code
make_bias(struct making *m, size_t i, struct qdq_error *err)
{
    const struct qdqi_node *node = &m->model->graph.nodes[i];
    const size_t n = count_outputs(m, node);
    if (n == 0 || has_bias(m, node, n))
        return QDQ_OK;
    const char *name = qdqi_edit_name(m->edit, node->inputs[WEIGHT]->name, "_bias");
    float *zeros = qdqi_arena_array(m->arena, n, sizeof *zeros);
    if (!name || !zeros)
        return qdqi_no_memory(err);
    memset(zeros, 0, n * sizeof *zeros);
    qdqi_edit_add_tensor(m->edit, name, QDQI_FLOAT32, 1, (const int64_t[]){(int64_t)n},
                         zeros, n * sizeof *zeros);
    if (qdqi_node_is(node->proto, "MatMul"))
        add_behind(m, i, name);
    else
        qdqi_edit_put_input(m->edit, i, BIAS, name);
    m->any = true;
    return qdqi_map_put(m->made, name, m->made) ? QDQ_OK : qdqi_no_memory(err);
}

static enum qdq_code
make_biases(struct making *m, struct qdq_model **ret, struct qdq_error *err)
{
    const struct qdqi_graph *graph = &m->model->graph;
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < graph->n_nodes && !code; i++)
        if (!graph->scopes[graph->nodes[i].scope].is_opaque)
            code = make_bias(m, i, err);
    if (code || !m->any)
        return code;
    if (!(code = qdqi_edit_derive(m->edit, &m->arena, ret, err)))
        (*ret)->made_biases = m->made;
    return code;
}

enum qdq_code
qdqi_step_make_biases(struct qdqi_preparing *p, struct qdq_model **ret,
                      struct qdq_error *err)
{
    struct qdq_spec spec = *p->spec;
    qdq_spec_complete(&spec);
    if (spec.bias_correction != QDQ_BIASES_ALL || p->model->proto->n_training_info)
        return QDQ_OK;
    struct making m = {.model = p->model,
                       .arena = qdqi_arena_new(),
                       .fuses_matmul = spec.target->hooks->fuses_biases};
    m.edit = m.arena ? qdqi_edit_new(p->model, m.arena) : NULL;
    m.made = m.arena ? qdqi_map_new(m.arena) : NULL;
    enum qdq_code code =
        m.edit && m.made ? make_biases(&m, ret, err) : qdqi_no_memory(err);
    qdqi_arena_free(&m.arena);
    return code;
}
