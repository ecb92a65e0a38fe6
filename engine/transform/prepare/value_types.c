/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/prepare/value_types.h"

#include "files/model/constant.h"

#include <string.h>

enum { MAX_INPUTS = 16 }; /* inputs that a type rule can refer to */

static struct qdqi_value_type *
known_of(struct qdqi_map *known, struct qdqi_arena *arena, const char *name)
{
    struct qdqi_value_type *k = qdqi_map_get(known, name);
    if (k)
        return k;
    if (!(k = qdqi_arena_alloc(arena, sizeof *k)) || !qdqi_map_put(known, name, k))
        return NULL;
    k->rank = -1;
    return k;
}

/* --- declared values ----------------------------------------------------- */

static bool
declare_values(struct qdqi_map *known, struct qdqi_arena *arena,
               Onnx__ValueInfoProto *const *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const Onnx__TypeProto *type = values[i]->type;
        if (!values[i]->name || !type ||
            type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
            continue;
        struct qdqi_value_type *k = known_of(known, arena, values[i]->name);
        if (!k)
            return false;
        k->tensor.dtype = (enum qdqi_dtype)type->tensor_type->elem_type;
        if (type->tensor_type->shape)
            k->rank = (int64_t)type->tensor_type->shape->n_dim;
    }
    return true;
}

bool
qdqi_value_types_declare(struct qdqi_map *known, struct qdqi_arena *arena,
                         const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const Onnx__TensorProto *t = graph->initializer[i];
        struct qdqi_value_type *k = t->name ? known_of(known, arena, t->name) : NULL;
        if (t->name && !k)
            return false;
        if (k) {
            k->tensor.dtype = (enum qdqi_dtype)t->data_type;
            k->rank = (int64_t)t->n_dims;
        }
    }
    return declare_values(known, arena, graph->input, graph->n_input) &&
           declare_values(known, arena, graph->output, graph->n_output) &&
           declare_values(known, arena, graph->value_info, graph->n_value_info);
}

/* --- inferred values ----------------------------------------------------- */

/* Operators whose first output has the rank of their first input. */
static const char *const same_rank[] = {"Abs",
                                        "AveragePool",
                                        "BatchNormalization",
                                        "Cast",
                                        "Ceil",
                                        "Clip",
                                        "Concat",
                                        "Conv",
                                        "ConvTranspose",
                                        "DepthToSpace",
                                        "Dropout",
                                        "Elu",
                                        "Erf",
                                        "Exp",
                                        "Floor",
                                        "GlobalAveragePool",
                                        "GlobalLpPool",
                                        "GlobalMaxPool",
                                        "HardSigmoid",
                                        "Hardmax",
                                        "Identity",
                                        "InstanceNormalization",
                                        "LRN",
                                        "LeakyRelu",
                                        "Log",
                                        "LogSoftmax",
                                        "LpNormalization",
                                        "LpPool",
                                        "MaxPool",
                                        "MeanVarianceNormalization",
                                        "Neg",
                                        "Pad",
                                        "PRelu",
                                        "Reciprocal",
                                        "Relu",
                                        "Resize",
                                        "Selu",
                                        "Sigmoid",
                                        "Slice",
                                        "Softmax",
                                        "Softplus",
                                        "Softsign",
                                        "SpaceToDepth",
                                        "Split",
                                        "Sqrt",
                                        "Tanh",
                                        "ThresholdedRelu",
                                        "Tile",
                                        "TopK",
                                        "Transpose",
                                        "Upsample",
                                        NULL};

/* Operators that broadcast: the result has the larger rank of the first two inputs. */
static const char *const larger_rank[] = {"Add", "Div", "Mul", "Pow", "Sub", NULL};

/* Operators whose result is always a matrix. */
static const char *const matrix[] = {"Flatten", "Gemm", NULL};

static int64_t
rank_of(const struct qdqi_map *known, const Onnx__NodeProto *node, size_t i)
{
    const struct qdqi_value_type *k =
        i < node->n_input ? qdqi_map_get(known, node->input[i]) : NULL;
    return k ? k->rank : -1;
}

static bool
keeps_dims(const Onnx__NodeProto *node)
{
    return strncmp(node->op_type, "Reduce", 6) == 0 &&
           qdqi_node_int(node, "keepdims", 1) != 0;
}

/* Returns the rank of a node's first output, or -1. */
static int64_t
output_rank(const struct qdqi_map *known, const Onnx__NodeProto *node)
{
    int64_t a = rank_of(known, node, 0), b = rank_of(known, node, 1);
    if (qdqi_node_is_one_of(node, matrix))
        return 2;
    if (qdqi_node_is_one_of(node, same_rank) || keeps_dims(node))
        return a;
    if (qdqi_node_is_one_of(node, larger_rank) ||
        (strcmp(node->op_type, "MatMul") == 0 && a > 1 && b > 1))
        return a < 0 || b < 0 ? -1 : a > b ? a : b;
    return -1;
}

/* Infers the type by the same rules as for the tensors of a model, from the known
   inputs. */
static enum qdqi_dtype
output_dtype(const struct qdqi_map *known, const Onnx__NodeProto *node, size_t output)
{
    struct qdqi_tensor *inputs[MAX_INPUTS] = {NULL};
    const struct qdqi_node stand_in = {.proto = node, .inputs = inputs};
    if (node->n_input > MAX_INPUTS)
        return QDQI_UNKNOWN;
    for (size_t i = 0; i < node->n_input; i++) {
        struct qdqi_value_type *k = qdqi_map_get(known, node->input[i]);
        inputs[i] = k ? &k->tensor : NULL;
    }
    return qdqi_output_dtype(&stand_in, output);
}

bool
qdqi_value_types_infer(struct qdqi_map *known, struct qdqi_arena *arena,
                       const Onnx__NodeProto *node)
{
    const Onnx__TensorProto *value =
        qdqi_node_is(node, "Constant") ? qdqi_constant_value(arena, node) : NULL;
    for (size_t i = 0; i < node->n_output; i++) {
        if (!*node->output[i])
            continue;
        struct qdqi_value_type *k = known_of(known, arena, node->output[i]);
        if (!k)
            return false;
        if (k->tensor.dtype == QDQI_UNKNOWN)
            k->tensor.dtype = value ? (enum qdqi_dtype)value->data_type
                                    : output_dtype(known, node, i);
        if (k->rank < 0)
            k->rank = value    ? (int64_t)value->n_dims
                      : i == 0 ? output_rank(known, node)
                               : -1;
    }
    return true;
}
