/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs on the outputs of layers, the layers that move data, ranges that operators have, and
   biases. */
#include "config.h"
#include "plan/targets/qnn/qnn.h"

#include "numbers/arithmetic/format.h"
#include "plan/placement/layer_formats.h"
#include "plan/placement/masked_sums.h"
#include "plan/placement/outputs.h"

#include <string.h>

/* --- before the outputs ----------------------------------------------------------- */

static bool
is_selected(const struct planner *p, const struct qdq_layer *layer)
{
    return p->selection.choices[layer->node].entry;
}

static void
drop_inputs(struct qdq_layer *layer)
{
    layer->quantized_inputs = NULL;
    layer->n_inputs = 0;
}

/* Leaves a part of a GELU no pair but that on what the whole is computed from, which is the first
   computed input that no part makes. */
static void
settle_gelu_part(const struct planner *p, struct qdq_layer *layer)
{
    static const int inputs[] = {0, 1};
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    const enum qdqi_gelu_part part = qdqi_gelu_part(p, layer->node);
    int outside = -1;
    for (int i = 0; i < 2 && (size_t)i < node->proto->n_input; i++) {
        const struct qdqi_tensor *t = node->inputs[i];
        if (t && !t->is_fixed &&
            (t->producer < 0 ||
             qdqi_gelu_part(p, (size_t)t->producer) == QDQI_GELU_NONE ||
             qdqi_gelu_part(p, (size_t)t->producer) == QDQI_GELU_LAST))
            outside = i;
    }
    layer->weight_input = layer->weight_axis = -1;
    layer->weight = NULL;
    qdqi_rule_cite(layer, Q7);
    if (part == QDQI_GELU_INNER || outside < 0) {
        drop_inputs(layer);
    } else if (layer->n_inputs > 0) {
        layer->quantized_inputs = &inputs[outside];
        layer->n_inputs = 1;
    }
}

/* Returns the Relu or Clip that alone reads the node's output, if the QuantizeLinear
   behind it does the clipping; else NULL. A symmetric QuantizeLinear does not clip. */
static struct qdq_layer *
clipping(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    const struct qdqi_tensor *t = node->outputs[0];
    const struct qdqi_use *use = t ? t->uses : NULL;
    if (!use || t->is_output || !qdqi_rule_is_on(p, Q5) || use->next ||
        use->input != 0 || qdqi_htp_role(layer->op) != QDQI_HTP_COMPUTES)
        return NULL;
    const struct qdqi_node *next = &p->model->graph.nodes[use->node];
    struct qdq_layer *behind = p->by_node[use->node];
    return behind && next->scope == node->scope && next->outputs[0] &&
                   qdqi_htp_role(behind->op) == QDQI_HTP_CLIPS &&
                   !is_selected(p, behind) &&
                   qdqi_tensor_format(p, next->outputs[0])->symmetric != QDQ_YES &&
                   qdqi_output_can_have_pair(p, next, 0, QDQI_FLOAT32)
               ? behind
               : NULL;
}

static bool
is_computed_in_integers(const struct qdq_layer *layer)
{
    const enum qdqi_htp_role role = qdqi_htp_role(layer->op);
    return layer->n_inputs > 0 && role != QDQI_HTP_NONE && role != QDQI_HTP_MOVES;
}

/* Returns whether the tensor is a constant vector of so many float32. */
static bool
is_vector_of(const struct qdqi_tensor *t, int64_t n)
{
    const int64_t *dims;
    size_t rank;
    return t && t->is_fixed && t->dtype == QDQI_FLOAT32 &&
           qdqi_tensor_dims(t, &dims, &rank) && rank == 1 && dims[0] == n;
}

/* Returns the Add of a constant vector that alone reads what a MatMul makes of a constant matrix:
   the two are one layer with a bias. Else NULL. */
static struct qdq_layer *
bias_behind(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    const struct qdqi_tensor *t = node->outputs[0];
    const struct qdqi_use *use = t ? t->uses : NULL;
    const int64_t *matrix;
    size_t rank;
    if (!qdqi_rule_is_on(p, Q9) || !qdqi_node_is(node->proto, "MatMul") ||
        layer->weight_input != 1 || !use || use->next || t->is_output ||
        t->is_captured || !qdqi_tensor_dims(node->inputs[1], &matrix, &rank) ||
        rank != 2)
        return NULL;
    const struct qdqi_node *add = &p->model->graph.nodes[use->node];
    struct qdq_layer *ret = p->by_node[use->node];
    return ret && add->scope == node->scope && qdqi_node_is(add->proto, "Add") &&
                   add->proto->n_input == 2 && !is_selected(p, ret) &&
                   is_vector_of(add->inputs[!use->input], matrix[1]) &&
                   qdqi_gelu_part(p, ret->node) == QDQI_GELU_NONE
               ? ret
               : NULL;
}

