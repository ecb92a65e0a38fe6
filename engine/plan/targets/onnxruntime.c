/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target onnxruntime. A layer becomes an integer kernel of the CPU provider when
 * all its inputs and outputs have pairs and every reader of a tensor reads it from its
 * pair. Layers that only move data share the scale of their input. Biases become int32.
 */
#include "config.h"
#include "plan/placement/formats.h"
#include "plan/placement/outputs.h"
#include "plan/placement/saturation.h"
#include "plan/placement/target.h"
#include "plan/targets/onnxruntime_gain.h"

#include "graph/layers/kernels.h"
#include "graph/layers/patterns.h"
#include "files/model/constant.h"

#include <string.h>

#define RULES(RULE)                                                                    \
    RULE(C1, FIXED,                                                                    \
         "A layer that has an integer kernel has a pair on each input that its "       \
         "kernel reads as integers.")                                                  \
    RULE(C2, FIXED,                                                                    \
         "Such a layer has a pair on its output, too, and all readers read the "       \
         "output from that pair.")                                                     \
    RULE(C4, ON,                                                                       \
         "The bias of a Conv or Gemm is int32, with the scale of the input "           \
         "times that of the weight. Off: it stays floating point, and "                \
         "onnxruntime makes it int32 when it loads the model, whether it fits "        \
         "or not.")                                                                    \
    RULE(C6, ON,                                                                       \
         "No pair stands between a layer and a Relu or Clip that is its only reader, " \
         "if the QuantizeLinear behind does the clipping. Off: the pair stands "       \
         "between the two.")                                                           \
    QDQI_SATURATION_RULE(RULE)                                                         \
    RULE(C9, FIXED,                                                                    \
         "A weight has a scale for each output channel; the weight of a MatMul only "  \
         "if it is a matrix and the right operand.")                                   \
    RULE(C13, FIXED, "The output of Sigmoid and Softmax has the range from 0 to 1.")   \
    RULE(                                                                              \
        C14, FIXED,                                                                    \
        "A layer that only moves data has the scale and the zero point of its input.") \
    RULE(C15, AUTO,                                                                    \
         "A layer that no entry selects is computed in integers only where "           \
         "onnxruntime gains time by that: a Conv, Gemm or MatMul whose weight is "     \
         "large beside the conversions around it and whose output is not squared; "    \
         "an Add of two tensors, Concat, pool or LeakyRelu between such layers.")      \
    RULE(C16, AUTO,                                                                    \
         "Only layers that compute in integers read a pair on a tensor that a "        \
         "floating-point layer makes, and the output of a Gemm or MatMul has a "       \
         "pair only where such a layer reads it.")                                     \
    RULE(C17, AUTO,                                                                    \
         "A BatchNormalization, or the Add of one constant for each channel, is "      \
         "folded into the Conv, ConvTranspose or Gemm in front of it, which "          \
         "computes the same then.")                                                    \
    RULE(C18, AUTO,                                                                    \
         "A large table whose rows a Gather selects is stored as integers, and the "   \
         "DequantizeLinear stands behind the Gather.")

enum { RULES(QDQI_RULE_INDEX) N_RULES };

static const struct qdqi_node *
node_of(const struct planner *p, const struct qdq_layer *layer)
{
    return &p->model->graph.nodes[layer->node];
}

/* --- which rules ----------------------------------------------------------- */

/* Decides rules C15 to C17 by the recipe and by the formats. */
static bool
decide_gain(const struct qdq_spec *spec, const char **ret_reason)
{
    if (spec->recipe < QDQ_RECIPE_AUTO)
        *ret_reason = "the recipe is none";
    else if (!spec->dynamic &&
             (spec->weight_only || !qdqi_is_8_bit_integer(spec->activation_format)))
        *ret_reason = "there are integer kernels of int8 and uint8 activations alone";
    else {
        *ret_reason = spec->recipe == QDQ_RECIPE_AUTO ? "the recipe is auto"
                                                      : "the recipe is more than none";
        return true;
    }
    return false;
}

static bool
can_store_tables(const struct qdq_spec *spec)
{
    return spec->weight_storage == QDQ_STORE_DQ &&
           spec->weight_granularity != QDQ_PER_BLOCK &&
           qdqi_is_8_bit_integer(spec->weight_format);
}

