/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A layer's weight as equalization sees it: which output and which input channel of the
 * layer each element belongs to, how large the channels are, and how they are scaled.
 */
#ifndef QDQI_EQUALIZE_WEIGHT_H
#define QDQI_EQUALIZE_WEIGHT_H

#include "model/constant.h"

#include <string.h>

/*
 * Elements lie as [n_major][minor][inner]. Axis 0 counts the output channels (Conv,
 * Gemm's transposed B) or the input channels (ConvTranspose, B as it is); axis 1 counts
 * the others, within a group.
 */
struct qdqi_weight {
    const struct qdqi_tensor *tensor;
    const uint8_t *bytes; /* float32, perhaps unaligned */
    size_t n_major, minor, inner, groups;
    bool major_is_out;
    size_t n_in, n_out; /* channels */
};

/* Element i of float32 data. */
static inline float
qdqi_element(const uint8_t *bytes, size_t i)
{
    float value;
    memcpy(&value, bytes + i * sizeof value, sizeof value);
    return value;
}

/* Whether a node is an operator with a weight as input 1, whatever that is. */
bool qdqi_weight_has(const struct qdqi_node *node);

/* The weight of such a node; NULL, or why it cannot be scaled. */
const char *qdqi_weight_read(const struct qdq_model *model,
                             const struct qdqi_node *node, struct qdqi_weight *ret);

/*
 * A float32 tensor that the file stores, that one input of a node reads and nothing
 * else, and whose elements are numbers of usual size. NULL, or what is wrong with it.
 */
const char *qdqi_weight_check(const struct qdq_model *model,
                              const struct qdqi_tensor *tensor,
                              struct qdqi_constant *ret);

/*
 * ret[c]: the largest magnitude of output (or input) channel c when each element is
 * scaled by other[its channel on the other side].
 */
void qdqi_weight_ranges(const struct qdqi_weight *weight, bool of_outputs,
                        const double *other, double *ret);

/* Writes the elements, each times out[its output channel] and in[its input channel]. */
enum qdq_code qdqi_weight_write(const struct qdqi_weight *weight, const double *out,
                                const double *in, struct qdqi_sink *sink,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
