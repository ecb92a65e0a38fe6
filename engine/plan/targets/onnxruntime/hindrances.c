/* SPDX-License-Identifier: Apache-2.0 */
/* Why a layer stays in floating point: onnxruntime has no integer kernel for it as it is. */
#include "config.h"
#include "plan/targets/onnxruntime/onnxruntime.h"

#include "files/model/constant.h"
#include "graph/layers/operators.h"
#include "plan/placement/formats.h"
#include "plan/targets/onnxruntime/kernels.h"

#include <string.h>

/* Returns whether the layer is a Concat whose pairs would have 16-bit scales (faults.h). */
static bool
is_half_concat(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    return qdqi_node_is(node->proto, "Concat") &&
           (p->spec->float_type != QDQ_FLOAT_KEEP ||
            (node->inputs[0] && node->inputs[0]->dtype == QDQI_FLOAT16));
}

bool
qdqi_onnxruntime_has_blocks(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    return !p->spec->weight_only && layer->weight_input >= 0 &&
           qdqi_is_8_bit_integer(layer->format->weights.format) &&
           (qdqi_node_is(node->proto, "Conv") || qdqi_node_is(node->proto, "MatMul")) &&
           qdqi_block_of(p, layer, node->inputs[layer->weight_input]) > 0;
}

bool
qdqi_onnxruntime_keeps_weight(const struct planner *p, const struct qdq_layer *layer)
{
    static const char *const ops[] = {"Conv", "ConvTranspose", "Gemm", NULL};
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    const struct qdq_layer_entry *entry = p->selection.choices[layer->node].entry;
    return qdqi_rule_is_on(p, C19) && entry && entry->quantize_input &&
           !entry->quantize_weight && layer->weight_input < 0 &&
           !p->spec->weight_only && qdqi_node_is_one_of(node->proto, ops) &&
           qdqi_input_is_constant(node, 1);
}

/* Returns whether an input of the model has sizes that are not known, but for its first one, which
   is mostly that of a batch. */
static bool
has_open_sizes(const struct planner *p)
{
    const struct qdq_model_info *info = &p->model->info;
    for (size_t i = 0; i < info->n_inputs; i++) {
        const struct qdq_value *input = &info->inputs[i];
        if (!input->has_shape)
            return true;
        for (size_t k = 1; k < input->rank; k++)
            if (input->dims[k].value < 0)
                return true;
    }
    return false;
}

/* Returns the node that makes the tensor, or what stands in front of nodes that compute element by element, if
   it does not do that itself; NULL: there is none near. */
static const struct qdqi_node *
find_shaping(const struct planner *p, const struct qdqi_tensor *t)
{
    enum { MOST_STEPS = 16 };
    const struct qdqi_node *node = qdqi_maker_of(&p->model->graph, t);
    for (int step = 0; node && node->proto->n_input > 0 && step < MOST_STEPS; step++) {
        static const char *const by_element[] = {"Add", "Div", "Dropout", "Identity",
                                                 "Mul", "Sub", NULL};
        if (!qdqi_is_pointwise(node) && !qdqi_node_is_one_of(node->proto, by_element))
            return node;
        const bool second = node->inputs[0] && node->inputs[0]->is_fixed;
        node = second && node->proto->n_input < 2
                   ? NULL
                   : qdqi_maker_of(&p->model->graph, node->inputs[second]);
    }
    return NULL;
}

/* Returns whether a reduction that keeps its axes stands in front of the tensor. */
static bool
is_reduced(const struct planner *p, const struct qdqi_tensor *t)
{
    const struct qdqi_node *node = find_shaping(p, t);
    return node && strncmp(node->proto->op_type, "Reduce", strlen("Reduce")) == 0 &&
           qdqi_node_int(node->proto, "keepdims", 1) != 0;
}

/* Returns whether a pool may have left one place along the axis of a Softmax behind it, or a part was taken that may be
   one element. */
static bool
is_narrowed(const struct planner *p, const struct qdqi_node *softmax)
{
    static const char *const pools[] = {"GlobalAveragePool", "GlobalMaxPool",
                                        "GlobalLpPool",      "AveragePool",
                                        "MaxPool",           NULL};
    static const char *const parts[] = {"Slice", "Split", "Gather", "Unsqueeze", NULL};
    const struct qdqi_node *node = find_shaping(p, softmax->inputs[0]);
    const int64_t axis = qdqi_node_int(softmax->proto, "axis", -1);
    return node &&
           (qdqi_node_is_one_of(node->proto, parts) ||
            (axis != 0 && axis != 1 && qdqi_node_is_one_of(node->proto, pools)));
}