/* Returns the layer behind which the pair on the output of a layer stands: itself, the bias that
   belongs to it, or what clips the output. */
static struct qdq_layer *
end_of(const struct planner *p, struct qdq_layer *layer)
{
    struct qdq_layer *bias = bias_behind(p, layer), *end = bias ? bias : layer;
    struct qdq_layer *clip = clipping(p, end);
    return clip ? clip : end;
}

static void
take_pairs_behind(struct planner *p, struct qdq_layer *layer)
{
    struct qdq_layer *bias = bias_behind(p, layer), *end = end_of(p, layer);
    if (bias) {
        drop_inputs(bias);
        bias->weight_input = bias->weight_axis = -1;
        bias->weight = NULL;
        qdqi_rule_cite(bias, Q9);
    }
    if (end != layer && end != bias) {
        drop_inputs(end);
        qdqi_rule_cite(end, Q5);
    }
}

/* Takes the pairs from inside of GELUs, and from between layers and what clips their outputs. */
static void
take_inner_pairs(struct planner *p)
{
    for (size_t i = 0; i < p->n_layers; i++) {
        struct qdq_layer *layer = &p->layers[i];
        if (qdqi_gelu_part(p, layer->node) != QDQI_GELU_NONE)
            settle_gelu_part(p, layer);
        else if (is_computed_in_integers(layer))
            take_pairs_behind(p, layer);
    }
}

/* --- outputs of layers --------------------------------------------------------------- */

static bool
decide_output(struct planner *p, struct qdq_layer *layer)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    const struct qdqi_class *cls = p->graph->classes[layer->node];
    const enum qdqi_gelu_part part = qdqi_gelu_part(p, layer->node);
    if (part == QDQI_GELU_LAST)
        return !qdqi_output_can_have_pair(p, node, 0, QDQI_FLOAT32) ||
               qdqi_output_add(p, layer, 0);
    if (part != QDQI_GELU_NONE || !is_computed_in_integers(layer))
        return true;
    struct qdq_layer *end = end_of(p, layer);
    const struct qdqi_node *last = qdqi_node_of(p, end);
    if (!qdqi_output_can_have_pair(
            p, last, 0, qdqi_layer_dtype(cls, node, layer->quantized_inputs[0])) ||
        qdqi_all_read_raw(p, last->outputs[0]))
        return true;
    if (end != layer) {
        end->reason = layer->reason;
        end->reason_kind = layer->reason_kind;
        return qdqi_output_add(p, end, 0);
    }
    if (qdqi_htp_role(layer->op) == QDQI_HTP_UNIT &&
        !qdqi_map_put(p->outputs.units, node->outputs[0]->name, node->outputs[0]))
        return false;
    return qdqi_output_add(p, layer, 0);
}

/* Decides about a layer that moves data. If an entry selects the layer, only the
   entry decides. */
static bool
decide_moving(struct planner *p, struct qdq_layer *layer)
{
    static const int first[] = {0};
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    const struct qdqi_choice *choice = &p->selection.choices[layer->node];
    if (qdqi_qnn_reads_table(p, layer))
        return qdqi_decide_table(p, layer);
    if (qdqi_htp_role(layer->op) != QDQI_HTP_MOVES || node->proto->n_input == 0 ||
        !node->inputs[0] || !qdqi_map_get(p->outputs.paired, node->inputs[0]->name) ||
        (choice->entry && !choice->entry->quantize_input) ||
        !qdqi_moves_in_range(p->model, node) ||
        (!choice->entry && node->outputs[0] && qdqi_all_read_raw(p, node->outputs[0])))
        return true;
    if (layer->n_inputs == 0) {
        layer->quantized_inputs = first;
        layer->n_inputs = 1;
        layer->reason = choice->entry ? choice->reason : "default";
        layer->reason_kind = choice->entry ? QDQ_REASON_ENTRY : QDQ_REASON_DEFAULT;
    }
    return qdqi_output_add_moved(p, layer);
}

