/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/placement/outputs.h"

#include "files/model/constant.h"
#include "plan/placement/target.h"

#include <math.h>
#include <string.h>

/* --- which tensors have a pair --------------------------------------------- */

static bool
note_inputs(struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    bool ok = true;
    for (size_t i = 0; ok && i < layer->n_inputs; i++) {
        struct qdqi_tensor *t = node->inputs[layer->quantized_inputs[i]];
        ok = qdqi_map_put(p->outputs.paired, t->name, t);
    }
    return ok;
}

bool
qdqi_outputs_begin(struct planner *p)
{
    struct qdqi_arena *arena = p->plan->arena;
    p->outputs = (struct qdqi_outputs){qdqi_map_new(arena), qdqi_map_new(arena),
                                       qdqi_map_new(arena)};
    bool ok = p->outputs.leaders && p->outputs.units && p->outputs.paired;
    for (size_t i = 0; ok && i < p->n_layers; i++)
        ok = note_inputs(p, &p->layers[i]);
    return ok;
}

bool
qdqi_output_add(struct planner *p, struct qdq_layer *layer, int output)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    size_t most = node->proto->n_output;
    int *list = (int *)(uintptr_t)layer->quantized_outputs;
    for (size_t i = 0; i < layer->n_outputs; i++)
        if (list[i] == output)
            return true;
    if (!list && !(list = qdqi_arena_array(p->plan->arena, most, sizeof *list)))
        return false;
    layer->quantized_outputs = list;
    list[layer->n_outputs++] = output;
    return qdqi_map_put(p->outputs.paired, node->outputs[output]->name,
                        node->outputs[output]);
}

bool
qdqi_output_can_have_pair(const struct planner *p, const struct qdqi_node *node,
                          size_t output, enum qdqi_dtype otherwise)
{
    const struct qdqi_tensor *t =
        output < node->proto->n_output ? node->outputs[output] : NULL;
    enum qdqi_dtype dtype = t && t->dtype != QDQI_UNKNOWN ? t->dtype : otherwise;
    return t && !t->is_fixed && !t->is_shape && !qdqi_is_infinite(p, t) &&
           qdqi_input_of_dtype(p->model, dtype) == QDQI_INPUT_DATA;
}

/* Returns whether an entry, or a rule of the target, leaves the layer in floating point, so
   that the layer reads no tensor from its pair. A Mul that smooths does not, either: the pair
   has one scale for channels that differ. */
static bool
must_read_raw(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdq_layer_entry *entry = p->selection.choices[layer->node].entry;
    const struct qdqi_hooks *hooks = p->spec->target->hooks;
    return layer->n_inputs == 0 &&
           ((entry && !entry->quantize_input) ||
            qdqi_node_smooths(p->model, qdqi_node_of(p, layer)) ||
            (hooks->must_read_raw && hooks->must_read_raw(p, layer)));
}

/* the most layers that move data between a tensor and the layers that read it raw */
enum { MOST_RAW_MOVES = 8 };

static bool all_read_raw(const struct planner *p, const struct qdqi_tensor *t,
                         int n_moves);

/* Returns whether the layer moves data to layers alone that read them raw. */
static bool
moves_raw(const struct planner *p, const struct qdq_layer *layer, int n_moves)
{
    const struct qdqi_hooks *hooks = p->spec->target->hooks;
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    if (n_moves >= MOST_RAW_MOVES || layer->n_inputs > 0 || !hooks->follows ||
        !hooks->follows(layer) || hooks->is_clipping(layer->op))
        return false;
    for (size_t i = 0; i < node->proto->n_output; i++)
        if (node->outputs[i] && !all_read_raw(p, node->outputs[i], n_moves + 1))
            return false;
    return true;
}

static bool
reads_raw(const struct planner *p, const struct qdq_layer *layer)
{
    return must_read_raw(p, layer) || moves_raw(p, layer, 0);
}

static bool
all_read_raw(const struct planner *p, const struct qdqi_tensor *t, int n_moves)
{
    for (const struct qdqi_use *use = t->uses; use; use = use->next) {
        const struct qdq_layer *layer = p->by_node[use->node];
        if (!layer || !(must_read_raw(p, layer) || moves_raw(p, layer, n_moves)))
            return false;
    }
    return t->uses && !t->is_output;
}

bool
qdqi_all_read_raw(const struct planner *p, const struct qdqi_tensor *t)
{
    return all_read_raw(p, t, 0);
}

/* --- layers that move data ------------------------------------------------- */

static const char *
text_attribute(const Onnx__NodeProto *node, const char *name, const char *otherwise,
               size_t *ret_len)
{
    const Onnx__AttributeProto *a = qdqi_node_attribute(node, name);
    *ret_len = a && a->has_s ? a->s.len : strlen(otherwise);
    return a && a->has_s ? (const char *)a->s.data : otherwise;
}

