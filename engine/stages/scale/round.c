/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/scale/round.h"

#include "graph/layers/bias.h"
#include "stages/scale/matrix.h"
#include "graph/weights/full_range.h"
#include "graph/weights/gptq.h"
#include "graph/weights/integers.h"
#include "graph/weights/pairs.h"

#include <stdlib.h>
#include <string.h>

/* Returns whether each layer that uses the weight has a bias that can take the mean of the
   weight's errors. */
static bool
has_biases(const struct qdqi_attempt *a, const struct qdqi_planned_weight *w,
           size_t outputs)
{
    const struct qdq_plan_view *plan = &a->plan->view;
    struct qdqi_constant bias;
    for (size_t i = 0; i < plan->n_layers; i++) {
        const struct qdq_layer *layer = &plan->layers[i];
        if (layer->weight_input < 0 || &a->plan->weights[layer->weight_row] != w)
            continue;
        const struct qdqi_bias_place place =
            qdqi_bias_find(a->model, &a->model->graph.nodes[layer->node]);
        if (!qdqi_bias_read(a->model, &place, outputs, &bias))
            return false;
    }
    return true;
}

const char *
qdqi_cannot_round(const struct qdqi_attempt *a, const struct qdqi_planned_weight *w,
                  const struct qdqi_constant *c)
{
    const struct qdqi_layer_moments *m =
        qdqi_map_get(a->moments->by_weight, w->tensor->name);
    const struct qdqi_format_row *row = qdqi_format_row((int)w->format);
    if (!m)
        return "no layer that uses it was observed";
    if (m->why)
        return m->why;
    if (m->moments[0].rows == 0)
        return "no sample came to its layer";
    if (row->fraction_bits > 0 || row->bits > 8)
        return "its format is not one of integers of at most 8 bits";
    if (a->spec->float_type != QDQ_FLOAT_KEEP)
        return "its scales become 16-bit floats";
    if (qdqi_constant_is_fill(c) || c->dtype != QDQI_FLOAT32)
        return "its elements are not stored as float32, one by one";
    if (w->next_axis != QDQI_NONE)
        return "it has scales along more than one axis";
    return c->n % (m->moments[0].k * m->groups) != 0 ? "its shape is not its layer's"
                                                     : NULL;
}

static bool
uses_gptq(const struct qdqi_planned_weight *w)
{
    return w->rounding == QDQ_ROUND_GPTQ || w->rounding == QDQ_ROUND_RECONSTRUCT ||
           (w->rounding == QDQ_ROUND_AUTO && qdqi_format_row((int)w->format)->bits < 8);
}

bool
qdqi_has_own_scales(const struct qdqi_matrix *m)
{
    size_t next = m->row;
    return m->outputs * m->moments->groups < 2 || m->scale_of[0] != m->scale_of[next];
}

enum qdq_code
qdqi_round_group(const struct qdqi_attempt *a, const struct qdqi_rounded_key *key,
                 const struct qdqi_matrix *m, size_t group,
                 const struct qdqi_moment *moment, const struct qdqi_params *p,
                 int16_t *integers, const char **ret_why, struct qdq_error *err)
{
    const struct qdqi_format_row *format = qdqi_format_row((int)key->format);
    size_t first = group * m->outputs * m->row;
    const struct qdqi_tasks tasks = {.executor = a->context->engine->executor,
                                     .threads = a->context->engine->threads};
    const struct qdqi_gptq r = {
        .outputs = m->outputs,
        .row = m->row,
        .column = m->column,
        .weight = m->elements + first,
        .scale_of = m->scale_of + first,
        .scales = p->scales,
        .zero_points = p->zero_points,
        .lowest = key->is_reduced ? -64 : (int32_t)format->lowest,
        .highest = key->is_reduced ? 64 : (int32_t)format->highest,
        .moment = moment,
        .centred = key->is_centred,
        .refine = format->bits < 8,
        .own_scales = qdqi_has_own_scales(m),
        .joint = key->by_moments,
        .is_signed = key->is_signed,
        .shrunk = key->shrunk,
        .integers = integers + first,
        .tasks = &tasks,
    };
    *ret_why = NULL;
    if (key->by_gptq)
        return qdqi_round_gptq(&r, ret_why, err);
    if (key->by_moments && !key->is_reduced)
        return qdqi_round_scaled(&r, err);
    qdqi_round_nearest(&r);
    return QDQ_OK;
}

static enum qdq_code
warn_nearest(struct qdqi_attempt *a, const char *weight, const char *why,
             struct qdq_error *err)
{
    return qdqi_attempt_warn(a, err, "rounded_to_nearest", weight,
                             "the weight is rounded to the nearest integers: %s", why);
}

