/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the activations whose channels can be multiplied by factors without a change of the
 * model's function: the layers that read the activation have their weights divided by the
 * factors, and what makes the activation takes the factors in: the weight of a layer, the
 * scale and the bias of a normalization, the constant of a Mul, and constants that are added
 * on the way. A product of two activations gets them from a layer that makes one of the two. Behind
 * attention that layer is the one that makes the values. Every operator
 * between passes a positive factor of a channel through.
 */
#ifndef QDQI_TRANSFORM_EQUALIZE_CHAIN_H
#define QDQI_TRANSFORM_EQUALIZE_CHAIN_H

#include "ground/base/map.h"
#include "transform/equalize/values.h"

/* A layer that reads the activation as its input 0. */
struct qdqi_reader {
    size_t node;
    struct qdqi_weight weight;
};

struct qdqi_chain {
    const struct qdqi_tensor *at; /* the activation */
    size_t channels;              /* each of them has a factor */
    /* elements of the activation, one behind the other along its axis, that belong to one
       channel: more than 1 where a Flatten lies on the way */
    size_t block;
    size_t from_end; /* that axis, counted from the end: 1 is the last */
    size_t rank; /* of the activation; 0: not known, and channels are the last axis */
    size_t n_readers;
    struct qdqi_reader *readers;
    struct qdqi_maker maker;
    /* the node at which the way back ends; NULL: it does not begin */
    const struct qdqi_node *end;
    const char *fault;  /* what is wrong with a constant on the way, if anything is */
    const char *reason; /* why the factors cannot be taken in; NULL: they can */
    /* the values of a cache would have the factors, too: that is the only reason against them, and
       channels whose output of the maker is the same one have a factor in common */
    bool is_cached;
    /* a Mul behind the activation takes the factors in, and the readers read what it makes;
       there is no maker then */
    bool is_multiplied;
};

/* Returns the output of the layer that makes the activation, by channel. */
static inline size_t
qdqi_chain_output(const struct qdqi_chain *chain, size_t channel)
{
    return chain->maker.outputs ? chain->maker.outputs[channel] : channel;
}

/* Takes a value for each element of the activation along its axis, and leaves in values[c]
   the largest of those of channel c. */
void qdqi_chain_fold(const struct qdqi_chain *chain, double *values);

struct qdqi_chains {
    struct qdqi_chain *all; /* in file order */
    size_t n;
    struct qdqi_map *by_tensor; /* from the activation's name to the chain */
};

/* Makes one row for each activation that a layer with a constant weight reads, also for those
   whose channels cannot be multiplied; `reason` says why. NO_MEMORY. */
enum qdq_code qdqi_chains_find(const struct qdq_model *model, struct qdqi_arena *arena,
                               struct qdqi_chains *ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;

#endif