enum qdq_code
qdqi_qnn_decide_outputs(struct planner *p, struct qdq_error *err)
{
    if (p->spec->weight_only)
        return QDQ_OK;
    take_inner_pairs(p);
    bool ok = qdqi_outputs_begin(p);
    for (size_t i = 0; ok && i < p->n_layers; i++)
        ok = decide_output(p, &p->layers[i]);
    for (size_t i = 0; ok && i < p->n_layers; i++)
        ok = decide_moving(p, &p->layers[i]);
    return ok ? QDQ_OK : qdqi_no_memory(err);
}

/* --- ranges of operators --------------------------------------------------------------- */

static bool
is_made_by(const struct planner *p, const struct qdqi_planned_tensor *t, const char *op)
{
    return t->tensor->producer >= 0 &&
           qdqi_node_is(p->model->graph.nodes[t->tensor->producer].proto, op);
}

/* Gives a tensor of 16 bits the only scale that the HTP has for the operator that makes it. */
static void
fix_range(const struct planner *p, struct qdqi_planned_tensor *t)
{
    const bool tanh = is_made_by(p, t, "Tanh");
    const bool is_signed = t->format == QDQI_TO_INT16;
    if ((!is_signed && t->format != QDQI_TO_UINT16) ||
        (!tanh && !is_made_by(p, t, "Sigmoid")))
        return;
    t->has_range = true;
    t->low = tanh || is_signed ? -1 : 0;
    t->high = tanh || is_signed ? 32767.0F / 32768 : 65535.0F / 65536;
}

/* --- the plan ------------------------------------------------------------------------------ */

/* Returns the input index of the bias of a layer that is computed in integers, or -1.
   The bias has one number for each channel. */
static int
bias_input(const struct planner *p, const struct qdq_layer *layer)
{
    enum { BIAS = 2 };
    static const char *const ops[] = {
        "Conv", "ConvTranspose", "Gemm", "InstanceNormalization", "LayerNormalization",
        NULL};
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    const int64_t *dims;
    size_t rank;
    if (layer->weight_input != 1 || layer->n_inputs != 1 ||
        !qdqi_node_is_one_of(node->proto, ops) || !qdqi_input_is_constant(node, BIAS) ||
        node->inputs[BIAS]->dtype != QDQI_FLOAT32 ||
        !qdqi_tensor_dims(node->inputs[BIAS], &dims, &rank) || rank != 1 || dims[0] < 1)
        return -1;
    return qdqi_node_is(node->proto, "Gemm") && !qdqi_gemm_is_unscaled(node->proto)
               ? -1
               : BIAS;
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
        const int input = bias_input(p, layer);
        if (input < 0 || !qdqi_rule_is_on(p, Q4) ||
            plan->activations[layer->input_rows[0]].dtype != QDQI_FLOAT32)
            continue;
        static const char *const norms[] = {"InstanceNormalization",
                                            "LayerNormalization", NULL};
        const bool own = qdqi_rule_is_on(p, Q12) &&
                         qdqi_node_is_one_of(qdqi_node_of(p, layer)->proto, norms);
        qdqi_rule_cite(layer, Q4);
        if (own)
            qdqi_rule_cite(layer, Q12);
        plan->biases[plan->n_biases++] = (struct qdqi_planned_bias){
            .tensor = qdqi_node_of(p, layer)->inputs[input],
            .layer = i,
            .input = input,
            .activation = layer->input_rows[0],
            .weight = layer->weight_row,
            .has_own_scale = own,
        };
    }
    return QDQ_OK;
}

/* Constants that stand for an activation are rounded to the nearest integers. The factors of
   normalizations and the slopes of a PRelu have 8 bits beside activations of 16. */
static void
settle_operands(struct planner *p)
{
    static const char *const ops[] = {"InstanceNormalization", "LayerNormalization",
                                      "PRelu", NULL};
    for (size_t i = 0; i < p->n_layers; i++) {
        const struct qdq_layer *layer = &p->layers[i];
        if (layer->weight_input < 0 || !qdqi_qnn_is_operand(p, layer))
            continue;
        struct qdqi_planned_weight *w = &p->plan->weights[layer->weight_row];
        const bool narrow = qdqi_node_is_one_of(qdqi_node_of(p, layer)->proto, ops);
        w->rounding = QDQ_ROUND_NEAREST;
        if (narrow && w->format == QDQI_TO_UINT16)
            w->format = QDQI_TO_UINT8;
        if (narrow && w->format == QDQI_TO_INT16)
            w->format = QDQI_TO_INT8;
    }
}