/* Decides rule C18 by the recipe and by the format of weights. */
static bool
decide_tables(const struct qdq_spec *spec, const char **ret_reason)
{
    if (spec->recipe < QDQ_RECIPE_AUTO)
        *ret_reason = "the recipe is none";
    else if (!can_store_tables(spec))
        *ret_reason = "the rule is of weights that are stored as integers of 8 bits, "
                      "without blocks";
    else {
        *ret_reason = "the recipe is more than none";
        return true;
    }
    return false;
}

static bool
decide_rule(const struct qdq_spec *spec, int rule, const char **ret_reason)
{
    return rule == C7    ? qdqi_saturation_decide(spec, ret_reason)
           : rule == C18 ? decide_tables(spec, ret_reason)
                         : decide_gain(spec, ret_reason);
}

/* --- before the plan ------------------------------------------------------- */

static bool
folds(const struct qdq_spec *spec)
{
    return qdqi_spec_has_rule(spec, C17);
}

/* --- which layers, and how ------------------------------------------------ */

static bool
computes(enum qdqi_role role)
{
    return role == QDQI_COMPUTES || role == QDQI_UNIT;
}

/* Returns whether there is an integer kernel for the layers of a class. */
static bool
is_on(const struct planner *p, const struct qdqi_class *cls)
{
    if (cls->is_table)
        return qdqi_rule_is_on(p, C18);
    if (cls->is_recurrent)
        return p->spec->dynamic;
    return computes(qdqi_kernel_role(cls->support.op)) &&
           !(qdqi_class_is_operand(cls) && p->spec->weight_only);
}

/* Returns whether the weight has a scale for each channel. The integer MatMul
   accepts a scale for each column only for a matrix on the right, and the LSTM one zero
   point for all gates. */
static bool
is_per_channel(const struct planner *p, const struct qdqi_class *cls, int weight_input,
               size_t rank)
{
    if (cls->is_recurrent)
        return p->spec->weight_format == QDQ_FORMAT_INT8;
    return strcmp(cls->support.op, "MatMul") != 0 || (weight_input == 1 && rank == 2) ||
           (p->spec->weight_only && !p->spec->dynamic);
}

/*
 * Returns whether the layer's weight has the format of the other operand. That holds
 * for the constant operand of Add and Mul and for a constant on the left of a MatMul.
 */
static bool
is_operand(const struct planner *p, const struct qdq_layer *layer)
{
    return qdqi_class_is_operand(p->graph->classes[layer->node]) ||
           (!p->spec->weight_only && layer->weight_input == 0 &&
            qdqi_node_is(p->model->graph.nodes[layer->node].proto, "MatMul"));
}

/* Returns whether the layer is a Concat whose pairs would have 16-bit scales. onnxruntime
   1.31 makes a QLinearConcat of it, and then refuses its own node. */
static bool
is_half_concat(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = node_of(p, layer);
    return qdqi_node_is(node->proto, "Concat") &&
           (p->spec->float_type != QDQ_FLOAT_KEEP ||
            (node->inputs[0] && node->inputs[0]->dtype == QDQI_FLOAT16));
}

/* Returns whether the weight has blocks, and an integer kernel would be made of the layer, which
   has no scales of blocks and fails when it runs. None is made of a Gemm with blocks. */
static bool
has_blocks(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = node_of(p, layer);
    return !p->spec->weight_only && layer->weight_input >= 0 &&
           qdqi_is_8_bit_integer(p->spec->weight_format) &&
           (qdqi_node_is(node->proto, "Conv") || qdqi_node_is(node->proto, "MatMul")) &&
           qdqi_block_of(p, layer, node->inputs[layer->weight_input]) > 0;
}

static bool
must_read_raw(const struct planner *p, const struct qdq_layer *layer)
{
    return is_half_concat(p, layer) || has_blocks(p, layer);
}

/* A smaller table is not worth a node more. */
enum { LEAST_TABLE = 1 << 14 };

