/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the factor of each channel of each pair of layers: cross-layer equalization (Nagel
 * et al., "Data-Free Quantization Through Weight Equalization and Bias Correction", 2019).
 */
#ifndef QDQI_TRANSFORM_EQUALIZE_BALANCE_H
#define QDQI_TRANSFORM_EQUALIZE_BALANCE_H

#include "transform/equalize/pairs.h"

struct qdqi_balance {
    double **factors; /* for each pair with a chain: by channel; powers of two */
    size_t *moved;    /* for each pair: number of channels whose factor is not 1 */
};

/* Balances the pairs that have a chain. NO_MEMORY. */
enum qdq_code qdqi_balance(const struct qdq_model *model, const struct qdqi_pair *pairs,
                           size_t n, struct qdqi_arena *arena, struct qdqi_balance *ret,
                           struct qdq_error *err) QDQ_MUST_CHECK;

#endif
