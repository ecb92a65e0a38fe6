/* SPDX-License-Identifier: Apache-2.0 */
/* A weight as its elements in C order, and how its layers multiply by it. */
#ifndef QDQI_STAGES_SCALE_MATRIX_H
#define QDQI_STAGES_SCALE_MATRIX_H

#include "stages/attempt/attempt.h"
#include "files/model/constant.h"

struct qdqi_matrix {
    const struct qdqi_layer_moments *moments;
    size_t outputs, k;     /* of one group */
    size_t row, column;    /* elements from one output, or input, to the next */
    const float *elements; /* those of the model, where that stores them so, or */
    float *copied;
    uint32_t *scale_of; /* by element: index of its scale */
};

/* Opens a weight that has moments. The caller closes it, also when the result is false:
   out of memory. */
bool qdqi_matrix_open(const struct qdqi_attempt *a,
                      const struct qdqi_planned_weight *weight,
                      const struct qdqi_constant *elements,
                      const struct qdqi_params *params, struct qdqi_matrix *ret);
/* Copies the n elements of a weight to m->copied, where they may be changed. False when out of
   memory. */
bool qdqi_matrix_copy(struct qdqi_matrix *m, size_t n);
void qdqi_matrix_close(struct qdqi_matrix *matrix);

#endif
