/* SPDX-License-Identifier: Apache-2.0 */
/* The decision about each layer: the wish of its entry, or of its class by default,
   is compared with what is possible. The decision has a reason. */
#include "config.h"
#include "files/model/constant.h"
#include "ground/base/order.h"
#include "graph/layers/infinities.h"
#include "plan/placement/layer_formats.h"
#include "plan/placement/target.h"

#include <stdlib.h>
#include <string.h>

/* The wish that an entry or the default has for a layer. */
struct wish {
    bool input, weight;
    const struct qdq_layer_entry *entry; /* NULL: the default decides */
    enum qdq_reason_kind kind;
    const char *reason;
};

static const char *const reasons[] = {
    [QDQ_REASON_DEFAULT] = "default",
    [QDQ_REASON_OFF_BY_DEFAULT] = "off by default",
    [QDQ_REASON_NOT_SELECTED] = "not selected",
};

/* Returns whether the class is on. The target decides about the library's rows; rows
   of a spec or an operator say it themselves. */
static bool
is_on(const struct planner *p, const struct qdqi_class *cls)
{
    const struct qdqi_hooks *hooks = p->spec->target->hooks;
    return hooks->is_on && !cls->is_given ? hooks->is_on(p, cls)
                                          : cls->state == QDQI_ON;
}

static struct wish
wish_for(const struct planner *p, const struct qdqi_class *cls, size_t node)
{
    const struct qdqi_choice *choice = &p->selection.choices[node];
    bool inputs = !p->spec->weight_only;
    if (choice->entry)
        return (struct wish){choice->entry->quantize_input && inputs,
                             choice->entry->quantize_weight, choice->entry,
                             QDQ_REASON_ENTRY, choice->reason};
    if (p->spec->mode == QDQ_MODE_PARTIAL)
        return (struct wish){.kind = QDQ_REASON_NOT_SELECTED,
                             .reason = reasons[QDQ_REASON_NOT_SELECTED]};
    bool on = is_on(p, cls);
    bool all = on && cls->state != QDQI_ON;
    enum qdq_reason_kind kind = on ? QDQ_REASON_DEFAULT : QDQ_REASON_OFF_BY_DEFAULT;
    return (struct wish){.input =
                             (all || (on && cls->support.quantize_input)) && inputs,
                         .weight = all || (on && cls->support.quantize_weight),
                         .kind = kind,
                         .reason = reasons[kind]};
}

/* Returns the reason why an input of that kind keeps the layer in floating point. */
static const char *
why_input(enum qdqi_input_kind input, struct qdq_layer *layer)
{
    if (input == QDQI_INPUT_FLOAT16)
        layer->reason_kind = QDQ_REASON_OPSET;
    return qdqi_input_reason(input);
}

/* Returns the reason why the layer's weight cannot be quantized, or NULL. */
static const char *
why_no_weight(const struct planner *p, const struct qdqi_node *node, int weight,
              struct qdq_layer *layer)
{
    const int64_t *dims;
    size_t rank;
    if (!qdqi_input_is_constant(node, weight))
        return "weight is not constant";
    const struct qdqi_tensor *t = node->inputs[weight];
    enum qdqi_input_kind type = qdqi_input_of_dtype(p->model, t->dtype);
    struct qdqi_constant elements;
    if (type != QDQI_INPUT_DATA)
        return why_input(type, layer);
    if (!qdqi_tensor_dims(t, &dims, &rank))
        return "weight is computed from constants";
    for (size_t i = 0; i < rank; i++)
        if (dims[i] == 0)
            return "weight is empty";
    if (t->dtype == QDQI_FLOAT16 &&
        qdqi_constant_read(p->model, t, &elements, NULL) == QDQ_UNSUPPORTED)
        return "weight is kept in a form that is not read";
    const struct qdqi_class *cls = p->graph->classes[layer->node];
    return (cls->is_operand || cls->is_table) && qdqi_constant_is_infinite(p->model, t)
               ? "its constant is not finite"
               : NULL;
}

/* Returns whether a layer's weight has a scale for each channel, if it has channels. */
static bool
is_per_channel(const struct planner *p, const struct qdqi_class *cls,
               const struct qdq_layer *layer, int weight_input, size_t rank)
{
    const struct qdqi_hooks *hooks = p->spec->target->hooks;
    const bool wanted =
        p->has_axes && layer->format->weights.granularity != QDQ_PER_TENSOR;
    if (!wanted || !hooks->is_per_channel || cls->is_given)
        return wanted;
    return hooks->is_per_channel(p, layer, weight_input, rank);
}

/* Sets the layer's weight. Returns the reason why the layer cannot have one, or
   NULL. */
