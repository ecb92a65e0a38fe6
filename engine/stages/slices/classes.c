/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/slices/classes.h"

#include "files/model/constant.h"
#include "stages/slices/joined_parts.h"

#include <string.h>

enum {
    MOST_NODES = 16,   /* that move data behind the node that makes the numbers */
    MOST_POOLS = 6,    /* that pool, mask and join features, in a row */
    MOST_LOOKED = 1024 /* of these all together: each may join what others join */
};

/* --- the node that makes the numbers of an output ------------------------------ */

static const struct qdqi_node *
maker_of(const struct qdq_model *model, const struct qdqi_tensor *t)
{
    return t && t->producer >= 0 ? &model->graph.nodes[t->producer] : NULL;
}

/* Returns the node that makes the tensor; nodes that only move data are skipped. NULL if
   there is none. */
static const struct qdqi_node *
find_maker(const struct qdq_model *model, const struct qdqi_tensor *t)
{
    static const char *const moving[] = {"Reshape",   "Squeeze", "Unsqueeze",
                                         "Transpose", "Flatten", "Identity",
                                         "Cast",      "Slice",   NULL};
    const struct qdqi_node *node = maker_of(model, t);
    for (int i = 0; node && i < MOST_NODES; i++) {
        if (!qdqi_node_is_one_of(node->proto, moving) || node->proto->n_input == 0)
            return node;
        node = maker_of(model, node->inputs[0]);
    }
    return NULL;
}

static bool
is_sigmoid(const struct qdqi_node *node)
{
    static const char *const sigmoids[] = {"Sigmoid", "HardSigmoid", NULL};
    return node && qdqi_node_is_one_of(node->proto, sigmoids);
}

/* Returns whether a Sigmoid makes the numbers or, as in a detector's list of boxes and
   scores, a part of them. */
static bool
comes_from_sigmoid(const struct qdq_model *model, const struct qdqi_node *node)
{
    struct qdqi_joined parts;
    if (!node || !qdqi_joined_parts(model, node, &parts))
        return is_sigmoid(node);
    for (size_t i = 0; i < parts.n; i++)
        if (is_sigmoid(find_maker(model, parts.tensors[i])))
            return true;
    return false;
}

/* Returns the other input of an Add or Mul one of whose inputs is a constant with more
   than one element; else NULL. */
static const struct qdqi_tensor *
behind_vector(const struct qdqi_node *node, const char *op)
{
    if (!node || !qdqi_node_is(node->proto, op) || node->proto->n_input != 2)
        return NULL;
    for (int i = 0; i < 2; i++) {
        const int64_t *dims;
        size_t rank, n;
        if (node->inputs[i] && node->inputs[i]->is_fixed &&
            qdqi_tensor_dims(node->inputs[i], &dims, &rank) &&
            qdqi_count_elements(dims, rank, &n) && n > 1)
            return node->inputs[1 - i];
    }
    return NULL;
}

/* Returns whether the tensor is the length of a vector, or its reciprocal: a root of a sum of
   squares, in one operator or in several. Small numbers may be kept away from 0. */
static bool
is_length(const struct qdq_model *model, const struct qdqi_tensor *t)
{
    static const char *const between[] = {"Reciprocal", "Sqrt",    "Pow",    "Clip",
                                          "Max",        "Add",     "Expand", "Identity",
                                          "Unsqueeze",  "Reshape", "Cast",   NULL};
    static const char *const roots[] = {"Sqrt", "Pow", NULL};
    static const char *const squares[] = {"ReduceL2", "ReduceSumSquare", NULL};
    const struct qdqi_node *node = maker_of(model, t);
    bool has_root = false;
    for (int i = 0; node && i < MOST_NODES && node->proto->n_input > 0; i++) {
        if (qdqi_node_is_one_of(node->proto, squares))
            return true;
        if (!qdqi_node_is_one_of(node->proto, between))
            return has_root && qdqi_node_is(node->proto, "ReduceSum");
        has_root = has_root || qdqi_node_is_one_of(node->proto, roots);
        const bool second =
            node->inputs[0] && node->inputs[0]->is_fixed && node->proto->n_input > 1;
        node = maker_of(model, node->inputs[second ? 1 : 0]);
    }
    return false;
}

/* Returns whether the node makes vectors of length 1, as embeddings are. */
static bool
makes_unit_vectors(const struct qdq_model *model, const struct qdqi_node *node)
{
    if (node->proto->n_input != 2)
        return false;
    if (qdqi_node_is(node->proto, "Div"))
        return is_length(model, node->inputs[1]);
    return qdqi_node_is(node->proto, "Mul") &&
           (is_length(model, node->inputs[0]) || is_length(model, node->inputs[1]));
}

/* Returns whether a normalization makes the numbers: features, of which none is the
   answer. It is one operator, a division that is scaled and shifted by vectors, or a division
   by the length of the vector. */
static bool
comes_from_normalization(const struct qdq_model *model, const struct qdqi_node *node)
{
    static const char *const whole[] = {"LayerNormalization",    "LpNormalization",
                                        "GroupNormalization",    "RMSNormalization",
                                        "InstanceNormalization", NULL};
    if (node &&
        (qdqi_node_is_one_of(node->proto, whole) || makes_unit_vectors(model, node)))
        return true;
    const struct qdqi_node *scaled = maker_of(model, behind_vector(node, "Add"));
    const struct qdqi_node *divided = maker_of(model, behind_vector(scaled, "Mul"));
    return divided && qdqi_node_is(divided->proto, "Div");
}

