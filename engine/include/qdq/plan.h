/* SPDX-License-Identifier: Apache-2.0 */
/* The plan: which inputs and weights of which node get a Q/DQ pair, and why. It is a
   pure function of model and spec, and qdq_quantize() carries it out exactly. */
#ifndef QDQ_PLAN_H
#define QDQ_PLAN_H

#include "qdq/catalog.h"
#include "qdq/model.h"
#include "qdq/targets.h"

struct qdq_plan;

/* The kinds of reasons of layers, for callers that decide by them. */
enum qdq_reason_kind {
    QDQ_REASON_OTHER,          /* why it cannot be quantized, as the text says */
    QDQ_REASON_DEFAULT,        /* its class is quantized by default */
    QDQ_REASON_OFF_BY_DEFAULT, /* its class is not */
    QDQ_REASON_NOT_SELECTED,   /* nothing selects it in mode "partial" */
    QDQ_REASON_ENTRY,          /* an entry of the spec or of a case decides */
    QDQ_REASON_RULE,           /* a rule of the target leaves it in floating point */
    QDQ_REASON_OPSET           /* the model's opset has no pairs of its type */
};

/* One node whose class is in the support table, quantized or not. */
struct qdq_layer {
    const char *name; /* the node's reported name, unique; "@OUTPUT" when unnamed */
    const char *op;   /* ONNX op type */
    const char *cls;  /* class of the support table: "Conv", "DepthwiseConv2D"… */
    size_t node;      /* index in the graph, in file order */
    size_t n_inputs;  /* number of quantized_inputs */
    const int *quantized_inputs; /* node input indices, ascending, activations only */
    int weight_input;            /* node input index of the quantized weight, or -1 */
    int weight_axis;             /* channel axis of that weight; -1: per tensor */
    const char *weight;          /* its tensor's name, or NULL */
    const char *reason; /* "default", "layers[2]", "case:residual", "integer tensor"… */
    struct qdq_rule_set rules;    /* rules of the target that the decision follows */
    size_t n_outputs;             /* number of quantized_outputs */
    const int *quantized_outputs; /* node output indices that get a pair of their own */
    size_t weight_row;         /* where there is one: which of the plan's n_weights */
    size_t recurrent_row;      /* likewise, of the weight that an LSTM's state has */
    const size_t *input_rows;  /* by quantized input: which of the plan's tensors */
    const size_t *output_rows; /* by quantized output, likewise */
    enum qdq_reason_kind reason_kind;
    const struct qdq_layer_format *format; /* whatever of the layer is quantized */
    /* of the weight's row: its format, and the elements of a block; NULL and 0: none */
    const char *weight_dtype;
    int64_t weight_block;
    const char *input_dtype; /* of the first quantized input; NULL: there is none */
    bool is_constant;        /* it computes constants from constants alone */
    /* why the target's runtime does not load the layer in these formats; NULL: it does */
    const char *refused;
};

struct qdq_warning {
    const char *code;   /* a stable slug: "opset_per_tensor", "dead_tensor"… */
    const char *detail; /* one line */
    const char *node;   /* the node or tensor, or NULL */
    const char *rule;   /* id of the target's rule that the plan breaks; or NULL */
};

struct qdq_plan_view {
    size_t n_layers;
    const struct qdq_layer *layers; /* in file order */
    size_t n_quantized;             /* number of layers with at least one pair */
    size_t n_tensors;               /* number of pairs of activations */
    /* the names of these, in order of first use; that of one with a second pair stands at the end again */
    const char *const *tensors;
    /* number of weights that get a pair; each (tensor, axis) counts once */
    size_t n_weights;
    size_t n_warnings;
    const struct qdq_warning *warnings;
    const struct qdq_target *target; /* whose rules the layers cite */
    size_t n_pairs;                  /* number of pairs in the result */
};

/*
 * Makes the plan. The catalog (NULL: the library alone) provides the cases and classes
 * that the spec names. The plan borrows from model and spec; both must outlive it.
 * INVALID_SPEC and UNMATCHED (with the pointer into the spec), CASE_FAILED (a script's
 * error, with its line), LIMIT_EXCEEDED, EXISTING_QDQ, UNSUPPORTED, NO_MEMORY.
 */
QDQ_API enum qdq_code qdq_plan_make(const struct qdq_catalog *catalog,
                                    const struct qdq_model *model,
                                    const struct qdq_spec *spec, struct qdq_plan **ret,
                                    struct qdq_error *err) QDQ_MUST_CHECK;
QDQ_API void qdq_plan_free(struct qdq_plan **plan);
QDQ_API const struct qdq_plan_view *qdq_plan_view(const struct qdq_plan *plan);

#endif
