/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that prepare a model for a plan. Each step derives a model from the one
   before it, or leaves that unchanged. */
#ifndef QDQI_TRANSFORM_PREPARE_PREPARE_H
#define QDQI_TRANSFORM_PREPARE_PREPARE_H

#include "ground/base/warnings.h"
#include "files/model/write.h"
#include "qdq/prepare.h"

struct qdqi_preparing {
    const struct qdq_model *model; /* the result of the steps so far */
    const struct qdq_spec *spec;
    struct qdqi_arena *arena; /* for warnings; freed after the preparation */
    struct qdqi_warnings warnings;
};

/* A step derives *ret from p->model with qdqi_model_derive(); *ret stays NULL where
   nothing has to change. Warnings for the user go to p->warnings. */
typedef enum qdq_code qdqi_step(struct qdqi_preparing *p, struct qdq_model **ret,
                                struct qdq_error *err);

/* inline.c: replaces the calls of local functions by their nodes. */
qdqi_step qdqi_step_inline;

/*
 * remove_pairs.c: connects the readers of a Q/DQ pair's output to the pair's input. Integers
 * behind a lone DequantizeLinear become the floats that it computes. Nodes that form no such
 * pair, or whose constants cannot be read, stay.
 */
qdqi_step qdqi_step_remove_pairs;

/* opset.c: converts the model to the opset that the spec's formats need. */
qdqi_step qdqi_step_opset;

/* fold.c: folds a BatchNormalization, or the Add of a bias, into the layer with a weight in
   front of it, and alpha and beta of a Gemm. */
qdqi_step qdqi_step_fold;

/* make_biases.c: gives a bias of zeros to layers that have none, for bias correction. */
qdqi_step qdqi_step_make_biases;

/* tie.c: gives the layers that multiply by one matrix of constants one form, where the target stores
   its integers once. */
qdqi_step qdqi_step_tie;

/* reform.c: writes nodes of which the target's runtime computes wrong numbers, or makes no
   kernel, in another form. */
qdqi_step qdqi_step_reform;

/* unfuse.c: writes operators that ONNX Runtime's optimizer fused as those of ONNX, where rule P1
   is on. */
qdqi_step qdqi_step_unfuse;

/* uncarry.c: takes constants out of Loops and Scans that carry them, where the target asks for it. */
qdqi_step qdqi_step_uncarry;

/* einsum.c: writes an Einsum of data and of a constant weight as a MatMul, where the target asks for it. */
qdqi_step qdqi_step_einsum;

/* compute_weights.c: makes constants of weights that are computed from constants: those of layers
   where rule P1 is on, and those of LSTM if the runtime is to quantize activations. Changes no
   name of a node. */
qdqi_step qdqi_step_compute_weights;

#endif
