/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the activations whose channels can be divided by factors without a change of the
 * model's function: the layers that read the activation have their weights multiplied by
 * the factors, and what makes the activation takes the divisors in: the weight of a layer,
 * the scale and the bias of a normalization, the constant of a Mul, and constants that are
 * added on the way. Behind attention that layer is the one that makes the values.
 */
#ifndef QDQI_SMOOTH_ABSORB_H
#define QDQI_SMOOTH_ABSORB_H

#include "equalize/values.h"

/* A layer that reads the activation as its input 0. */
struct qdqi_reader {
    size_t node;
    struct qdqi_weight weight;
};

struct qdqi_absorption {
    const struct qdqi_tensor *at; /* the activation */
    size_t channels;
    size_t from_end; /* axis of the channels, counted from the end: 1 is the last */
    size_t n_readers;
    struct qdqi_reader *readers;
    /* the layer whose output channels are divided; n_nodes when there is none */
    size_t maker;
    struct qdqi_weight maker_weight;
    /* by channel: the output of that layer; NULL: they are in the same order */
    const uint32_t *outputs;
    /* constants that are divided, each with one element for each channel, or for each output
       of that layer where there are `outputs` */
    size_t n_constants;
    struct qdqi_constant constants[QDQI_MAX_ABSORBING];
    const struct qdqi_tensor *tensors[QDQI_MAX_ABSORBING];
    const char *reason; /* why the divisors cannot be taken in; NULL: they can */
};

/* Makes one row for each activation that a layer with a constant weight reads, in file
   order, also for those that cannot be divided; `reason` says why. NO_MEMORY. */
enum qdq_code qdqi_absorptions_find(const struct qdq_model *model,
                                    struct qdqi_arena *arena,
                                    struct qdqi_absorption **ret, size_t *ret_n,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

#endif
