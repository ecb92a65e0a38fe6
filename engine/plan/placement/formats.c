/* SPDX-License-Identifier: Apache-2.0 */
/* The requirements of a plan's formats: the opset that they need, and the target's
   check. */
#include "config.h"
#include "plan/placement/formats.h"

#include "plan/placement/target.h"

#include <string.h>

/* --- blocks --------------------------------------------------------------- */

int
qdqi_input_axis(const struct qdqi_node *node, int axis, size_t rank)
{
    static const char *const matrices[] = {"Gemm", "MatMul", NULL};
    const int last = (int)rank - 1;
    if (qdqi_node_is_one_of(node->proto, matrices))
        return axis == last ? last - 1 : last;
    return axis == 0 ? 1 : 0;
}

int
qdqi_block_axis(const struct planner *p, const struct qdq_layer *layer, int axis,
                const int64_t *dims, size_t rank)
{
    const struct qdqi_node *node = &p->model->graph.nodes[layer->node];
    const struct qdq_weights *w = &layer->format->weights;
    if (w->granularity != QDQ_PER_BLOCK || !p->has_axes)
        return axis;
    if (rank == 1) /* a single block is one scale, which has no axis */
        return dims[0] > w->block ? 0 : axis;
    if (axis < 0)
        return axis;
    const int other = qdqi_input_axis(node, axis, rank);
    const struct qdqi_hooks *hooks = p->spec->target->hooks;
    const bool is_broken =
        dims[other] % w->block != 0 && qdqi_format_row((int)w->format)->block == 0;
    if (is_broken && hooks->wants_whole_blocks && hooks->wants_whole_blocks(p))
        return axis;
    return dims[other] > 1 ? other : axis;
}

bool
qdqi_has_byte_activations(const struct qdq_layer_format *format)
{
    return qdqi_is_8_bit_integer(format->activations.format);
}

int64_t
qdqi_block_of(const struct planner *p, const struct qdq_layer *layer,
              const struct qdqi_tensor *weight)
{
    const struct qdqi_class *cls = p->graph->classes[layer->node];
    const struct qdqi_node *node = &p->model->graph.nodes[layer->node];
    const struct qdqi_view *view = &weight->view;
    const struct qdq_weights *asked = &layer->format->weights;
    if (asked->granularity != QDQ_PER_BLOCK || layer->weight_axis < 0)
        return 0;
    if (view->rank > 1 &&
        cls->axis(cls, node, layer->weight_input, view->rank) == layer->weight_axis)
        return 0;
    return asked->block;
}

/* --- the opset ------------------------------------------------------------ */

static int64_t
opset_of(enum qdq_format format)
{
    return qdqi_format_row((int)format)->opset;
}

enum { OPSET_AXIS = 13, OPSET_BLOCKS = 21 };

static int64_t
larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Returns the first opset that has what the weights of a format need. */
static int64_t
opset_of_weights(const struct qdq_weights *w)
{
    return larger(opset_of(w->format), w->granularity == QDQ_PER_BLOCK ? OPSET_BLOCKS
                                       : w->granularity == QDQ_PER_CHANNEL ? OPSET_AXIS
                                                                           : 0);
}

int64_t
qdqi_formats_opset(const struct qdq_spec *given)
{
    struct qdq_spec spec = *given;
    qdq_spec_complete(&spec);
    int64_t needed = 0;
    for (size_t i = 0; i <= spec.n_layers; i++) {
        const struct qdq_layer_format f =
            qdqi_entry_format(&spec, i ? &spec.layers[i - 1] : NULL);
        needed = larger(needed, opset_of_weights(&f.weights));
        if (!spec.weight_only)
            needed = larger(needed, opset_of(f.activations.format));
    }
    return needed;
}

/* Returns the place of a member of the layer's formats: in the entry that states them, or
   in the spec. */
