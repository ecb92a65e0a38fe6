/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the factor of each channel of each chain: cross-layer equalization (Nagel et
 * al., "Data-Free Quantization Through Weight Equalization and Bias Correction", 2019).
 */
#ifndef QDQI_EQUALIZE_BALANCE_H
#define QDQI_EQUALIZE_BALANCE_H

#include "equalize/chain.h"

/* The factors of a layer's weight: powers of two, initially all 1. */
struct qdqi_layer_scales {
    double *out; /* one for each output channel; NULL: the layer is in no chain */
    double *in;  /* one for each input channel */
    bool changed;
};

struct qdqi_balance {
    struct qdqi_layer_scales *layers; /* one for each node */
    size_t *moved; /* for each chain: number of channels that were scaled */
};

/* Balances the chains without a reason against it. NO_MEMORY. */
enum qdq_code qdqi_balance(const struct qdq_model *model,
                           const struct qdqi_chain *chains, size_t n,
                           struct qdqi_arena *arena, struct qdqi_balance *ret,
                           struct qdq_error *err) QDQ_MUST_CHECK;

#endif
