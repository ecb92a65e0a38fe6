/* SPDX-License-Identifier: Apache-2.0 */
/* Computes scales from ranges and weights, and the part of the report that lists
   them. */
#include "config.h"
#include "stages/scale/scale.h"

#include "ground/base/tasks.h"
#include "numbers/arithmetic/half.h"
#include "graph/weights/block_scales.h"
#include "graph/weights/blocks.h"
#include "graph/weights/full_range.h"
#include "graph/weights/integers.h"
#include "graph/weights/pairs.h"
#include "graph/weights/scales.h"
#include "graph/weights/walk.h"
#include "stages/scale/bias.h"
#include "stages/scale/masks.h"
#include "stages/scale/precision.h"
#include "stages/scale/correct.h"
#include "stages/scale/round.h"

#include <float.h>
#include <math.h>
#include <string.h>

static bool
scale_activation(const struct qdqi_attempt *a, size_t i, struct qdqi_params *ret)
{
    const struct qdqi_planned_tensor *t = &a->plan->activations[i];
    float *scale = qdqi_arena_alloc(a->arena, sizeof *scale);
    int32_t *zero_point = qdqi_arena_alloc(a->arena, sizeof *zero_point);
    if (!scale || !zero_point)
        return false;
    qdqi_range_params(t->format, t->symmetric, t->dtype, a->ranges[i].min,
                      a->ranges[i].max, scale, zero_point);
    *ret = (struct qdqi_params){.format = t->format,
                                .axis = -1,
                                .n = 1,
                                .scales = scale,
                                .zero_points = *zero_point ? zero_point : NULL};
    return true;
}

/* Gives activations that share the scale of another activation the range of that
   one. A second format may have a range of its own. */
static void
copy_shared_ranges(struct qdqi_attempt *a)
{
    const struct qdq_plan *plan = a->plan;
    for (size_t i = 0; i < plan->view.n_tensors; i++) {
        size_t leader = plan->activations[i].leader;
        const struct qdqi_planned_tensor *t = &plan->activations[i];
        a->ranges[i] = t->conversion && t->has_range && leader != i
                           ? (struct qdqi_range){t->low, t->high}
                           : a->ranges[leader];
        a->methods[i] = a->methods[leader];
    }
}

static enum qdq_code
scale_activations(struct qdqi_attempt *a, struct qdqi_scales *s, struct qdq_error *err)
{
    const struct qdq_plan_view *plan = &a->plan->view;
    struct qdq_tensor_report *tensors =
        qdqi_arena_array(a->arena, plan->n_tensors, sizeof *tensors);
    s->activations =
        qdqi_arena_array(a->arena, plan->n_tensors, sizeof *s->activations);
    if (!tensors || !s->activations)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < plan->n_tensors; i++) {
        struct qdqi_range r = a->ranges[i];
        bool given = !qdqi_method_find(a->methods[i]);
        struct qdqi_params *p = &s->activations[i];
        if (!scale_activation(a, i, p))
            return qdqi_no_memory(err);
        tensors[i] = (struct qdq_tensor_report){
            .name = plan->tensors[i],
            .min = r.min,
            .max = r.max,
            .dtype = qdqi_format_row((int)p->format)->name,
            .scale = (double)p->scales[0],
            .zero_point = qdqi_zero_point(p, 0),
            .method = a->methods[i],
            .samples = given ? 0 : a->calibrated.samples,
        };
        enum qdq_code code =
            r.min == 0 && r.max == 0
                ? qdqi_attempt_warn(a, err, "dead_tensor", plan->tensors[i],
                                    "the tensor was always zero")
                : QDQ_OK;
        if (code)
            return code;
    }
    a->rows.tensors = tensors;
    a->rows.n_tensors = qdqi_plan_tensors(a->plan);
    return QDQ_OK;
}

/*
 * A weight that repeats one element has channels that the file does not store. They
 * cost the sender nothing but us two floats each, so this is the most that one model
 * may have.
 */