static const char *
place_of(const struct planner *p, const struct qdq_layer *layer, const char *member)
{
    const struct qdqi_choice *choice = &p->selection.choices[layer->node];
    const struct qdq_layer_entry *entry = choice->entry;
    const bool weights = member[1] == 'w';
    if (!entry || (weights ? !entry->weights : !entry->activations))
        return member;
    const char *place =
        choice->rank == QDQI_BY_CASE
            ? choice->pointer
            : qdqi_arena_printf(p->plan->arena, "%s%s", choice->pointer, member);
    return place ? place : member;
}

static enum qdq_code
lacks(const struct planner *p, const struct qdq_layer *layer, const char *member,
      const char *what, int64_t needed, struct qdq_error *err)
{
    return qdq_error_set(
        err, QDQ_UNSUPPORTED, QDQ_AT_POINTER, place_of(p, layer, member),
        "%s needs opset %lld, the model has %lld", what, (long long)needed,
        (long long)qdqi_model_opset(p->model->proto));
}

/* Checks that the model's opset has what a layer's pairs need. */
static enum qdq_code
check_layer_opset(const struct planner *p, const struct qdq_layer *layer,
                  struct qdq_error *err)
{
    const int64_t opset = qdqi_model_opset(p->model->proto);
    if (layer->weight_input >= 0) {
        const enum qdq_format format = layer->format->weights.format;
        if (opset_of(format) > opset)
            return lacks(p, layer, "/weights/dtype", qdqi_format_row((int)format)->name,
                         opset_of(format), err);
        if (layer->format->weights.granularity == QDQ_PER_BLOCK && opset < OPSET_BLOCKS)
            return lacks(p, layer, "/weights/granularity", "a scale for each block",
                         OPSET_BLOCKS, err);
    }
    const enum qdq_format format = layer->format->activations.format;
    if (layer->n_inputs + layer->n_outputs > 0 && opset_of(format) > opset)
        return lacks(p, layer, "/activations/dtype", qdqi_format_row((int)format)->name,
                     opset_of(format), err);
    return QDQ_OK;
}

static enum qdq_code
check_opset(const struct planner *p, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < p->n_layers && !code; i++)
        code = check_layer_opset(p, &p->layers[i], err);
    return code;
}

/* --- the plan ------------------------------------------------------------- */

static bool
has_other_weights(const struct qdq_layer_format *f)
{
    return !qdqi_is_8_bit_integer(f->weights.format);
}

static bool
has_blocks(const struct qdq_layer_format *f)
{
    return f->weights.granularity == QDQ_PER_BLOCK;
}

static bool
is_stored_float(const struct qdq_layer_format *f)
{
    return f->weights.storage != QDQ_STORE_DQ;
}

/* Refuses what does not go with activations that the runtime quantizes. */
static enum qdq_code
check_dynamic(const struct qdq_spec *spec, struct qdq_error *err)
{
    const struct {
        bool is_wrong;
        const char *pointer, *text;
    } rows[] = {
        {!spec->target->has_dynamic, "/activations",
         "the target's runtime does not quantize activations itself"},
        {qdqi_spec_has(spec, has_other_weights), "/weights/dtype",
         "dynamic activations go with int8 and uint8 weights"},
        {qdqi_spec_has(spec, has_blocks), "/weights/granularity",
         "dynamic activations go with weights without blocks"},
        {qdqi_spec_has(spec, is_stored_float), "/weights/storage",
         "dynamic activations go with weights that are stored as integers"},
        {spec->float_type != QDQ_FLOAT_KEEP, "/float",
         "the runtime quantizes activations of float32 alone"},
        {spec->sensitivity_samples > 0, "/sensitivity",
         "sensitivity does not see what the runtime quantizes in each run"},
        {qdq_spec_searches(spec), "/search",
         "a search does not see what the runtime quantizes in each run"},
    };
    for (size_t i = 0; spec->dynamic && i < sizeof rows / sizeof *rows; i++)
        if (rows[i].is_wrong)
            return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_POINTER, rows[i].pointer,
                                 "%s", rows[i].text);
    return QDQ_OK;
}