static const char *
decide_weight(const struct planner *p, const struct qdqi_class *cls,
              const struct qdqi_node *node, struct qdq_layer *layer)
{
    int w = qdqi_weight_input(cls, node);
    if (qdqi_layer_is_paired(p->graph, node, w))
        return NULL;
    const char *why = why_no_weight(p, node, w, layer);
    const int64_t *dims;
    size_t rank = 0;
    if (why)
        return why;
    qdqi_tensor_dims(node->inputs[w], &dims, &rank);
    int axis =
        is_per_channel(p, cls, layer, w, rank) ? cls->axis(cls, node, w, rank) : -1;
    if (axis == QDQI_BAD_AXIS)
        return "weight lacks the channel axis of its layer support";
    const struct qdqi_hooks *hooks = p->spec->target->hooks;
    layer->weight_input = w;
    layer->weight_axis = hooks->is_operand && hooks->is_operand(p, layer)
                             ? axis
                             : qdqi_block_axis(p, layer, axis, dims, rank);
    layer->weight = node->inputs[w]->name;
    return NULL;
}

bool
qdqi_is_indexed(const struct qdq_layer_entry *entry, int i)
{
    if (!entry || !entry->index)
        return true;
    if (entry->n_index > QDQ_SHORT_INDEX)
        return bsearch(&i, entry->index, entry->n_index, sizeof i, qdqi_compare_ints);
    for (size_t k = 0; k < entry->n_index; k++)
        if (entry->index[k] == i)
            return true;
    return false;
}

bool
qdqi_is_infinite(const struct planner *p, const struct qdqi_tensor *t)
{
    const struct qdq_calibration_spec *c = &p->spec->calibration;
    if (t->producer < 0 || !p->graph->infinite[t->producer])
        return false;
    for (size_t i = 0; i < c->n_ranges; i++)
        if (strcmp(c->ranges[i].tensor, t->name) == 0)
            return false;
    return true;
}

/* Returns the kind of an input, which no range makes data. */
static enum qdqi_input_kind
kind_of_input(const struct planner *p, const struct qdqi_node *node, int i)
{
    const enum qdqi_input_kind kind = qdqi_layer_input(p->graph, node, i);
    return kind == QDQI_INPUT_DATA && qdqi_is_infinite(p, node->inputs[i])
               ? QDQI_INPUT_INFINITE
               : kind;
}

/*
 * Sets the layer's data inputs that `wish` asks for. Returns the reason why it can have
 * none, or NULL. Among several inputs, constants and integers (the condition of Where)
 * are left out. Any other input that cannot have a pair keeps the whole layer in
 * floating point.
 */
static const char *
decide_inputs(const struct planner *p, const struct qdqi_class *cls,
              const struct qdqi_node *node, const struct wish *wish, int *inputs,
              struct qdq_layer *layer)
{
    enum qdqi_input_kind hindrance = QDQI_INPUT_NO_DATA;
    size_t n_data = 0, n_paired = 0, n = 0;
    for (int i = 0; (size_t)i < node->proto->n_input; i++) {
        enum qdqi_input_kind input = kind_of_input(p, node, i);
        bool left_out = input == QDQI_INPUT_PAIRED ||
                        (cls->kind == QDQ_MULTI_INPUT && input > QDQI_INPUT_NO_DATA &&
                         input <= QDQI_INPUT_INTEGER);
        n_data += input == QDQI_INPUT_DATA;
        n_paired += input == QDQI_INPUT_PAIRED;
        if (input == QDQI_INPUT_DATA && wish->input && qdqi_is_indexed(wish->entry, i))
            inputs[n++] = i;
        else if (left_out && hindrance == QDQI_INPUT_NO_DATA)
            hindrance = input;
        else if (input > QDQI_INPUT_NO_DATA && !left_out)
            return why_input(input, layer);
    }
    if (n_data == 0 && n_paired == 0)
        return why_input(hindrance, layer);
    layer->quantized_inputs = inputs;
    layer->n_inputs = n;
    return NULL;
}

/* Decides about a layer for which there is a wish. Returns the reason why it is left
   alone, or NULL. */
static const char *
decide_layer(const struct planner *p, const struct qdqi_class *cls,
             const struct qdqi_node *node, const struct wish *wish, int *inputs,
             struct qdq_layer *layer)
{
    const struct qdqi_hooks *hooks = p->spec->target->hooks;
    const char *why = NULL;
    layer->reason_kind = QDQ_REASON_OTHER;
    if (qdqi_node_smooths(p->model, node))
        return "it divides the channels of an activation that is smoothed";
    if (cls->kind == QDQ_WEIGHTED && wish->weight)
        why = decide_weight(p, cls, node, layer);
    if (!why && cls->is_recurrent)
        why = why_no_weight(p, node, QDQI_RECURRENT, layer);
    if (why && hooks->needs_weight && !hooks->needs_weight(p, layer) && wish->input) {
        why = NULL;
        layer->reason_kind = QDQ_REASON_OTHER;
    }
    if (!why && hooks->hindrance)
        why = hooks->hindrance(p, layer, wish->input);
    if (!why && !((cls->is_table || cls->is_recurrent) && layer->weight))
        why = decide_inputs(p, cls, node, wish, inputs, layer);
    if (why) {
        layer->weight_input = layer->weight_axis = -1;
        layer->weight = NULL;
    } else {
        layer->reason_kind = wish->kind;
    }
    return why;
}