/* Returns the reason why a table stays floating point, or NULL. */
static const char *
table_hindrance(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = node_of(p, layer);
    const int64_t *dims;
    size_t rank, n = 0;
    if (!qdqi_rule_is_on(p, C18))
        return qdqi_input_reason(QDQI_INPUT_CONSTANT);
    if (!can_store_tables(p->spec))
        return "a table is stored as integers of 8 bits, without blocks, or not at all";
    if (!p->selection.choices[layer->node].entry &&
        (!qdqi_tensor_dims(node->inputs[0], &dims, &rank) ||
         !qdqi_count_elements(dims, rank, &n) || n < LEAST_TABLE))
        return "rule:C18, the table is small";
    return NULL;
}

/* Returns the reason why the runtime cannot quantize what the layer reads, or NULL. Its
   kernels multiply a float32 tensor by a matrix on the right. */
static const char *
dynamic_hindrance(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = node_of(p, layer);
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
    const struct qdqi_node *node = node_of(p, layer);
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

static const char *
hindrance(const struct planner *p, const struct qdq_layer *layer, bool wants_inputs)
{
    const struct qdqi_node *node = node_of(p, layer);
    if (p->graph->classes[layer->node]->is_table)
        return table_hindrance(p, layer);
    if (p->graph->classes[layer->node]->is_recurrent)
        return recurrent_hindrance(p, layer);
    if (p->spec->dynamic)
        return dynamic_hindrance(p, layer);
    if (!wants_inputs)
        return NULL;
    if (is_half_concat(p, layer))
        return "the integer kernel of Concat has no 16-bit scales";
    return qdqi_kernel_hindrance(node);
}

static bool
weighs(const struct qdq_spec *spec)
{
    return qdqi_spec_has_rule(spec, C15);
}

/* Returns whether the layer is quantized only if its neighbours are: it moves data
   or clips. */
static bool
follows(const struct qdq_layer *layer)
{
    enum qdqi_role role = qdqi_kernel_role(layer->op);
    return role == QDQI_MOVES || role == QDQI_CLIPS;
}

/* --- outputs of layers ----------------------------------------------------- */

/* Returns the Relu or Clip that alone reads the node's output, if the QuantizeLinear
   behind it does the clipping; else NULL. A symmetric QuantizeLinear does not clip. */
static struct qdq_layer *
clipping(const struct planner *p, const struct qdqi_node *node)
{
    const struct qdqi_tensor *t = node->outputs[0];
    const struct qdqi_use *use = t->uses;
    if (p->spec->activation_symmetric == QDQ_YES || t->is_output || !use ||
        !qdqi_rule_is_on(p, C6) || use->next || use->input != 0)
        return NULL;
    const struct qdqi_node *next = &p->model->graph.nodes[use->node];
    struct qdq_layer *layer = p->by_node[use->node];
    return layer && next->scope == node->scope &&
                   qdqi_kernel_role(layer->op) == QDQI_CLIPS && layer->n_inputs == 0 &&
                   qdqi_output_can_have_pair(p, next, 0, QDQI_FLOAT32)
               ? layer
               : NULL;
}

/*
 * Returns whether only the Add of a bias reads what a MatMul makes. onnxruntime makes one
 * Gemm of the two before it looks for pairs, and that Gemm is no integer kernel, unless a
 * pair stands between them.
 */
static bool
is_biased_matmul(const struct planner *p, const struct qdqi_node *node)
{
    const struct qdqi_use *use = node->outputs[0]->uses;
    const int64_t *dims;
    size_t rank;
    if (!qdqi_node_is(node->proto, "MatMul") || !use || use->next)
        return false;
    const struct qdqi_node *add = &p->model->graph.nodes[use->node];
    return qdqi_node_is(add->proto, "Add") && add->proto->n_input == 2 &&
           qdqi_input_is_constant(add, !use->input) &&
           qdqi_tensor_dims(add->inputs[!use->input], &dims, &rank) && rank >= 1 &&
           rank <= 2;
}

/* Returns whether the kernel of a Gemm or MatMul makes floating-point numbers of its
   integers itself. */
static bool
makes_floats(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = node_of(p, layer);
    return qdqi_rule_is_on(p, C16) && qdqi_is_product(layer->op) &&
           !qdqi_node_is(node->proto, "Conv") && !is_biased_matmul(p, node) &&
           !qdqi_gain_goes_to_integers(p, node->outputs[0]);
}

static bool
decide_output(struct planner *p, struct qdq_layer *layer)
{
    const struct qdqi_node *node = node_of(p, layer);
    enum qdqi_role role = qdqi_kernel_role(layer->op);
    const struct qdqi_class *cls = p->graph->classes[layer->node];
    if (layer->n_inputs == 0 || !computes(role) || makes_floats(p, layer))
        return true;
    if (!qdqi_output_can_have_pair(
            p, node, 0, qdqi_layer_dtype(cls, node, layer->quantized_inputs[0])) ||
        qdqi_all_read_raw(p, node->outputs[0]))
        return true;
    struct qdq_layer *behind = clipping(p, node);
    if (behind) {
        behind->reason = layer->reason;
        return qdqi_output_add(p, behind, 0);
    }
    if (role == QDQI_UNIT &&
        !qdqi_map_put(p->outputs.units, node->outputs[0]->name, node->outputs[0]))
        return false;
    return qdqi_output_add(p, layer, 0);
}

/* --- layers that move data ------------------------------------------------- */

/* Returns whether a layer that moves data moves integers from a kernel to another. */
static bool
is_on_the_way(const struct planner *p, const struct qdqi_node *node)
{
    bool read = false;
    if (!qdqi_rule_is_on(p, C16))
        return true;
    for (size_t i = 0; !read && i < node->proto->n_output; i++)
        read = node->outputs[i] && qdqi_gain_goes_to_integers(p, node->outputs[i]);
    return read && qdqi_gain_comes_from_integers(p, node->inputs[0]);
}

/* Decides about a layer that moves data. If an entry selects the layer, only the
   entry decides. */
static bool
decide_moving(struct planner *p, struct qdq_layer *layer)
{
    static const int first[] = {0};
    const struct qdqi_node *node = node_of(p, layer);
    const struct qdqi_choice *choice = &p->selection.choices[layer->node];
    if (qdqi_kernel_role(layer->op) != QDQI_MOVES || node->proto->n_input == 0 ||
        !node->inputs[0] || !qdqi_map_get(p->outputs.paired, node->inputs[0]->name) ||
        (choice->entry && !choice->entry->quantize_input) ||
        !qdqi_moves_in_range(p->model, node) ||
        (!choice->entry && !is_on_the_way(p, node)))
        return true;
    if (layer->n_inputs == 0) {
        layer->quantized_inputs = first;
        layer->n_inputs = 1;
        layer->reason = choice->entry ? choice->reason : "default";
    }
    return qdqi_output_add_moved(p, layer);
}

/* Takes the pairs from the inputs of layers whose weights have blocks. */
static enum qdq_code
leave_blocks(struct planner *p, struct qdq_error *err)
{
    const struct qdq_layer *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < p->n_layers; i++) {
        struct qdq_layer *layer = &p->layers[i];
        if (layer->n_inputs == 0 || !has_blocks(p, layer))
            continue;
        layer->quantized_inputs = NULL;
        layer->n_inputs = 0;
        first = n++ ? first : layer;
    }
    return n == 0
               ? QDQ_OK
               : qdqi_warn(&p->warnings, p->plan->arena, err, "target_format",
                           first->name,
                           "%zu layer%s (%.128s%s): ONNX Runtime has no integer "
                           "kernel for 8-bit weights with a scale for each block, so "
                           "that only the weight is quantized: choose another "
                           "granularity",
                           n, n == 1 ? "" : "s", first->name, n == 1 ? "" : ", ...");
}

