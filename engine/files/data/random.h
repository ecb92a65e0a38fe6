/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generates random samples when there is no data: a dataset without a file.
 *
 * Element i of an input comes from the i-th output of splitmix64 (Steele, Lea and
 * Flood, 2014), seeded with the 64-bit FNV-1a hash of the input's name. So an element
 * depends only on its index and the name, and its bytes are the same on every machine.
 * From the output x follow
 *   floats    low + u (high - low), u = x / 2^40 rounded down, times 2^-24; one fused
 *             multiply-add in float64, rounded once to the input's type
 *   integers  low + x mod (high - low + 1)
 *   bool      the highest bit of x
 */
#ifndef QDQI_FILES_DATA_RANDOM_H
#define QDQI_FILES_DATA_RANDOM_H

#include "ground/base/dtype.h"
#include "qdq/dataset.h"
#include "qdq/model.h"
#include "qdq/spec.h"

/* The distribution of one input's elements. */
struct qdqi_draw {
    enum qdqi_dtype dtype;
    uint64_t seed;
    double low, high;
};

/* Returns the spec's entry for the input, or NULL. */
const struct qdq_random_input *qdqi_random_given(const struct qdq_calibration_spec *c,
                                                 const char *input);

/*
 * Checks that samples can be generated for the input: its type, its shape (only axis 0
 * may be open) and the values `given` at `pointer` in the spec, if any. Floats are from
 * 0 to 1 by default, integers have no default.
 */
enum qdq_code qdqi_draw_init(const struct qdq_value *input,
                             const struct qdq_random_input *given, const char *pointer,
                             struct qdqi_draw *ret,
                             struct qdq_error *err) QDQ_MUST_CHECK;
/* Generates elements first to first + n - 1, in the host's byte order. */
void qdqi_draw(const struct qdqi_draw *draw, uint64_t first, void *to, size_t n);

/*
 * Opens a dataset of c->random_samples samples for a model's inputs (with their
 * dimensions fixed). Axis 0 is the batch where that is possible for all inputs, and a
 * fixed batch gets whole batches; otherwise each sample is fed unchanged.
 * LIMIT_EXCEEDED, and the errors of qdqi_draw_init().
 */
enum qdq_code qdqi_random_open(const struct qdq_model_info *model,
                               const struct qdq_calibration_spec *c,
                               struct qdq_dataset **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;

#endif
