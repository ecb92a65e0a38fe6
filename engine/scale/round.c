/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "scale/round.h"

#include "number/half.h"
#include "weights/gptq.h"
#include "weights/integers.h"
#include "weights/walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A weight as its elements in C order, and how its layer multiplies by it. */
struct matrix {
    const struct qdqi_layer_moments *moments;
    size_t outputs, k;  /* of one group */
    size_t row, column; /* elements from one output, or input, to the next */
    float *elements;
    uint32_t *scale_of; /* by element: index of its scale */
};

/* --- reading -------------------------------------------------------------- */

/* Copies the elements in C order, each with its scale. */
static void
copy_elements(const struct qdqi_walk *walk, const struct qdqi_constant *c,
              struct matrix *m)
{
    const struct qdqi_step *step = qdqi_walk_last(walk);
    float *to = m->elements;
    uint32_t *scale_of = m->scale_of;
    for (size_t row = 0; row < walk->n_rows; row++) {
        size_t element, scale;
        qdqi_walk_row(walk, row, &element, &scale);
        for (size_t i = 0; i < step->n; i++) {
            qdqi_load_floats(to++, c->dtype,
                             c->bytes + (element + i * step->elements) * sizeof(float),
                             1);
            *scale_of++ = (uint32_t)(scale + i / step->block * step->scales);
        }
    }
}

static bool
open_matrix(const struct qdqi_job *job, const struct qdqi_planned_weight *w,
            const struct qdqi_constant *c, const struct qdqi_params *p,
            struct matrix *ret)
{
    const struct qdqi_layer_moments *moments =
        qdqi_map_get(job->moments, w->tensor->name);
    size_t k = moments->moments[0].k;
    struct qdqi_walk walk;
    *ret = (struct matrix){.moments = moments,
                           .outputs = c->n / k / moments->groups,
                           .k = k,
                           .row = moments->outputs_last ? 1 : k,
                           .column = moments->outputs_last ? c->n / k : 1};
    ret->elements = calloc(c->n, sizeof *ret->elements);
    ret->scale_of = calloc(c->n, sizeof *ret->scale_of);
    if (!ret->elements || !ret->scale_of || !qdqi_walk_init(&walk, job->scratch, c, p))
        return false;
    copy_elements(&walk, c, ret);
    return true;
}

static void
close_matrix(struct matrix *m)
{
    free(m->elements);
    free(m->scale_of);
}

/* --- places of biases ------------------------------------------------------- */

/* Where the bias of a layer is read; tensor is NULL when the layer has none. */
struct place {
    size_t node;
    int input;
    const struct qdqi_tensor *tensor;
};

static struct place
find_bias(const struct qdqi_job *job, const struct qdq_layer *layer)
{
    const struct qdqi_graph *graph = &job->model->graph;
    const struct qdqi_node *node = &graph->nodes[layer->node];
    const struct qdqi_tensor *out = node->outputs[0];
    if (qdqi_node_is(node->proto, "Gemm") && !qdqi_gemm_is_unscaled(node->proto))
        return (struct place){0};
    if (!qdqi_node_is(node->proto, "MatMul"))
        return (struct place){layer->node, 2,
                              node->proto->n_input > 2 ? node->inputs[2] : NULL};
    if (!out || !out->uses || out->uses->next || out->is_output || out->is_captured)
        return (struct place){0};
    const struct qdqi_node *add = &graph->nodes[out->uses->node];
    int other = 1 - out->uses->input;
    return qdqi_node_is(add->proto, "Add")
               ? (struct place){out->uses->node, other, add->inputs[other]}
               : (struct place){0};
}

/* Returns whether the constant has one element for each output, along the axis of the
   outputs. */
static bool
is_bias(const struct qdqi_job *job, const struct place *p, size_t outputs,
        struct qdqi_constant *ret)
{
    const struct qdqi_tensor *t = p->tensor;
    return t && t->is_fixed && !qdqi_constant_is_overridable(job->model, t) &&
           !qdqi_constant_read(job->model, t, ret, NULL) &&
           ret->dtype == QDQI_FLOAT32 && ret->n == outputs && ret->rank >= 1 &&
           (size_t)ret->dims[ret->rank - 1] == outputs && !ret->strides;
}

/* Returns whether each layer that uses the weight has a bias that can take the mean of the
   weight's errors. */