/* Returns whether a product with a quantized weight reads the tensor, and no pair stands
   between. */
static bool
meets_weight(const struct planner *p, const struct qdqi_tensor *t)
{
    for (const struct qdqi_use *use = t->uses; use; use = use->next) {
        const struct qdq_layer *layer = p->by_node[use->node];
        if (layer && qdqi_is_product(layer->op) && layer->weight_input >= 0 &&
            !qdqi_layer_has_pair(layer, use->input))
            return true;
    }
    return false;
}

/*
 * Gives tables one scale where onnxruntime would make one kernel of the DequantizeLinear
 * behind the Gather, that of a weight and their product: it fails when it runs with a scale
 * for each column of the rows. On x86 onnxruntime makes none of int8.
 */
static void
join_scales_of_tables(struct planner *p)
{
    const bool makes_kernel =
        !p->spec->dynamic &&
        (p->spec->weight_format == QDQ_FORMAT_UINT8 || p->spec->host == QDQ_HOST_ARM);
    for (size_t i = 0; i < p->n_layers && makes_kernel; i++) {
        struct qdq_layer *layer = &p->layers[i];
        if (p->graph->classes[layer->node]->is_table && layer->weight_axis >= 0 &&
            meets_weight(p, node_of(p, layer)->outputs[0]))
            layer->weight_axis = -1;
    }
}

