/* SPDX-License-Identifier: Apache-2.0 */
/* A weight whose integers Gathers read, too (rules P2, P5 and T36). */
#ifndef QDQI_TRANSFORM_REWRITE_TIED_H
#define QDQI_TRANSFORM_REWRITE_TIED_H

#include "transform/rewrite/pairs.h"

/*
 * Stores a weight as the integers of a table, which is the weight or its transpose, and makes the
 * Gathers of the table select from them:
 *
 *   integers -> DequantizeLinear (-> Transpose) -> the weight's layers
 *   integers -> Gather -> Cast (-> Sub of the row's zero point) -> Mul by the row's scale
 *
 * or, where the table is read as a whole, integers -> DequantizeLinear -> Gather and (-> Transpose) -> layers.
 *
 * The scales are gathered behind an Unsqueeze, so that ONNX Runtime, which computes that when it
 * loads the model, finds a scale that no other node reads: it makes no MatMulNBits of others.
 * `at` is the place of the weight's nodes. Returns the name of the dequantized weight, or NULL when
 * out of memory.
 */
const char *qdqi_store_tied(struct qdqi_pairs *p, size_t at, size_t row,
                            const struct qdqi_quantized *q);

/*
 * Stores the transpose of a weight, which is a table's or is read by layers alone, and gives each layer
 * a DequantizeLinear with scales of its own, and a Transpose. ONNX Runtime makes kernels of these; of a
 * DequantizeLinear, or of scales, that several nodes read it makes none. Returns false when out of memory.
 */
bool qdqi_store_apart(struct qdqi_pairs *p, size_t at, size_t row,
                      const struct qdqi_quantized *q);

#endif
