/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prepares the arrays of a dataset for a model, as a spec says: integers for a floating-point
 * input are refused or meant as they are (calibration.cast), or elements are scaled by the scale,
 * mean and deviation of `preprocess`, in float32, step by step, as NumPy does it.
 */
#ifndef QDQI_FILES_DATA_SCALING_H
#define QDQI_FILES_DATA_SCALING_H

#include "ground/base/dtype.h"
#include "qdq/dataset.h"
#include "qdq/spec.h"

/* The scaling of one input's elements. */
struct qdqi_affine {
    const struct qdq_preprocess *row; /* NULL: elements stay as they are */
    size_t channels; /* 1: all elements have the same mean and deviation */
    size_t inner;    /* elements between two channels of one sample */
};

/* Sets the spec by which the arrays of a dataset are prepared, and which it borrows. Without
   one, no array is scaled, and integers are no floating-point numbers. */
void qdqi_dataset_prepare(struct qdq_dataset *dataset, const struct qdq_spec *spec);

/*
 * Finds the scaling of an input, whose elements of a sample have the given shape; axis 0 is the
 * batch. `cut`: the samples have different shapes. Returns NULL, or why the array cannot be scaled. `to` is the type of the input.
 */
const char *qdqi_scaling_find(const struct qdq_dataset *dataset, bool cut,
                              const char *input, enum qdqi_dtype to, size_t rank,
                              const int64_t *shape, struct qdqi_affine *ret);

/* Returns whether the array would give a floating-point input integers that nobody has said to
   be meant. `from` is the type of the array, `to` that of the input, which is not scaled. */
bool qdqi_scaling_is_missing(const struct qdq_dataset *dataset, enum qdqi_dtype from,
                             enum qdqi_dtype to);

/* Scales n elements, the first of which is element `first` of a run. */
void qdqi_scaling_apply(const struct qdqi_affine *scaling, float *x, size_t n,
                        size_t first);

#endif
