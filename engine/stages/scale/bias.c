/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/scale/bias.h"

#include "files/model/constant.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* The largest bias in steps. It is so far below INT32_MAX that rounding in a product
   of scales cannot exceed int32. */
static const double most = 2147483000;

/*
 * Biases that repeat one element, or that many layers share, take few bytes in the
 * file. As integers they may have this many elements more than a file of the model's
 * size can hold.
 */
enum { SPARE = 1 << 16 };

static const struct qdqi_planned_bias *
planned(const struct qdqi_attempt *a, size_t i)
{
    return &a->plan->biases[i];
}

static float
element(const struct qdqi_constant *c, size_t i)
{
    float value;
    size_t at = qdqi_constant_is_fill(c) ? 0 : i;
    memcpy(&value, c->bytes + at * sizeof value, sizeof value);
    return value;
}

/* Returns the bias of the layer that takes the mean of its weight's errors, or NULL. */
static const struct qdqi_shifted_bias *
shifted(const struct qdqi_attempt *a, const struct qdqi_scales *s, size_t i)
{
    const struct qdqi_planned_bias *b = planned(a, i);
    size_t node = a->plan->view.layers[b->layer].node;
    for (size_t k = 0; k < s->n_shifted; k++)
        if (s->shifted[k].node == node && s->shifted[k].input == b->input)
            return &s->shifted[k];
    return NULL;
}

/* Reads bias i: that of the model, or the one that replaces it. */
static enum qdq_code
load_bias(const struct qdqi_attempt *a, const struct qdqi_scales *s, size_t i,
          struct qdqi_constant *ret, struct qdq_error *err)
{
    const struct qdqi_shifted_bias *other = shifted(a, s, i);
    enum qdq_code code = qdqi_constant_read(a->model, planned(a, i)->tensor, ret, err);
    if (!code && other) {
        ret->bytes = (const uint8_t *)other->values;
        ret->strides = NULL;
    }
    return code;
}

/* Reads the elements of the bias. Returns NULL if it can become integers, or else
   the reason why it cannot. */
static const char *
read_bias(const struct qdqi_attempt *a, const struct qdqi_scales *s, size_t i,
          const uint64_t *left, struct qdqi_constant *ret)
{
    const struct qdqi_planned_bias *b = planned(a, i);
    const struct qdqi_params *weight = &s->weights[b->weight];
    if (qdqi_constant_is_overridable(a->model, b->tensor))
        return "it is an input of the graph, for which callers may send other values";
    if (load_bias(a, s, i, ret, NULL) || ret->dtype != QDQI_FLOAT32 || ret->rank != 1)
        return "it is kept in a form that is not read";
    if (ret->n > *left)
        return "the integers of all biases would take more bytes than the model";
    if (!b->has_own_scale && weight->axis >= 0 && weight->n != ret->n)
        return "it has not one number for each channel of the weight";
    if (!b->has_own_scale && (weight->block || !weight->scales))
        return "the weight is quantized in blocks";
    if (!b->has_own_scale && weight->zero_points)
        return "the weight's zero points are not 0";
    for (size_t k = 0; k < ret->n; k++)
        if (!isfinite(element(ret, k)))
            return "it holds a NaN or an infinity";
    return NULL;
}

/* --- room for the bias ---------------------------------------------------- */

/* The channels of a weight whose scale was raised, and the largest factor. */
struct raised {
    size_t channels;
    double most;
};

/* Returns the smallest scale of the weight with which element k of the bias fits
   int32, or the present scale if that is large enough. */
static float
scale_for(const struct qdqi_constant *bias, size_t k, float data, float weight)
{
    double need = fabs((double)element(bias, k)) / most / (double)data;
    /* keeps the product of the scales a normal number */
    double least = (double)FLT_MIN / (double)data;
    need = need > least ? need : least;
    return need > (double)weight ? nextafterf((float)need, INFINITY) : weight;
}

/* Raises the weight's scales, or its one scale, so that the bias fits int32. Such a bias is so
   much larger than all products of the weight that their rounding is lost in it. Returns NULL,
   or the reason why that is impossible. */
static const char *
make_room(const struct qdqi_constant *bias, float data, struct qdqi_params *weight,
          struct raised *raised)
{
    for (size_t k = 0; k < bias->n; k++) {
        float *scale = &weight->scales[weight->axis < 0 ? 0 : k];
        float wanted = scale_for(bias, k, data, *scale);
        if (wanted == *scale)
            continue;
        if (weight->rounded || !isfinite(wanted))
            return "it is too large for an int32 of the scale that its weight has";
        double by = (double)wanted / (double)*scale;
        raised->channels++;
        raised->most = by > raised->most ? by : raised->most;
        *scale = wanted;
    }
    return NULL;
}

static enum qdq_code
warn_raised(struct qdqi_attempt *a, size_t i, const struct raised *raised,
            struct qdq_error *err)
{
    if (!raised->channels)
        return QDQ_OK;
    return qdqi_attempt_warn(
        a, err, "bias_widens_weight", planned(a, i)->tensor->name,
        "%zu channels of the weight have a larger scale, up to %.3g times, "
        "so that the bias fits int32",
        raised->channels, raised->most);
}

/* Makes bias i fit int32. If that is impossible its n stays 0, and a warning says
   that the bias stays floating point. */
