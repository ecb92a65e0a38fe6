/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/evaluate/language.h"

#include "files/data/tokens.h"

#include <math.h>
#include <string.h>

static size_t
find_mask(const struct qdq_model_info *model)
{
    size_t i = 0;
    while (i < model->n_inputs && qdqi_tokens_give(model, i) != QDQI_TOKENS_MASK)
        i++;
    return i;
}

static bool
has_past(const struct qdq_model_info *model)
{
    for (size_t i = 0; i < model->n_inputs; i++)
        if (qdqi_tokens_give(model, i) == QDQI_TOKENS_PAST)
            return true;
    return false;
}

struct qdqi_language
qdqi_language_of(const struct qdq_model_info *model, size_t output)
{
    const size_t ids = qdqi_tokens_input(model), mask = find_mask(model);
    return (struct qdqi_language){.is_logits = qdqi_tokens_are_logits(model, output),
                                  .predicts = has_past(model),
                                  .ids = ids,
                                  .has_mask = mask < model->n_inputs,
                                  .mask = mask};
}

bool
qdqi_output_is_cache(const struct qdq_model_info *model, size_t output)
{
    return strncmp(model->outputs[output].name, "present", 7) == 0 && has_past(model);
}

/* --- one position ------------------------------------------------------------- */

/* Returns the logarithm of the sum of exponentials, in two passes. */
static double
log_sum(const float *x, size_t n)
{
    float top = -INFINITY;
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        top = x[i] > top ? x[i] : top;
    for (size_t i = 0; i < n; i++)
        sum += (double)expf(x[i] - top);
    return (double)top + log(sum);
}

/* Returns the divergence of q from f, whose logarithms of sums are given. A token that f rules out
   adds nothing. */
static double
divergence(const float *f, const float *q, size_t n, double sum_f, double sum_q)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const float p = expf((float)((double)f[i] - sum_f));
        if (p > 0)
            sum += (double)p * ((double)f[i] - (double)q[i]);
    }
    return sum - sum_f + sum_q;
}

static void
add_row(struct qdqi_language *to, const float *f, const float *q, size_t n,
        int64_t next)
{
    const double sum_f = log_sum(f, n), sum_q = log_sum(q, n);
    to->divergence += divergence(f, q, n, sum_f, sum_q);
    to->rows++;
    if (next < 0 || (size_t)next >= n)
        return;
    to->float_nats += sum_f - (double)f[next];
    to->nats += sum_q - (double)q[next];
    to->tokens++;
}

/* --- one run ------------------------------------------------------------------ */

static int64_t
integer_at(const struct qdqi_input *input, size_t i)
{
    return qdqi_tokens_at(input->dtype, input->data, i);
}

/* Returns whether a position of a sample counts. A mask may begin with a past. */
static bool
is_seen(const struct qdqi_input *mask, size_t sample, size_t at, size_t length)
{
    if (!mask || mask->rank != 2 || (size_t)mask->shape[1] < length ||
        sample >= (size_t)mask->shape[0])
        return true;
    const size_t width = (size_t)mask->shape[1];
    return integer_at(mask, sample * width + (width - length) + at) != 0;
}

void
qdqi_language_add(struct qdqi_language *to, const float *f, const float *q,
                  const int64_t *dims, size_t rank, const struct qdqi_input *inputs)
{
    if (!to->is_logits || rank != 3 || !inputs)
        return;
    const struct qdqi_input *ids = &inputs[to->ids];
    const size_t samples = (size_t)dims[0], length = (size_t)dims[1],
                 n = (size_t)dims[2];
    if (ids->rank != 2 || ids->shape[0] != dims[0] || ids->shape[1] < dims[1])
        return;
    /* Logits of the last positions alone are those of as many ids. */
    const size_t all = (size_t)ids->shape[1], skipped = all - length;
    const struct qdqi_input *mask = NULL;
    if (to->has_mask)
        mask = &inputs[to->mask];
    for (size_t s = 0; s < samples; s++)
        for (size_t i = 0; i < length; i++) {
            const size_t at = skipped + i;
            const size_t row = (s * length + i) * n;
            const bool has_next =
                to->predicts && at + 1 < all && is_seen(mask, s, at + 1, all);
            if (is_seen(mask, s, at, all))
                add_row(to, f + row, q + row, n,
                        has_next ? integer_at(ids, s * all + at + 1) : -1);
        }
}

void
qdqi_language_finish(const struct qdqi_language *from, struct qdq_output_report *ret)
{
    ret->is_logits = from->rows > 0;
    ret->kl = from->rows ? from->divergence / (double)from->rows : NAN;
    ret->nats_per_token = from->tokens ? from->nats / (double)from->tokens : NAN;
    ret->float_nats_per_token =
        from->tokens ? from->float_nats / (double)from->tokens : NAN;
}