enum { MAX_FILLED_CHANNELS = 1 << 24 };

static enum qdq_code
count_filled(const struct qdqi_constant *w, const struct qdqi_planned_weight *planned,
             int64_t *left, struct qdq_error *err)
{
    const char *name = planned->tensor->name;
    size_t n = 0;
    if (planned->axis < 0 || !qdqi_constant_is_fill(w))
        return QDQ_OK;
    if (!qdqi_count_scales(w, planned->axis, planned->block, &n) || n > (size_t)*left)
        return qdq_error_set(err, QDQ_LIMIT_EXCEEDED, QDQ_AT_TENSOR, name,
                             "weight '%s' repeats one element in %lld channels; a "
                             "model may have %d of that kind",
                             name, (long long)w->dims[planned->axis],
                             MAX_FILLED_CHANNELS);
    *left -= (int64_t)n;
    return QDQ_OK;
}

/* The weights that stay float for one reason. */
struct left_float {
    const char *why; /* NULL: no weight has come here yet */
    const char *first;
    size_t n;
};

enum { MAX_REASONS = 4 }; /* that stays_float() gives */

/* The budget that is left for the weights of one model, and those that stay float. */
struct budget {
    int64_t filled;    /* channels of weights that repeat one element */
    uint64_t integers; /* bytes of integers */
    struct left_float left[MAX_REASONS];
};

/* Returns the reason why a weight is not stored as integers, or NULL. */
static const char *
stays_float(const struct qdqi_attempt *a, const struct qdqi_planned_weight *w,
            const struct qdqi_constant *c, const struct budget *budget)
{
    if (qdqi_constant_is_fill(c))
        return "it repeats one element, which is all that the file holds";
    if (qdqi_constant_is_overridable(a->model, w->tensor))
        return "it is an input of the graph, for which callers may send other values";
    if (qdqi_format_row((int)w->format)->bits > 8)
        return "integers of 16 bits are left to whoever loads the model";
    if (qdqi_integers_size(w->format, c->n) > budget->integers)
        return "the integers of all weights would take more bytes than the model";
    return NULL;
}

static void
count_left_float(struct budget *budget, const char *weight, const char *why)
{
    struct left_float *row = budget->left;
    while (row->why && row->why != why)
        row++;
    row->why = why;
    if (row->n++ == 0)
        row->first = weight;
}

/* Warns once for each reason, however many weights there are. */
static enum qdq_code
warn_left_float(struct qdqi_attempt *a, const struct budget *budget,
                struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (const struct left_float *row = budget->left;
         !code && row < budget->left + MAX_REASONS && row->why; row++)
        code = row->n == 1
                   ? qdqi_attempt_warn(a, err, "weight_stays_float", row->first,
                                       "the weight stays float, behind Q and DQ: %s",
                                       row->why)
                   : qdqi_attempt_warn(
                         a, err, "weight_stays_float", row->first,
                         "%zu weights, this one first, stay float, behind Q and "
                         "DQ; of this one: %s",
                         row->n, row->why);
    return code;
}

/*
 * Widens the scales so that sums of two products fit 16 bits: as far as the weight's
 * neighbours ask for, or from integers from -127 to 127 to those from -64 to 64.
 */
static void
reduce_range(const struct qdqi_planned_weight *w, const struct qdqi_constant *c,
             struct qdqi_params *p)
{
    if (w->pair_axis >= 0) {
        qdqi_pairs_widen(c, w->pair_axis, p);
        return;
    }
    for (size_t i = 0; i < p->n; i++) {
        double wider = (double)p->scales[i] * 127 / 64;
        if (w->tensor->dtype == QDQI_FLOAT16)
            p->scales[i] = qdqi_normal_half(fmin(wider, 65504));
        else
            p->scales[i] = (float)fmin(wider, (double)FLT_MAX);
    }
}

/*
 * Returns whether the scales of a weight are needed by nobody but the writer of the result:
 * the job has no data, so no stage runs the model, nothing is rounded with regard to it, and
 * no bias, 16-bit float or form of a decoder goes by the scales.
 */
