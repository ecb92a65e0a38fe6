/* SPDX-License-Identifier: Apache-2.0 */
/* Where the bias of a Conv, Gemm or MatMul is read, and whether it can take a number for
   each output of the layer. */
#ifndef QDQI_GRAPH_LAYERS_BIAS_H
#define QDQI_GRAPH_LAYERS_BIAS_H

#include "files/model/constant.h"

struct qdqi_bias_place {
    size_t node; /* the layer, or the Add that alone reads a MatMul */
    int input;
    const struct qdqi_tensor *tensor; /* NULL: the layer has no bias */
    const char *why;                  /* it cannot be changed or made; NULL: it can */
};

/* The operators of these layers; the list ends with NULL. */
extern const char *const qdqi_biased_ops[];

/* Finds the bias of a layer. */
struct qdqi_bias_place qdqi_bias_find(const struct qdq_model *model,
                                      const struct qdqi_node *layer);

/* Reads the bias. Returns false when it is not a float32 constant with one number for each
   of the outputs, along their axis. */
bool qdqi_bias_read(const struct qdq_model *model, const struct qdqi_bias_place *place,
                    size_t outputs, struct qdqi_constant *ret);

#endif
