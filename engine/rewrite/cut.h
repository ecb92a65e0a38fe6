/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model cut into consecutive parts, each a model of its own that reads what earlier
 * ones made. What lies in front of a change need not be run again.
 */
#ifndef QDQI_REWRITE_CUT_H
#define QDQI_REWRITE_CUT_H

#include "model/write.h"

/* Not a part: the model's own inputs. */
#define QDQI_NO_PART SIZE_MAX

/* A value: output `output` of part `part`. */
struct qdqi_cut_value {
    const char *name;
    size_t part, output;
};

struct qdqi_cut_part {
    /* Its inputs are those of `inputs`; those that earlier parts make lack a type, as the
       outputs for later parts do. */
    Onnx__ModelProto *proto;
    struct qdqi_cut_value *inputs;
    size_t n_inputs;
    size_t n_handed_on; /* outputs that later parts read; the others, behind them, are
                           the model's alone */
};

struct qdqi_cut {
    struct qdqi_cut_part *parts;
    size_t n_parts;                 /* >= 1 */
    struct qdqi_cut_value *outputs; /* of the model, in its order */
    size_t n_outputs;
    size_t *part_of_slot; /* by slot of FakeQuant */
    size_t n_slots;
};

/*
 * Cuts a model with FakeQuant nodes into at most `most` parts with about as many of them
 * each, in front of such nodes, where few values pass. `proto` is in topological order;
 * the parts share its messages. NO_MEMORY.
 */
enum qdq_code qdqi_cut_model(const Onnx__ModelProto *proto, size_t most, size_t n_slots,
                             struct qdqi_arena *arena, struct qdqi_cut *ret,
                             struct qdq_error *err) QDQ_MUST_CHECK;

#endif
