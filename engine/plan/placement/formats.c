/* SPDX-License-Identifier: Apache-2.0 */
/* The requirements of a plan's formats: the opset that they need, and the target's
   check. */
#include "config.h"
#include "plan/placement/formats.h"

#include "plan/placement/target.h"

#include <string.h>
#include <math.h>

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
qdqi_block_axis(const struct planner *p, const struct qdqi_node *node, int axis,
                const int64_t *dims, size_t rank)
{
    if (p->spec->weight_granularity != QDQ_PER_BLOCK || !p->per_channel)
        return axis;
    if (rank == 1) /* a single block is one scale, which has no axis */
        return dims[0] > p->spec->weight_block ? 0 : axis;
    if (axis < 0)
        return axis;
    const int other = qdqi_input_axis(node, axis, rank);
    return dims[other] > 1 ? other : axis;
}

bool
qdqi_is_8_bit_integer(enum qdq_format format)
{
    return format == QDQ_FORMAT_INT8 || format == QDQ_FORMAT_UINT8;
}

bool
qdqi_multiplies_bytes(const struct qdq_spec *spec)
{
    return !spec->weight_only && qdqi_is_8_bit_integer(spec->weight_format) &&
           qdqi_is_8_bit_integer(spec->activation_format);
}

int64_t
qdqi_block_of(const struct planner *p, const struct qdq_layer *layer,
              const struct qdqi_tensor *weight)
{
    const struct qdqi_class *cls = p->graph->classes[layer->node];
    const struct qdqi_node *node = &p->model->graph.nodes[layer->node];
    const struct qdqi_view *view = &weight->view;
    if (p->spec->weight_granularity != QDQ_PER_BLOCK || layer->weight_axis < 0)
        return 0;
    if (view->rank > 1 &&
        cls->axis(cls, node, layer->weight_input, view->rank) == layer->weight_axis)
        return 0;
    return p->spec->weight_block;
}

/* --- the opset ------------------------------------------------------------ */

static int64_t
opset_of(enum qdq_format format)
{
    return qdqi_format_row((int)format)->opset;
}

enum { OPSET_BLOCKS = 21 };

int64_t
qdqi_formats_opset(const struct qdq_spec *given)
{
    struct qdq_spec spec = *given;
    qdq_spec_complete(&spec);
    int64_t needed = opset_of(spec.weight_format);
    if (spec.weight_granularity == QDQ_PER_BLOCK && needed < OPSET_BLOCKS)
        needed = OPSET_BLOCKS;
    if (!spec.weight_only && opset_of(spec.activation_format) > needed)
        needed = opset_of(spec.activation_format);
    return needed;
}

static enum qdq_code
lacks(const struct planner *p, const char *pointer, const char *what, int64_t needed,
      struct qdq_error *err)
{
    return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_POINTER, pointer,
                         "%s needs opset %lld, the model has %lld", what,
                         (long long)needed,
                         (long long)qdqi_model_opset(p->model->proto));
}

static enum qdq_code
check_opset(const struct planner *p, struct qdq_error *err)
{
    const struct qdq_spec *spec = p->spec;
    const struct qdq_plan *plan = p->plan;
    int64_t opset = qdqi_model_opset(p->model->proto);
    if (plan->view.n_weights && opset_of(spec->weight_format) > opset)
        return lacks(p, "/weights/dtype",
                     qdqi_format_row((int)spec->weight_format)->name,
                     opset_of(spec->weight_format), err);
    if (plan->view.n_weights && spec->weight_granularity == QDQ_PER_BLOCK &&
        opset < OPSET_BLOCKS)
        return lacks(p, "/weights/granularity", "a scale for each block", OPSET_BLOCKS,
                     err);
    if (plan->view.n_tensors && opset_of(spec->activation_format) > opset)
        return lacks(p, "/activations/dtype",
                     qdqi_format_row((int)spec->activation_format)->name,
                     opset_of(spec->activation_format), err);
    return QDQ_OK;
}

/* --- the plan ------------------------------------------------------------- */

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
        {spec->weight_format != QDQ_FORMAT_INT8 &&
             spec->weight_format != QDQ_FORMAT_UINT8,
         "/weights/dtype", "dynamic activations go with int8 and uint8 weights"},
        {spec->weight_granularity == QDQ_PER_BLOCK, "/weights/granularity",
         "dynamic activations go with weights without blocks"},
        {spec->weight_storage != QDQ_STORE_DQ, "/weights/storage",
         "dynamic activations go with weights that are stored as integers"},
        {spec->float_type != QDQ_FLOAT_KEEP, "/float",
         "the runtime quantizes activations of float32 alone"},
        {spec->sensitivity_samples > 0, "/sensitivity",
         "sensitivity does not see what the runtime quantizes in each run"},
        {!isnan(spec->search.min_sqnr_db) || !isnan(spec->search.min_top1_agreement),
         "/search", "a search does not see what the runtime quantizes in each run"},
    };
    for (size_t i = 0; spec->dynamic && i < sizeof rows / sizeof *rows; i++)
        if (rows[i].is_wrong)
            return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_POINTER, rows[i].pointer,
                                 "%s", rows[i].text);
    return QDQ_OK;
}

enum qdq_code
qdqi_check_formats(struct planner *p, struct qdq_error *err)
{
    const struct qdqi_hooks *hooks = p->spec->target->hooks;
    enum qdq_code code = check_dynamic(p->spec, err);
    if (!code)
        code = check_opset(p, err);
    return code || !hooks->check_formats ? code : hooks->check_formats(p, err);
}
