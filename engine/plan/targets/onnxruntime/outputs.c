/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs on the outputs of layers, the layers that move data between them, and what follows
   from both for the plan: biases, tensors that some layers read without a pair. */
#include "config.h"
#include "plan/targets/onnxruntime/onnxruntime.h"

#include "graph/layers/operators.h"
#include "plan/placement/formats.h"
#include "plan/placement/layer_formats.h"
#include "plan/placement/lint.h"
#include "plan/placement/outputs.h"
#include "plan/targets/onnxruntime/integer_paths.h"
#include "plan/targets/onnxruntime/kernels.h"

#include <string.h>

/* --- outputs of layers ----------------------------------------------------- */

/* Returns the Relu or Clip that alone reads the node's output, if the QuantizeLinear
   behind it does the clipping; else NULL. A symmetric QuantizeLinear does not clip. */
static struct qdq_layer *
clipping(const struct planner *p, const struct qdqi_node *node)
{
    const struct qdqi_tensor *t = node->outputs[0];
    const struct qdqi_use *use = t->uses;
    if (t->is_output || !use || !qdqi_rule_is_on(p, C6) || use->next || use->input != 0)
        return NULL;
    const struct qdqi_node *next = &p->model->graph.nodes[use->node];
    if (!next->outputs[0] ||
        qdqi_tensor_format(p, next->outputs[0])->symmetric == QDQ_YES)
        return NULL;
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
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    return qdqi_rule_is_on(p, C16) && qdqi_is_product(layer->op) &&
           !qdqi_node_is(node->proto, "Conv") && !is_biased_matmul(p, node) &&
           !qdqi_goes_to_integers(p, node->outputs[0]);
}

static bool
decide_output(struct planner *p, struct qdq_layer *layer)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    enum qdqi_role role = qdqi_kernel_role(layer->op);
    const struct qdqi_class *cls = p->graph->classes[layer->node];
    if (layer->n_inputs == 0 || !qdqi_has_kernel(layer->op) || makes_floats(p, layer))
        return true;
    if (!qdqi_output_can_have_pair(
            p, node, 0, qdqi_layer_dtype(cls, node, layer->quantized_inputs[0])) ||
        qdqi_all_read_raw(p, node->outputs[0]))
        return true;
    struct qdq_layer *behind = clipping(p, node);
    if (behind) {
        behind->reason = layer->reason;
        behind->reason_kind = layer->reason_kind;
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
        read = node->outputs[i] && qdqi_goes_to_integers(p, node->outputs[i]);
    return read && qdqi_comes_from_integers(p, node->inputs[0]);
}

/* Decides about a layer that moves data. If an entry selects the layer, only the
   entry decides. */
static bool
decide_moving(struct planner *p, struct qdq_layer *layer)
{
    static const int first[] = {0};
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    const struct qdqi_choice *choice = &p->selection.choices[layer->node];
    if (qdqi_kernel_role(layer->op) != QDQI_MOVES || node->proto->n_input == 0 ||
        !node->inputs[0] || !qdqi_map_get(p->outputs.paired, node->inputs[0]->name) ||
        (choice->entry && !choice->entry->quantize_input) ||
        !qdqi_moves_in_range(p->model, node) || qdqi_onnxruntime_has_axes(p, node) ||
        (!choice->entry && qdqi_all_read_raw(p, node->outputs[0])) ||
        (!choice->entry && !is_on_the_way(p, node)))
        return true;
    if (layer->n_inputs == 0) {
        layer->quantized_inputs = first;
        layer->n_inputs = 1;
        layer->reason = choice->entry ? choice->reason : "default";
        layer->reason_kind = choice->entry ? QDQ_REASON_ENTRY : QDQ_REASON_DEFAULT;
    }
    return qdqi_output_add_moved(p, layer);
}

/* Takes the pairs from the inputs of the layers that `means` finds, and warns of them. */
static enum qdq_code
leave_inputs(struct planner *p,
             bool (*means)(const struct planner *p, const struct qdq_layer *layer),
             const char *text, struct qdq_error *err)
{
    struct qdqi_layer_count count = {0, NULL};
    for (size_t i = 0; i < p->n_layers; i++) {
        struct qdq_layer *layer = &p->layers[i];
        if (layer->n_inputs == 0 || !means(p, layer))
            continue;
        layer->quantized_inputs = NULL;
        layer->n_inputs = 0;
        if (count.n++ == 0)
            count.first = layer->name;
    }
    return qdqi_warn_count(p, &count, "target_format", text, err);
}

static enum qdq_code
leave_blocks(struct planner *p, struct qdq_error *err)
{
    return leave_inputs(p, qdqi_onnxruntime_has_blocks,
                        "ONNX Runtime has no integer kernel for 8-bit weights with a "
                        "scale for each block, so that only the weight is quantized: "
                        "choose another granularity",
                        err);
}