static enum qdq_code
decide_outputs(struct planner *p, struct qdq_error *err)
{
    enum qdq_code code = leave_blocks(p, err);
    if (code)
        return code;
    bool ok =
        (!qdqi_rule_is_on(p, C15) || qdqi_gain_apply(p, C15)) && qdqi_outputs_begin(p);
    for (size_t i = 0; ok && i < p->n_layers; i++)
        ok = decide_output(p, &p->layers[i]);
    for (size_t i = 0; ok && i < p->n_layers; i++)
        ok = decide_moving(p, &p->layers[i]);
    join_scales_of_tables(p);
    return ok ? QDQ_OK : qdqi_no_memory(err);
}

/* --- the plan ------------------------------------------------------------- */

/*
 * Returns the input index of the bias of a layer that is computed in integers, or -1.
 * The bias has one number for each channel.
 */
static int
bias_input(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = node_of(p, layer);
    const int64_t *dims;
    size_t rank;
    bool gemm = qdqi_node_is(node->proto, "Gemm");
    if (layer->weight_input != 1 || layer->n_inputs != 1 ||
        (!gemm && !qdqi_node_is(node->proto, "Conv")) ||
        !qdqi_input_is_constant(node, 2) || node->inputs[2]->dtype != QDQI_FLOAT32 ||
        !qdqi_tensor_dims(node->inputs[2], &dims, &rank) || rank != 1 || dims[0] < 1)
        return -1;
    return gemm && !qdqi_gemm_is_unscaled(node->proto) ? -1 : 2;
}

static enum qdq_code
plan_biases(struct planner *p, struct qdq_error *err)
{
    struct qdq_plan *plan = p->plan;
    plan->biases = qdqi_arena_array(plan->arena, p->n_layers, sizeof *plan->biases);
    if (!plan->biases)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < p->n_layers; i++) {
        struct qdq_layer *layer = &p->layers[i];
        int input = bias_input(p, layer);
        if (input < 0 || !qdqi_rule_is_on(p, C4) ||
            plan->activations[layer->input_rows[0]].dtype != QDQI_FLOAT32)
            continue;
        layer->rules |= qdqi_rule_bit(p, C4);
        plan->biases[plan->n_biases++] = (struct qdqi_planned_bias){
            .tensor = node_of(p, layer)->inputs[input],
            .layer = i,
            .input = input,
            .activation = layer->input_rows[0],
            .weight = layer->weight_row,
        };
    }
    return QDQ_OK;
}

/* --- the rules that a decision follows ------------------------------------- */

static void
cite(const struct planner *p, struct qdq_layer *layer)
{
    enum qdqi_role role = qdqi_kernel_role(layer->op);
    const struct qdqi_node *node = node_of(p, layer);
    if (computes(role) && layer->n_inputs > 0)
        layer->rules |= qdqi_rule_bit(p, C1);
    if (computes(role) && layer->n_outputs > 0)
        layer->rules |= qdqi_rule_bit(p, C2);
    if (role == QDQI_CLIPS && layer->n_inputs == 0 && layer->n_outputs > 0)
        layer->rules |= qdqi_rule_bit(p, C6);
    if (qdqi_is_product(layer->op) && layer->weight_axis >= 0)
        layer->rules |= qdqi_rule_bit(p, C9);
    if (layer->weight_input >= 0 && p->graph->classes[layer->node]->is_table)
        layer->rules |= qdqi_rule_bit(p, C18);
    if (role == QDQI_UNIT && layer->n_outputs > 0)
        layer->rules |= qdqi_rule_bit(p, C13);
    if (role == QDQI_MOVES && layer->n_outputs > 0 &&
        qdqi_map_get(p->outputs.leaders,
                     node->outputs[layer->quantized_outputs[0]]->name))
        layer->rules |= qdqi_rule_bit(p, C14);
}

