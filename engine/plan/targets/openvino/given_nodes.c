/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of the model that was given, of which OpenVINO computes wrong numbers whether the plan
   quantizes them or not (faults.h). */
#include "config.h"
#include "plan/targets/openvino/openvino.h"

#include "files/model/constant.h"
#include "graph/layers/operators.h"
#include "plan/placement/lint.h"

#include <string.h>

enum {
    SOFTMAX_WRONG_FROM = 11, /* opset */
    SOFTMAX_RIGHT_FROM = 13,
    WEIGHT_SCALE = 4, /* input of QLinearConv and QLinearMatMul */
};

/* --- Softmax ------------------------------------------------------------------ */

/* Returns the number of axes that a graph's values state of the tensor; -1: none does. */
static int64_t
stated_rank(Onnx__ValueInfoProto *const *values, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        const Onnx__TypeProto *type = values[i]->type;
        if (values[i]->name && strcmp(values[i]->name, name) == 0 && type &&
            type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE &&
            type->tensor_type->shape)
            return (int64_t)type->tensor_type->shape->n_dim;
    }
    return -1;
}

static int64_t
told_rank(const struct qdq_model *model, const struct qdqi_tensor *t)
{
    const Onnx__GraphProto *g = model->proto->graph;
    int64_t rank = stated_rank(g->value_info, g->n_value_info, t->name);
    if (rank < 0)
        rank = stated_rank(g->input, g->n_input, t->name);
    if (rank < 0)
        rank = stated_rank(g->output, g->n_output, t->name);
    return rank < 0 && t->is_fixed && t->view.stored ? (int64_t)t->view.rank : rank;
}

/* Operators whose output has the axes of their first input. */
static const char *const keep_axes[] = {"Abs",
                                        "AveragePool",
                                        "BatchNormalization",
                                        "Cast",
                                        "Clip",
                                        "Concat",
                                        "Conv",
                                        "ConvTranspose",
                                        "Dropout",
                                        "Elu",
                                        "Erf",
                                        "Exp",
                                        "GlobalAveragePool",
                                        "HardSigmoid",
                                        "Identity",
                                        "LeakyRelu",
                                        "Log",
                                        "LogSoftmax",
                                        "LRN",
                                        "MaxPool",
                                        "Neg",
                                        "Pad",
                                        "Reciprocal",
                                        "Relu",
                                        "Resize",
                                        "Sigmoid",
                                        "Slice",
                                        "Softmax",
                                        "Softplus",
                                        "Split",
                                        "Sqrt",
                                        "Tanh",
                                        "Transpose",
                                        "InstanceNormalization",
                                        NULL};

/* Operators whose output has as many axes as the input with most. */
static const char *const join_axes[] = {"Add", "Sub",   "Mul",    "Div",
                                        "Pow", "Where", "MatMul", NULL};

/* Returns the rank of a tensor as the file states it, or as it follows from what stands in front. -1: it
   is not known, or not within so many steps. */
static int64_t
rank_of(const struct qdq_model *model, const struct qdqi_tensor *t, int *steps)
{
    const int64_t told = t ? told_rank(model, t) : -1;
    const struct qdqi_node *node = qdqi_maker_of(&model->graph, t);
    if (told >= 0 || !node || (*steps)-- <= 0)
        return told;
    if (qdqi_node_is(node->proto, "Gemm") || qdqi_node_is(node->proto, "Flatten"))
        return 2;
    if (qdqi_node_is_one_of(node->proto, keep_axes) && node->proto->n_input > 0)
        return rank_of(model, node->inputs[0], steps);
    int64_t shape[16];
    size_t n;
    if (qdqi_node_is(node->proto, "Reshape") && node->proto->n_input > 1 &&
        node->inputs[1] && qdqi_constant_ints(model, node->inputs[1], shape, 16, &n))
        return (int64_t)n;
    int64_t most = -1;
    for (size_t i = 0;
         qdqi_node_is_one_of(node->proto, join_axes) && i < node->proto->n_input; i++) {
        const int64_t rank = rank_of(model, node->inputs[i], steps);
        if (rank < 0)
            return -1;
        most = rank > most ? rank : most;
    }
    return most;
}

/* Returns whether the node is a Softmax that may join several axes, by the meaning that it has
   below opset 13. One whose rank is not known may. */
static bool
joins_axes(const struct qdq_model *model, const struct qdqi_node *node)
{
    const int64_t axis = qdqi_node_int(node->proto, "axis", 1);
    if (!qdqi_node_is(node->proto, "Softmax") || node->proto->n_input < 1 ||
        node->proto->n_output < 1 || !node->inputs[0] || !node->outputs[0])
        return false;
    int steps = 256;
    const int64_t in = rank_of(model, node->inputs[0], &steps);
    const int64_t rank = in < 0 ? told_rank(model, node->outputs[0]) : in;
    return rank < 0 ? axis != -1 : axis != -1 && axis != rank - 1;
}

static bool
is_softmax_misread(const struct qdq_model *model)
{
    const int64_t opset = qdqi_model_opset(model->proto);
    return opset >= SOFTMAX_WRONG_FROM && opset < SOFTMAX_RIGHT_FROM;
}