static enum qdq_code
leave_weights(struct planner *p, struct qdq_error *err)
{
    enum qdq_code code = leave_inputs(
        p, qdqi_onnxruntime_keeps_weight,
        "the weight stays in floating point, and ONNX Runtime would make it int8 with "
        "one scale behind a pair, so that the input has no pair either (rule C19)",
        err);
    for (size_t i = 0; i < p->n_layers; i++)
        if (qdqi_onnxruntime_keeps_weight(p, &p->layers[i]))
            qdqi_rule_cite(&p->layers[i], C19);
    return code;
}

/* Returns whether onnxruntime makes one kernel of rows of a table and of the layer's weight.
   On x86 it makes none of int8. */
static bool
makes_kernel_of_rows(const struct planner *p, const struct qdq_layer *layer)
{
    return p->spec->host == QDQ_HOST_ARM ||
           layer->format->weights.format == QDQ_FORMAT_UINT8;
}

/* A row of Identities that is longer is not looked behind. */
enum { MOST_IDENTITIES = 32 };

/* Returns whether a product with a quantized weight reads the tensor, perhaps by `more` Identities in
   a row, no pair stands between, and onnxruntime would make one kernel of them. */
static bool
meets_weight(const struct planner *p, const struct qdqi_tensor *t, int more)
{
    for (const struct qdqi_use *use = t->uses; use; use = use->next) {
        const struct qdq_layer *layer = p->by_node[use->node];
        const struct qdqi_node *node = &p->model->graph.nodes[use->node];
        if (layer && qdqi_is_product(layer->op) && layer->weight_input >= 0 &&
            !qdqi_layer_has_pair(layer, use->input) && makes_kernel_of_rows(p, layer))
            return true;
        if (more > 0 && qdqi_node_is(node->proto, "Identity") &&
            node->proto->n_output > 0 && node->outputs[0] &&
            meets_weight(p, node->outputs[0], more - 1))
            return true;
    }
    return false;
}

/* Gives tables one scale where onnxruntime would make one kernel of the rows, a weight and
   their product (faults.h). */
static void
join_scales_of_tables(struct planner *p)
{
    for (size_t i = 0; i < p->n_layers && !p->spec->dynamic; i++) {
        struct qdq_layer *layer = &p->layers[i];
        if (p->graph->classes[layer->node]->is_table && layer->weight_axis >= 0 &&
            meets_weight(p, qdqi_node_of(p, layer)->outputs[0], MOST_IDENTITIES))
            layer->weight_axis = -1;
    }
}

enum qdq_code
qdqi_onnxruntime_decide_outputs(struct planner *p, struct qdq_error *err)
{
    enum qdq_code code = leave_blocks(p, err);
    if (code || (code = leave_weights(p, err)))
        return code;
    bool ok = (!qdqi_rule_is_on(p, C15) || qdqi_gain_apply(p)) && qdqi_outputs_begin(p);
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
    const struct qdqi_node *node = qdqi_node_of(p, layer);
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
        qdqi_rule_cite(layer, C4);
        plan->biases[plan->n_biases++] = (struct qdqi_planned_bias){
            .tensor = qdqi_node_of(p, layer)->inputs[input],
            .layer = i,
            .input = input,
            .activation = layer->input_rows[0],
            .weight = layer->weight_row,
        };
    }
    return QDQ_OK;
}

/* A tensor that no integer kernel makes is read as it is by floating-point layers. One that no
   layer reads keeps the pair behind its own layer, which an entry asks for. */
static void
keep_raw(struct planner *p)
{
    for (size_t i = 0; qdqi_rule_is_on(p, C16) && i < p->plan->view.n_tensors; i++) {
        struct qdqi_planned_tensor *t = &p->plan->activations[i];
        t->everywhere = !t->tensor->uses || qdqi_comes_from_integers(p, t->tensor);
    }
}

enum qdq_code
qdqi_onnxruntime_complete(struct planner *p, struct qdq_error *err)
{
    enum qdq_code code = qdqi_outputs_complete(p, err);
    if (code)
        return code;
    keep_raw(p);
    p->plan->decoder_takes_nearest = qdqi_rule_is_on(p, C24);
    p->plan->leaves_out_middles = qdqi_rule_is_on(p, C35);
    qdqi_tied_plan(p, (struct qdqi_tied_rules){.table = P2, .forms = P5});
    if (p->spec->weight_only)
        qdqi_apart_plan(p, P5);
    qdqi_kernel_blocks_plan(p);
    for (size_t i = 0; i < p->plan->view.n_weights; i++)
        p->plan->weights[i].moves_rows = qdqi_rule_is_on(p, C25) &&
                                         p->plan->weights[i].is_table &&
                                         p->plan->weights[i].axis >= 0;
    qdqi_saturation_plan(p, C7);
    if (qdqi_rule_is_on(p, P4))
        code = qdqi_masked_sums_find(p, true, err);
    return code ? code : plan_biases(p, err);
}
