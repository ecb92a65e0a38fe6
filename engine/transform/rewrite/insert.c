/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/rewrite/insert.h"

#include "transform/rewrite/dynamic.h"
#include "transform/rewrite/embedding.h"
#include "transform/rewrite/tied.h"
#include "transform/rewrite/table_rows.h"
#include "transform/rewrite/typed_pair.h"
#include "files/model/constant.h"
#include "numbers/arithmetic/both.h"
#include "graph/weights/blocks.h"
#include "graph/weights/integers.h"
#include "graph/weights/scales.h"
#include "graph/edit/edit.h"
#include "plan/placement/branches.h"

#include <stdio.h>
#include <string.h>

/* --- pairs ---------------------------------------------------------------- */

/* Returns whether scales are stored as powers of two. */
static bool
has_powers(const struct qdqi_params *p)
{
    return p->scale_codes &&
           qdqi_format_row((int)p->format)->scales == QDQI_SCALES_E8M0;
}

/* Adds QuantizeLinear or DequantizeLinear of `tensor` before node `at`. Returns the
   name of its output, or NULL when out of memory. */
static const char *
add_node(struct qdqi_pairs *p, size_t at, const char *op, const char *name,
         const char *tensor, const struct qdqi_beside *beside, const char *output,
         const struct qdqi_params *params)
{
    const char *inputs[] = {tensor, beside->scale, beside->zero};
    Onnx__NodeProto *node =
        qdqi_edit_add_node(p->edit, at, op, name, inputs, beside->zero ? 3 : 2, output);
    if (!beside->zero && strcmp(op, "QuantizeLinear") == 0)
        qdqi_edit_add_int(p->edit, node, "output_dtype",
                          qdqi_format_row((int)params->format)->dtype);
    if (params->axis >= 0)
        qdqi_edit_add_int(p->edit, node, "axis", params->axis);
    if (params->block > 0)
        qdqi_edit_add_int(p->edit, node, "block_size", params->block);
    if (has_powers(params)) /* without it the output has the scale's type */
        qdqi_edit_add_int(p->edit, node, "output_dtype", QDQI_FLOAT32);
    return node ? output : NULL;
}

/* Adds the DequantizeLinear of scales that are multiples of one for the whole tensor. Returns the
   name of its output, or NULL when out of memory. */
static const char *
add_scales_of_scales(struct qdqi_pairs *p, size_t at, const struct qdqi_quantized *q,
                     const char *scales)
{
    const char *inputs[] = {scales, qdqi_pairs_name(p, q->tensor, "_scale_scale")};
    const char *name = qdqi_pairs_name(p, q->tensor, "_scale_DequantizeLinear");
    const char *output =
        qdqi_pairs_name(p, q->tensor, "_scale_DequantizeLinear_Output");
    if (!inputs[1] || !name || !output)
        return NULL;
    qdqi_edit_add_initializer(p->edit, inputs[1], QDQI_FLOAT32, 1, true,
                              &q->params->tensor_scale);
    return qdqi_edit_add_node(p->edit, at, "DequantizeLinear", name, inputs, 2, output)
               ? output
               : NULL;
}

/*
 * Adds scale, zero point, QuantizeLinear and DequantizeLinear before node `at`. The
 * pair reads the tensor named `reads` and makes the one named `makes`. Returns the name
 * of the dequantized tensor, or NULL when out of memory.
 */
static const char *
add_pair_between(struct qdqi_pairs *p, size_t at, const struct qdqi_quantized *q,
                 const char *reads, const char *makes)
{
    struct qdqi_beside beside;
    if (!reads || !makes || !qdqi_pairs_add_beside(p, q, &beside))
        return NULL;
    const char *q_out = qdqi_pairs_name(p, q->tensor, "_QuantizeLinear_Output");
    const char *q_name = qdqi_pairs_name(p, q->tensor, "_QuantizeLinear");
    const char *dq_name = qdqi_pairs_name(p, q->tensor, "_DequantizeLinear");
    if (!q_out || !dq_name || !q_name ||
        !add_node(p, at, "QuantizeLinear", q_name, reads, &beside, q_out, q->params))
        return NULL;
    return add_node(p, at, "DequantizeLinear", dq_name, q_out, &beside, makes,
                    q->params);
}

