/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/scale/masks.h"

#include "numbers/range/method.h"
#include "plan/placement/masked_sums.h"

#include <string.h>

static const float highest_mask = -QDQI_HIGHEST_MASK;

/* A masked score is lower than all scores by this, so that its share is at most 6e-6 of the highest one's. */
static const float margin = 12;

static struct qdqi_range *
range_of(const struct qdqi_attempt *a, size_t row)
{
    return &a->ranges[a->plan->activations[row].leader];
}

static bool
is_masked(const struct qdqi_attempt *a, size_t row)
{
    return range_of(a, row)->min <= highest_mask;
}

/* Raises the lowest number of a range that data gave, and that scores alone have. */
static void
raise_to(struct qdqi_attempt *a, size_t row, float lowest)
{
    const size_t leader = a->plan->activations[row].leader;
    struct qdqi_range *range = &a->ranges[leader];
    if (qdqi_method_find(a->methods[leader]) && range->min < lowest &&
        lowest < range->max && !a->plan->read_elsewhere[leader])
        range->min = lowest;
}

static void
need(float *lowest, size_t row, float wanted)
{
    lowest[row] = wanted < lowest[row] ? wanted : lowest[row];
}

/* Raises the range of what moves or bounds masked scores, whose own range was raised, and notes what it
   needs of the bounds. */
static void
cut_passed(struct qdqi_attempt *a, const struct qdqi_masked_sum *sum,
           float *activations, float *weights)
{
    const size_t from = sum->operands[0], bound = sum->operands[1];
    if (from == QDQI_NONE || is_masked(a, from))
        return;
    const float lowest = range_of(a, from)->min;
    if (bound != QDQI_NONE)
        need(activations, a->plan->activations[bound].leader, lowest);
    else if (sum->constant != QDQI_NONE)
        need(weights, sum->constant, lowest);
    if (sum->result != QDQI_NONE && is_masked(a, sum->result))
        raise_to(a, sum->result, lowest);
}

/* Notes what a sum needs of its mask, and raises the range of its result. `activations` and `weights`: by
   row, what is noted. */
static void
cut_sum(struct qdqi_attempt *a, const struct qdqi_masked_sum *sum, float *activations,
        float *weights)
{
    const size_t *rows = sum->operands;
    const bool first = rows[0] != QDQI_NONE, second = rows[1] != QDQI_NONE;
    const bool masked[] = {first && is_masked(a, rows[0]),
                           second && is_masked(a, rows[1])};
    if (sum->result == QDQI_NONE || (!first && !second) ||
        (first && second ? masked[0] == masked[1] : masked[0] || masked[1]) ||
        (masked[0] && sum->is_computed[0]) || (masked[1] && sum->is_computed[1]))
        return;
    const size_t scored = first && !masked[0] ? rows[0] : rows[1];
    const struct qdqi_range scores = *range_of(a, scored);
    /* what is added to the highest score, or stands for one */
    const float wanted =
        sum->selects ? scores.min - margin : scores.min - scores.max - margin;
    if (first && second)
        need(activations,
             a->plan->activations[scored == rows[0] ? rows[1] : rows[0]].leader,
             wanted);
    else if (sum->constant != QDQI_NONE)
        need(weights, sum->constant, wanted);
    if (is_masked(a, sum->result))
        raise_to(a, sum->result, scores.min - margin);
}

enum qdq_code
qdqi_cut_masks(struct qdqi_attempt *a, const float **ret_lowest, struct qdq_error *err)
{
    const struct qdq_plan *plan = a->plan;
    *ret_lowest = NULL;
    if (plan->n_masked == 0)
        return QDQ_OK;
    /* the lowest number that one of the sums needs of the mask; 0: it is none */
    float *activations =
        qdqi_arena_array(a->scratch, plan->view.n_tensors + 1, sizeof *activations);
    float *weights =
        qdqi_arena_array(a->scratch, plan->view.n_weights + 1, sizeof *weights);
    if (!activations || !weights)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < plan->n_masked; i++)
        (plan->masked[i].passes ? cut_passed : cut_sum)(a, &plan->masked[i],
                                                        activations, weights);
    for (size_t i = 0; i < plan->view.n_tensors; i++)
        if (activations[i] < 0)
            raise_to(a, i, activations[i]);
    *ret_lowest = weights;
    return QDQ_OK;
}

void
qdqi_cut_constant(const struct qdqi_constant *w, float lowest, struct qdqi_params *p)
{
    float low = 0, high = 0;
    int32_t zero_point = 0;
    if (p->n != 1 || w->dtype != QDQI_FLOAT32 ||
        (w->strides && !qdqi_constant_is_fill(w)))
        return;
    const size_t n = w->strides && w->n > 0 ? 1 : w->n;
    for (size_t i = 0; i < n; i++) {
        float value;
        memcpy(&value, w->bytes + i * sizeof value, sizeof value);
        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    if (low > highest_mask || low >= lowest)
        return;
    qdqi_range_params(p->format, !p->zero_points, w->dtype, (double)lowest,
                      (double)high, p->scales, &zero_point);
    if (p->zero_points)
        p->zero_points[0] = zero_point;
}
