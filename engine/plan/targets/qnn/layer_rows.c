/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operators that the HTP computes in integers, and rows of layer support for those of them
 * that the library has no class of, or whose constants have pairs, too.
 * Source: what the provider of onnxruntime-qnn 2.7.0 took between pairs, and what it refused.
 */
#include "config.h"
#include "plan/targets/qnn/qnn.h"

#include "graph/layers/rows.h"

#include <string.h>

static const struct {
    const char *op;
    enum qdqi_htp_role role;
} roles[] = {
    {"Conv", QDQI_HTP_COMPUTES},
    {"ConvTranspose", QDQI_HTP_COMPUTES},
    {"Gemm", QDQI_HTP_COMPUTES},
    {"MatMul", QDQI_HTP_COMPUTES},
    {"Add", QDQI_HTP_COMPUTES},
    {"Sub", QDQI_HTP_COMPUTES},
    {"Mul", QDQI_HTP_COMPUTES},
    {"Div", QDQI_HTP_COMPUTES},
    {"Max", QDQI_HTP_COMPUTES},
    {"Min", QDQI_HTP_COMPUTES},
    {"Concat", QDQI_HTP_COMPUTES},
    {"Where", QDQI_HTP_COMPUTES},
    {"AveragePool", QDQI_HTP_COMPUTES},
    {"GlobalAveragePool", QDQI_HTP_COMPUTES},
    {"ReduceMean", QDQI_HTP_COMPUTES},
    {"ReduceSum", QDQI_HTP_COMPUTES},
    {"ReduceL2", QDQI_HTP_COMPUTES},
    {"LayerNormalization", QDQI_HTP_COMPUTES},
    {"InstanceNormalization", QDQI_HTP_COMPUTES},
    {"Pow", QDQI_HTP_COMPUTES},
    {"Softplus", QDQI_HTP_COMPUTES},
    {"LeakyRelu", QDQI_HTP_COMPUTES},
    {"PRelu", QDQI_HTP_COMPUTES},
    {"Elu", QDQI_HTP_COMPUTES},
    {"Gelu", QDQI_HTP_COMPUTES},
    {"HardSwish", QDQI_HTP_COMPUTES},
    {"Tanh", QDQI_HTP_COMPUTES},
    {"Exp", QDQI_HTP_COMPUTES},
    {"Log", QDQI_HTP_COMPUTES},
    {"Sqrt", QDQI_HTP_COMPUTES},
    {"Neg", QDQI_HTP_COMPUTES},
    {"Abs", QDQI_HTP_COMPUTES},
    {"Sin", QDQI_HTP_COMPUTES},
    {"Cos", QDQI_HTP_COMPUTES},
    {"LogSoftmax", QDQI_HTP_COMPUTES},
    {"Sigmoid", QDQI_HTP_UNIT},
    {"HardSigmoid", QDQI_HTP_UNIT},
    {"Softmax", QDQI_HTP_UNIT},
    {"Relu", QDQI_HTP_CLIPS},
    {"Clip", QDQI_HTP_CLIPS},
    {"MaxPool", QDQI_HTP_MOVES},
    {"GlobalMaxPool", QDQI_HTP_MOVES},
    {"ReduceMax", QDQI_HTP_MOVES},
    {"ReduceMin", QDQI_HTP_MOVES},
    {"Reshape", QDQI_HTP_MOVES},
    {"Transpose", QDQI_HTP_MOVES},
    {"Squeeze", QDQI_HTP_MOVES},
    {"Unsqueeze", QDQI_HTP_MOVES},
    {"Flatten", QDQI_HTP_MOVES},
    {"Gather", QDQI_HTP_MOVES},
    {"Slice", QDQI_HTP_MOVES},
    {"Split", QDQI_HTP_MOVES},
    {"Expand", QDQI_HTP_MOVES},
    {"Tile", QDQI_HTP_MOVES},
    {"Resize", QDQI_HTP_MOVES},
    {"Pad", QDQI_HTP_MOVES},
    {"DepthToSpace", QDQI_HTP_MOVES},
    {"SpaceToDepth", QDQI_HTP_MOVES},
    {"Identity", QDQI_HTP_MOVES},
    {"Dropout", QDQI_HTP_MOVES},
};

enum qdqi_htp_role
qdqi_htp_role(const char *op)
{
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (strcmp(roles[i].op, op) == 0)
            return roles[i].role;
    return QDQI_HTP_NONE;
}

/* --- layer support ------------------------------------------------------------------- */

/* Returns whether one of two operands is a constant, and the other one is not. */
static bool
qdqi_is_constant_operand(const struct qdq_model *model, const struct qdqi_node *node)
{
    return node->proto->n_input == 2 && qdqi_is_one_constant_operand(model, node);
}

static bool
qdqi_is_computed_operands(const struct qdq_model *model, const struct qdqi_node *node)
{
    (void)model;
    return node->proto->n_input == 2 && qdqi_input_is_computed(node, 0) &&
           qdqi_input_is_computed(node, 1);
}

/* Returns whether input 1, the factor or the slope, is a constant. */
static bool
qdqi_is_constant_factor(const struct qdq_model *model, const struct qdqi_node *node)
{
    (void)model;
    return qdqi_input_is_constant(node, 1);
}