static const char *
add_pair(struct qdqi_pairs *p, size_t at, const struct qdqi_quantized *q)
{
    return add_pair_between(p, at, q, q->tensor,
                            qdqi_pairs_name(p, q->tensor, "_DequantizeLinear_Output"));
}

static struct qdqi_quantized
activation_of(const struct qdqi_pairs *p, size_t i)
{
    const struct qdqi_planned_tensor *planned = &p->plan->activations[i];
    return (struct qdqi_quantized){
        .tensor = planned->tensor->name,
        .dtype = planned->dtype,
        .is_typed =
            qdqi_is_typed_pair(p->source, planned->tensor, &p->scales->activations[i]),
        .params = &p->scales->activations[i]};
}

/* Adds the pair of an activation, which reads one tensor and makes the other, and the pair of its second
   format before it or behind it. Returns the name of the tensor that it makes, or NULL when out of
   memory. */
static const char *
add_pairs_between(struct qdqi_pairs *p, size_t at, size_t i, const char *reads,
                  const char *makes)
{
    const struct qdqi_planned_tensor *t = &p->plan->activations[i];
    const struct qdqi_quantized q = activation_of(p, i);
    if (t->conversion == QDQI_ONE_FORMAT)
        return add_pair_between(p, at, &q, reads, makes);
    const bool is_first = t->conversion == QDQI_FIRST_FORMAT;
    const struct qdqi_quantized other = activation_of(p, t->other);
    const char *converted = qdqi_pairs_name(p, q.tensor, "_DequantizeLinear_Output");
    if (is_first && !add_pair_between(p, at, &q, reads, makes))
        return NULL;
    p->made[t->other] =
        add_pair_between(p, at, &other, is_first ? makes : reads, converted);
    if (is_first || !p->made[t->other])
        return p->made[t->other] ? makes : NULL;
    return add_pair_between(p, at, &q, converted, makes);
}

/*
 * Adds the pair of a tensor that all its readers read dequantized. If a node makes the
 * tensor, the node's output gets a new name and the pair's output gets the tensor's
 * name. So all readers, and the graph if the tensor is its output, get the output of
 * the pair.
 */
static const char *
add_pair_everywhere(struct qdqi_pairs *p, size_t i)
{
    const struct qdqi_tensor *t = p->plan->activations[i].tensor;
    if (t->producer < 0) {
        const char *output =
            add_pairs_between(p, qdqi_edit_before_uses(p->source, t), i, t->name,
                              qdqi_pairs_name(p, t->name, "_DequantizeLinear_Output"));
        for (const struct qdqi_use *use = t->uses; use; use = use->next)
            qdqi_edit_set_input(p->edit, use->node, (size_t)use->input, output);
        return qdqi_map_put(p->raw, t->name, (void *)(uintptr_t)t->name) ? output
                                                                         : NULL;
    }
    const size_t at = qdqi_edit_behind(p->source, t);
    const struct qdqi_node *node = &p->source->graph.nodes[t->producer];
    const char *raw = qdqi_map_get(p->raw, t->name);
    if (raw) /* the DequantizeLinear behind a Gather makes it already */
        return add_pairs_between(p, at, i, raw, t->name);
    raw = qdqi_pairs_name(p, t->name, "_QuantizeLinear_Input");
    if (!raw || !qdqi_map_put(p->raw, t->name, (void *)(uintptr_t)raw))
        return NULL;
    for (size_t k = 0; k < node->proto->n_output; k++)
        if (node->outputs[k] == t)
            qdqi_edit_set_output(p->edit, (size_t)t->producer, k, raw);
    return add_pairs_between(p, at, i, raw, t->name);
}

/* Returns whether a weight that is stored as integers has blocks and needs no zero points. */
static bool
needs_no_zeros(const struct qdqi_pairs *p, const struct qdqi_params *params)
{
    return p->plan->leaves_out_zeros && params->block > 0 &&
           (params->blocks ? qdqi_weight_is_symmetric(params->format)
                           : !qdqi_has_zero_points(params));
}

/* Adds such a weight with a DequantizeLinear. Returns the name of the dequantized tensor,
   or NULL when out of memory. */