/* Returns the row of the activation of 16 bits that the kernel of a layer makes, or QDQI_NONE. */
static size_t
wide_output(const struct planner *p, struct qdq_layer *layer)
{
    const struct qdq_layer *end = end_of(p, layer);
    if (end->n_outputs != 1)
        return QDQI_NONE;
    const struct qdqi_planned_tensor *rows = p->plan->activations;
    size_t row = end->output_rows[0];
    if (rows[row].conversion == QDQI_SECOND_FORMAT)
        row = rows[row].other;
    return qdqi_format_row((int)rows[row].format)->bits == 16 ? row : QDQI_NONE;
}

/* Has the scales of weights chosen by those of the activations around them (rule Q19). A weight of several
   layers goes by the first one. */
static void
shorten_factors(struct planner *p)
{
    static const char *const ops[] = {"Conv", "ConvTranspose", "Gemm", "MatMul", NULL};
    for (size_t i = 0; i < p->n_layers; i++) {
        struct qdq_layer *layer = &p->layers[i];
        if (layer->weight_input != 1 || layer->n_inputs != 1 ||
            !qdqi_node_is_one_of(qdqi_node_of(p, layer)->proto, ops))
            continue;
        struct qdqi_planned_weight *w = &p->plan->weights[layer->weight_row];
        const size_t to = wide_output(p, layer);
        if (w->has_short_factors || to == QDQI_NONE)
            continue;
        w->has_short_factors = true;
        w->factor_from = layer->input_rows[0];
        w->factor_to = to;
        qdqi_rule_cite(layer, Q19);
    }
}

/* Returns whether a Concat, whose output has row `to`, reads row `from` without a conversion. */
static bool
is_not_converted(const struct planner *p, size_t from, size_t to)
{
    const struct qdqi_planned_tensor *rows = p->plan->activations;
    const size_t leader = rows[from].leader;
    const struct qdqi_tensor *source = rows[leader].tensor;
    const bool is_narrow = qdqi_format_row((int)rows[leader].format)->bits == 8;
    if (leader == from || leader == to || rows[leader].format != rows[to].format ||
        rows[leader].conversion || rows[to].conversion || rows[leader].has_range)
        return false;
    return source->producer < 0 ||
           (is_narrow &&
            qdqi_node_is(p->model->graph.nodes[source->producer].proto, "Concat"));
}

/* Gives what a Concat joins the scale of what it makes where the HTP does not convert it (rule Q24). */
static void
join_scales(struct planner *p)
{
    struct qdqi_planned_tensor *rows = p->plan->activations;
    for (size_t i = p->n_layers; i-- > 0;) {
        struct qdq_layer *layer = &p->layers[i];
        if (strcmp(layer->op, "Concat") != 0 || layer->n_outputs != 1)
            continue;
        const size_t to = rows[layer->output_rows[0]].leader;
        for (size_t k = 0; k < layer->n_inputs; k++) {
            const size_t from = rows[layer->input_rows[k]].leader;
            if (!is_not_converted(p, layer->input_rows[k], to))
                continue;
            for (size_t r = 0; r < p->plan->view.n_tensors; r++)
                if (rows[r].leader == from)
                    rows[r].leader = to;
            qdqi_rule_cite(layer, Q24);
        }
    }
}

enum qdq_code
qdqi_qnn_complete(struct planner *p, struct qdq_error *err)
{
    enum qdq_code code = p->spec->weight_only ? QDQ_OK : qdqi_outputs_complete(p, err);
    if (!code && qdqi_rule_is_on(p, Q15))
        qdqi_join_gelu_formats(p);
    if (!code)
        code = qdqi_qnn_convert(p, err);
    if (!code && qdqi_rule_is_on(p, Q24))
        join_scales(p);
    for (size_t i = 0; !code && i < p->plan->view.n_tensors; i++)
        fix_range(p, &p->plan->activations[i]);
    settle_operands(p);
    qdqi_settle_tables(p);
    if (!code && qdqi_rule_is_on(p, Q19) && !p->spec->weight_only)
        shorten_factors(p);
    if (!code && qdqi_rule_is_on(p, Q13))
        code = qdqi_masked_sums_find(p, qdqi_rule_is_on(p, Q14), err);
    return code ? code : plan_biases(p, err);
}