/* Returns whether a Gather selects from a constant by what is none. */
static bool
qdqi_is_constant_table(const struct qdq_model *model, const struct qdqi_node *node)
{
    (void)model;
    return qdqi_input_is_constant(node, 0) && node->inputs[0]->dtype == QDQI_FLOAT32 &&
           qdqi_input_is_computed(node, 1);
}

/* Returns whether one of two operands is made of sizes and constants, and the other one is computed. */
static bool
qdqi_is_sized_operand(const struct qdq_model *model, const struct qdqi_node *node)
{
    (void)model;
    return node->proto->n_input == 2 && node->inputs[0] && node->inputs[1] &&
           !node->inputs[0]->is_fixed && !node->inputs[1]->is_fixed &&
           node->inputs[0]->is_shape != node->inputs[1]->is_shape;
}

/* Returns whether a Where selects from a computed tensor, by what is computed. */
static bool
qdqi_is_selection(const struct qdq_model *model, const struct qdqi_node *node)
{
    (void)model;
    return node->proto->n_input == 3 && qdqi_input_is_computed(node, 0) &&
           (qdqi_input_is_computed(node, 1) || qdqi_input_is_computed(node, 2));
}

/* Returns whether a Concat joins a computed tensor. */
static bool
qdqi_is_any_computed(const struct qdq_model *model, const struct qdqi_node *node)
{
    (void)model;
    bool any = false;
    for (size_t i = 0; i < node->proto->n_input; i++)
        any = any || qdqi_input_is_computed(node, (int)i);
    return any;
}

#define SIZED(cls, op) \
    LAYER(cls, op, MULTI_INPUT, -1, NONE, ON, sized_operand, "the same beside sizes")
#define CONSTANT(op, text) \
    LAYER(op "Constant", op, OPERAND, 1, NONE, ON, constant_operand, text)
#define COMPUTED(op, text) \
    LAYER(op, op, MULTI_INPUT, -1, NONE, ON, computed_operands, text)
#define FACTOR(op, text) LAYER(op, op, WEIGHTED, 1, NONE, ON, constant_factor, text)
#define FUNCTION(op) LAYER(op, op, NON_WEIGHTED, -1, NONE, ON, any_node, op)

/* clang-format off */
const struct qdqi_class qdqi_qnn_classes[QDQI_N_QNN_CLASSES] = {
    CONSTANT("Add", "Add of a computed tensor and a constant")
    LAYER("MultiplyConstant", "Mul", OPERAND, 1, NONE, ON, constant_operand,
          "Mul of a computed tensor and a constant")
    CONSTANT("Sub", "Sub of a computed tensor and a constant")
    CONSTANT("Div", "Div of a computed tensor and a constant")
    CONSTANT("Max", "Max of a computed tensor and a constant")
    CONSTANT("Min", "Min of a computed tensor and a constant")
    COMPUTED("Sub", "Sub of computed tensors")
    COMPUTED("Div", "Div of computed tensors")
    COMPUTED("Max", "Max of two computed tensors")
    COMPUTED("Min", "Min of two computed tensors")
    FACTOR("Pow", "Pow with a constant exponent")
    FACTOR("LayerNormalization", "LayerNormalization with a constant scale")
    FACTOR("InstanceNormalization", "InstanceNormalization with a constant scale")
    FACTOR("PRelu", "PRelu with a constant slope")
    SIZED("Add", "Add")
    SIZED("Multiply", "Mul")
    SIZED("Sub", "Sub")
    SIZED("Div", "Div")
    SIZED("Max", "Max")
    SIZED("Min", "Min")
    LAYER("Concatenate", "Concat", MULTI_INPUT, -1, NONE, ON, any_computed,
          "Concat of computed tensors, and constants")
    LAYER("Where", "Where", MULTI_INPUT, -1, NONE, ON, selection,
          "Where of a computed tensor and another, or a constant")
    FUNCTION("ReduceMean")
    FUNCTION("ReduceSum")
    FUNCTION("ReduceL2")
    FUNCTION("ReduceMax")
    FUNCTION("ReduceMin")
    FUNCTION("GlobalMaxPool")
    FUNCTION("Exp")
    FUNCTION("Log")
    FUNCTION("Sqrt")
    FUNCTION("Neg")
    FUNCTION("Abs")
    FUNCTION("Sin")
    FUNCTION("Cos")
    LAYER("Embedding", "Gather", TABLE, 0, NONE, ON, constant_table,
          "Gather of a constant table")
};
/* clang-format on */

bool
qdqi_qnn_is_operand(const struct planner *p, const struct qdq_layer *layer)
{
    static const char *const ops[] = {"LayerNormalization", "InstanceNormalization",
                                      "PRelu", "Pow", NULL};
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    return p->graph->classes[layer->node]->is_operand ||
           p->graph->classes[layer->node]->is_table ||
           qdqi_node_is_one_of(node->proto, ops) ||
           (!p->spec->weight_only && layer->weight_input == 0 &&
            qdqi_node_is(node->proto, "MatMul"));
}