static bool comes_from_features(const struct qdq_model *model,
                                const struct qdqi_node *node, int nodes, int *left);

static bool
holds_features(const struct qdq_model *model, const struct qdqi_tensor *t, int nodes,
               int *left)
{
    return comes_from_features(model, find_maker(model, t), nodes, left);
}

/* Returns whether features are pooled, masked, joined or selected there, as those of a sentence are:
   they remain features. At most so many nodes in a row are looked at, and *left all together. */
static bool
comes_from_features(const struct qdq_model *model, const struct qdqi_node *node,
                    int nodes, int *left)
{
    static const char *const first[] = {
        "ReduceMean",    "ReduceSum", "ReduceMax", "GlobalAveragePool",
        "GlobalMaxPool", "Gather",    "Div",       NULL};
    static const char *const any[] = {"Mul", "Where", NULL};
    if (!node || nodes == 0 || node->proto->n_input == 0 || (*left)-- <= 0)
        return false;
    if (comes_from_normalization(model, node))
        return true;
    if (qdqi_node_is_one_of(node->proto, first))
        return holds_features(model, node->inputs[0], nodes - 1, left);
    for (size_t i = 0;
         qdqi_node_is_one_of(node->proto, any) && i < node->proto->n_input; i++)
        if (holds_features(model, node->inputs[i], nodes - 1, left))
            return true;
    struct qdqi_joined parts;
    const bool is_all = qdqi_joined_parts(model, node, &parts);
    for (size_t i = 0; is_all && i < parts.n; i++)
        if (!holds_features(model, parts.tensors[i], nodes - 1, left))
            return false;
    return is_all;
}

/* Returns whether a layer and a Tanh make the numbers, as the pooler of BERT does. */
static bool
comes_from_pooler(const struct qdq_model *model, const struct qdqi_node *node)
{
    static const char *const layers[] = {"Gemm", "MatMul", NULL};
    if (!node || !qdqi_node_is(node->proto, "Tanh") || node->proto->n_input != 1)
        return false;
    const struct qdqi_node *maker = maker_of(model, node->inputs[0]);
    if (maker && qdqi_node_is(maker->proto, "Add"))
        maker = maker_of(model, behind_vector(maker, "Add"));
    return maker && qdqi_node_is_one_of(maker->proto, layers);
}

/* Returns the input of a node whose axes are those of its output; NULL if there is none. */
static const struct qdqi_tensor *
with_same_axes(const struct qdqi_node *node)
{
    static const char *const keeping[] = {
        "Identity", "Cast", "Slice", "BatchNormalization", "Relu", "LeakyRelu", "PRelu",
        "Clip",     "Tanh", "Exp",   "Softplus",           "Add",  "Mul",       NULL};
    if (!node || !qdqi_node_is_one_of(node->proto, keeping) ||
        node->proto->n_input == 0)
        return NULL;
    const struct qdqi_tensor *first = node->inputs[0];
    return first && first->is_fixed && node->proto->n_input > 1 ? node->inputs[1]
                                                                : first;
}

/* Returns whether the last axis of a tensor is one of places, as the width of an image is: a
   layer with channels along the second axis makes it. */
static bool
is_of_places(const struct qdq_model *model, const struct qdqi_tensor *t)
{
    static const char *const places[] = {
        "Conv",   "ConvTranspose", "MaxPool",      "AveragePool",
        "Resize", "Upsample",      "DepthToSpace", NULL};
    const struct qdqi_node *node = maker_of(model, t);
    for (int i = 0; node && i < MOST_NODES; i++) {
        if (qdqi_node_is_one_of(node->proto, places))
            return true;
        node = maker_of(model, with_same_axes(node));
    }
    return false;
}

bool
qdqi_output_is_of_places(const struct qdq_model *model, size_t i)
{
    return is_of_places(
        model, qdqi_map_get(model->graph.tensors, model->info.outputs[i].name));
}

bool
qdqi_output_compares_its_elements(const struct qdq_model *model, size_t i)
{
    static const char *const comparing[] = {"Softmax", "LogSoftmax", "Hardmax", NULL};
    const struct qdqi_node *node = find_maker(
        model, qdqi_map_get(model->graph.tensors, model->info.outputs[i].name));
    return node && qdqi_node_is_one_of(node->proto, comparing);
}

/* --- shapes ------------------------------------------------------------------- */

static bool
may_have_shape(const struct qdq_value *a, const struct qdq_value *b)
{
    if (strcmp(a->dtype, b->dtype) != 0 || a->rank != b->rank)
        return false;
    for (size_t i = 0; i < a->rank; i++)
        if (a->dims[i].value >= 0 && b->dims[i].value >= 0 &&
            a->dims[i].value != b->dims[i].value)
            return false;
    return true;
}

bool
qdqi_output_may_list_classes(const struct qdq_model *model, size_t i)
{
    const struct qdq_value *output = &model->info.outputs[i];
    for (size_t k = 0; output->rank >= 3 && k < model->info.n_inputs; k++)
        if (may_have_shape(&model->info.inputs[k], output))
            return false;
    const struct qdqi_tensor *tensor = qdqi_map_get(model->graph.tensors, output->name);
    const struct qdqi_node *node = find_maker(model, tensor);
    int left = MOST_LOOKED;
    return !comes_from_sigmoid(model, node) &&
           !comes_from_features(model, node, MOST_POOLS, &left) &&
           !comes_from_pooler(model, node) && !is_of_places(model, tensor);
}
