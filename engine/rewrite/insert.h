/* SPDX-License-Identifier: Apache-2.0 */
/* The edits that the engine makes: Q/DQ pairs for the result, observers for calibration,
   fake quantization for what-ifs. All carry out a plan and nothing else. */
#ifndef QDQI_REWRITE_INSERT_H
#define QDQI_REWRITE_INSERT_H

#include "model/write.h"
#include "number/params.h"
#include "plan/plan.h"

/* Domain of our operators; each has the attribute "slot". */
#define QDQI_DOMAIN "qdqd"
#define QDQI_OBSERVE "Observe"      /* one input, no output */
#define QDQI_FAKE_QUANT "FakeQuant" /* one input, one output */

struct qdqi_metadata {
    const char *key, *value;
};

/*
 * The source with one Q/DQ pair for each planned tensor, shared by all planned edges.
 * Where a weight's integers are given, they are an initializer behind DQ alone, and the
 * float weight is gone unless something else reads it.
 */
enum qdq_code qdqi_insert_pairs(const struct qdq_model *source,
                                const struct qdq_plan *plan,
                                const struct qdqi_scales *scales,
                                const struct qdqi_metadata *metadata, size_t n_metadata,
                                struct qdqi_arena *arena, struct qdqi_edited *ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* The source with one observer for each planned activation i where wanted[i]; its slot
   is i. */
enum qdq_code qdqi_insert_observers(const struct qdq_model *source,
                                    const struct qdq_plan *plan, const bool *wanted,
                                    struct qdqi_arena *arena,
                                    const Onnx__ModelProto **ret,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

/* Where a FakeQuant is: an input of a layer that the plan quantizes. */
struct qdqi_fake_place {
    size_t layer;   /* of the plan's */
    bool is_weight; /* of plan->weights, else of plan->activations: */
    size_t planned; /* which */
};

/*
 * The source with one FakeQuant for each planned edge and for each layer's weight, also
 * where layers share a tensor: each can be switched with its layer. Slot i is at
 * places[i]; they go by layer.
 */
enum qdq_code qdqi_insert_fakes(const struct qdq_model *source,
                                const struct qdq_plan *plan, struct qdqi_arena *arena,
                                struct qdqi_fake_place **ret_places, size_t *ret_n,
                                const Onnx__ModelProto **ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
