/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of quantization: formats, scales and zero points, and their
   calculation from ranges. */
#ifndef QDQI_NUMBERS_ARITHMETIC_PARAMS_H
#define QDQI_NUMBERS_ARITHMETIC_PARAMS_H

#include "numbers/arithmetic/format.h"

#include <stdbool.h>

struct qdqi_made;
struct qdqi_blocks;

/* The inputs of QuantizeLinear other than the tensor. */
struct qdqi_params {
    enum qdqi_format format;
    int axis; /* -1: there is one scale */
    /* elements along the axis that share a scale; 0: there are no blocks */
    int64_t block;
    size_t n;             /* number of scales */
    float *scales;        /* positive and finite; in C order if there are blocks */
    int32_t *zero_points; /* one for each scale, in the format; NULL: all are 0 */
    /* a weight's integers, by element in C order (packed.h); NULL: each is the one that is
       nearest to its element */
    const uint8_t *rounded;
    /* generator of the numbers that `rounded` stands for, where it is set */
    const struct qdqi_made *rounded_floats;
    /* generator of a weight's integers if they are stored in the model, or NULL */
    const struct qdqi_made *integers;
    /* generates scales, zero points and integers while the model is written; the members
       above are then NULL, except for n. NULL: they are known. */
    struct qdqi_blocks *blocks;
    /* where the format's scales have a type of their own: their bits, of which `scales` are the
       numbers, times tensor_scale in a format that has one; NULL: `scales` are stored */
    uint8_t *scale_codes;
    float tensor_scale;
};

/* A bias as int32 with zero point 0. */
struct qdqi_bias {
    size_t n, n_scales;
    bool per_channel;        /* whether each element has its own scale */
    const float *scales;     /* scales of the activation times those of the weight */
    const int32_t *integers; /* NULL: the bias stays floating point */
};

/* The bias of a layer that takes the mean of the errors of its weight. */
struct qdqi_shifted_bias {
    size_t layer; /* index of the layer in the plan */
    size_t node;  /* reads it as input `input`; it is no constant of another layer */
    int input;
    const char *tensor; /* the bias as the model has it */
    size_t rank, n;     /* its shape, and its elements */
    const int64_t *dims;
    const float *values;
};

/* A bias that was made for a layer whose weight stays float. */
struct qdqi_idle_bias {
    size_t layer; /* node that makes what the bias is added to */
    size_t node;  /* reads it as input `input`: the layer, or an Add behind it */
    int input;
    const char *tensor;
};

/* The parameters of all tensors of a plan, in the plan's order. */
struct qdqi_scales {
    struct qdqi_params *activations, *weights;
    struct qdqi_bias *biases;
    struct qdqi_shifted_bias *shifted;
    size_t n_shifted;
    struct qdqi_idle_bias *idle; /* are left out of the result */
    size_t n_idle;
};

/* Returns the zero point of scale i. */
static inline int32_t
qdqi_zero_point(const struct qdqi_params *p, size_t i)
{
    return p->zero_points ? p->zero_points[i] : 0;
}

/* Returns whether a zero point is not 0. */
bool qdqi_has_zero_points(const struct qdqi_params *p);

/*
 * Computes the scale and the zero point with which a tensor of the type (float32 or
 * float16) covers a range: min <= max, both finite.
 *
 * Symmetric: the range is [-amax, amax], where amax is the larger of |min| and |max|.
 * The scale is amax divided by the highest number of the format (127, 448, …), so
 * int8's -128 is not used. In a format without negative numbers it is 2 amax divided by
 * the number of steps, and the zero point is the middle.
 *
 * Asymmetric, for integer formats: the range, extended to contain 0, is divided by the
 * number of steps. The zero point is lowest - min / scale, rounded half to even and
 * saturated, as in onnxruntime's quantization tools (compute_scale_zp in
 * quant_utils.py).
 *
 * The scale is rounded to the type and never smaller than the type's smallest normal
 * number. [0, 0] gets scale 1 and zero point 0, because 0 stays 0 with every scale.
 */
void qdqi_range_params(enum qdqi_format format, bool symmetric, enum qdqi_dtype dtype,
                       double min, double max, float *ret_scale,
                       int32_t *ret_zero_point);

#endif
