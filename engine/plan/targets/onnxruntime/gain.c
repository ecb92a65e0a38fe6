/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An estimate of what an integer kernel of onnxruntime's CPU provider gains over the
 * floating-point one. It looks at the model alone: the shapes of weights, and which
 * neighbours compute in integers. The constants were fitted to times of single nodes of
 * real networks on AVX2. They decide the same on every machine, so that a plan does not
 * depend on the machine that makes it.
 */
#include "config.h"

#include "graph/layers/operators.h"
#include "plan/targets/onnxruntime/integer_paths.h"
#include "plan/targets/onnxruntime/kernels.h"
#include "plan/targets/onnxruntime/onnxruntime.h"
#include "plan/targets/shared/squares.h"

#include <string.h>

/* Nanoseconds of one thread. */
static const struct {
    double mac;        /* gained by a multiplication */
    double element;    /* lost by an element that the kernel reads or makes */
    double conversion; /* lost by an element that is quantized or dequantized */
    double tap;        /* lost by each element of a Conv's kernel, position and group */
    double group;      /* lost by each further group of a Conv, and position */
    double node;       /* lost by each node */
} costs = {.mac = 0.016,
           .element = 0.2,
           .conversion = 0.33,
           .tap = 1,
           .group = 11,
           .node = 3000};

/* The number of positions that are assumed, since shapes are often not known: of a
   Conv's output, and rows of a MatMul's. */
enum { CONV_POSITIONS = 256, ROWS = 64 };

/* The least share of what integers could gain in all layers that the layers which gain have
   to gain together; a smaller one is lost in the noise of a measurement. */
static const double least_share = 0.05;

enum qdq_code
qdqi_gain_begin(struct planner *p, struct qdq_error *err)
{
    struct qdqi_arena *arena = p->plan->arena;
    struct qdqi_onnxruntime_marks *marks = qdqi_arena_alloc(arena, sizeof *marks);
    if (!marks)
        return qdqi_no_memory(err);
    *marks = (struct qdqi_onnxruntime_marks){NULL, NULL};
    p->marks = marks;
    if (!qdqi_rule_is_on(p, C15))
        return QDQ_OK;
    marks->squared = qdqi_mark_squared(&p->model->graph, arena);
    return marks->squared ? QDQ_OK : qdqi_no_memory(err);
}

/* --- layers with a weight --------------------------------------------------- */

/* A layer's shape: the elements of one position of its output and input, and the
   multiplications that it takes. */
struct shape {
    double outputs, inputs, macs, taps, groups, positions;
};

/* Returns whether each sample has one position, behind a pool over all of them. */
static bool
is_pooled(const struct planner *p, const struct qdqi_tensor *t)
{
    static const char *const pools[] = {"GlobalAveragePool", "GlobalMaxPool",
                                        "ReduceMean", NULL};
    const struct qdqi_node *node = qdqi_maker_of(&p->model->graph, t);
    for (int i = 0; node && i < QDQI_MOST_MOVES; i++) {
        if (qdqi_node_is_one_of(node->proto, pools))
            return true;
        bool conv = qdqi_node_is(node->proto, "Conv");
        bool bias = qdqi_node_is(node->proto, "Add") && qdqi_input_is_constant(node, 1);
        if (!conv && !bias && !qdqi_passes_integers(node->proto->op_type))
            return false;
        node = qdqi_maker_of(&p->model->graph, node->inputs[0]);
    }
    return false;
}

/* Returns false for a weight whose shape is none of a layer's. */
static bool
read_shape(const struct planner *p, const struct qdq_layer *layer, struct shape *ret)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    const int64_t *dims;
    size_t rank;
    *ret = (struct shape){.taps = 0, .groups = 1, .positions = ROWS};
    if (layer->weight_input < 0 ||
        !qdqi_tensor_dims(node->inputs[layer->weight_input], &dims, &rank) || rank < 2)
        return false;
    if (qdqi_node_is(node->proto, "LSTM")) { /* in each step: its input and its state */
        ret->inputs = (double)dims[rank - 1] + (double)dims[rank - 2] / 4;
        ret->outputs = (double)dims[rank - 2];
        ret->macs = ret->inputs * ret->outputs;
        return true;
    }
    if (!qdqi_node_is(node->proto, "Conv")) {
        ret->inputs = (double)dims[rank - 2];
        ret->outputs = (double)dims[rank - 1];
        ret->macs = ret->inputs * ret->outputs;
        return true;
    }
    ret->groups = (double)qdqi_node_int(node->proto, "group", 1);
    ret->outputs = (double)dims[0];
    ret->taps = 1;
    for (size_t i = 2; i < rank; i++)
        ret->taps *= (double)dims[i];
    ret->macs = ret->outputs * (double)dims[1] * ret->taps;
    ret->inputs = (double)dims[1] * ret->groups * qdqi_strides(node);
    ret->positions = is_pooled(p, node->inputs[0]) ? 1 : CONV_POSITIONS;
    return true;
}

/* Estimates the nanoseconds that a position of the layer's output gains. */
static double
estimate(const struct planner *p, const struct qdq_layer *layer, const struct shape *s)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    const struct qdqi_tensor *in = node->inputs[layer->quantized_inputs[0]];
    const struct qdqi_integer_readers readers =
        qdqi_integer_readers(p, node->outputs[0]);
    double gain = s->macs * costs.mac - (s->inputs + s->outputs) * costs.element -
                  s->taps * s->groups * costs.tap - (s->groups - 1) * costs.group -
                  costs.node / s->positions;
    if (!qdqi_comes_from_integers(p, in))
        gain -=
            s->inputs * costs.conversion / (double)qdqi_integer_readers(p, in).integer;
    if (readers.other > 0 && (readers.integer > 0 || strcmp(layer->op, "Conv") == 0))
        gain -=
            s->outputs * costs.conversion; /* other kernels make floats themselves */
    return gain;
}

