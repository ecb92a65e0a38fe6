/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/weights/pairs.h"

#include "numbers/arithmetic/half.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The largest sum of two integers of the same sign: 255 * 128 < 2^15. Rounding both to the
   nearest integer adds at most 1. */
enum { MOST_SUM = 128, MOST_BEFORE_ROUNDING = MOST_SUM - 1 };

enum { CHUNK = 64 }; /* outputs whose elements lie side by side */

/* A weight as the list of the inputs of each output: for each element of the kernel, in C
   order, its input channels. */
struct layout {
    const struct qdqi_constant *weight;
    const int64_t *strides; /* NULL: C order */
    int axis, inputs;
    size_t outputs, output_stride; /* one of all where there is one scale */
    size_t n_elements, n_inputs, input_stride;
    /* an output's inputs are an odd number for each element, so that kernels differ in which
       neighbours they add */
    bool any_neighbours;
};

static size_t
stride_of(const struct layout *l, int axis)
{
    size_t stride = 1;
    if (l->strides)
        return (size_t)l->strides[axis];
    for (size_t i = (size_t)axis + 1; i < l->weight->rank; i++)
        stride *= (size_t)l->weight->dims[i];
    return stride;
}

static struct layout
lay_out(const struct qdqi_constant *w, const int64_t *strides, int inputs, int axis)
{
    struct layout l = {.weight = w,
                       .strides = strides,
                       .axis = axis,
                       .inputs = inputs,
                       .outputs = axis < 0 ? 1 : (size_t)w->dims[axis],
                       .n_inputs = (size_t)w->dims[inputs]};
    const size_t others = l.outputs * l.n_inputs;
    l.n_elements = others > 0 ? w->n / others : 0;
    l.output_stride = axis < 0 ? 0 : stride_of(&l, axis);
    l.input_stride = stride_of(&l, inputs);
    l.any_neighbours = l.n_inputs % 2 != 0;
    return l;
}

/* Returns where element i of the kernel begins. */
static size_t
offset_of(const struct layout *l, size_t i)
{
    size_t offset = 0;
    for (int axis = (int)l->weight->rank - 1; axis >= 0; axis--) {
        const size_t n = (size_t)l->weight->dims[axis];
        if (axis == l->axis || axis == l->inputs)
            continue;
        offset += i % n * stride_of(l, axis);
        i /= n;
    }
    return offset;
}

/* --- scales ----------------------------------------------------------------- */

/* Returns the larger one; `a` where b is NaN. Without a call, which fmaxf() is. */
static float
larger_of(float a, float b)
{
    return b > a ? b : a;
}

static float
sum_of_same_sign(float a, float b)
{
    const float above = larger_of(0, a) + larger_of(0, b);
    const float below = larger_of(0, -a) + larger_of(0, -b);
    return larger_of(above, below);
}

/* Finds the largest sum of two neighbours of `n` outputs from `first` on, whose elements lie
   side by side if there are several. */
static void
find_sums(const struct layout *l, size_t first, size_t n, float *most)
{
    const struct qdqi_constant *w = l->weight;
    const size_t size = qdqi_dtype_size((int)w->dtype);
    float now[CHUNK], before[CHUNK] = {0};
    bool second = false;
    memset(most, 0, n * sizeof *most);
    for (size_t e = 0; e < l->n_elements; e++) {
        const size_t begin = first * l->output_stride + offset_of(l, e);
        for (size_t i = 0; i < l->n_inputs; i++, second = !second) {
            const uint8_t *from = w->bytes + (begin + i * l->input_stride) * size;
            if (n == 1 && w->dtype == QDQI_FLOAT32)
                memcpy(now, from, sizeof *now); /* without a call */
            else
                qdqi_load_floats(now, w->dtype, from, n);
            for (size_t k = 0; k < n; k++) {
                if (second || l->any_neighbours)
                    most[k] = larger_of(most[k], sum_of_same_sign(before[k], now[k]));
                before[k] = now[k];
            }
        }
    }
}

static void
widen(struct qdqi_params *p, size_t i, double least, enum qdqi_dtype dtype)
{
    if (!(least > (double)p->scales[i]))
        return;
    p->scales[i] = dtype == QDQI_FLOAT16 ? qdqi_normal_half(fmin(least, 65504))
                                         : (float)fmin(least, (double)FLT_MAX);
}

void
qdqi_pairs_widen(const struct qdqi_constant *w, int inputs, struct qdqi_params *p)
{
    float most[CHUNK];
    if (qdqi_constant_is_fill(w)) {
        for (size_t i = 0; i < p->n; i++)
            widen(p, i, (double)p->scales[i] * 127 * 2 / MOST_SUM, w->dtype);
        return;
    }
    const struct layout l = lay_out(w, w->strides, inputs, p->axis);
    const size_t step = l.output_stride == 1 ? CHUNK : 1;
    for (size_t i = 0; i < p->n && w->n > 0; i += step) {
        const size_t n = p->n - i < step ? p->n - i : step;
        find_sums(&l, i, n, most);
        for (size_t k = 0; k < n; k++)
            widen(p, i + k, (double)most[k] / MOST_BEFORE_ROUNDING, w->dtype);
    }
}

/* --- integers --------------------------------------------------------------- */

static int
sign_of(int x)
{
    return (x > 0) - (x < 0);
}

/* Takes what is too much from the larger one. */
static void
fit(int16_t *a, int16_t *b)
{
    const int excess = abs(*a) + abs(*b) - MOST_SUM;
    int16_t *larger = abs(*a) > abs(*b) ? a : b;
    if (excess > 0 && sign_of(*a) == sign_of(*b))
        *larger = (int16_t)(*larger - sign_of(*larger) * excess);
}

void
qdqi_pairs_fit(const struct qdqi_constant *w, int inputs, int axis, int16_t *integers)
{
    const struct layout l = lay_out(w, NULL, inputs, axis);
    for (size_t o = 0; o < l.outputs && w->n > 0; o++) {
        int16_t *before = NULL;
        bool second = false;
        for (size_t e = 0; e < l.n_elements; e++) {
            int16_t *now = integers + o * l.output_stride + offset_of(&l, e);
            for (size_t i = 0; i < l.n_inputs; i++, second = !second) {
                if (before && (second || l.any_neighbours))
                    fit(before, now);
                before = now;
                now += l.input_stride;
            }
        }
    }
}
