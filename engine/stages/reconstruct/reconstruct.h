/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounding against outputs: the layers whose weights have the rounding `reconstruct` are rounded again
 * in the order of computation, each given what the layers before it make of the samples when they are
 * rounded, so that it makes up for what they lost.
 *
 * Layers that read one tensor make a step, and a model has at most QDQI_MOST_STEPS of them. Each step
 * runs the samples, of which it takes 512 at most, twice through the part of the model in front of its
 * targets: in float, and rounded as far as it is. So the runs cost at most 48 times as much as two over
 * the whole model, and about half of that; the rounding of a layer costs twice as much as by `gptq`.
 * The sums of one step are in memory at a time. Activations are not quantized in these runs, which are
 * made on the host. Results are the same whatever the number of threads.
 */
#ifndef QDQI_STAGES_RECONSTRUCT_RECONSTRUCT_H
#define QDQI_STAGES_RECONSTRUCT_RECONSTRUCT_H

#include "stages/attempt/attempt.h"

/* Rounds such weights of an attempt that has scales, and shifts their biases. NO_MEMORY, CANCELLED,
   RUNTIME_MISSING, RUN_FAILED. */
enum qdq_code qdqi_reconstruct(struct qdqi_attempt *attempt,
                               struct qdq_error *err) QDQ_MUST_CHECK;

#endif