static const char *
add_integers(struct qdqi_pairs *p, size_t at, const struct qdqi_quantized *q)
{
    struct qdqi_quantized stored = *q;
    struct qdqi_beside beside;
    stored.is_typed = needs_no_zeros(p, q->params);
    const char *integers = qdqi_pairs_store(p, &stored, &beside);
    if (integers && q->params->scale_codes && !has_powers(q->params))
        beside.scale = add_scales_of_scales(p, at, q, beside.scale);
    if (!integers || !beside.scale)
        return NULL;
    const char *output = qdqi_pairs_name(p, q->tensor, "_DequantizeLinear_Output");
    const char *name = qdqi_pairs_name(p, q->tensor, "_DequantizeLinear");
    if (!output || !name)
        return NULL;
    return add_node(p, at, "DequantizeLinear", name, integers, &beside, output,
                    q->params);
}

/* Stores a weight as integers, which each of its layers reads by itself. */
static bool
store_for_layers(struct qdqi_pairs *p, size_t row, const struct qdqi_quantized *q,
                 qdqi_read_stored_fn read_stored)
{
    const struct qdq_plan_view *view = &p->plan->view;
    struct qdqi_beside beside;
    const char *integers = qdqi_pairs_store(p, q, &beside);
    bool ok = integers != NULL;
    for (size_t i = 0; ok && i < view->n_layers; i++)
        if (view->layers[i].weight_input >= 0 && view->layers[i].weight_row == row)
            ok = read_stored(p, view->layers[i].node, q, integers, &beside);
    return ok;
}

/* --- pairs of the plan --------------------------------------------------------- */

/* Adds a pair whose QuantizeLinear reads the numbers that the chosen integers stand for,
   in the place of the weight. */
static const char *
add_rounded(struct qdqi_pairs *p, size_t at, const struct qdqi_quantized *q)
{
    const char *rounded = qdqi_pairs_name(p, q->tensor, "_rounded");
    size_t n = 0;
    if (!rounded || !qdqi_count_elements(q->dims, q->rank, &n))
        return NULL;
    qdqi_edit_add_made(p->edit, rounded, q->dtype, q->rank, q->dims, n * sizeof(float),
                       q->params->rounded_floats);
    return add_pair_between(p, at, q, rounded,
                            qdqi_pairs_name(p, q->tensor, "_DequantizeLinear_Output"));
}

static enum qdq_code
pair_activation(struct qdqi_pairs *p, size_t i, struct qdq_error *err)
{
    const struct qdqi_planned_tensor *planned = &p->plan->activations[i];
    const struct qdqi_quantized q = activation_of(p, i);
    if (qdqi_all_read_in_branches(p->source, p->plan, i))
        return QDQ_OK;
    p->made[i] =
        planned->everywhere
            ? add_pair_everywhere(p, i)
            : add_pair(p, qdqi_edit_before_uses(p->source, planned->tensor), &q);
    return p->made[i] ? QDQ_OK : qdqi_no_memory(err);
}

/* Stores a weight of a decoder for MatMulNBits, and, if it is that of the head, for the embeddings,
   too. *ret_done is false for other weights. */
static enum qdq_code
store_for_decoder(struct qdqi_pairs *p, size_t i, const struct qdqi_quantized *q,
                  bool *ret_done, struct qdq_error *err)
{
    const enum qdq_decoder_form form = p->plan->decoder;
    const struct qdqi_tensor *weight = p->plan->weights[i].tensor;
    struct qdqi_nbits stored;
    *ret_done = false;
    if (form == QDQ_DECODER_AS_IS || !qdqi_nbits_can(p, i, q))
        return QDQ_OK;
    const bool shares = q->dims[0] % q->params->block == 0 && qdqi_is_table(p, weight);
    if (form != QDQ_DECODER_MATMULNBITS && !shares)
        return QDQ_OK;
    enum qdq_code code = qdqi_nbits_store(p, q, &stored, err);
    if (code)
        return code;
    qdqi_nbits_multiply(p, i, &stored);
    *ret_done = true;
    return !shares || qdqi_share_table(p, weight, &stored) ? QDQ_OK
                                                           : qdqi_no_memory(err);
}