static enum qdq_code
fit_bias(struct qdqi_attempt *a, struct qdqi_scales *s, size_t i, uint64_t *left,
         struct qdq_error *err)
{
    const struct qdqi_planned_bias *b = planned(a, i);
    struct qdqi_params *weight = &s->weights[b->weight];
    struct qdqi_constant bias;
    struct raised raised = {0, 1};
    const char *why = read_bias(a, s, i, left, &bias);
    if (!why && !b->has_own_scale)
        why =
            make_room(&bias, s->activations[b->activation].scales[0], weight, &raised);
    if (!why) {
        s->biases[i].n = bias.n;
        *left -= bias.n;
        return warn_raised(a, i, &raised, err);
    }
    return qdqi_attempt_warn(a, err, "bias_stays_float", b->tensor->name,
                             "the bias stays floating point: %s", why);
}

/* --- the integers --------------------------------------------------------- */

/* Returns the scale with which the largest number of the bias has the most steps. */
static float
own_scale(const struct qdqi_constant *bias)
{
    double largest = 0;
    for (size_t k = 0; k < bias->n; k++)
        largest = fmax(largest, fabs((double)element(bias, k)));
    const float scale = (float)(largest / most);
    return scale >= FLT_MIN ? scale : FLT_MIN;
}

static enum qdq_code
round_bias(struct qdqi_attempt *a, struct qdqi_scales *s, size_t i,
           struct qdq_error *err)
{
    const struct qdqi_planned_bias *b = planned(a, i);
    const struct qdqi_params *weight = &s->weights[b->weight];
    struct qdqi_bias *to = &s->biases[i];
    float data = s->activations[b->activation].scales[0];
    struct qdqi_constant bias;
    if (to->n == 0)
        return QDQ_OK;
    to->per_channel = !b->has_own_scale && weight->axis >= 0;
    to->n_scales = b->has_own_scale ? 1 : weight->n;
    float *scales = qdqi_arena_array(a->scratch, to->n_scales, sizeof *scales);
    int32_t *integers = qdqi_arena_array(a->scratch, to->n, sizeof *integers);
    if (!scales || !integers)
        return qdqi_no_memory(err);
    enum qdq_code code = load_bias(a, s, i, &bias, err);
    if (code)
        return code;
    for (size_t k = 0; k < to->n_scales; k++)
        scales[k] = b->has_own_scale ? own_scale(&bias) : data * weight->scales[k];
    for (size_t k = 0; k < to->n; k++)
        integers[k] = (int32_t)lrint((double)element(&bias, k) /
                                     (double)scales[to->per_channel ? k : 0]);
    to->scales = scales;
    to->integers = integers;
    return QDQ_OK;
}

/* --- biases that stay floating point ---------------------------------------- */

/* Returns whether ONNX Runtime can make int32 of a bias. */
static bool
fits_int32(const struct qdqi_attempt *a, const struct qdqi_scales *s,
           const struct qdqi_planned_bias *b)
{
    const struct qdqi_params *weight = &s->weights[b->weight];
    const float data = s->activations[b->activation].scales[0];
    struct qdqi_constant bias;
    if (weight->block || !weight->scales ||
        qdqi_constant_read(a->model, b->tensor, &bias, NULL) ||
        bias.dtype != QDQI_FLOAT32 || bias.rank != 1 ||
        (weight->axis >= 0 && weight->n != bias.n))
        return true;
    for (size_t k = 0; k < bias.n; k++)
        if (fabs((double)element(&bias, k)) >
            most * (double)data * (double)weight->scales[weight->axis < 0 ? 0 : k])
            return false;
    return true;
}

/* Warns of the biases that stay floating point and of which ONNX Runtime would make an int32 that
   does not fit. */
static enum qdq_code
warn_float_biases(struct qdqi_attempt *a, const struct qdqi_scales *s,
                  struct qdq_error *err)
{
    const struct qdqi_planned_bias *b = a->plan->float_biases, *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < a->plan->n_float_biases; i++)
        if (!fits_int32(a, s, &b[i]) && n++ == 0)
            first = &b[i];
    if (n == 0)
        return QDQ_OK;
    return qdqi_attempt_warn(
        a, err, "onnxruntime_differs", a->plan->view.layers[first->layer].name,
        "%zu layers, this one first, have a bias of more than 2^31 steps of the "
        "product of "
        "their scales, because the weights of a channel are tiny. TensorRT adds it in "
        "floating point, and ONNX Runtime makes an int32 of it that overflows, by its "
        "default optimizations: name the layer with \"quantize_input\": false and "
        "\"quantize_weight\": false, or run the file there without optimizations",
        n);
}

/* Layers may share a weight, so all scales are raised before the first bias is
   rounded. */
enum qdq_code
qdqi_choose_biases(struct qdqi_attempt *a, struct qdqi_scales *s, struct qdq_error *err)
{
    size_t n = a->plan->n_biases;
    uint64_t left = SPARE + qdqi_model_bytes(a->model) / sizeof(float);
    enum qdq_code code = warn_float_biases(a, s, err);
    if (code)
        return code;
    s->biases = qdqi_arena_array(a->scratch, n, sizeof *s->biases);
    if (!s->biases)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n && !code; i++)
        code = fit_bias(a, s, i, &left, err);
    for (size_t i = 0; i < n && !code; i++)
        code = round_bias(a, s, i, err);
    return code;
}
