/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out the spec's `float`: chooses the nodes and scales that become float16
   or bfloat16 and converts the result. */
#include "config.h"
#include "stages/scale/precision.h"

#include "files/model/constant.h"
#include "numbers/arithmetic/float16.h"
#include "transform/rewrite/to_float16.h"

#include <math.h>
#include <string.h>

/* --- ranges --------------------------------------------------------------- */

static const char beyond_range[] = "a range is beyond the type's";

static bool
note_beyond(struct qdqi_map *to, const char *tensor, double min, double max,
            double largest)
{
    return fmax(fabs(min), fabs(max)) <= largest ||
           qdqi_map_put(to, tensor, (void *)(uintptr_t)beyond_range);
}

/*
 * Returns the tensors whose ranges exceed those of the type, each with that reason: ranges
 * that the spec gives, for planned tensors or others, and ranges that calibration found.
 * NULL when out of memory.
 */
static struct qdqi_map *
find_beyond(const struct qdqi_attempt *a, enum qdqi_dtype dtype)
{
    const struct qdq_calibration_spec *c = &a->spec->calibration;
    const struct qdq_plan_view *plan = &a->plan->view;
    const double largest = (double)qdqi_float16_largest(dtype);
    struct qdqi_map *beyond = qdqi_map_new(a->scratch);
    bool ok = beyond;
    for (size_t i = 0; ok && i < c->n_ranges; i++)
        ok = note_beyond(beyond, c->ranges[i].tensor, c->ranges[i].min,
                         c->ranges[i].max, largest);
    for (size_t i = 0; ok && i < plan->n_tensors; i++)
        ok = note_beyond(beyond, plan->tensors[i], a->ranges[i].min, a->ranges[i].max,
                         largest);
    return ok ? beyond : NULL;
}

/* --- scales --------------------------------------------------------------- */

static bool
is_read_float16(const struct qdqi_float16_nodes *chosen, const struct qdqi_tensor *t)
{
    for (const struct qdqi_use *use = t->uses; use; use = use->next)
        if (chosen->nodes[use->node])
            return true;
    return false;
}

static void
round_scales(enum qdqi_dtype dtype, struct qdqi_params *p)
{
    const struct qdqi_format_row *row = qdqi_format_row((int)p->format);
    double steps = 0;
    if (row->fraction_bits == 0)
        steps = (double)row->highest - (p->zero_points ? (double)row->lowest : 0);
    for (size_t i = 0; i < p->n; i++)
        p->scales[i] = copysignf(qdqi_float16_scale(dtype, fabsf(p->scales[i]), steps),
                                 p->scales[i]);
}

/* Returns for each planned activation whether a 16-bit node reads it. Activations
   that share their scale get the same answer. NULL when out of memory. */
static bool *
find_float16(const struct qdqi_attempt *a)
{
    const struct qdq_plan *plan = a->plan;
    size_t n = plan->view.n_tensors;
    bool *is_float16 = qdqi_arena_array(a->scratch, n, sizeof *is_float16);
    for (size_t i = 0; is_float16 && i < n; i++)
        if (is_read_float16(&a->float16, plan->activations[i].tensor))
            is_float16[i] = is_float16[plan->activations[i].leader] = true;
    for (size_t i = 0; is_float16 && i < n; i++)
        is_float16[i] |= is_float16[plan->activations[i].leader];
    return is_float16;
}

static bool
round_all(struct qdqi_attempt *a, struct qdqi_scales *scales)
{
    const struct qdq_plan *plan = a->plan;
    const struct qdqi_float16_nodes *chosen = &a->float16;
    /* The const is cast away: the rows are in the attempt's own memory. */
    struct qdq_tensor_report *tensors =
        (struct qdq_tensor_report *)(uintptr_t)a->rows.tensors;
    const bool *is_float16 = find_float16(a);
    for (size_t i = 0; is_float16 && i < plan->view.n_tensors; i++) {
        if (!is_float16[i])
            continue;
        round_scales(chosen->dtype, &scales->activations[i]);
        tensors[i].scale = (double)scales->activations[i].scales[0];
    }
    for (size_t i = 0; i < plan->view.n_weights; i++)
        if (is_read_float16(chosen, plan->weights[i].tensor))
            round_scales(chosen->dtype, &scales->weights[i]);
    return is_float16;
}

/* --- biases --------------------------------------------------------------- */

/*
 * ONNX Runtime makes integers of the constant bias of a layer whose activation and weight
 * have pairs, with the product of their scales for a scale, and computes them in the type
 * of the scales. Such an integer must not be beyond float16, of which the mean error of a
 * weight may take a little.
 */
static const double largest_bias = 60000;

static bool
is_too_wide(const struct qdqi_constant *bias, const struct qdqi_params *x,
            const struct qdqi_params *w)
{
    for (size_t i = 0; i < bias->n; i++) {
        uint16_t bits;
        float value, scale;
        memcpy(&value, bias->bytes + i * sizeof value, sizeof value);
        scale = qdqi_float16_scale(QDQI_FLOAT16, x->scales[0], 0) *
                qdqi_float16_scale(QDQI_FLOAT16, w->scales[w->n > 1 ? i : 0], 0);
        qdqi_float16_of_floats(&bits, QDQI_FLOAT16, &scale, 1);
        if (fabs((double)value) >
            largest_bias * (double)qdqi_float16_widened(QDQI_FLOAT16, bits))
            return true;
    }
    return false;
}