int64_t
qdqi_openvino_least_opset(const struct qdq_spec *spec, const struct qdq_model *model)
{
    if (!qdq_spec_has_rule(spec, V20) || !is_softmax_misread(model))
        return 0;
    for (size_t i = 0; i < model->graph.n_nodes; i++)
        if (joins_axes(model, &model->graph.nodes[i]))
            return SOFTMAX_RIGHT_FROM;
    return 0;
}

static bool
is_wrong_softmax(const struct qdq_model *model, const struct qdqi_node *node)
{
    return is_softmax_misread(model) && joins_axes(model, node);
}

/* --- integer operators ---------------------------------------------------------- */

/* Returns whether the node is an integer operator whose weight has more than one scale. */
static bool
has_several_scales(const struct qdq_model *model, const struct qdqi_node *node)
{
    static const char *const ops[] = {"QLinearConv", "QLinearMatMul", NULL};
    const int64_t *dims;
    size_t rank, n = 0;
    (void)model;
    return qdqi_node_is_one_of(node->proto, ops) &&
           node->proto->n_input > WEIGHT_SCALE &&
           qdqi_tensor_dims(node->inputs[WEIGHT_SCALE], &dims, &rank) &&
           qdqi_count_elements(dims, rank, &n) && n > 1;
}

/* --- DequantizeLinear ----------------------------------------------------------- */

static bool
has_scales_of_inputs(const struct qdq_model *model, const struct qdqi_node *node)
{
    bool square;
    return qdqi_has_scales_along_sum(&model->graph, node, &square);
}

/* Returns whether the node is a Gather that selects rows of a table with a scale for each column. */
static bool
has_scales_of_columns(const struct qdq_model *model, const struct qdqi_node *node)
{
    enum { TABLE, SCALE };
    const int64_t *dims;
    size_t rank;
    const struct qdqi_node *maker =
        qdqi_node_is(node->proto, "Gather") && node->proto->n_input > 0
            ? qdqi_maker_before_copies(&model->graph, node->inputs[TABLE])
            : NULL;
    if (!maker || !qdqi_node_is(maker->proto, "DequantizeLinear") ||
        maker->proto->n_input <= SCALE || !maker->inputs[SCALE] ||
        !qdqi_tensor_dims(maker->inputs[SCALE], &dims, &rank) || rank != 1 ||
        dims[0] < 2)
        return false;
    const int64_t axis = qdqi_node_int(maker->proto, "axis", 1);
    const int64_t rows = qdqi_node_int(node->proto, "axis", 0);
    return (axis == 1 || axis == -1) && (rows == 0 || rows == -2);
}

/* --- Loop and Scan --------------------------------------------------------------- */

/* Returns whether an output of the node's body is an input of it, with nothing between. */
static bool
hands_input_out(const struct qdq_model *model, const struct qdqi_node *node)
{
    static const char *const ops[] = {"Loop", "Scan", NULL};
    if (node->body == 0 || !qdqi_node_is_one_of(node->proto, ops))
        return false;
    const Onnx__GraphProto *body = model->graph.scopes[node->body].proto;
    for (size_t i = 0; i < body->n_output; i++)
        for (size_t k = 0; k < body->n_input; k++)
            if (strcmp(body->output[i]->name, body->input[k]->name) == 0)
                return true;
    return false;
}

/* --- the warnings --------------------------------------------------------------- */

static const struct {
    bool (*means)(const struct qdq_model *model, const struct qdqi_node *node);
    const char *text;
} wrong[] = {
    {has_several_scales,
     "OpenVINO 2026.4 takes the scales of the weight's output channels for those of "
     "its "
     "input channels, or does not load the model: make the result of the float model, "
     "or write the layer with DequantizeLinear and QuantizeLinear"},
    {is_wrong_softmax,
     "OpenVINO 2026.4 normalizes a Softmax of opset 11 or 12 along its axis alone, and "
     "not over the axes behind, too: \"opset\": 13, or \"auto\", writes it in a form "
     "that OpenVINO computes right"},
    {has_scales_of_inputs,
     "OpenVINO 2026.4 multiplies by other scales than those of the weight's inputs, "
     "which are summed over: \"existing_qdq\": \"strip\" makes pairs anew"},
    {hands_input_out,
     "OpenVINO 2026.4 reads such a model from memory, as it was tried here, and "
     "refuses "
     "its file, because the body hands out what it was given: an Identity between the "
     "two makes both load"},
    {has_scales_of_columns,
     "OpenVINO 2026.4 takes the scales of the table's columns for those of its rows: "
     "\"existing_qdq\": \"strip\" makes pairs anew"},
};

enum qdq_code
qdqi_openvino_warn_given(struct planner *p, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t k = 0; !code && k < sizeof wrong / sizeof *wrong; k++) {
        struct qdqi_names nodes = {0};
        for (size_t i = 0; i < p->model->graph.n_nodes; i++)
            if (wrong[k].means(p->model, &p->model->graph.nodes[i]))
                qdqi_names_add(&nodes, p->model->graph.nodes[i].name);
        code = qdqi_warn_misread(p, &nodes, wrong[k].text, err);
    }
    return code;
}
