/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/classes.h"

#include "model/constant.h"

#include <string.h>

bool
qdqi_input_is_constant(const struct qdqi_node *node, int i)
{
    return i >= 0 && (size_t)i < node->proto->n_input && node->inputs[i] &&
           node->inputs[i]->is_fixed;
}

bool
qdqi_input_is_computed(const struct qdqi_node *node, int i)
{
    return i >= 0 && (size_t)i < node->proto->n_input && node->inputs[i] &&
           !node->inputs[i]->is_fixed;
}

/* --- predicates of the table ---------------------------------------------- */

static bool
any_node(const struct qdq_model *model, const struct qdqi_node *node)
{
    (void)model;
    (void)node;
    return true;
}

static size_t
weight_rank(const struct qdqi_node *node)
{
    return qdqi_input_is_constant(node, 1) ? node->inputs[1]->constant->n_dims : 0;
}

static bool
conv_2d(const struct qdq_model *model, const struct qdqi_node *node)
{
    (void)model;
    return weight_rank(node) == 4;
}

/* Weight [C*M, 1, kh, kw] with C groups (ONNX Conv-22). */
static bool
depthwise_conv(const struct qdq_model *model, const struct qdqi_node *node)
{
    (void)model;
    int64_t group = qdqi_node_int(node->proto, "group", 1);
    if (weight_rank(node) != 4 || group <= 1)
        return false;
    const int64_t *dims = node->inputs[1]->constant->dims;
    return dims[1] == 1 && dims[0] % group == 0;
}

static bool
one_constant_operand(const struct qdq_model *model, const struct qdqi_node *node)
{
    (void)model;
    return qdqi_input_is_constant(node, 0) != qdqi_input_is_constant(node, 1);
}

static bool
all_computed(const struct qdq_model *model, const struct qdqi_node *node)
{
    (void)model;
    for (size_t i = 0; i < node->proto->n_input; i++)
        if (!qdqi_input_is_computed(node, (int)i))
            return false;
    return node->proto->n_input > 0;
}

/* Whether input b is Sigmoid of input a. */
static bool
is_sigmoid_of(const struct qdq_model *model, const struct qdqi_node *node, int a, int b)
{
    int64_t maker = node->inputs[b]->producer;
    if (maker < 0)
        return false;
    const struct qdqi_node *sigmoid = &model->graph.nodes[maker];
    return qdqi_node_is(sigmoid->proto, "Sigmoid") &&
           sigmoid->inputs[0] == node->inputs[a];
}

static bool
all_computed_no_swish(const struct qdq_model *model, const struct qdqi_node *node)
{
    return node->proto->n_input == 2 && all_computed(model, node) &&
           !is_sigmoid_of(model, node, 0, 1) && !is_sigmoid_of(model, node, 1, 0);
}

/* The axes of a Reduce operator: an attribute, or from opset 18 a constant input. */
static bool
reduce_axes(const struct qdq_model *model, const struct qdqi_node *node, int64_t *axes,
            size_t max, size_t *ret_n)
{
    const Onnx__AttributeProto *a = qdqi_node_attribute(node->proto, "axes");
    if (a && a->n_ints <= max) {
        memcpy(axes, a->ints, a->n_ints * sizeof *axes);
        *ret_n = a->n_ints;
        return true;
    }
    return qdqi_input_is_constant(node, 1) &&
           qdqi_constant_ints(model, node->inputs[1]->constant, axes, max, ret_n);
}

/* Axes {2,3} or {2,3,4} of a batch of images or volumes, in any order or from the end.
 */
static bool
reduces_all_spatial_axes(const struct qdq_model *model, const struct qdqi_node *node)
{
    int64_t axes[3];
    size_t n;
    if (!reduce_axes(model, node, axes, 3, &n) || n < 2)
        return false;
    unsigned from_front = 0, from_end = 0;
    for (size_t i = 0; i < n; i++) {
        if (axes[i] >= 2 && axes[i] < 2 + (int64_t)n)
            from_front |= 1u << (axes[i] - 2);
        if (axes[i] < 0 && axes[i] >= -(int64_t)n)
            from_end |= 1u << -(axes[i] + 1);
    }
    unsigned all = (1u << n) - 1;
    return from_front == all || from_end == all;
}

/* --- where channels lie --------------------------------------------------- */

static int
axis_NONE(const struct qdqi_node *node, int weight_input, size_t rank)
{
    (void)node;
    (void)weight_input;
    (void)rank;
    return -1;
}

static int
axis_FIRST(const struct qdqi_node *node, int weight_input, size_t rank)
{
    (void)node;
    (void)weight_input;
    return rank >= 1 ? 0 : -1;
}

/* Gemm-13: B is [K, N], or [N, K] with transB. */
static int
axis_GEMM(const struct qdqi_node *node, int weight_input, size_t rank)
{
    if (rank != 2 || weight_input != 1)
        return -1;
    return qdqi_node_int(node->proto, "transB", 0) ? 0 : 1;
}

/* MatMul-13: outputs lie along the last axis of B, along the last but one of A. */
static int
axis_MATMUL(const struct qdqi_node *node, int weight_input, size_t rank)
{
    (void)node;
    if (rank < 2)
        return -1;
    return (int)rank - (weight_input == 1 ? 1 : 2);
}

/* --- the table ------------------------------------------------------------ */

enum { OFF, ON };

#define NAME_WEIGHTED "weighted"
#define NAME_NON_WEIGHTED "non_weighted"
#define NAME_MULTI_INPUT "multi_input"

static const struct qdqi_class classes[] = {
#define LAYER(cls, op, kind, weight, axis, input, is, note)                       \
    {{cls, op, NAME_##kind, weight, input, (input) && (weight) >= 0, false, note, \
      "library"},                                                                 \
     QDQ_##kind,                                                                  \
     axis_##axis,                                                                 \
     is},
#include "tbl/layers.h"
#undef LAYER
};

enum { N_CLASSES = sizeof classes / sizeof *classes };

enum qdq_code
qdqi_classes_new(const struct qdq_catalog *catalog, const struct qdq_spec *spec,
                 struct qdqi_arena *arena, struct qdqi_classes **ret,
                 struct qdq_error *err)
{
    (void)catalog;
    (void)spec;
    (void)arena;
    (void)err;
    *ret = NULL;
    return QDQ_OK;
}

const struct qdqi_class *
qdqi_class_of(const struct qdqi_classes *unused, const struct qdq_model *model,
              const struct qdqi_node *node)
{
    (void)unused;
    for (size_t i = 0; i < N_CLASSES; i++)
        if (qdqi_node_is(node->proto, classes[i].support.op) &&
            classes[i].is(model, node))
            return &classes[i];
    return NULL;
}

const struct qdq_layer_support *
qdqi_library_layer(size_t i)
{
    return i < N_CLASSES ? &classes[i].support : NULL;
}

int
qdqi_weight_input(const struct qdqi_class *cls, const struct qdqi_node *node)
{
    int i = cls->support.weight_input;
    bool other = cls->kind == QDQ_WEIGHTED && !qdqi_input_is_constant(node, i) &&
                 qdqi_node_is(node->proto, "MatMul");
    return other ? 0 : i;
}