/* Rounds the groups. *ret_why is the first reason for the nearest integers, or NULL. */
static enum qdq_code
round_groups(struct qdqi_attempt *a, const struct qdqi_rounded_key *key,
             struct qdqi_params *p, const struct qdqi_matrix *m, int16_t *integers,
             const char **ret_why, struct qdq_error *err)
{
    *ret_why = NULL;
    for (size_t g = 0; g < m->moments->groups; g++) {
        const char *why;
        enum qdq_code code = qdqi_round_group(a, key, m, g, &m->moments->moments[g], p,
                                              integers, &why, err);
        if (code)
            return code;
        *ret_why = *ret_why ? *ret_why : why;
    }
    return QDQ_OK;
}

struct qdqi_rounded_key
qdqi_rounded_key_of(const struct qdqi_planned_weight *w, const struct qdqi_params *p)
{
    return (struct qdqi_rounded_key){.format = w->format,
                                     .axis = p->axis,
                                     .block = p->block,
                                     .is_reduced = w->is_reduced && w->pair_axis < 0,
                                     .by_gptq = uses_gptq(w),
                                     .n = p->n,
                                     .scales = p->scales,
                                     .zero_points = p->zero_points,
                                     .by_moments = w->scales == QDQ_SCALES_MOMENTS,
                                     .is_signed = w->range == QDQ_RANGE_FULL &&
                                                  qdqi_format_has_signs(w->format)};
}

/* Rounds the weight, or takes what was kept when the same weight was rounded before. */
static enum qdq_code
round_or_take(struct qdqi_attempt *a, const struct qdqi_planned_weight *w,
              struct qdqi_params *p, const struct qdqi_matrix *m, int16_t *integers,
              const char **ret_why, struct qdq_error *err)
{
    const struct qdq_spec *spec = a->spec;
    float *first = qdqi_arena_array(a->scratch, p->n, sizeof *first);
    int32_t *zeros =
        p->zero_points ? qdqi_arena_array(a->scratch, p->n, sizeof *zeros) : NULL;
    if (!first || (p->zero_points && !zeros))
        return qdqi_no_memory(err);
    memcpy(first, p->scales, p->n * sizeof *first);
    if (zeros)
        memcpy(zeros, p->zero_points, p->n * sizeof *zeros);
    struct qdqi_rounded_key key = qdqi_rounded_key_of(w, p);
    key.is_centred = spec->bias_correction != QDQ_BIASES_NONE &&
                     has_biases(a, w, m->outputs * m->moments->groups);
    key.scales = first;
    key.zero_points = zeros;
    const size_t n = m->outputs * m->k * m->moments->groups;
    const struct qdqi_rounded_weight *kept = qdqi_roundings_find(m->moments, &key);
    if (kept) {
        memcpy(integers, kept->integers, n * sizeof *integers);
        memcpy(p->scales, kept->scales, p->n * sizeof *p->scales);
        if (zeros)
            memcpy(p->zero_points, kept->zero_points, p->n * sizeof *p->zero_points);
        *ret_why = kept->why;
        return QDQ_OK;
    }
    enum qdq_code code = round_groups(a, &key, p, m, integers, ret_why, err);
    if (!code && a->moments->keeps_roundings)
        qdqi_roundings_keep(qdqi_map_get(a->moments->by_weight, w->tensor->name), &key,
                            &(struct qdqi_rounded_weight){n, integers, p->scales,
                                                          p->zero_points, *ret_why},
                            &a->moments->roundings_left);
    return code;
}

static enum qdq_code
round_matrix(struct qdqi_attempt *a, const struct qdqi_planned_weight *w,
             const struct qdqi_constant *c, struct qdqi_params *p,
             const struct qdqi_matrix *m, struct qdq_error *err)
{
    int16_t *integers = calloc(c->n, sizeof *integers);
    const char *why = NULL;
    enum qdq_code code =
        integers ? round_or_take(a, w, p, m, integers, &why, err) : qdqi_no_memory(err);
    if (!code) {
        if (w->is_reduced && w->pair_axis >= 0)
            qdqi_pairs_fit(c, w->pair_axis, w->axis, integers);
        p->rounded = qdqi_rounded_pack(a->scratch, p->format, integers, c->n);
        p->rounded_floats = p->rounded ? qdqi_rounded_new(a->scratch, c, p) : NULL;
        if (!p->rounded_floats)
            code = qdqi_no_memory(err);
    }
    free(integers);
    return code || !why ? code : warn_nearest(a, w->tensor->name, why, err);
}

enum qdq_code
qdqi_round_weight(struct qdqi_attempt *a, const struct qdqi_planned_weight *w,
                  const struct qdqi_constant *c, struct qdqi_params *p,
                  struct qdq_error *err)
{
    struct qdqi_matrix m;
    if (!a->moments)
        return QDQ_OK;
    const char *why = qdqi_cannot_round(a, w, c);
    if (why)
        return uses_gptq(w) ? warn_nearest(a, w->tensor->name, why, err) : QDQ_OK;
    enum qdq_code code = qdqi_matrix_open(a, w, c, p, &m)
                             ? round_matrix(a, w, c, p, &m, err)
                             : qdqi_no_memory(err);
    qdqi_matrix_close(&m);
    return code;
}
