/* SPDX-License-Identifier: Apache-2.0 */
/* The step that removes Q/DQ pairs from a model. */
#ifndef QDQI_TRANSFORM_PREPARE_REMOVE_PAIRS_H
#define QDQI_TRANSFORM_PREPARE_REMOVE_PAIRS_H

#include "transform/prepare/prepare.h"

/*
 * Connects the readers of a pair's output to the pair's input. Integers behind a lone
 * DequantizeLinear become the floats that it computes. Nodes that form no such pair, or
 * whose constants cannot be read, stay.
 */
enum qdq_code qdqi_step_remove_pairs(struct qdqi_preparing *p, struct qdq_model **ret,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

#endif
