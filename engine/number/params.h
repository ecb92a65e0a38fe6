/* SPDX-License-Identifier: Apache-2.0 */
/* How tensors are quantized: formats, scales and zero points, and how ranges become
   them. */
#ifndef QDQI_NUMBER_PARAMS_H
#define QDQI_NUMBER_PARAMS_H

#include "number/format.h"

#include <stdbool.h>

struct qdqi_made;

/* The inputs of QuantizeLinear beside the tensor. */
struct qdqi_params {
    enum qdqi_format format;
    int axis;             /* -1: one scale for all */
    int64_t block;        /* elements along the axis that share a scale; 0: none do */
    size_t n;             /* scales */
    float *scales;        /* positive and finite; in C order where there are blocks */
    int32_t *zero_points; /* as many, of the format; NULL: all 0 */
    const struct qdqi_made *integers; /* of a weight that is stored as such, or NULL */
};

/* A bias as int32, zero point 0. */
struct qdqi_bias {
    size_t n, n_scales;
    bool per_channel;        /* a scale for each */
    const float *scales;     /* the activation's times the weight's */
    const int32_t *integers; /* NULL: it stays as it is */
};

/* The parameters of all tensors of a plan, in its order. */
struct qdqi_scales {
    struct qdqi_params *activations, *weights;
    struct qdqi_bias *biases;
};

/* The zero point of scale i. */
static inline int32_t
qdqi_zero_point(const struct qdqi_params *p, size_t i)
{
    return p->zero_points ? p->zero_points[i] : 0;
}

/* The zero point of a format that is used symmetrically: 0, or the middle, rounded to
   even, of one that has no negative numbers. */
int32_t qdqi_middle(enum qdqi_format format);

/*
 * Scale and zero point with which a tensor of that type (float32 or float16) covers a
 * range, min <= max, both finite.
 *
 * Symmetric: [-amax, amax], amax the larger of |min| and |max|. The scale is amax over
 * the highest number of the format (127, 448 …), or 2 amax over all steps of one without
 * negative numbers, whose zero point is the middle. int8's -128 stays free, then.
 *
 * Asymmetric, integers alone: the range with 0 in it over all steps, and the zero point
 * lowest - min / scale, rounded half to even and saturated, as onnxruntime's
 * quantization tools do (compute_scale_zp of quant_utils.py).
 *
 * The scale is the nearest of the type; never below the smallest normal number of it.
 * [0, 0] has scale 1 and zero point 0: zero stays zero with any.
 */
void qdqi_range_params(enum qdqi_format format, bool symmetric, enum qdqi_dtype dtype,
                       double min, double max, float *ret_scale,
                       int32_t *ret_zero_point);

#endif