static enum qdq_code
pair_weight(struct qdqi_pairs *p, size_t i, struct qdq_error *err)
{
    const struct qdqi_planned_weight *w = &p->plan->weights[i];
    const struct qdqi_quantized q = {.tensor = w->tensor->name,
                                     .dtype = w->tensor->dtype,
                                     .rank = w->tensor->view.rank,
                                     .dims = w->tensor->view.dims,
                                     .params = &p->scales->weights[i]};
    size_t at = qdqi_edit_before_uses(p->source, w->tensor);
    if (w->is_gates)
        return QDQ_OK; /* qdqi_quantize_lstms() stores it */
    if (w->is_table)   /* a table that stays float stays as it is */
        return !q.params->integers || store_for_layers(p, i, &q, qdqi_dequantize_rows)
                   ? QDQ_OK
                   : qdqi_no_memory(err);
    if (p->plan->dynamic && q.params->integers)
        return store_for_layers(p, i, &q, qdqi_multiply_dynamically)
                   ? QDQ_OK
                   : qdqi_no_memory(err);
    bool done;
    enum qdq_code code = store_for_decoder(p, i, &q, &done, err);
    if (code || done)
        return code;
    if (w->apart && q.params->integers)
        return qdqi_store_apart(p, at, i, &q) ? QDQ_OK : qdqi_no_memory(err);
    if (w->table && q.params->integers)
        p->made_weights[i] = qdqi_store_tied(p, at, i, &q);
    else if (q.params->integers)
        p->made_weights[i] = add_integers(p, at, &q);
    else if (q.params->rounded_floats)
        p->made_weights[i] = add_rounded(p, at, &q);
    else
        p->made_weights[i] = add_pair(p, at, &q);
    return p->made_weights[i] ? QDQ_OK : qdqi_no_memory(err);
}

static void
connect_raw(struct qdqi_pairs *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = &p->source->graph.nodes[layer->node];
    for (size_t i = 0; i < node->proto->n_input; i++) {
        const char *raw =
            node->inputs[i] ? qdqi_map_get(p->raw, node->inputs[i]->name) : NULL;
        if (raw)
            qdqi_edit_set_input(p->edit, layer->node, i, raw);
    }
}

/* Stores a bias as integers behind a DequantizeLinear, without QuantizeLinear. */
static enum qdq_code
store_bias(struct qdqi_pairs *p, size_t i, struct qdq_error *err)
{
    const struct qdqi_planned_bias *b = &p->plan->biases[i];
    const struct qdqi_bias *numbers = &p->scales->biases[i];
    size_t node = p->plan->view.layers[b->layer].node;
    struct qdqi_edit *e = p->edit;
    const char *tensor = b->tensor->name;
    if (!numbers->integers)
        return QDQ_OK;
    const char *inputs[] = {qdqi_pairs_name(p, tensor, "_quantized"),
                            qdqi_pairs_name(p, tensor, "_scale")};
    const char *name = qdqi_pairs_name(p, tensor, "_DequantizeLinear");
    const char *output = qdqi_pairs_name(p, tensor, "_DequantizeLinear_Output");
    if (!inputs[0] || !inputs[1] || !name || !output)
        return qdqi_no_memory(err);
    qdqi_edit_add_initializer(e, inputs[0], QDQI_INT32, numbers->n, false,
                              numbers->integers);
    qdqi_edit_add_initializer(e, inputs[1], QDQI_FLOAT32, numbers->n_scales,
                              !numbers->per_channel, numbers->scales);
    Onnx__NodeProto *dq =
        qdqi_edit_add_node(e, node, "DequantizeLinear", name, inputs, 2, output);
    if (numbers->per_channel)
        qdqi_edit_add_int(e, dq, "axis", 0);
    qdqi_edit_set_input(e, node, (size_t)b->input, output);
    return QDQ_OK;
}

/* Makes a layer read the bias that takes the mean of its weight's errors, unless that is
   stored as integers. */