static bool
can_wait(const struct qdqi_attempt *a, const struct qdqi_planned_weight *w,
         const struct qdqi_constant *c, const struct qdqi_params *p,
         const struct budget *budget)
{
    const struct qdq_spec *spec = a->spec;
    return !a->context->dataset && !a->moments && !w->is_reduced && !w->is_gates &&
           !w->has_short_factors && !w->is_moved && w->storage == QDQ_STORE_DQ &&
           spec->float_type == QDQ_FLOAT_KEEP && !a->plan->decoder_takes_nearest &&
           qdqi_blocks_can(c, p) && !stays_float(a, w, c, budget);
}

/* Returns whether the scales of a weight have signs. */
static bool
has_signs(const struct qdqi_planned_weight *w)
{
    return w->range == QDQ_RANGE_FULL && qdqi_format_has_signs(w->format);
}

/* Leaves the scales and the integers of a weight to the writer. */
static enum qdq_code
leave_to_writer(struct qdqi_attempt *a, const struct qdqi_planned_weight *w,
                const struct qdqi_constant *c, struct qdqi_params *p,
                struct budget *budget, struct qdq_error *err)
{
    const bool narrow = w->method == QDQ_WEIGHT_MSE;
    if (!qdqi_count_scales(c, p->axis, p->block, &p->n))
        return qdq_error_set(err, QDQ_LIMIT_EXCEEDED, QDQ_AT_TENSOR, w->tensor->name,
                             "weight '%s' has too many scales", w->tensor->name);
    p->blocks = qdqi_blocks_new(a->arena, c, w->tensor->name, p, narrow, has_signs(w));
    if (!p->blocks)
        return qdqi_no_memory(err);
    p->integers = qdqi_blocks_bulks(p->blocks).integers;
    budget->integers -= qdqi_integers_size(w->format, c->n);
    return QDQ_OK;
}

/* A weight while its scales are chosen. */
struct choice {
    struct qdqi_constant c;
    bool is_left;   /* to the writer */
    bool is_stored; /* as integers */
};

enum { GROUP = 64 };

/* A group of weights whose scales the threads compute at the same time. */
struct group {
    const struct qdqi_attempt *attempt;
    struct qdqi_scales *s;
    const float *lowest; /* by weight, of masks (masks.h); NULL: there are none */
    size_t first, n;
    struct choice choices[GROUP];
};

/*
 * Decides whether a weight is stored as integers. Views and axes can make many weights
 * from a few bytes of a file, so the integers may take no more bytes than the model.
 */
static bool
is_stored(const struct qdqi_attempt *a, const struct qdqi_planned_weight *w,
          const struct qdqi_constant *c, struct budget *budget)
{
    if (w->storage != QDQ_STORE_DQ)
        return false;
    const char *why = stays_float(a, w, c, budget);
    if (why)
        count_left_float(budget, w->tensor->name, why);
    else
        budget->integers -= qdqi_integers_size(w->format, c->n);
    return !why;
}

/*
 * Turns an LSTM's weight, [directions, gates, inputs], to [directions, inputs, gates], as
 * its kernel for integers reads it. A scale for each gate of each direction is one for
 * each block along the axis of inputs, which has one block.
 */
static enum qdq_code
turn_gates(struct qdqi_attempt *a, const struct qdqi_planned_weight *w,
           struct qdqi_constant *c, struct qdqi_params *p, struct qdq_error *err)
{
    int64_t *dims = qdqi_arena_array(a->scratch, c->rank, sizeof *dims);
    int64_t *strides = qdqi_arena_array(a->scratch, c->rank, sizeof *strides);
    const int64_t in_order[] = {c->dims[1] * c->dims[2], c->dims[2], 1};
    const int64_t *from = c->strides ? c->strides : in_order;
    if (!dims || !strides)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < c->rank; i++) {
        dims[i] = c->dims[i == 0 ? 0 : 3 - i];
        strides[i] = from[i == 0 ? 0 : 3 - i];
    }
    c->dims = dims;
    c->strides = strides;
    p->axis = w->axis < 0 ? 0 : 1;
    p->block = w->axis < 0 ? 0 : dims[1];
    return QDQ_OK;
}

