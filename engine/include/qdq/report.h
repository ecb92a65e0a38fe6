/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a quantization did, as data. Its JSON form is written in api/. All members are
 * borrowed from the report and live until qdq_report_free(). Values that are not
 * finite stand as they are here; JSON makes null of them.
 */
#ifndef QDQ_REPORT_H
#define QDQ_REPORT_H

#include "qdq/plan.h"

/* An activation with a Q/DQ pair. */
struct qdq_tensor_report {
    const char *name;
    double min, max;   /* the range that was chosen */
    const char *dtype; /* that it is quantized to: "int8" */
    double scale;      /* float32 value, printed so that it reads back */
    int64_t zero_point;
    const char *method; /* "minmax"…, or "given" */
    int64_t samples;    /* runs of the model that observed it; 0 when given */
};

struct qdq_weight_report {
    const char *name, *layer; /* tensor; first layer that uses the pair */
    int axis;                 /* -1: per tensor */
    const char *dtype;        /* "int8" */
    const char *granularity;  /* "tensor", "channel", "block" */
    int64_t block;            /* elements along the axis that share a scale; 0: none */
};

/* Float against quantized, over all samples. */
struct qdq_output_report {
    const char *name;
    double sqnr_db; /* 10 log10(sum f^2 / sum (f-q)^2); +inf when equal */
    double cosine;  /* mean over samples */
    double max_abs_error;
    double top1_agreement; /* share of rows along the last axis; NaN where it has < 2 */
};

/* The same of what a quantized layer makes, its first output. */
struct qdq_layer_error {
    const char *name; /* the layer's */
    double sqnr_db;
};

/* A bound of spec.accept that an output did not reach. */
struct qdq_missed_gate {
    const char *output;
    const char *figure;  /* the member of qdq_output_report: "sqnr_db"… */
    const char *gate;    /* the member of qdq_gate: "min_sqnr_db"… */
    bool at_most;        /* the bound is an upper one */
    bool own;            /* it is asked of this output alone, in accept.outputs */
    double bound, value; /* value: NaN where there is no such figure */
    const char *why;     /* there is none; else NULL */
};

/* What equalization did with a layer and the next one that it feeds. */
struct qdq_equalization {
    const char *first, *second; /* layers; second NULL: none was found */
    size_t channels;            /* between them that were scaled; 0: left alone */
    const char *reason;         /* "equalized", or why not */
};

/*
 * What quantizing one layer costs: the SQNR at the outputs (the worst of the floating
 * ones) with that layer quantized and all others in float, and what it gains, in dB, to
 * leave it alone in float while all others are quantized.
 */
struct qdq_sensitivity {
    const char *name;
    double sqnr_db_alone; /* +inf: no difference */
    double gain_db;
};

/* A step of the search: so many layers in float, and what the outputs are then. */
struct qdq_search_step {
    size_t float_layers;
    const char *layer; /* the one left in float by this step, or quantized again; NULL
                          at the first step */
    double sqnr_db, top1_agreement; /* the worst output's; NaN: none has it */
};

struct qdq_search_report {
    int64_t samples;
    bool met; /* the goal, by the last step */
    size_t n_layers, n_steps;
    const char *const *layers; /* left in float in the end */
    const struct qdq_search_step *steps;
};

/* How ranges were adjusted by what they do to the outputs (method output_mse). */
struct qdq_refinement {
    const char *start; /* the method that the ranges came from */
    int64_t samples;
    size_t adjusted;                      /* ranges that are not as they were */
    double sqnr_db_before, sqnr_db_after; /* the worst output's, on these samples */
};

/* A layer that computes in floating point though there are integer kernels of its kind. */
struct qdq_float_kernel {
    const char *name, *reason;
};

/* What onnxruntime makes of the model on the processor at hand. */
struct qdq_kernels {
    size_t integer;     /* nodes that compute with integers */
    size_t conversions; /* QuantizeLinear and DequantizeLinear nodes that are left */
    size_t n_ops, n_floats;
    const struct qdq_op_count *ops; /* of the integer nodes, by name */
    const struct qdq_float_kernel *floats;
};

/* A node that works with float32 and stays so, where the spec asks for a smaller type. */
struct qdq_kept_node {
    const char *name;
    const char *reason;
};

/* What became of the spec's `float`. */
struct qdq_float_report {
    const char *type; /* "float16" or "bfloat16" */
    size_t n_nodes;   /* that compute in it; pairs are not counted */
    size_t n_kept;
    const struct qdq_kept_node *kept; /* in the order of the file */
};

struct qdq_timing {
    const char *stage; /* a row of qdq/stages.h: "load", "plan", "calibrate"… */
    double seconds;
};

struct qdq_report {
    const struct qdq_model_info *model; /* of the source model */
    const char *model_id, *dataset_id;  /* as given to qdq_quantize(), or NULL */
    int64_t calibration_samples;
    int64_t inferences; /* runs of the model that calibration made */
    size_t reused;      /* tensors whose accumulators an earlier calibration left */
    const struct qdq_spec *spec; /* the effective spec */
    /* With every range that was given or found: it makes the same model without data. */
    const struct qdq_spec *frozen;
    const char *device; /* "cpu", or "cuda:0 NAME" */
    const struct qdq_plan_view *plan;
    size_t qdq_pairs;
    uint64_t size_before, size_after; /* bytes of the model and of its external data */
    uint64_t external_bytes;          /* of the result's data file; 0: it has none */
    size_t n_tensors, n_weights, n_outputs, n_timings, n_warnings;
    const struct qdq_tensor_report *tensors;
    const struct qdq_weight_report *weights;
    int64_t evaluated_samples; /* 0: no evaluation was made, outputs is empty */
    const struct qdq_output_report *outputs;
    /* In the plan's order; those that no sample reached are left out. */
    const struct qdq_layer_error *layer_errors;
    size_t n_layer_errors;
    size_t n_equalization;
    const struct qdq_equalization *equalization; /* one row a layer with a weight */
    /* NULL: not asked for. One row a quantized layer, the costliest first. */
    const struct qdq_sensitivity *sensitivity;
    size_t n_sensitivity;
    const struct qdq_search_report *search;  /* NULL: not asked for */
    const struct qdq_refinement *refinement; /* NULL: not asked for */
    const struct qdq_float_report *floats;   /* NULL: not asked for */
    int64_t what_ifs; /* runs of the model that the three above took, a batch each */
    const struct qdq_kernels *kernels; /* NULL: not counted */
    size_t n_missed; /* 0: the model is accepted, or nothing was asked of it */
    const struct qdq_missed_gate *missed;
    const struct qdq_timing *timings;
    const struct qdq_warning *warnings; /* the plan's and those of later stages */
};

QDQ_API void qdq_report_free(struct qdq_report **report);

#endif