static enum qdq_code
shift_bias(struct qdqi_pairs *p, const struct qdqi_shifted_bias *b,
           struct qdq_error *err)
{
    for (size_t i = 0; i < p->plan->n_biases; i++) {
        const struct qdqi_planned_bias *planned = &p->plan->biases[i];
        if (p->plan->view.layers[planned->layer].node == b->node &&
            planned->input == b->input && p->scales->biases[i].integers)
            return QDQ_OK;
    }
    const char *name = qdqi_pairs_name(p, b->tensor, "_corrected");
    if (!name)
        return qdqi_no_memory(err);
    qdqi_edit_add_tensor(p->edit, name, QDQI_FLOAT32, b->rank, b->dims, b->values,
                         b->n * sizeof *b->values);
    qdqi_edit_set_input(p->edit, b->node, (size_t)b->input, name);
    return QDQ_OK;
}

/* Leaves out a bias that was made and takes nothing. */
static void
drop_bias(const struct qdqi_pairs *p, const struct qdqi_idle_bias *b)
{
    if (b->node == b->layer)
        qdqi_edit_drop_last_input(p->edit, b->node);
    else
        qdqi_edit_absorb(p->edit, b->node, b->layer);
    qdqi_edit_drop_unused(p->edit, b->tensor);
}

/* Returns the dequantized tensor of activation `i` for a layer: that of the pair in the branch of
   an If which the layer stands in, or else of the one pair. NULL when out of memory. */
static const char *
made_for(struct qdqi_pairs *p, const struct qdq_layer *layer, size_t i)
{
    const size_t branch = qdqi_branch_of(p->source, p->plan, layer->node, i);
    if (branch == 0)
        return p->made[i];
    const char *key = qdqi_arena_printf(p->arena, "%zu in %zu", i, branch);
    const char *made = key ? qdqi_map_get(p->in_branches, key) : NULL;
    if (made || !key)
        return made;
    /* TensorRT makes one of two equal pairs that read the same tensor where it computes the layer outside
       first, so that one of the layers is float: then the pair stands behind the other one, which changes no
       number. Behind it, and computed first, it makes the layer outside float. */
    bool *marks = qdqi_arena_array(p->arena, p->source->graph.n_nodes, sizeof *marks);
    if (!marks)
        return NULL;
    const struct qdqi_quantized q = activation_of(p, i);
    const bool behind =
        p->made[i] && qdqi_branch_follows(p->source, p->plan, branch, i, marks);
    made = add_pair_between(p, p->source->graph.scopes[branch].nodes[0], &q,
                            behind ? p->made[i] : q.tensor,
                            qdqi_pairs_name(p, q.tensor, "_DequantizeLinear_Output"));
    return made && qdqi_map_put(p->in_branches, key, (void *)(uintptr_t)made) ? made
                                                                              : NULL;
}

/* Makes the layer's planned edges read the dequantized tensors. Returns false when out of memory. */
static bool
connect_layer(struct qdqi_pairs *p, const struct qdq_layer *layer)
{
    for (size_t i = 0; i < layer->n_inputs; i++) {
        const char *made = made_for(p, layer, layer->input_rows[i]);
        if (!made)
            return false;
        qdqi_edit_set_input(p->edit, layer->node, (size_t)layer->quantized_inputs[i],
                            made);
    }
    if (layer->weight_input >= 0 && p->made_weights[layer->weight_row])
        qdqi_edit_set_input(p->edit, layer->node, (size_t)layer->weight_input,
                            p->made_weights[layer->weight_row]);
    return true;
}

/* Allocates what the pairs need besides the scales and the plan. */
static enum qdq_code
begin_pairs(struct qdqi_pairs *p, struct qdq_error *err)
{
    const struct qdq_plan_view *view = &p->plan->view;
    p->edit = qdqi_edit_new(p->source, p->arena);
    p->raw = qdqi_map_new(p->arena);
    p->dynamic = qdqi_map_new(p->arena);
    p->stems = qdqi_map_new(p->arena);
    p->in_branches = qdqi_map_new(p->arena);
    p->made = qdqi_arena_array(p->arena, view->n_tensors, sizeof *p->made);
    p->made_weights =
        qdqi_arena_array(p->arena, view->n_weights, sizeof *p->made_weights);
    p->gates = qdqi_arena_array(p->arena, view->n_weights, sizeof *p->gates);
    if (!p->edit || !p->raw || !p->dynamic || !p->stems || !p->in_branches ||
        !p->made || !p->made_weights || !p->gates)
        return qdqi_no_memory(err);
    return QDQ_OK;
}