/* Returns whether the weight's scales are stored in a type of the format's own. Weights behind
   both nodes of a pair, and tables that a Gather reads, have floats of any value. */
static bool
has_own_scales(const struct qdqi_planned_weight *w, const struct choice *choice)
{
    return qdqi_format_row((int)w->format)->scales != QDQI_SCALES_FLOAT &&
           choice->is_stored && choice->c.dtype == QDQI_FLOAT32 && !w->is_table &&
           !w->is_gates;
}

/* Reads weight i and makes room for its scales. */
static enum qdq_code
begin_weight(struct qdqi_attempt *a, struct qdqi_scales *s, size_t i,
             struct budget *budget, struct choice *ret, struct qdq_error *err)
{
    const struct qdqi_planned_weight *w = &a->plan->weights[i];
    struct qdqi_params *p = &s->weights[i];
    enum qdq_code code;
    *p = (struct qdqi_params){.format = w->format, .axis = w->axis, .block = w->block};
    if ((code = qdqi_constant_read(a->model, w->tensor, &ret->c, err)) ||
        (w->is_gates && (code = turn_gates(a, w, &ret->c, p, err))) ||
        (code = count_filled(&ret->c, w, &budget->filled, err)))
        return code;
    ret->is_left = can_wait(a, w, &ret->c, p, budget);
    if (ret->is_left)
        return leave_to_writer(a, w, &ret->c, p, budget, err);
    ret->is_stored = is_stored(a, w, &ret->c, budget);
    if (!ret->is_stored)
        p->format = qdqi_format_of_pairs(w->format);
    a->effort.bytes += ret->c.n * qdqi_dtype_size((int)w->tensor->dtype);
    code = qdqi_weight_params_new(&ret->c, w->tensor->name, a->arena, p, err);
    if (!code && has_own_scales(w, ret) && !qdqi_block_scales_new(a->arena, p))
        return qdqi_no_memory(err);
    return code;
}

/* Rounds the scales of a weight up so that what the runtime multiplies sums of products by has few
   binary digits. */
static void
shorten_factors(const struct qdqi_planned_weight *w, const struct qdqi_scales *s,
                struct qdqi_params *p)
{
    if (w->has_short_factors && w->tensor->dtype == QDQI_FLOAT32 && !p->scale_codes)
        qdqi_scales_shorten(p, (double)s->activations[w->factor_from].scales[0] /
                                   (double)s->activations[w->factor_to].scales[0]);
}

/* Gives a weight the scale and the zero point of what a layer makes of it without a change. */
static void
take_params(const struct qdqi_params *from, struct qdqi_params *p)
{
    p->n = 1;
    p->scales[0] = from->scales[0];
    p->zero_points = from->zero_points;
}

/* Computes the scales of a weight of the group. */
static enum qdq_code
find_scales(void *arg, size_t i, struct qdq_error *err)
{
    const struct group *g = arg;
    const struct choice *choice = &g->choices[i];
    const struct qdqi_planned_weight *w = &g->attempt->plan->weights[g->first + i];
    struct qdqi_params *p = &g->s->weights[g->first + i];
    size_t dead;
    if (choice->is_left)
        return QDQ_OK;
    if (w->is_moved) {
        take_params(&g->s->activations[w->moved_to], p);
        return QDQ_OK;
    }
    enum qdq_code code =
        qdqi_weight_params_find(&choice->c, w->tensor->name, 0, p, &dead, err);
    if (!code && p->scale_codes)
        return qdqi_block_scales_find(&choice->c, w->method == QDQ_WEIGHT_MSE, p, err);
    if (!code && has_signs(w))
        return qdqi_weight_fill_range(&choice->c, w->method == QDQ_WEIGHT_MSE, p, err);
    /* With a narrower range the integers would go beyond 64. */
    if (!code && w->method == QDQ_WEIGHT_MSE && (!w->is_reduced || w->pair_axis >= 0))
        code = qdqi_weight_narrow(&choice->c, p, err);
    if (!code && g->lowest && g->lowest[g->first + i] < 0)
        qdqi_cut_constant(&choice->c, g->lowest[g->first + i], p);
    if (!code && w->is_reduced)
        reduce_range(w, &choice->c, p);
    if (!code)
        shorten_factors(w, g->s, p);
    return code;
}

