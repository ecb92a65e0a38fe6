/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far each channel of each chain is moved: cross-layer equalization (Nagel et al.,
 * "Data-Free Quantization Through Weight Equalization and Bias Correction", 2019).
 */
#ifndef QDQI_EQUALIZE_BALANCE_H
#define QDQI_EQUALIZE_BALANCE_H

#include "equalize/chain.h"

/* What the weight of a layer is multiplied by: powers of two, all 1 at first. */
struct qdqi_layer_scales {
    double *out; /* by output channel; NULL: the layer is in no chain */
    double *in;  /* by input channel */
    bool changed;
};

struct qdqi_balance {
    struct qdqi_layer_scales *layers; /* by node */
    size_t *moved;                    /* by chain: channels that were scaled */
};

/* Balances the chains that have no reason against it. NO_MEMORY. */
enum qdq_code qdqi_balance(const struct qdq_model *model,
                           const struct qdqi_chain *chains, size_t n,
                           struct qdqi_arena *arena, struct qdqi_balance *ret,
                           struct qdq_error *err) QDQ_MUST_CHECK;

#endif