/* A tensor that no integer kernel makes is read as it is by floating-point layers. One that no
   layer reads keeps the pair behind its own layer, which an entry asks for. */
static void
keep_raw(struct planner *p)
{
    for (size_t i = 0; qdqi_rule_is_on(p, C16) && i < p->plan->view.n_tensors; i++) {
        struct qdqi_planned_tensor *t = &p->plan->activations[i];
        t->everywhere = !t->tensor->uses || qdqi_gain_comes_from_integers(p, t->tensor);
    }
}

static enum qdq_code
complete(struct planner *p, struct qdq_error *err)
{
    enum qdq_code code = qdqi_outputs_complete(p, err);
    if (code)
        return code;
    keep_raw(p);
    qdqi_saturation_plan(p, C7);
    return plan_biases(p, err);
}

/* --- formats -------------------------------------------------------------- */

static bool
is_float8(enum qdq_format format)
{
    return format == QDQ_FORMAT_FLOAT8E4M3FN || format == QDQ_FORMAT_FLOAT8E5M2;
}

/* Returns why ONNX Runtime 1.31 does not load what the spec asks for with its default
   optimizations, or NULL. */
static const char *
find_unloadable(const struct qdq_spec *spec)
{
    if (spec->weight_format == QDQ_FORMAT_FLOAT4E2M1)
        return "weights of float4e2m1, for which it has no kernel: choose int4";
    if (spec->weight_only)
        return NULL;
    if (is_float8(spec->activation_format))
        return "activations of 8-bit floats, whose pairs it takes for those of "
               "integers: "
               "choose uint8, int8 or int16, or load the model with ORT_ENABLE_BASIC";
    if (is_float8(spec->weight_format) &&
        qdqi_is_8_bit_integer(spec->activation_format))
        return "weights of 8-bit floats behind activations of 8-bit integers: choose "
               "int8 "
               "weights, int16 activations or \"activations\": \"none\"";
    return NULL;
}

static enum qdq_code
check_formats(struct planner *p, struct qdq_error *err)
{
    const enum qdq_code code = qdqi_saturation_check(p, C7, err);
    const char *what = find_unloadable(p->spec);
    return code || !what ? code
                         : qdqi_warn(&p->warnings, p->plan->arena, err, "target_format",
                                     NULL, "ONNX Runtime does not load %s", what);
}

/* --- the row -------------------------------------------------------------- */

static const struct qdq_rule rules[] = {RULES(QDQI_RULE_ROW)};

static const struct qdqi_hooks hooks = {
    .decide_rule = decide_rule,
    .folds = folds,
    .is_on = is_on,
    .must_read_raw = must_read_raw,
    .hindrance = hindrance,
    .is_per_channel = is_per_channel,
    .is_operand = is_operand,
    .decide_outputs = decide_outputs,
    .complete = complete,
    .weighs = weighs,
    .follows = follows,
    .cite = cite,
    .check_formats = check_formats,
};

const struct qdq_target qdqi_target_onnxruntime = {
    .name = "onnxruntime",
    .title = "ONNX Runtime",
    .text = "Pairs stand on all tensors that the integer kernels of the CPU provider "
            "read and write.",
    .weights = QDQ_FORMAT_INT8,
    .activations = QDQ_FORMAT_UINT8,
    .storage = QDQ_STORE_DQ,
    .short_names = true,
    .recipe = QDQ_RECIPE_AUTO,
    .has_kernels = true,
    .has_dynamic = true,
    .runtime = "onnxruntime",
    .quantizes_constants = true,
    .rules = rules,
    .n_rules = N_RULES,
    .hooks = &hooks,
};
