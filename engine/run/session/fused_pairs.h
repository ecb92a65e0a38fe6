/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs of QuantizeLinear and DequantizeLinear of activations as one node each, FakeQuant, which
 * computes the same bits in one pass over the tensor, and where it can, in place.
 *
 * Behind a convolution the node bears the name of the runtime's operator that works in blocks of
 * channels (transform/rewrite/blocked.h), so that the tensor is not reordered in front of the pair
 * and back behind it. The elements that pad a block are zeros and stay zeros.
 */
#ifndef QDQI_RUN_SESSION_FUSED_PAIRS_H
#define QDQI_RUN_SESSION_FUSED_PAIRS_H

#include "files/model/write.h"
#include "numbers/arithmetic/fake.h"

struct qdqi_fused_pairs {
    const Onnx__ModelProto *proto; /* with the nodes in the place of pairs */
    struct qdqi_fakes fakes;       /* by slot; none where there was no such pair */
    bool any_blocked; /* of the nodes: it bears the name of the runtime's operator */
};

/*
 * Fuses the pairs of the main graph with one scale of float32 for the whole tensor and integers of 8 or
 * 16 bits, whose parameters are initializers. A model with nested graphs, whose nodes may read any tensor,
 * stays as it is. Changed messages and parameters are in the arena. NO_MEMORY.
 */
enum qdq_code qdqi_fuse_pairs(const struct qdqi_runnable *model,
                              struct qdqi_arena *arena, struct qdqi_fused_pairs *ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;

#endif