/* Returns whether the node is a Softmax whose axis may have one element. Where no shape is known
   of its input, it may if that of an input of the model is open. */
static bool
may_have_one(const struct planner *p, const struct qdqi_node *node)
{
    const int64_t *dims;
    size_t rank;
    if (!qdqi_node_is(node->proto, "Softmax"))
        return false;
    if (!qdqi_tensor_dims(node->inputs[0], &dims, &rank) || rank == 0)
        return has_open_sizes(p) ||
               (qdqi_rule_is_on(p, C27) && is_reduced(p, node->inputs[0])) ||
               (qdqi_rule_is_on(p, C33) && is_narrowed(p, node));
    int64_t axis = qdqi_node_int(node->proto, "axis", -1);
    axis += axis < 0 ? (int64_t)rank : 0;
    return axis < 0 || axis >= (int64_t)rank || dims[axis] < 2;
}

/* A Pad-18 has axes on input 3, a Resize-18 as an attribute. */
bool
qdqi_onnxruntime_has_axes(const struct planner *p, const struct qdqi_node *node)
{
    enum { AXES = 3 };
    const Onnx__NodeProto *proto = node->proto;
    return qdqi_rule_is_on(p, C23) &&
           ((qdqi_node_is(proto, "Pad") && proto->n_input > AXES &&
             node->inputs[AXES]) ||
            (qdqi_node_is(proto, "Resize") && qdqi_node_attribute(proto, "axes")) ||
            qdqi_node_is(proto, "CenterCropPad"));
}

/* Returns whether rule C22 leaves the layer in float. */
static bool
is_half(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    return qdqi_rule_is_on(p, C22) && !p->selection.choices[layer->node].entry &&
           node->proto->n_output > 0 && node->outputs[0] &&
           node->outputs[0]->dtype == QDQI_FLOAT16;
}

bool
qdqi_onnxruntime_has_open_bytes(const struct planner *p, const struct qdq_layer *layer)
{
    static const char *const ops[] = {"Gemm", "MatMul", NULL};
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    const int64_t *dims;
    size_t rank;
    return layer->weight_input >= 0 &&
           qdqi_format_row((int)layer->format->weights.format)->bits == 2 &&
           qdqi_node_is_one_of(node->proto, ops) &&
           qdqi_tensor_dims(node->inputs[layer->weight_input], &dims, &rank) &&
           rank > 0 && dims[rank - 1] % 4 != 0;
}

/* Returns whether rule C28 leaves the layer in float. */
static bool
has_given_scales(const struct planner *p, const struct qdq_layer *layer)
{
    return qdqi_rule_is_on(p, C28) &&
           qdqi_onnxruntime_misreads_given(p, qdqi_node_of(p, layer));
}

bool
qdqi_onnxruntime_must_read_raw(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    return is_half_concat(p, layer) || qdqi_onnxruntime_has_blocks(p, layer) ||
           qdqi_onnxruntime_keeps_weight(p, layer) || qdqi_kernel_hindrance(node) ||
           is_half(p, layer) || qdqi_onnxruntime_has_axes(p, node) ||
           has_given_scales(p, layer) ||
           (qdqi_rule_is_on(p, C20) && may_have_one(p, node));
}

bool
qdqi_onnxruntime_stores_tables(const struct qdq_layer_format *format)
{
    return format->weights.storage == QDQ_STORE_DQ &&
           format->weights.granularity != QDQ_PER_BLOCK &&
           qdqi_is_8_bit_integer(format->weights.format);
}

/* elements of the smallest table that is worth a node more */
enum { LEAST_TABLE_ELEMENTS = 1 << 14 };

/* Returns the reason why a table stays floating point, or NULL. */
static const char *
table_hindrance(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    const int64_t *dims;
    size_t rank, n = 0;
    if (!qdqi_rule_is_on(p, C18))
        return qdqi_input_reason(QDQI_INPUT_CONSTANT);
    if (!qdqi_onnxruntime_stores_tables(layer->format))
        return "a table is stored as integers of 8 bits, without blocks, or not at all";
    if (!p->selection.choices[layer->node].entry &&
        (!qdqi_tensor_dims(node->inputs[0], &dims, &rank) ||
         !qdqi_count_elements(dims, rank, &n) || n < LEAST_TABLE_ELEMENTS))
        return "rule:C18, the table is small";
    return NULL;
}

/* Returns the reason why the runtime cannot quantize what the layer reads, or NULL. Its
   kernels multiply a float32 tensor by a matrix on the right. */