/*
 * Returns the position of the first index of the entry that is not a data input, or -1.
 */
static int
find_bad_index(const struct planner *p, const struct qdqi_node *node,
               const struct qdq_layer_entry *entry)
{
    for (size_t k = 0; entry && k < entry->n_index; k++)
        if (qdqi_layer_input(p->graph, node, entry->index[k]) == QDQI_INPUT_NO_DATA)
            return (int)k;
    return -1;
}

/* Handles an entry whose index names an input that is not a data input: fails with
   UNMATCHED, or adds one warning for the node. */
static enum qdq_code
check_index(struct planner *p, const struct qdqi_node *node, size_t i,
            struct qdq_error *err)
{
    const struct qdqi_choice *choice = &p->selection.choices[i];
    int k = find_bad_index(p, node, choice->entry);
    if (k < 0)
        return QDQ_OK;
    int input = choice->entry->index[k];
    bool there = (size_t)input < node->proto->n_input;
    const char *pointer =
        choice->rank == QDQI_BY_CASE
            ? choice->pointer
            : qdqi_arena_printf(p->plan->arena, "%s/quantization_index/%d",
                                choice->pointer, k);
    if (!pointer)
        return qdqi_no_memory(err);
    return qdqi_unmatched(&p->selection, err, pointer, node->name,
                          "%s asks for input %d of '%.128s' (%s), which %s",
                          choice->reason, input, node->name, node->proto->op_type,
                          there ? "has no data there" : "lacks it");
}

/* Warns that an entry could not quantize a layer. The warning names the entry that
   selects this layer by its name, because the user looks for the layer there. */
static enum qdq_code
warn_left_alone(struct planner *p, const struct qdq_layer *layer,
                const struct wish *wish, const char *why, struct qdq_error *err)
{
    if (p->selection.choices[layer->node].rank != QDQI_BY_NAME)
        return QDQ_OK;
    return qdqi_warn(&p->warnings, p->plan->arena, err, "not_quantized", layer->name,
                     "%s names it, but it stays in floating point: %s", wish->reason,
                     why);
}

/* Adds to the layer's reason the inputs that have a pair of the model's own. */
static enum qdq_code
note_paired_inputs(struct planner *p, const struct qdqi_node *node,
                   struct qdq_layer *layer, struct qdq_error *err)
{
    const char *list = NULL;
    for (int i = 0; (size_t)i < node->proto->n_input; i++) {
        if (!qdqi_layer_is_paired(p->graph, node, i))
            continue;
        list = list ? qdqi_arena_printf(p->plan->arena, "%s, %d", list, i)
                    : qdqi_arena_printf(p->plan->arena, "%d", i);
        if (!list)
            return qdqi_no_memory(err);
    }
    if (list)
        layer->reason = qdqi_arena_printf(p->plan->arena, "%s; pairs already: %s",
                                          layer->reason, list);
    return layer->reason ? QDQ_OK : qdqi_no_memory(err);
}

enum qdq_code
qdqi_decide(struct planner *p, size_t i, struct qdq_error *err)
{
    const struct qdqi_node *node = &p->model->graph.nodes[i];
    const struct qdqi_class *cls = p->graph->classes[i];
    if (!cls)
        return QDQ_OK;
    struct wish wish = wish_for(p, cls, i);
    struct qdq_layer *layer = &p->layers[p->n_layers++];
    *layer = (struct qdq_layer){.name = node->name,
                                .op = node->proto->op_type,
                                .cls = cls->support.cls,
                                .node = i,
                                .weight_input = -1,
                                .weight_axis = -1,
                                .reason = wish.reason,
                                .reason_kind = wish.kind,
                                .format = qdqi_node_format(p, i),
                                .is_constant = qdqi_node_is_fixed(node)};
    enum qdq_code code = check_index(p, node, i, err);
    if (code || !(wish.input || (wish.weight && cls->kind == QDQ_WEIGHTED)))
        return code;
    int *inputs =
        qdqi_arena_array(p->plan->arena, node->proto->n_input, sizeof *inputs);
    if (!inputs)
        return qdqi_no_memory(err);
    const char *why = decide_layer(p, cls, node, &wish, inputs, layer);
    if (!why) {
        qdqi_rules_apply(p, layer);
        return note_paired_inputs(p, node, layer, err);
    }
    layer->reason = why;
    code = warn_left_alone(p, layer, &wish, why, err);
    return code ? code : note_paired_inputs(p, node, layer, err);
}