/* Rounds weight i where that goes by more than the scales, and quantizes it if it is
   stored as integers. */
static enum qdq_code
end_weight(struct qdqi_attempt *a, struct qdqi_scales *s, size_t i,
           const struct choice *choice, struct qdq_error *err)
{
    struct qdqi_params *p = &s->weights[i];
    if (choice->is_left)
        return QDQ_OK;
    enum qdq_code code = qdqi_round_weight(a, &a->plan->weights[i], &choice->c, p, err);
    if (code)
        return code;
    shorten_factors(&a->plan->weights[i], s, p); /* rounding may choose others */
    if (!choice->is_stored)
        return QDQ_OK;
    p->integers = qdqi_integers_new(a->scratch, &choice->c, p);
    return p->integers ? QDQ_OK : qdqi_no_memory(err);
}

static enum qdq_code
scale_group(struct qdqi_attempt *a, struct group *g, struct budget *budget,
            struct qdq_error *err)
{
    const struct qdqi_tasks tasks = {.executor = a->context->engine->executor,
                                     .threads = a->context->engine->threads};
    enum qdq_code code = QDQ_OK;
    size_t n_here = 0; /* not left to the writer */
    memset(g->choices, 0, sizeof g->choices);
    for (size_t i = 0; i < g->n && !code; i++) {
        code = begin_weight(a, g->s, g->first + i, budget, &g->choices[i], err);
        n_here += !g->choices[i].is_left;
    }
    if (n_here > 1)
        a->effort.threads = qdqi_context_threads(a->context);
    if (!code)
        code = qdqi_tasks_run(&tasks, g->n, find_scales, g, err);
    for (size_t i = 0; i < g->n && !code; i++) {
        code = qdqi_attempt_progress(a, QDQ_STAGE_QUANTIZE, g->first + i,
                                     a->plan->view.n_weights, err);
        if (!code)
            code = end_weight(a, g->s, g->first + i, &g->choices[i], err);
        const struct qdqi_constant *c = &g->choices[i].c;
        if (!code && c->bytes && !c->strides)
            qdqi_model_forget_piece(a->model, c->bytes,
                                    c->n * qdqi_dtype_size((int)c->dtype));
    }
    return code;
}

static enum qdq_code
find_weight_scales(struct qdqi_attempt *a, struct qdqi_scales *s, const float *lowest,
                   struct budget *budget, struct qdq_error *err)
{
    const size_t n = a->plan->view.n_weights;
    struct group *g = qdqi_arena_alloc(a->scratch, sizeof *g);
    enum qdq_code code = g ? QDQ_OK : qdqi_no_memory(err);
    for (size_t i = 0; i < n && !code; i += GROUP) {
        g->attempt = a;
        g->s = s;
        g->lowest = lowest;
        g->first = i;
        g->n = n - i < GROUP ? n - i : GROUP;
        code = scale_group(a, g, budget, err);
    }
    return code;
}

static const char *
granularity_of(const struct qdqi_planned_weight *w)
{
    return w->axis < 0 ? "tensor" : w->block > 0 ? "block" : "channel";
}

