/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/rewrite/dynamic.h"

#include <string.h>

/* --- activations that the runtime quantizes ---------------------------------- */

/* The outputs of a tensor's DynamicQuantizeLinear. */
struct dynamic {
    const char *integers, *scale, *zero;
};

/* Adds a DynamicQuantizeLinear of a tensor, which all its readers share. */
static const struct dynamic *
quantize_dynamically(struct qdqi_pairs *p, const struct qdqi_tensor *t)
{
    struct dynamic *made = qdqi_map_get(p->dynamic, t->name);
    if (made)
        return made;
    made = qdqi_arena_alloc(p->arena, sizeof *made);
    if (!made || !qdqi_map_put(p->dynamic, t->name, made))
        return NULL;
    made->integers = qdqi_pairs_name(p, t->name, "_quantized");
    made->scale = qdqi_pairs_name(p, t->name, "_scale");
    made->zero = qdqi_pairs_name(p, t->name, "_zero_point");
    const char *name = qdqi_pairs_name(p, t->name, "_DynamicQuantizeLinear");
    if (!made->integers || !made->scale || !made->zero || !name)
        return NULL;
    Onnx__NodeProto *node =
        qdqi_edit_add_node(p->edit, qdqi_edit_before_uses(p->source, t),
                           "DynamicQuantizeLinear", name, &t->name, 1, made->integers);
    qdqi_edit_add_output(p->edit, node, made->scale);
    qdqi_edit_add_output(p->edit, node, made->zero);
    return node ? made : NULL;
}

/* Adds a node with an output named after a tensor. Returns the output. */
static const char *
add_step(struct qdqi_pairs *p, size_t at, const char *op, const char *tensor,
         const char *suffix, const char *const *inputs, size_t n, Onnx__NodeProto **ret)
{
    const char *output = qdqi_pairs_name(p, tensor, suffix);
    const char *name = output ? qdqi_edit_name(p->edit, output, "_node") : NULL;
    *ret = name ? qdqi_edit_add_node(p->edit, at, op, name, inputs, n, output) : NULL;
    return *ret ? output : NULL;
}

/* Returns the matrix on the right: the stored integers, turned where a Gemm turns its
   weight. */
static const char *
turn_weight(struct qdqi_pairs *p, size_t at, const struct qdqi_node *node,
            const char *weight, const char *integers)
{
    Onnx__NodeProto *turn;
    if (!qdqi_node_is(node->proto, "Gemm") || !qdqi_node_int(node->proto, "transB", 0))
        return integers;
    return add_step(p, at, "Transpose", weight, "_turned", &integers, 1, &turn);
}

bool
qdqi_multiply_dynamically(struct qdqi_pairs *p, size_t i,
                          const struct qdqi_quantized *q, const char *integers,
                          const struct qdqi_beside *beside)
{
    const struct qdqi_node *node = &p->source->graph.nodes[i];
    const char *out = node->outputs[0]->name;
    const struct dynamic *x = quantize_dynamically(p, node->inputs[0]);
    const char *right = turn_weight(p, i, node, q->tensor, integers);
    Onnx__NodeProto *step;
    if (!x || !right)
        return false;
    const char *sum =
        add_step(p, i, "MatMulInteger", out, "_MatMulInteger",
                 (const char *[]){x->integers, right, x->zero, beside->zero}, 4, &step);
    const char *floats =
        sum ? add_step(p, i, "Cast", out, "_Cast", &sum, 1, &step) : NULL;
    qdqi_edit_add_int(p->edit, step, "to", QDQI_FLOAT32);
    const char *scales = add_step(p, i, "Mul", out, "_scales",
                                  (const char *[]){x->scale, beside->scale}, 2, &step);
    if (!floats || !scales)
        return false;
    const char *const factors[] = {floats, scales};
    if (!qdqi_node_is(node->proto, "Gemm") || node->proto->n_input < 3 ||
        !node->inputs[2]) {
        qdqi_edit_become(p->edit, i, "Mul", factors);
        return true;
    }
    const char *product = add_step(p, i, "Mul", out, "_Mul", factors, 2, &step);
    const char *const terms[] = {product, node->inputs[2]->name};
    qdqi_edit_become(p->edit, i, "Add", terms);
    return product != NULL;
}

/* --- LSTM that the runtime quantizes ------------------------------------------- */

/* The inputs of DynamicQuantizeLSTM: those of LSTM, and behind them the scales and zero
   points of its weights. */
enum { LSTM_INPUTS = 8 };

/* Returns a weight of an LSTM as it is stored, which all layers share; NULL when out of
   memory. */
static const struct qdqi_stored_gates *
store_gates(struct qdqi_pairs *p, size_t row)
{
    const struct qdqi_planned_weight *w = &p->plan->weights[row];
    const int64_t *from = w->tensor->view.dims;
    const int64_t turned[] = {from[0], from[2], from[1]};
    const struct qdqi_quantized q = {.tensor = w->tensor->name,
                                     .dtype = w->tensor->dtype,
                                     .rank = w->tensor->view.rank,
                                     .dims = turned,
                                     .is_gates = true,
                                     .params = &p->scales->weights[row]};
    struct qdqi_stored_gates *made = &p->gates[row];
    if (!made->integers)
        made->integers = qdqi_pairs_store(p, &q, &made->beside);
    return made->integers ? made : NULL;
}

/* Makes an LSTM one that quantizes its input and its state in each step. It stays as it is
   where one of its weights stays float. */
static enum qdq_code
quantize_lstm(struct qdqi_pairs *p, const struct qdq_layer *layer,
              struct qdq_error *err)
{
    const size_t rows[] = {layer->weight_row, layer->recurrent_row};
    const size_t n = p->source->graph.nodes[layer->node].proto->n_input;
    if (!p->scales->weights[rows[0]].integers || !p->scales->weights[rows[1]].integers)
        return QDQ_OK;
    for (size_t i = n; i < LSTM_INPUTS; i++)
        qdqi_edit_put_input(p->edit, layer->node, i, "");
    for (size_t i = 0; i < 2; i++) {
        const struct qdqi_stored_gates *w = store_gates(p, rows[i]);
        if (!w)
            return qdqi_no_memory(err);
        qdqi_edit_set_input(p->edit, layer->node, 1 + i, w->integers);
        qdqi_edit_put_input(p->edit, layer->node, LSTM_INPUTS + 2 * i, w->beside.scale);
        qdqi_edit_put_input(p->edit, layer->node, LSTM_INPUTS + 2 * i + 1,
                            w->beside.zero);
    }
    qdqi_edit_retype(p->edit, layer->node, QDQI_DYNAMIC_LSTM, QDQI_MS_DOMAIN, "layout");
    return QDQ_OK;
}

enum qdq_code
qdqi_quantize_lstms(struct qdqi_pairs *p, struct qdq_error *err)
{
    const struct qdq_plan_view *view = &p->plan->view;
    enum qdq_code code = QDQ_OK;
    bool any = false;
    for (size_t i = 0; i < view->n_layers && !code; i++) {
        const struct qdq_layer *layer = &view->layers[i];
        if (layer->weight_input < 0 || !p->plan->weights[layer->weight_row].is_gates)
            continue;
        code = quantize_lstm(p, layer, err);
        any = true;
    }
    const Onnx__ModelProto *model = p->source->proto;
    if (any &&
        !qdqi_import_of(model->opset_import, model->n_opset_import, QDQI_MS_DOMAIN))
        qdqi_edit_import(p->edit, QDQI_MS_DOMAIN, 1);
    return code;
}