/* --- the decision ------------------------------------------------------------ */

/* Returns whether an operator without a weight passes integers on as fast as they come,
   and without further rounding than its readers need. */
static bool
is_passing(const struct planner *p, const struct qdq_layer *layer)
{
    static const char *const ops[] = {
        "Add", "Concat", "AveragePool", "GlobalAveragePool", "LeakyRelu", NULL};
    return qdqi_node_is_one_of(qdqi_node_of(p, layer)->proto, ops) &&
           layer->weight_input < 0;
}

static bool
is_between_integers(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    const struct qdqi_integer_readers readers =
        qdqi_integer_readers(p, node->outputs[0]);
    for (size_t i = 0; i < layer->n_inputs; i++)
        if (!qdqi_comes_from_integers(p, node->inputs[layer->quantized_inputs[i]]))
            return false;
    return readers.integer > 0 && readers.other == 0;
}

/* Estimates what a position of the layer's output gains where the runtime quantizes what
   the layer reads: it passes over the input twice, and the kernel makes floats. */
static double
estimate_dynamic(const struct shape *s)
{
    return s->macs * costs.mac - s->inputs * (costs.element + 2 * costs.conversion) -
           s->outputs * costs.element - 2 * costs.node / s->positions;
}

/* Returns the reason to leave a layer in floating point, or NULL. */
static const char *
reason_against(const struct planner *p, const struct qdq_layer *layer)
{
    struct shape shape;
    if (p->spec->dynamic)
        return read_shape(p, layer, &shape) && estimate_dynamic(&shape) <= 0
                   ? "rule:C15, conversions cost more time than integers gain"
                   : NULL;
    if (is_passing(p, layer))
        return is_between_integers(p, layer)
                   ? NULL
                   : "rule:C15, not all of its neighbours compute in integers";
    if (!qdqi_is_product(layer->op) || !read_shape(p, layer, &shape))
        return "rule:C15, integers cost accuracy there and gain no time";
    if (qdqi_marks_of(p)->squared[layer->node])
        return "rule:C15, its output is squared";
    const char *kept = qdqi_tied_reason(p, layer, P5);
    if (kept)
        return kept;
    return estimate(p, layer, &shape) > 0
               ? NULL
               : "rule:C15, conversions cost more time than integers gain";
}

static void
leave(const struct planner *p, struct qdq_layer *layer, const char *reason)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    for (size_t i = 0; qdqi_has_kernel(layer->op) && i < layer->n_inputs; i++)
        qdqi_integer_reader_leave(p, node->inputs[layer->quantized_inputs[i]]);
    qdqi_layer_leave(layer, qdqi_tied_reason(p, layer, P5) == reason ? P5 : C15,
                     reason);
}

static bool
may_leave(const struct planner *p, const struct qdq_layer *layer)
{
    return layer->n_inputs > 0 && !p->selection.choices[layer->node].entry &&
           qdqi_has_kernel(layer->op);
}

/* Returns what the multiplications of all layers that may be computed in integers could
   gain. */
static double
most_gain(const struct planner *p)
{
    double sum = 0;
    struct shape s;
    for (size_t i = 0; i < p->n_layers; i++)
        if (qdqi_is_product(p->layers[i].op) && read_shape(p, &p->layers[i], &s))
            sum += s.macs * costs.mac * s.positions;
    return sum;
}

/* Leaves all layers in floating point where they gain next to nothing together. A layer
   that an entry selects stays, and those around it. */
static void
leave_small_gain(struct planner *p, double most)
{
    double sum = 0;
    struct shape s;
    for (size_t i = 0; i < p->n_layers; i++) {
        const struct qdq_layer *layer = &p->layers[i];
        if (layer->n_inputs > 0 && p->selection.choices[layer->node].entry)
            return;
        if (layer->n_inputs > 0 && qdqi_is_product(layer->op) &&
            read_shape(p, layer, &s))
            sum += estimate(p, layer, &s) * s.positions;
    }
    for (size_t i = 0; sum < least_share * most && i < p->n_layers; i++)
        if (may_leave(p, &p->layers[i]))
            leave(p, &p->layers[i],
                  "rule:C15, integers gain next to nothing of the model's time");
}

/* Returns whether the rule weighs a layer. */
static bool
weighs(const struct planner *p, const struct qdq_layer *layer)
{
    return qdqi_has_kernel(layer->op) || p->graph->classes[layer->node]->is_recurrent;
}

bool
qdqi_gain_apply(struct planner *p)
{
    const double most = most_gain(p);
    bool changed = qdqi_integer_readers_keep(p), ok = changed;
    /* Each layer that is left may take away what its neighbours gain. */
    while (changed) {
        changed = false;
        for (size_t i = 0; i < p->n_layers; i++) {
            struct qdq_layer *layer = &p->layers[i];
            const char *reason;
            if ((layer->n_inputs == 0 &&
                 !(p->spec->dynamic && layer->weight_input >= 0)) ||
                p->selection.choices[layer->node].entry || !weighs(p, layer) ||
                !(reason = reason_against(p, layer)))
                continue;
            leave(p, layer, reason);
            changed = true;
        }
    }
    if (ok && !p->spec->dynamic)
        leave_small_gain(p, most);
    qdqi_marks_of(p)->readers = NULL;
    return ok;
}