static bool
has_biases(const struct qdqi_job *job, const struct qdqi_planned_weight *w,
           size_t outputs)
{
    const struct qdq_plan_view *plan = &job->plan->view;
    struct qdqi_constant bias;
    for (size_t i = 0; i < plan->n_layers; i++) {
        const struct qdq_layer *layer = &plan->layers[i];
        if (layer->weight_input < 0 || &job->plan->weights[layer->weight_row] != w)
            continue;
        const struct place place = find_bias(job, layer);
        if (!is_bias(job, &place, outputs, &bias))
            return false;
    }
    return true;
}

/* --- rounding ------------------------------------------------------------- */

/* Returns why a weight cannot be rounded by moments, or NULL. */
static const char *
cannot_round(const struct qdqi_job *job, const struct qdqi_planned_weight *w,
             const struct qdqi_constant *c)
{
    const struct qdqi_layer_moments *m = qdqi_map_get(job->moments, w->tensor->name);
    const struct qdqi_format_row *row = qdqi_format_row((int)w->format);
    if (!m)
        return "no layer that uses it was observed";
    if (m->why)
        return m->why;
    if (m->moments[0].rows == 0)
        return "no sample came to its layer";
    if (row->fraction_bits > 0 || row->bits > 8)
        return "its format is not one of integers of at most 8 bits";
    if (job->work->spec->float_type != QDQ_FLOAT_KEEP)
        return "its scales become 16-bit floats";
    if (qdqi_constant_is_fill(c) || c->dtype != QDQI_FLOAT32)
        return "its elements are not stored as float32, one by one";
    if (w->next_axis != QDQI_NONE)
        return "it has scales along more than one axis";
    return c->n % (m->moments[0].k * m->groups) != 0 ? "its shape is not its layer's"
                                                     : NULL;
}

static bool
uses_gptq(const struct qdq_spec *spec, const struct qdqi_format_row *format)
{
    return spec->weight_rounding == QDQ_ROUND_GPTQ ||
           (spec->weight_rounding == QDQ_ROUND_AUTO && format->bits < 8);
}

static bool
has_own_scales(const struct matrix *m)
{
    size_t next = m->row;
    return m->outputs * m->moments->groups < 2 || m->scale_of[0] != m->scale_of[next];
}

static enum qdq_code
round_group(const struct qdqi_job *job, const struct qdqi_planned_weight *w,
            const struct matrix *m, size_t group, const struct qdqi_params *p,
            int16_t *integers, bool *ret_degenerate, struct qdq_error *err)
{
    const struct qdqi_format_row *format = qdqi_format_row((int)w->format);
    size_t first = group * m->outputs * m->row;
    const struct qdqi_tasks tasks = {.executor = job->engine->executor,
                                     .threads = job->engine->threads};
    const struct qdqi_gptq r = {
        .outputs = m->outputs,
        .row = m->row,
        .column = m->column,
        .weight = m->elements + first,
        .scale_of = m->scale_of + first,
        .scales = p->scales,
        .zero_points = p->zero_points,
        .lowest = w->is_reduced ? -64 : (int32_t)format->lowest,
        .highest = w->is_reduced ? 64 : (int32_t)format->highest,
        .moment = &m->moments->moments[group],
        .centred = job->work->spec->bias_correction != QDQ_BIASES_NONE &&
                   has_biases(job, w, m->outputs * m->moments->groups),
        .refine = format->bits < 8,
        .own_scales = has_own_scales(m),
        .integers = integers + first,
        .tasks = &tasks,
    };
    *ret_degenerate = false;
    if (uses_gptq(job->work->spec, format))
        return qdqi_round_gptq(&r, ret_degenerate, err);
    qdqi_round_nearest(&r);
    return QDQ_OK;
}

static enum qdq_code
warn_nearest(struct qdqi_job *job, const char *weight, const char *why,
             struct qdq_error *err)
{
    return qdqi_warn(&job->warnings, job->arena, err, "rounded_to_nearest", weight,
                     "the weight is rounded to the nearest integers: %s", why);
}

