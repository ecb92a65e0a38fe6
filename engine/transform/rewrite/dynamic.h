/* SPDX-License-Identifier: Apache-2.0 */
/* Layers whose activations the runtime quantizes in each run. */
#ifndef QDQI_TRANSFORM_REWRITE_DYNAMIC_H
#define QDQI_TRANSFORM_REWRITE_DYNAMIC_H

#include "transform/rewrite/pairs.h"

/*
 * A qdqi_read_stored_fn that multiplies in integers: MatMulInteger of what
 * DynamicQuantizeLinear makes and the stored weight, and the product of both scales behind
 * a Cast. The layer's own node becomes the last one of them.
 */
bool qdqi_multiply_dynamically(struct qdqi_pairs *p, size_t node,
                               const struct qdqi_quantized *q, const char *integers,
                               const struct qdqi_beside *beside);

/* Makes the LSTM of the plan that have weights read them as integers. NO_MEMORY. */
enum qdq_code qdqi_quantize_lstms(struct qdqi_pairs *p,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

#endif