/* Returns the row of the activation in the plan, or QDQI_NONE. */
static size_t
find_activation(const struct qdq_plan *plan, const struct qdqi_tensor *t)
{
    for (size_t i = 0; i < plan->view.n_tensors; i++)
        if (plan->activations[i].tensor == t)
            return i;
    return QDQI_NONE;
}

/* Returns whether the plan stores the bias of layer i as int32, whose scales stay float32. */
static bool
has_planned_bias(const struct qdq_plan *plan, size_t i)
{
    for (size_t k = 0; k < plan->n_biases; k++)
        if (plan->biases[k].layer == i)
            return true;
    return false;
}

/* Returns whether the layer's bias would become integers beyond float16. */
static bool
has_wide_bias(const struct qdqi_attempt *a, const struct qdqi_scales *scales,
              const struct qdq_layer *layer)
{
    static const char *const ops[] = {"Conv", "ConvTranspose", "Gemm", NULL};
    const struct qdqi_node *node = &a->model->graph.nodes[layer->node];
    struct qdqi_constant bias;
    if (layer->weight_input != 1 || !qdqi_node_is_one_of(node->proto, ops) ||
        node->proto->n_input < 3 || !node->inputs[2] || !node->inputs[2]->constant ||
        node->inputs[2]->dtype != QDQI_FLOAT32)
        return false;
    const size_t activation = find_activation(a->plan, node->inputs[0]);
    const struct qdqi_params *w = &scales->weights[layer->weight_row];
    return activation != QDQI_NONE &&
           !qdqi_stored_read(a->model, node->inputs[2]->constant, node->inputs[2]->name,
                             &bias, NULL) &&
           w->block == 0 && (w->n == 1 || w->n == bias.n) &&
           is_too_wide(&bias, &scales->activations[activation], w);
}

/* Notes such biases, so that the layers that read them stay float32. */
static bool
note_wide_biases(const struct qdqi_attempt *a, const struct qdqi_scales *scales,
                 struct qdqi_map *to)
{
    static const char why[] =
        "ONNX Runtime makes integers of its bias that are beyond the type's range";
    const struct qdq_plan_view *plan = &a->plan->view;
    bool ok = true;
    for (size_t i = 0; ok && i < plan->n_layers; i++)
        if (!has_planned_bias(a->plan, i) && has_wide_bias(a, scales, &plan->layers[i]))
            ok = qdqi_map_put(
                to, a->model->graph.nodes[plan->layers[i].node].inputs[2]->name,
                (void *)(uintptr_t)why);
    return ok;
}

static enum qdq_code
warn(const struct qdqi_attempt *a, struct qdq_error *err)
{
    struct qdqi_warnings found = {0};
    enum qdq_code code = qdqi_float16_warn(&a->float16, &found, a->scratch, err);
    return code ? code : qdqi_attempt_add_warnings(a, found.rows, found.n, err);
}

enum qdq_code
qdqi_choose_float16(struct qdqi_attempt *a, struct qdqi_scales *scales,
                    struct qdq_error *err)
{
    enum qdqi_dtype dtype = qdqi_float16_dtype(a->spec);
    if (dtype == QDQI_UNKNOWN)
        return QDQ_OK;
    if (!a->float16_constants)
        a->float16_constants = qdqi_map_new(a->scratch);
    struct qdqi_map *beyond = find_beyond(a, dtype);
    struct qdq_float_report *report = qdqi_arena_alloc(a->arena, sizeof *report);
    if (!a->float16_constants || !beyond || !report ||
        (dtype == QDQI_FLOAT16 && !note_wide_biases(a, scales, beyond)))
        return qdqi_no_memory(err);
    enum qdq_code code = qdqi_float16_choose_nodes(
        a->model, dtype, beyond, a->float16_constants, a->arena, &a->float16, err);
    if (!code)
        code = warn(a, err);
    if (code)
        return code;
    if (!round_all(a, scales))
        return qdqi_no_memory(err);
    *report = (struct qdq_float_report){.type = qdqi_dtype_name((int)dtype),
                                        .n_nodes = a->float16.n_chosen,
                                        .n_kept = a->float16.n_kept,
                                        .kept = a->float16.kept};
    a->rows.floats = report;
    return QDQ_OK;
}

/* --- the model ------------------------------------------------------------ */

enum qdq_code
qdqi_convert_result(const struct qdqi_attempt *a, struct qdqi_edited *edited,
                    struct qdq_error *err)
{
    struct qdqi_edited converted;
    if (a->float16.dtype == QDQI_UNKNOWN)
        return QDQ_OK;
    enum qdq_code code = qdqi_convert_to_float16(a->model, edited, &a->float16,
                                                 a->scratch, &converted, err);
    if (!code)
        *edited = converted;
    return code;
}
