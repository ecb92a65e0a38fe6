/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/evaluate/language.h"

#include "files/data/tokens.h"
#include "numbers/arithmetic/simd.h"

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

struct qdqi_language
qdqi_language_of(const struct qdq_model_info *model, size_t output)
{
    const size_t ids = qdqi_tokens_input(model), mask = find_mask(model);
    return (struct qdqi_language){.is_logits = qdqi_tokens_are_logits(model, output),
                                  .predicts = qdqi_tokens_have_past(model),
                                  .ids = ids,
                                  .has_mask = mask < model->n_inputs,
                                  .mask = mask};
}

static bool
has_other_outputs(const struct qdq_model_info *model)
{
    for (size_t i = 0; i < model->n_outputs; i++)
        if (strncmp(model->outputs[i].name, "present", 7) != 0)
            return true;
    return false;
}

bool
qdqi_output_is_cache(const struct qdq_model_info *model, size_t output)
{
    const struct qdq_value *o = &model->outputs[output];
    if (strncmp(o->name, "present", 7) != 0)
        return false;
    /* A decoder that begins without caches makes them, too, for another one. */
    return qdqi_tokens_have_past(model) ||
           (qdqi_tokens_input(model) < model->n_inputs && has_other_outputs(model) &&
            (!o->has_shape || o->rank >= 3));
}

/* --- one position ------------------------------------------------------------- */

/* Sums are built of so many parts, so that loops over a vocabulary vectorize. */
enum { PARTS = 8 };

/* Returns e^x for x <= 0, to 2e-7 of it; 0 where it is less than float32's normal numbers, also for
   minus infinity. */
static inline float
exponential(float x)
{
    const float round =
        12582912; /* 1.5 * 2^23: a float of this size has no fraction bits */
    const float least = -87;
    const float in = x > least ? x : least;
    const float whole = in * 1.44269504f + round - round;
    /* ln 2 in two parts, so that the rest is exact */
    const float rest = in - whole * 0.693359375f + whole * 2.12194440e-4f;
    float sum = 1.9875691e-4f;
    sum = sum * rest + 1.3981999e-3f;
    sum = sum * rest + 8.3334519e-3f;
    sum = sum * rest + 4.1665796e-2f;
    sum = sum * rest + 1.6666665e-1f;
    sum = sum * rest + 5.0000001e-1f;
    sum = sum * rest * rest + rest + 1;
    union {
        int32_t bits;
        float power;
    } as = {((int32_t)whole + 127) << 23};
    return x > least ? sum * as.power : x < 0 ? 0 : x; /* a NaN stays one */
}

/* Returns the logarithm of the sum of exponentials, in two passes. */
QDQI_LOOP double
log_sum_loop(const float *x, size_t n)
{
    float top = -INFINITY;
    double parts[PARTS] = {0}, sum = 0;
    size_t i = 0;
    for (size_t k = 0; k < n; k++)
        top = x[k] > top ? x[k] : top;
    for (; i + PARTS <= n; i += PARTS)
        for (size_t k = 0; k < PARTS; k++)
            parts[k] += (double)exponential(x[i + k] - top);
    for (; i < n; i++)
        sum += (double)exponential(x[i] - top);
    for (size_t k = 0; k < PARTS; k++)
        sum += parts[k];
    return (double)top + log(sum);
}

/* Returns what one token adds to the divergence: nothing where f rules it out. */
static inline double
divergence_of(float f, float q, double sum_f)
{
    const float p = exponential((float)((double)f - sum_f));
    return (double)p * (p == 0 ? 0 : (double)f - (double)q);
}

/* Returns the divergence of q from f, whose logarithms of sums are given. */
QDQI_LOOP double
divergence_loop(const float *f, const float *q, size_t n, double sum_f, double sum_q)
{
    double parts[PARTS] = {0}, sum = sum_q - sum_f;
    size_t i = 0;
    for (; i + PARTS <= n; i += PARTS)
        for (size_t k = 0; k < PARTS; k++)
            parts[k] += divergence_of(f[i + k], q[i + k], sum_f);
    for (; i < n; i++)
        sum += divergence_of(f[i], q[i], sum_f);
    for (size_t k = 0; k < PARTS; k++)
        sum += parts[k];
    return sum;
}

QDQI_VARIANTS(double, log_sum, (const float *x, size_t n), (x, n))
QDQI_VARIANTS(double, divergence,
              (const float *f, const float *q, size_t n, double sum_f, double sum_q),
              (f, q, n, sum_f, sum_q))

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
