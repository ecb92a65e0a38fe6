/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The integers that weights were rounded to by the moments of their layers' inputs, kept while
 * a job tries several plans: most of their weights are rounded the same way. They are kept
 * with the moments, so they are never those of another model or of other data.
 */
#ifndef QDQI_STAGES_ATTEMPT_ROUNDINGS_H
#define QDQI_STAGES_ATTEMPT_ROUNDINGS_H

#include "stages/attempt/attempt.h"

/* Everything besides weight and moments that rounding depends on. */
struct qdqi_rounded_key {
    enum qdqi_format format;
    int axis;
    int64_t block;
    bool is_reduced, is_centred, by_gptq, by_moments, is_signed;
    size_t n; /* scales */
    const float *scales;
    const int32_t *zero_points; /* NULL: all are 0 */
    double shrunk;              /* as qdqi_moment_matrix has it */
};

/* The result of rounding, as the members of qdqi_params have it. */
struct qdqi_rounded_weight {
    size_t n; /* elements of the weight */
    const int16_t *integers;
    const float *scales; /* as many as in the key */
    const int32_t *zero_points;
    const char
        *why; /* the integers are the nearest ones; a literal. NULL: they are not */
};

/* Begins to keep the roundings of the attempt's moments, if it has any: plans are going to be
   tried. */
void qdqi_roundings_begin(struct qdqi_attempt *attempt);

/* Returns what was kept, or NULL. */
const struct qdqi_rounded_weight *
qdqi_roundings_find(const struct qdqi_layer_moments *moments,
                    const struct qdqi_rounded_key *key);

/* Keeps copies, unless they take more than *left bytes, which then become fewer, or there is
   no memory for them. */
void qdqi_roundings_keep(struct qdqi_layer_moments *moments,
                         const struct qdqi_rounded_key *key,
                         const struct qdqi_rounded_weight *rounding, uint64_t *left);

void qdqi_roundings_free(struct qdqi_layer_moments *moments);

#endif