static enum qdq_code
check_decoder(const struct qdq_spec *spec, struct qdq_error *err)
{
    if (spec->decoder == QDQ_DECODER_AS_IS || spec->target->has_decoder_form)
        return QDQ_OK;
    return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_POINTER, "/output/decoder",
                         "the target has no form of its own for decoders");
}

static enum qdq_code
check_context(const struct qdq_spec *spec, struct qdq_error *err)
{
    if (!spec->context || spec->target->has_context)
        return QDQ_OK;
    return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_POINTER, "/output/context",
                         "the target's runtime has no form for compiled models");
}

static bool
has_own_blocks(const struct qdq_layer_format *f)
{
    return qdqi_format_row((int)f->weights.format)->block > 0;
}

static bool
has_own_blocks_in_pairs(const struct qdq_layer_format *f)
{
    return has_own_blocks(f) && f->weights.storage != QDQ_STORE_DQ;
}

static bool
is_narrow_in_pairs(const struct qdq_layer_format *f)
{
    const enum qdqi_format format = (enum qdqi_format)f->weights.format;
    return qdqi_format_of_pairs(format) != format && f->weights.storage != QDQ_STORE_DQ;
}

/* Refuses pairs of formats that QuantizeLinear does not have. */
static enum qdq_code
check_narrow(const struct planner *p, struct qdq_error *err)
{
    return qdqi_spec_has(p->spec, is_narrow_in_pairs)
               ? qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_POINTER, "/weights/storage",
                               "weights of int3 are stored as integers: leave storage "
                               "out, or make it \"dq\"")
               : QDQ_OK;
}

/* Refuses what does not go with formats whose scales have a type of their own. */
static enum qdq_code
check_own_blocks(const struct planner *p, struct qdq_error *err)
{
    const struct qdq_plan *plan = p->plan;
    if (p->spec->float_type != QDQ_FLOAT_KEEP && qdqi_spec_has(p->spec, has_own_blocks))
        return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_POINTER, "/float",
                             "weights of mxfp4, mxfp6, mxfp8 and nvfp4 become float32 "
                             "alone: leave float out");
    if (qdqi_spec_has(p->spec, has_own_blocks_in_pairs))
        return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_POINTER, "/weights/storage",
                             "weights of mxfp4, mxfp6, mxfp8 and nvfp4 are stored in "
                             "their format: leave storage out, or make it \"dq\"");
    for (size_t i = 0; i < plan->view.n_weights; i++) {
        const struct qdqi_planned_weight *w = &plan->weights[i];
        const struct qdqi_format_row *row = qdqi_format_row((int)w->format);
        if (row->block > 0 && w->tensor->dtype != QDQI_FLOAT32)
            return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_TENSOR, w->tensor->name,
                                 "weight '%s' is float16, and %s is for weights of "
                                 "float32",
                                 w->tensor->name, row->name);
    }
    return QDQ_OK;
}

static void
mark_refused(struct planner *p)
{
    const struct qdqi_hooks *hooks = p->spec->target->hooks;
    for (size_t i = 0; i < p->n_layers && hooks->refusal; i++)
        if (qdqi_layer_is_quantized(&p->layers[i]))
            p->layers[i].refused = hooks->refusal(p, &p->layers[i]);
}

const char *
qdqi_first_refusal(const struct planner *p)
{
    const char *why = NULL;
    for (size_t i = 0; i < p->n_layers && !why; i++)
        why = p->layers[i].refused;
    return why;
}

enum qdq_code
qdqi_check_formats(struct planner *p, struct qdq_error *err)
{
    const struct qdqi_hooks *hooks = p->spec->target->hooks;
    enum qdq_code code = check_dynamic(p->spec, err);
    if (!code)
        code = check_own_blocks(p, err);
    if (!code)
        code = check_narrow(p, err);
    if (!code)
        code = check_decoder(p->spec, err);
    if (!code)
        code = check_context(p->spec, err);
    if (!code)
        code = check_opset(p, err);
    mark_refused(p);
    return code || !hooks->check_formats ? code : hooks->check_formats(p, err);
}