static bool
has_text(const Onnx__NodeProto *node, const char *name, const char *otherwise,
         const char *wanted)
{
    size_t len;
    const char *text = text_attribute(node, name, otherwise, &len);
    return len == strlen(wanted) && memcmp(text, wanted, len) == 0;
}

/* Returns whether the tensor is a constant of the file with the single value 0. */
static bool
is_zero(const struct qdq_model *model, const struct qdqi_tensor *t)
{
    struct qdqi_constant c;
    float value;
    if (!t->is_fixed || qdqi_constant_is_overridable(model, t) ||
        qdqi_constant_read(model, t, &c, NULL) || c.dtype != QDQI_FLOAT32 || c.n != 1)
        return false;
    memcpy(&value, c.bytes, sizeof value);
    return value == 0;
}

/*
 * Returns whether the node's output has no values outside the range of its input. A
 * cubic Resize may leave the range. A Pad adds a constant, which is surely in the range
 * only if it is 0.
 */
bool
qdqi_moves_in_range(const struct qdq_model *model, const struct qdqi_node *node)
{
    if (qdqi_node_is(node->proto, "Resize"))
        return !has_text(node->proto, "mode", "nearest", "cubic");
    if (qdqi_node_is(node->proto, "Dropout")) /* its training mode scales the values */
        return node->proto->n_input < 3 || !node->inputs[2];
    if (qdqi_node_is(node->proto, "Pad"))
        return !has_text(node->proto, "mode", "constant", "constant") ||
               node->proto->n_input < 3 || !node->inputs[2] ||
               is_zero(model, node->inputs[2]);
    return true;
}

bool
qdqi_output_add_moved(struct planner *p, struct qdq_layer *layer)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    struct qdqi_tensor *leader =
        qdqi_map_get(p->outputs.leaders, node->inputs[0]->name);
    if (!leader)
        leader = node->inputs[0];
    for (size_t i = 0; i < node->proto->n_output; i++) {
        if (!qdqi_output_can_have_pair(p, node, i, QDQI_FLOAT32) ||
            node->outputs[i] == leader)
            continue;
        if (!qdqi_output_add(p, layer, (int)i) ||
            !qdqi_map_put(p->outputs.leaders, node->outputs[i]->name, leader))
            return false;
    }
    return true;
}

/* --- the plan ------------------------------------------------------------- */

static enum qdq_code
plan_raw(struct planner *p, struct qdq_error *err)
{
    bool *raw = qdqi_arena_array(p->plan->arena, p->n_layers, sizeof *raw);
    if (!raw)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < p->n_layers; i++)
        raw[i] = reads_raw(p, &p->layers[i]);
    p->plan->reads_raw = raw;
    return QDQ_OK;
}

/* Returns the upper end of the range of an operator whose output lies in [0, 1]. That of Softmax
   ends just below 1: the reciprocal of float32(1/255) is below 255, and ONNX Runtime's integer
   kernel cuts it to 254; that of the next smaller float32 is not. */
static float
unit_top(const struct qdq_model *model, const struct qdqi_tensor *t)
{
    const bool is_softmax =
        t->producer >= 0 &&
        qdqi_node_is(model->graph.nodes[t->producer].proto, "Softmax");
    return is_softmax ? nextafterf(1, 0) : 1;
}

size_t
qdqi_output_convert(struct planner *p, size_t row, enum qdqi_format format,
                    bool symmetric)
{
    struct qdq_plan *plan = p->plan;
    struct qdqi_planned_tensor *from = &plan->activations[row];
    const size_t ret = plan->view.n_tensors++;
    plan->activations[ret] = *from;
    plan->activations[ret].format = format;
    plan->activations[ret].symmetric = symmetric;
    plan->activations[ret].has_range = false;
    plan->activations[ret].conversion = QDQI_SECOND_FORMAT;
    plan->activations[ret].other = row;
    from->conversion = QDQI_FIRST_FORMAT;
    from->other = ret;
    /* the names are in the plan's own memory */
    ((const char **)(uintptr_t)plan->view.tensors)[ret] = from->tensor->name;
    plan->n_conversions++;
    return ret;
}

enum qdq_code
qdqi_outputs_complete(struct planner *p, struct qdq_error *err)
{
    struct qdq_plan *plan = p->plan;
    const struct qdqi_outputs *o = &p->outputs;
    for (size_t i = 0; i < plan->view.n_tensors; i++) {
        struct qdqi_planned_tensor *t = &plan->activations[i];
        t->everywhere = true;
        t->has_range = qdqi_map_get(o->units, t->tensor->name) != NULL;
        t->high = unit_top(p->model, t->tensor);
    }
    return plan_raw(p, err);
}