static enum qdq_code
scale_weights(struct qdqi_attempt *a, struct qdqi_scales *s, const float *lowest,
              struct qdq_error *err)
{
    size_t n = a->plan->view.n_weights;
    struct budget budget = {.filled = MAX_FILLED_CHANNELS,
                            .integers = qdqi_model_bytes(a->model)};
    struct qdq_weight_report *weights = qdqi_arena_array(a->arena, n, sizeof *weights);
    s->weights = qdqi_arena_array(a->arena, n, sizeof *s->weights);
    if (!weights || !s->weights)
        return qdqi_no_memory(err);
    enum qdq_code code = find_weight_scales(a, s, lowest, &budget, err);
    if (code)
        return code;
    for (size_t i = 0; i < n; i++) {
        const struct qdqi_planned_weight *w = &a->plan->weights[i];
        weights[i] = (struct qdq_weight_report){
            .name = w->tensor->name,
            .layer = w->layer,
            .axis = w->axis,
            .dtype = qdqi_format_row((int)w->format)->name,
            .granularity = granularity_of(w),
            .block = w->block,
            .n_scales = s->weights[i].n,
            .scales = s->weights[i].scales,
        };
    }
    a->rows.weights = weights;
    a->rows.n_weights = n;
    return warn_left_float(a, &budget, err);
}

enum qdq_code
qdqi_report_blocks(struct qdqi_attempt *a, struct qdq_error *err)
{
    /* The const is cast away: the rows are in the attempt's own memory. */
    struct qdq_weight_report *weights =
        (struct qdq_weight_report *)(uintptr_t)a->rows.weights;
    for (size_t i = 0; i < a->rows.n_weights; i++) {
        const struct qdqi_blocks *blocks = a->scales.weights[i].blocks;
        if (!blocks)
            continue;
        a->effort.bytes += qdqi_blocks_bytes(blocks);
        struct qdqi_blocks_summary *summary =
            qdqi_arena_alloc(a->arena, sizeof *summary);
        if (!summary)
            return qdqi_no_memory(err);
        *summary = qdqi_blocks_summary(blocks);
        weights[i].scale_min = summary->low;
        weights[i].scale_max = summary->high;
        weights[i].part_scales = summary->parts;
    }
    return QDQ_OK;
}

/* Adds to the rows of tensors that have a second format what it is. */
static void
add_second_formats(const struct qdqi_attempt *a)
{
    const struct qdq_plan *plan = a->plan;
    /* The const is cast away: the rows are in the attempt's own memory. */
    struct qdq_tensor_report *tensors =
        (struct qdq_tensor_report *)(uintptr_t)a->rows.tensors;
    for (size_t i = qdqi_plan_tensors(plan); i < plan->view.n_tensors; i++) {
        struct qdq_tensor_report *row = &tensors[plan->activations[i].other];
        row->second_dtype = tensors[i].dtype;
        row->second_scale = tensors[i].scale;
        row->second_zero_point = tensors[i].zero_point;
    }
}

static enum qdq_code
choose_scales(struct qdqi_attempt *a, struct qdq_error *err)
{
    a->scales = (struct qdqi_scales){0};
    const float *lowest;
    enum qdq_code code = qdqi_cut_masks(a, &lowest, err);
    if (code)
        return code;
    copy_shared_ranges(a);
    code = scale_activations(a, &a->scales, err);
    if (!code)
        code = scale_weights(a, &a->scales, lowest, err);
    if (!code)
        code = qdqi_choose_float16(a, &a->scales, err);
    if (!code)
        add_second_formats(a);
    if (!code)
        code = qdqi_correct_biases(a, &a->scales, err);
    return code ? code : qdqi_choose_biases(a, &a->scales, err);
}

enum qdq_code
qdqi_choose_scales(struct qdqi_attempt *a, struct qdq_error *err)
{
    struct qdqi_stage_warnings *w = a->warnings;
    const enum qdq_stage stage = w->stage;
    /* Another plan, or other ranges, give their own warnings. */
    qdqi_stage_warnings_remove(w, QDQ_STAGE_QUANTIZE);
    w->stage = QDQ_STAGE_QUANTIZE;
    enum qdq_code code = choose_scales(a, err);
    w->stage = stage;
    return code;
}