static const char *
dynamic_hindrance(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    const int64_t *dims;
    size_t rank;
    bool gemm = qdqi_node_is(node->proto, "Gemm");
    if (layer->weight_input != 1 || (!gemm && !qdqi_node_is(node->proto, "MatMul")) ||
        !qdqi_tensor_dims(node->inputs[1], &dims, &rank) || rank != 2)
        return "the runtime has dynamic kernels for a matrix on the right alone";
    if (gemm && (!qdqi_gemm_is_unscaled(node->proto) ||
                 qdqi_node_int(node->proto, "transA", 0)))
        return "the runtime has no dynamic kernel with alpha, beta or transA";
    if (!qdqi_input_is_computed(node, 0) || node->inputs[1]->dtype != QDQI_FLOAT32)
        return "the runtime quantizes computed tensors of float32 alone";
    return NULL;
}

/* Returns whether the weights of an LSTM, which are constants, have its shapes. */
static bool
are_gates(const struct qdqi_node *node)
{
    const int64_t *w, *r;
    size_t w_rank, r_rank;
    return qdqi_tensor_dims(node->inputs[1], &w, &w_rank) &&
           qdqi_tensor_dims(node->inputs[QDQI_RECURRENT], &r, &r_rank) && w_rank == 3 &&
           r_rank == 3 && w[0] == r[0] && w[1] == r[1] && r[1] == 4 * r[2];
}

/* Returns the reason why a weight of a recurrent layer is not stored as integers, or
   NULL. */
static const char *
gates_hindrance(const struct planner *p, const struct qdqi_tensor *t)
{
    struct qdqi_constant c;
    if (t->dtype != QDQI_FLOAT32)
        return "the runtime quantizes computed tensors of float32 alone";
    if (qdqi_constant_is_overridable(p->model, t))
        return "weight is an input of the graph, for which callers may send other "
               "values";
    return qdqi_constant_read(p->model, t, &c, NULL) || qdqi_constant_is_fill(&c)
               ? "weight is kept in a form that is not read"
               : NULL;
}

/* Returns the reason why a recurrent layer stays floating point, or NULL. */
static const char *
recurrent_hindrance(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    if (!p->spec->dynamic)
        return "recurrent layers are computed in integers with dynamic activations "
               "alone";
    if (!qdqi_node_is(node->proto, "LSTM"))
        return "the runtime has a dynamic kernel for LSTM, and for no other recurrent "
               "layer";
    if (layer->weight_input != 1)
        return "weight is not constant";
    if (!qdqi_input_is_computed(node, 0))
        return "the runtime quantizes computed tensors of float32 alone";
    if (qdqi_node_int(node->proto, "layout", 0))
        return "the runtime's dynamic LSTM has no layout 1";
    if (!are_gates(node))
        return "the shapes of its weights are not those of an LSTM";
    const char *why = gates_hindrance(p, node->inputs[1]);
    return why ? why : gates_hindrance(p, node->inputs[QDQI_RECURRENT]);
}

const char *
qdqi_onnxruntime_hindrance(const struct planner *p, struct qdq_layer *layer,
                           bool wants_inputs)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    if (p->graph->classes[layer->node]->is_table)
        return table_hindrance(p, layer);
    if (p->graph->classes[layer->node]->is_recurrent)
        return recurrent_hindrance(p, layer);
    if (p->spec->dynamic)
        return dynamic_hindrance(p, layer);
    if (qdqi_rule_is_on(p, C26) && qdqi_onnxruntime_has_open_bytes(p, layer)) {
        qdqi_rule_cite(layer, C26);
        return "rule:C26, onnxruntime packs 2 bits wrongly where the columns are no "
               "multiple of 4";
    }
    if (!wants_inputs)
        return NULL;
    if (is_half(p, layer)) {
        qdqi_rule_cite(layer, C22);
        return "rule:C22, onnxruntime has integer kernels of float32 models alone";
    }
    if (qdqi_onnxruntime_has_axes(p, node)) {
        qdqi_rule_cite(layer, C23);
        return "rule:C23, onnxruntime's integer form of it fails when it runs";
    }
    if (has_given_scales(p, layer)) {
        qdqi_rule_cite(layer, C28);
        return "rule:C28, onnxruntime's integer kernel takes the given scales of its "
               "weight or bias for others";
    }
    if (is_half_concat(p, layer))
        return "the integer kernel of Concat has no 16-bit scales";
    if (qdqi_rule_is_on(p, C20) && may_have_one(p, node)) {
        qdqi_rule_cite(layer, C20);
        return "rule:C20, onnxruntime answers 0 where the axis has one element";
    }
    return qdqi_kernel_hindrance(node);
}