static enum qdq_code
round_groups(struct qdqi_job *job, const struct qdqi_planned_weight *w,
             const struct qdqi_constant *c, struct qdqi_params *p,
             const struct matrix *m, struct qdq_error *err)
{
    int16_t *integers = qdqi_arena_array(job->scratch, c->n, sizeof *integers);
    size_t n_degenerate = 0;
    if (!integers)
        return qdqi_no_memory(err);
    for (size_t g = 0; g < m->moments->groups; g++) {
        bool degenerate;
        enum qdq_code code = round_group(job, w, m, g, p, integers, &degenerate, err);
        if (code)
            return code;
        n_degenerate += degenerate;
    }
    p->rounded = integers;
    p->rounded_floats = qdqi_rounded_new(job->scratch, c, p);
    if (!p->rounded_floats)
        return qdqi_no_memory(err);
    return n_degenerate == 0
               ? QDQ_OK
               : warn_nearest(job, w->tensor->name,
                              "the input of its layer was always the same", err);
}

enum qdq_code
qdqi_round_weight(struct qdqi_job *job, const struct qdqi_planned_weight *w,
                  const struct qdqi_constant *c, struct qdqi_params *p,
                  struct qdq_error *err)
{
    struct matrix m;
    if (!job->moments)
        return QDQ_OK;
    const char *why = cannot_round(job, w, c);
    if (why)
        return warn_nearest(job, w->tensor->name, why, err);
    enum qdq_code code = open_matrix(job, w, c, p, &m)
                             ? round_groups(job, w, c, p, &m, err)
                             : qdqi_no_memory(err);
    close_matrix(&m);
    return code;
}

/* --- biases --------------------------------------------------------------- */

/* Subtracts from the bias what the errors of the weight add to the mean output. */
static void
shift(const struct matrix *m, const struct qdqi_params *p, const uint8_t *bias,
      float *to)
{
    for (size_t g = 0; g < m->moments->groups; g++) {
        const struct qdqi_moment *moment = &m->moments->moments[g];
        for (size_t n = g * m->outputs; n < (g + 1) * m->outputs; n++) {
            double sum = 0;
            float before;
            for (size_t i = 0; i < m->k; i++) {
                size_t at = n * m->row + i * m->column, s = m->scale_of[at];
                double number = (double)(p->rounded[at] - qdqi_zero_point(p, s)) *
                                (double)p->scales[s];
                sum += ((double)m->elements[at] - number) * moment->sums[i];
            }
            memcpy(&before, bias + n * sizeof before, sizeof before);
            to[n] = (float)((double)before + sum / (double)moment->rows);
        }
    }
}

static enum qdq_code
correct_bias(struct qdqi_job *job, struct qdqi_scales *s, size_t index,
             struct qdq_error *err)
{
    const struct qdq_layer *layer = &job->plan->view.layers[index];
    const struct qdqi_planned_weight *w = &job->plan->weights[layer->weight_row];
    const struct qdqi_params *p = &s->weights[layer->weight_row];
    struct place place = find_bias(job, layer);
    struct qdqi_constant elements, bias;
    struct matrix m;
    if (!p->rounded)
        return QDQ_OK;
    enum qdq_code code = qdqi_constant_read(job->model, w->tensor, &elements, err);
    if (code)
        return code;
    float *values = NULL;
    if (!open_matrix(job, w, &elements, p, &m))
        code = qdqi_no_memory(err);
    size_t n = m.outputs * m.moments->groups;
    if (!code && is_bias(job, &place, n, &bias)) {
        values = qdqi_arena_array(job->scratch, n, sizeof *values);
        code = values ? QDQ_OK : qdqi_no_memory(err);
    }
    if (values) {
        shift(&m, p, bias.bytes, values);
        s->shifted[s->n_shifted++] = (struct qdqi_shifted_bias){
            index,     place.node, place.input, place.tensor->name,
            bias.rank, n,          bias.dims,   values};
    }
    close_matrix(&m);
    return code;
}

enum qdq_code
qdqi_correct_biases(struct qdqi_job *job, struct qdqi_scales *s, struct qdq_error *err)
{
    const struct qdq_plan_view *plan = &job->plan->view;
    enum qdq_code code = QDQ_OK;
    s->n_shifted = 0;
    if (!job->moments || job->work->spec->bias_correction == QDQ_BIASES_NONE)
        return QDQ_OK;
    s->shifted = qdqi_arena_array(job->scratch, plan->n_layers, sizeof *s->shifted);
    if (!s->shifted)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < plan->n_layers && !code; i++)
        if (plan->layers[i].weight_input >= 0)
            code = correct_bias(job, s, i, err);
    return code;
}
