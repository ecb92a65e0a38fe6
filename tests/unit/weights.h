/* SPDX-License-Identifier: Apache-2.0 */
/* int8 scales of a weight along an axis, with an interface for tests that need no
   more. */
#ifndef TESTS_UNIT_WEIGHTS_H
#define TESTS_UNIT_WEIGHTS_H

#include "graph/weights/integers.h"
#include "graph/weights/scales.h"

/* Returns the scale of the range [-amax, amax]. */
static inline float
scale_of(enum qdqi_dtype dtype, double amax)
{
    float scale;
    int32_t zero_point;
    qdqi_range_params(QDQI_TO_INT8, true, dtype, -amax, amax, &scale, &zero_point);
    return scale;
}

static inline float
symmetric_scale(double amax)
{
    return scale_of(QDQI_FLOAT32, amax);
}

/* Computes the scales and zero points of a whole weight. */
static inline enum qdq_code
weight_params(const struct qdqi_constant *w, const char *name, struct qdqi_arena *arena,
              struct qdqi_params *p, struct qdq_error *err)
{
    size_t dead;
    enum qdq_code code = qdqi_weight_params_new(w, name, arena, p, err);
    return code ? code : qdqi_weight_params_find(w, name, 0, p, &dead, err);
}

static inline enum qdq_code
weight_scales(const struct qdqi_constant *w, int axis, const char *name,
              struct qdqi_arena *arena, float **ret, size_t *ret_n,
              struct qdq_error *err)
{
    struct qdqi_params p = {.format = QDQI_TO_INT8, .axis = axis};
    enum qdq_code code = weight_params(w, name, arena, &p, err);
    *ret = p.scales;
    *ret_n = p.n;
    return code;
}

static inline enum qdq_code
weight_narrow(const struct qdqi_constant *w, int axis, float *scales, size_t n)
{
    struct qdqi_params p = {
        .format = QDQI_TO_INT8, .axis = axis, .n = n, .scales = scales};
    return qdqi_weight_narrow(w, &p, NULL);
}

static inline const struct qdqi_made *
weight_integers(struct qdqi_arena *arena, const struct qdqi_constant *w, int axis,
                const float *scales)
{
    struct qdqi_params p = {.format = QDQI_TO_INT8,
                            .axis = axis,
                            .n = axis < 0 ? 1 : (size_t)w->dims[axis],
                            .scales = (float *)(uintptr_t)scales};
    return qdqi_integers_new(arena, w, &p);
}

#endif
