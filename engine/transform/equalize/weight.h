/* SPDX-License-Identifier: Apache-2.0 */
/* A layer's weight for equalization: the output and the input channel of each
   element, the magnitudes of the channels, and the scaling. */
#ifndef QDQI_TRANSFORM_EQUALIZE_WEIGHT_H
#define QDQI_TRANSFORM_EQUALIZE_WEIGHT_H

#include "numbers/arithmetic/both.h"
#include "files/model/constant.h"

#include <string.h>

/*
 * Elements are stored as [n_major][minor][inner]. Axis 0 counts the output channels
 * (Conv, Gemm with transposed B) or the input channels (ConvTranspose, B not
 * transposed); axis 1 counts the other channels, within a group.
 */
struct qdqi_weight {
    const struct qdqi_tensor *tensor;
    const uint8_t *bytes; /* float32, possibly unaligned */
    size_t n_major, minor, inner, groups;
    bool major_is_out;
    size_t n_in, n_out; /* numbers of channels */
};

/* Returns whether a node's operator has a weight as input 1. */
bool qdqi_weight_has(const struct qdqi_node *node);

/* Returns whether a node is a Conv or a ConvTranspose, whose channels are axis 1. */
bool qdqi_weight_is_conv(const struct qdqi_node *node);

/* Returns whether a node is such a layer with a constant weight, in a graph that is analysed. */
bool qdqi_weight_is_of_layer(const struct qdqi_graph *graph,
                             const struct qdqi_node *node);

/* Makes n factors that change nothing. Returns NULL when out of memory. */
double *qdqi_weight_ones(struct qdqi_arena *arena, size_t n);

/* Reads the weight of such a node. Returns NULL, or the reason why it cannot be
   scaled. */
const char *qdqi_weight_read(const struct qdq_model *model,
                             const struct qdqi_node *node, struct qdqi_weight *ret);

/*
 * Checks that the file stores the tensor as float32, that only one input of one node
 * reads it, and that its elements are of plausible size. Returns NULL, or the reason
 * why not.
 */
const char *qdqi_weight_check(const struct qdq_model *model,
                              const struct qdqi_tensor *tensor,
                              struct qdqi_constant *ret);

/* Computes ret[c], the largest magnitude of output (or input) channel c when each
   element is multiplied by other[its channel on the other side]. */
void qdqi_weight_ranges(const struct qdqi_weight *weight, bool of_outputs,
                        const double *other, double *ret);

/* Writes the elements, each times out[its output channel] and in[its input channel]. */
enum qdq_code qdqi_weight_write(const struct qdqi_weight *weight, const double *out,
                                const double *in, struct qdqi_sink *sink,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