/* Inserts a pair on each planned tensor and weight. Tables come first: a pair on the
   output of their Gather stands behind the table's own pair. */
static enum qdq_code
insert_all(struct qdqi_pairs *p, struct qdq_error *err)
{
    const struct qdq_plan *plan = p->plan;
    enum qdq_code code;
    for (size_t i = 0; i < plan->view.n_weights; i++)
        if (plan->weights[i].is_table && (code = pair_weight(p, i, err)))
            return code;
    for (size_t i = 0; i < qdqi_plan_tensors(plan); i++)
        if ((code = pair_activation(p, i, err)))
            return code;
    for (size_t i = 0; i < plan->view.n_weights; i++)
        if (!plan->weights[i].is_table && (code = pair_weight(p, i, err)))
            return code;
    return QDQ_OK;
}

/* Makes all layers read the tensors behind the pairs. */
static enum qdq_code
connect_all(struct qdqi_pairs *p, struct qdq_error *err)
{
    const struct qdq_plan *plan = p->plan;
    for (size_t i = 0; i < plan->view.n_layers; i++)
        if (!connect_layer(p, &plan->view.layers[i]))
            return qdqi_no_memory(err);
    for (size_t i = 0; plan->reads_raw && i < plan->view.n_layers; i++)
        if (plan->reads_raw[i])
            connect_raw(p, &plan->view.layers[i]);
    return qdqi_quantize_lstms(p, err);
}

/* Stores the integers of biases, and those that the mean error of their weight corrects. */
static enum qdq_code
store_biases(struct qdqi_pairs *p, struct qdq_error *err)
{
    enum qdq_code code;
    for (size_t i = 0; i < p->plan->n_biases; i++)
        if ((code = store_bias(p, i, err)))
            return code;
    for (size_t i = 0; i < p->scales->n_shifted; i++)
        if ((code = shift_bias(p, &p->scales->shifted[i], err)))
            return code;
    return QDQ_OK;
}

static void
drop_weight(struct qdqi_pairs *p, const struct qdqi_planned_weight *w)
{
    qdqi_edit_drop_unused(p->edit, w->tensor->name);
    if (w->table && w->table != w->tensor)
        qdqi_edit_drop_unused(p->edit, w->table->name);
}

/* Removes the initializers and biases that no node reads any more. */
static void
drop_replaced(struct qdqi_pairs *p)
{
    const struct qdq_plan *plan = p->plan;
    const struct qdqi_scales *scales = p->scales;
    for (size_t i = 0; i < plan->view.n_weights; i++)
        if (scales->weights[i].integers || scales->weights[i].rounded_floats)
            drop_weight(p, &plan->weights[i]);
    for (size_t i = 0; i < plan->n_biases; i++)
        if (scales->biases[i].integers)
            qdqi_edit_drop_unused(p->edit, plan->biases[i].tensor->name);
    for (size_t i = 0; i < scales->n_shifted; i++)
        qdqi_edit_drop_unused(p->edit, scales->shifted[i].tensor);
    for (size_t i = 0; i < scales->n_idle; i++)
        drop_bias(p, &scales->idle[i]);
}

enum qdq_code
qdqi_insert_pairs(const struct qdq_model *source, const struct qdq_plan *plan,
                  const struct qdqi_scales *scales,
                  const struct qdqi_metadata *metadata, size_t n_metadata,
                  struct qdqi_arena *arena, struct qdqi_edited *ret,
                  struct qdq_error *err)
{
    struct qdqi_pairs p = {
        .source = source, .plan = plan, .scales = scales, .arena = arena};
    enum qdq_code code;
    if ((code = begin_pairs(&p, err)) || (code = insert_all(&p, err)) ||
        (code = connect_all(&p, err)) || (code = store_biases(&p, err)))
        return code;
    drop_replaced(&p);
    for (size_t i = 0; i < n_metadata; i++)
        if (metadata[i].value)
            qdqi_edit_metadata(p.edit, metadata[i].key, metadata[i].value);
    return qdqi_edit_result(p.edit, ret, err);
}
