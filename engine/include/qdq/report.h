/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report of a quantization, as data; api/ writes its JSON form. All members are
 * borrowed from the report and live until qdq_report_free(). Values that are not finite
 * appear here unchanged; in JSON they are null.
 */
#ifndef QDQ_REPORT_H
#define QDQ_REPORT_H

#include "qdq/plan.h"

/* An activation with a Q/DQ pair. */
struct qdq_tensor_report {
    const char *name;
    double min, max;   /* the chosen range */
    const char *dtype; /* the format it is quantized to: "int8" */
    double scale;      /* a float32 value, as the double that it equals */
    int64_t zero_point;
    const char *method; /* "minmax"…, or "given" */
    int64_t samples;    /* runs of the model that observed it; 0 for a given range */
    const char *second_dtype; /* of the pair that converts it; NULL: there is none */
    double second_scale;
    int64_t second_zero_point;
};

struct qdq_weight_report {
    const char *name, *layer; /* the tensor, and the first layer that uses its pair */
    int axis;                 /* -1: per tensor */
    const char *dtype;        /* "int8" */
    const char *granularity;  /* "tensor", "channel", "block" */
    int64_t block;            /* elements along the axis that share a scale; 0: none */
    size_t n_scales;
    const float *scales; /* one for each channel or block; NULL: they were not kept */
    /* Where they were not kept: the smallest and the largest, and the largest of each of
       as many parts of the scales, in their order, of as equal lengths as possible. */
    float scale_min, scale_max;
    const float *part_scales;
};

enum { QDQ_SCALE_PARTS = 32 }; /* parts, or as many as there are scales */

/* A part of an output that has its own meaning, such as the scores that are joined with boxes. */
struct qdq_slice_report {
    const char
        *name;   /* of the tensor that it comes from, or its places along the axis */
    size_t axis; /* of the output */
    int64_t begin, end;   /* along the axis; where it repeats, the first of them */
    double sqnr_db;       /* about its mean; NaN where it carries no information */
    double share;         /* of the output's sum of squares */
    const char *left_out; /* why it carries no information: "constant", "noise", "few
                             values", "not finite"; NULL: it does */
};

/* The SQNR of single samples of an output, in dB; NaN: not known. */
struct qdq_sample_report {
    int64_t n;
    double worst_db, p5_db, median_db;
    /* of the next n samples at most 1 in 20 has less, with that confidence */
    double confidence_db, confidence_level;
};

/* An element of an output in float and quantized. */
struct qdq_point {
    float f, q;
};

/* Output of the float model compared with that of the quantized one, over all samples. An output of
   integers or Booleans has top1_agreement, the share of its elements that are equal, rows, the
   number of its elements, and sqnr_db, in which an element that differs is an error as large as
   itself; it has no cosine, no max_abs_error, and no slices. */
struct qdq_output_report {
    const char *name;
    double sqnr_db; /* 10 log10(sum f^2 / sum (f-q)^2); +inf when equal */
    double cosine;  /* mean over samples */
    double max_abs_error;
    /* share of rows along the last axis with equal argmax; NaN when that axis has
       fewer than 2 elements */
    double top1_agreement;
    /* the elements of a row are no classes, so that the verdict does not go by
       top1_agreement */
    bool lacks_classes;
    int64_t rows; /* along the last axis, of all samples; 0: unknown, or none */
    /* elements that are the same infinity, or NaN, in both models; the figures but top-1 are
       without them */
    int64_t nonfinite;
    size_t n_slices;
    const struct qdq_slice_report *slices;
    double worst_slice_db; /* of those that carry information; NaN: there are none */
    /* of the whole output about its mean; NaN: it carries no information, or is not known */
    double centred_db;
    struct qdq_sample_report samples;
    /* These are of a language model's logits, in nats; NaN: it is none. The divergence of the quantized
       distribution of the next token from that of float, and the cross entropies of the tokens of
       the data, for a model that has a cache. */
    double kl, nats_per_token, float_nats_per_token;
    bool is_logits; /* kl is a number, and the verdict goes by it */
    bool is_cache; /* what the next run of a decoder reads: the verdict leaves it out */
    bool is_choice; /* of integers or Booleans: the verdict goes by top1_agreement */
    /* finite elements that stand for all, of the first outputs alone */
    size_t n_points;
    const struct qdq_point *points;
};

/* The same comparison for the result as the target's runtime runs it on this
   processor, with its default optimizations. */
struct qdq_deployed {
    const char *processor;
    const char *runtime, *version; /* name and version of the runtime */
    size_t n_outputs;
    const struct qdq_output_report *outputs;
    const char *device; /* where a runner says it; NULL: the processor */
};

/* The same comparison for the first output of a quantized layer. */
struct qdq_layer_error {
    const char *name; /* the layer's name */
    double sqnr_db;
};

/* An output of the model, or a quantized layer, that has no figures. */
struct qdq_unjudged {
    bool is_layer;
    const char *name, *reason;
    bool
        has_other_size; /* the reason is that its size differs in float and quantized */
};

/* The figures that a bound of spec.accept is about. */
enum qdq_figure {
    QDQ_FIGURE_SQNR_DB,
    QDQ_FIGURE_KL,
    QDQ_FIGURE_COSINE,
    QDQ_FIGURE_MAX_ABS_ERROR,
    QDQ_FIGURE_TOP1_AGREEMENT,
    QDQ_FIGURE_SLICE_SQNR_DB,
    QDQ_FIGURE_SIZE_RATIO,
    QDQ_FIGURE_LATENCY_RATIO,
    QDQ_FIGURE_QUANTIZED_LAYERS,
    QDQ_FIGURE_TASK_DROP
};

/* A bound of spec.accept, with the figure that was measured. */
struct qdq_gate_report {
    const char *output;  /* NULL: the bound is about the whole model */
    const char *figure;  /* the bounded figure: "sqnr_db", "size_ratio"… */
    const char *gate;    /* the member of spec.accept: "min_sqnr_db"… */
    bool at_most;        /* the bound is an upper bound */
    bool own;            /* the bound is set for this output alone, in accept.outputs */
    double bound, value; /* value is NaN when there is no such figure */
    const char *why;     /* the reason why there is no figure; else NULL */
    bool met;
    enum qdq_figure kind; /* the same as `figure` */
};

/* The equalization of a layer with the next layer that it feeds. */
struct qdq_equalization {
    /* names of the layers; second is NULL when there is none */
    const char *first, *second;
    size_t channels;    /* channels between them that were scaled; 0: none */
    const char *reason; /* "equalized", or the reason against it */
};

/* The scales of the keys, or values, that a layer of a decoder keeps. */
struct qdq_cache_scales {
    long layer; /* N of the output present.N.key */
    size_t n;   /* 1, or one for each element of each head, head by head */
    const float *scales;
};

/* The scales that output.kv_cache asks for: x is about scale * q. */
struct qdq_kv_cache {
    double qmax; /* a scale is the largest magnitude over it: 128 for 8 bits, 8 for 4 */
    size_t n;    /* layers, in ascending order */
    const struct qdq_cache_scales *keys, *values;
};

/* The smoothing of an activation that layers with weights read. */
struct qdq_smoothing {
    const char *tensor;
    size_t n_layers;
    const char *const *layers; /* names of those that read it */
    size_t channels;           /* number of channels that were scaled; 0: none */
    bool inserted;      /* a Mul behind the activation was inserted, which they read */
    const char *reason; /* "smoothed", or the reason against it */
};

/*
 * The cost of quantizing one layer: the SQNR of the outputs (the worst floating-point
 * output) with only that layer quantized, and the gain in dB of leaving only that layer
 * in float.
 */
struct qdq_sensitivity {
    const char *name;
    /* +inf: there is no difference; NaN, both: the time was up before */
    double sqnr_db_alone;
    double gain_db;
};

/* A step of the search: the number of layers in float, and the quality of the
   outputs. */
struct qdq_search_step {
    size_t float_layers;
    /* the layer that this step leaves in float or quantizes again; NULL for the
       first step */
    const char *layer;
    /* of the worst output; NaN: no output has the figure */
    double sqnr_db, top1_agreement;
};

struct qdq_search_report {
    int64_t samples;
    bool met; /* the last step reaches the goal */
    /* the choice that was judged last as deployed; NaN: none was */
    double deployed_sqnr_db, deployed_top1;
    double
        task_drop; /* likewise, by the task; NaN: it is no goal, or none was judged by it */
    size_t n_layers, n_steps;
    const char *const *layers; /* layers that stay in float at the end */
    const struct qdq_search_step *steps;
};

/* A choice that the recipe judged: what it changes in the spec, and the layers that it
   leaves in float. */
struct qdq_recipe_step {
    /* "integers", "rules", "cut", "patterns", "search" or "unquantized" for placements that were measured; "start", "group",
       "alone", "float" or "quantized"; for a change of the spec "method",
       "C7", "bias_correction", "rounding", "equalize", "smooth" or "activations" */
    const char *step;
    unsigned changed;            /* bits of enum qdq_choice */
    const struct qdq_spec *spec; /* has the changed members */
    size_t n_layers;
    const char *const *layers;
    double sqnr_db; /* of the worst output; -inf: it could not be judged */
    double size_ratio, latency_ratio; /* to the given model; NaN: not measured */
    int64_t samples;                  /* that were run for this step */
    bool kept;                        /* it became the best so far */
    bool estimated;   /* by the literal arithmetic, before it was judged */
    double task_drop; /* what the figure of the task falls by; NaN: not judged by it */
    double predicted_ratio; /* latency by the measured costs, before; NaN: none */
};

struct qdq_recipe_report {
    size_t n_steps;
    const struct qdq_recipe_step *steps;
};

/* A result that no other one that was judged is both faster and better than. */
struct qdq_frontier_point {
    double sqnr_db;                   /* of the worst output; inf: of the float model */
    double latency_ratio, size_ratio; /* to the given model; NaN: not measured */
    const struct qdq_spec *spec;      /* makes the same placement with the same data */
};

struct qdq_frontier {
    size_t n;
    const struct qdq_frontier_point *points; /* the fastest first */
};

/* The adjustment of ranges by their effect on the outputs (method output_mse). */
struct qdq_refinement {
    const char *start; /* the method that found the initial ranges */
    int64_t samples;
    size_t adjusted;                      /* number of ranges that changed */
    double sqnr_db_before, sqnr_db_after; /* of the worst output, on these samples */
};

/* A layer that computes in floating point although its operator has an integer
   kernel. */
struct qdq_float_kernel {
    const char *name, *reason;
};

/* A kernel that computes several nodes of the model. */
struct qdq_fused_kernel {
    const char *op;       /* the runtime's */
    const char *computes; /* "integer", "float", "conversion" or "other" */
    const char *const *nodes;
    size_t n_nodes;
};

/* The runtime that chose the kernels of a result, and did not run it. */
struct qdq_planner {
    const char *name, *version, *device;
};

/* The kernels that the target's runtime chooses for the result on this processor. */
struct qdq_kernels {
    size_t integer;     /* nodes that compute with integers */
    size_t conversions; /* nodes that remain of QuantizeLinear and DequantizeLinear */
    size_t n_ops, n_floats;
    /* counts of the integer nodes, sorted by operator */
    const struct qdq_op_count *ops;
    const struct qdq_float_kernel *floats;
    const char *runner; /* the operator's program that told them; NULL: none did */
    const struct qdq_planner *planner; /* NULL: the result was run */
    /* Where the runtime names all nodes of each kernel: the layers that multiply and have pairs on
       all that they multiply, and those of them that kernels with integers compute; and the kernels
       of several nodes. */
    bool names_nodes;
    size_t planned_layers, integer_layers, n_fused;
    const struct qdq_fused_kernel *fused;
};

/* A node that stays in float32 although the spec asks for a smaller type. */
struct qdq_kept_node {
    const char *name;
    const char *reason;
};

/* The outcome of the spec's `float`. */
struct qdq_float_report {
    const char *type; /* "float16" or "bfloat16" */
    size_t n_nodes;   /* number of nodes that compute in that type, pairs not counted */
    size_t n_kept;
    const struct qdq_kept_node *kept; /* in the order of the file */
};

/* The two models that a profile compares. */
enum qdq_side { QDQ_SIDE_FLOAT, QDQ_SIDE_QUANTIZED, QDQ_N_SIDES };

struct qdq_latency {
    double p50_ms, p90_ms; /* wall time of one run */
    /* the most memory that the runtime had in use for the model at one time; 0: not
       known */
    uint64_t peak_bytes;
};

/* The time of all nodes with one operator, in one run of each model. */
struct qdq_op_time {
    const char *op;
    double ms[QDQ_N_SIDES];
};

/* The time of a node of the model as the runtime has optimized it, in one run. */
struct qdq_node_time {
    bool quantized; /* it is a node of the quantized model */
    const char *name, *op, *provider;
    double ms;
};

/* The latency of the given and of the quantized model, which ran by turns. */
struct qdq_profile {
    const char *processor;
    const char *runtime,
        *version; /* what ran the models, as the rows of targets name it */
    int64_t runs, threads, batch; /* batch: samples in a run */
    struct qdq_latency sides[QDQ_N_SIDES];
    /* the float model with the precision that the runtime chooses by itself, and that
       precision; NULL where it is float32, as it is for `sides` */
    struct qdq_latency default_float;
    const char *default_precision;
    /* the quantized model's time to that of default_float is larger with 95 % confidence */
    double default_ratio_low;
    double ratio; /* of the medians: quantized / float */
    /* contains the median ratio with 95 % confidence */
    double ratio_low, ratio_high;
    size_t n_ops, n_nodes;
    const struct qdq_op_time *ops; /* the slowest first */
    const struct qdq_node_time
        *nodes; /* the slowest of each model, the slowest first */
};

/* The figure of the user's own task, for the float model and for the result. */
/* Samples of one label to which both models give other classes. */
struct qdq_confusion {
    uint32_t label, float_class, quantized_class;
    int64_t rows;
};

struct qdq_task_report {
    enum qdq_task_kind kind;
    double float_figure, quantized; /* classification: the share of right answers */
    double drop;                    /* float_figure - quantized */
    /* contains the drop with 95 % confidence; NaN where the metric is called once */
    double low, high;
    int64_t samples;
    const char *runtime, *version, *processor; /* that ran the result */
    bool deployed; /* the runtime is the target's, with its default optimizations */
    /* of a classification: the rows of labels, those to which the result gives another class than the
       float model, and what they were given, the most frequent first; at most QDQ_MOST_CONFUSIONS */
    int64_t rows, changed;
    size_t n_confusions;
    const struct qdq_confusion *confusions;
};

enum { QDQ_MOST_CONFUSIONS = 20 };

struct qdq_timing {
    const char *stage; /* a row of qdq/stages.h: "load", "plan", "calibrate"… */
    double seconds;
};

/* The resources that a stage used. */
struct qdq_stage_use {
    const char *name; /* as qdq_timing.stage */
    double seconds;
    int threads;    /* that it could use at the same time, the calling one included */
    uint64_t bytes; /* of models and weights that it mapped, read or wrote */
    /* most memory that the process had up to the stage's end, mapped files included */
    uint64_t peak_bytes;
};

/* The class of processors that the result is made for. */
struct qdq_host_report {
    const char *name;      /* a row of qdq/hosts.h; NULL: a frozen spec states none */
    const char *reason;    /* why it is that class */
    const char *processor; /* the name of the processor that did the work */
};

/* The state of a rule that depends on the class of processors and on the spec. */
struct qdq_rule_report {
    const char *id, *reason;
    bool on;
};

/* A tensor on its way from the node that makes it to one that reads it. */
struct qdq_edge {
    const char *from, *to; /* reported names of nodes */
    const char *tensor;
};

/* The same graph by numbers, whose size does not depend on the length of names: nodes, tensors that
   edges have, and for each edge the node that makes the tensor, the one that reads it, the tensor. */
struct qdq_graph_edge {
    uint32_t from, to, tensor;
};

struct qdq_graph_report {
    size_t n_nodes, n_tensors, n_edges;
    const char *const *nodes, *const *tensors;
    const struct qdq_graph_edge *edges;
    size_t n_constants;
    const uint32_t
        *constants; /* the nodes that compute constants from constants alone */
};

/*
 * The values of an activation that calibration observed, in bins of equal width, and what the
 * chosen range does to them.
 */
struct qdq_histogram_report {
    const char *tensor;
    double low, high; /* ends of the first and of the last bin */
    size_t n;         /* bins, at most 256 */
    const uint64_t *counts;
    /* the counts are of |x|, because the activation has positive and negative values */
    bool magnitudes;
    double min, max; /* the chosen range */
    double clipped;  /* share of the values outside of it */
    double
        sqnr_db; /* of the activation by itself, estimated by the histogram; NaN: no error */
};

/* The program that made the result: with the same spec, model and data it makes the same bytes. */
struct qdq_made_by {
    const char *engine;    /* version of the engine */
    const char *build;     /* its build id in hex digits; "" where it has none */
    const char *runtime;   /* version of ONNX Runtime; NULL: it was not loaded */
    const char *processor; /* class of this processor (qdq/hosts.h) */
};

struct qdq_report {
    struct qdq_made_by made_by;
    const struct qdq_model_info *model; /* describes the source model */
    const char *evaluation_id;          /* likewise */
    const char *model_id, *dataset_id;  /* as given to qdq_quantize(), or NULL */
    int64_t calibration_samples;
    int64_t inferences; /* runs of the model during calibration */
    size_t reused; /* tensors whose accumulators came from an earlier calibration */
    const struct qdq_spec *spec; /* the effective spec */
    /* The spec with every given and found range: it makes the same model again
       without data. */
    const struct qdq_spec *frozen;
    const char *device; /* "cpu", or "cuda:0 NAME" */
    struct qdq_host_report host;
    const struct qdq_rule_report *rules; /* the automatic rules of the target */
    size_t n_rules;
    const struct qdq_plan_view *plan;
    /* the graph that was planned: a row for each input of a node that a node makes */
    size_t n_edges;
    const struct qdq_edge *edges;
    size_t qdq_pairs;
    uint64_t size_before, size_after; /* bytes of the model and of its external data */
    /* bytes of the result's external data file; 0: there is none */
    uint64_t external_bytes;
    size_t n_tensors, n_weights, n_outputs, n_timings, n_warnings;
    const struct qdq_tensor_report *tensors;
    const struct qdq_weight_report *weights;
    size_t n_histograms; /* 0 where the caller wants none, and for given ranges */
    const struct qdq_histogram_report *histograms;
    int64_t evaluated_samples; /* 0: there was no evaluation, and outputs is empty */
    bool evaluated_on_calibration; /* some of them are samples that calibration read */
    const struct qdq_output_report *outputs;
    /* NULL: the target's kernels do not run here, or a warning says why not */
    const struct qdq_deployed *deployed;
    /* In the plan's order; layers that no sample reached are left out. */
    const struct qdq_layer_error *layer_errors;
    size_t n_layer_errors;
    /* outputs and quantized layers without figures, in the order of the model */
    const struct qdq_unjudged *unjudged;
    size_t n_unjudged;
    size_t n_equalization;
    /* one row for each layer with a weight */
    const struct qdq_equalization *equalization;
    /* one row for each activation that a layer with a weight reads; NULL: not asked for */
    size_t n_smoothing;
    const struct qdq_smoothing *smoothing;
    const struct qdq_kv_cache *kv_cache; /* NULL: not asked for */
    /* One row for each quantized layer, the most costly first; NULL: not asked for. */
    const struct qdq_sensitivity *sensitivity;
    size_t n_sensitivity;
    const struct qdq_search_report *search; /* NULL: not asked for */
    const struct qdq_recipe_report *recipe; /* NULL: nothing was judged */
    const struct qdq_frontier *frontier;    /* NULL: not asked for, or not measured */
    /* how the layers that compute in integers were chosen where that goes by the time that they
       take: "measured"; "kept", by what earlier jobs measured; "estimated", by the target's rules;
       NULL: it does not */
    const char *costs;
    bool recipe_missed;                      /* a goal of the recipe was not reached */
    const struct qdq_refinement *refinement; /* NULL: not asked for */
    const struct qdq_float_report *floats;   /* NULL: not asked for */
    int64_t what_ifs; /* runs of the model by the three members above, one batch each */
    const struct qdq_kernels *kernels;  /* NULL: not counted */
    const struct qdq_profile *profile;  /* NULL: not asked for, or not possible */
    const struct qdq_task_report *task; /* NULL: not asked for */
    /* every bound of spec.accept: those of outputs in the model's order, then those of
       the whole model; the model is accepted when all are met */
    size_t n_gates;
    const struct qdq_gate_report *gates;
    /* "good", "fair", "poor"; NULL: there was no evaluation, or nothing was quantized */
    const char *verdict;
    const struct qdq_timing *timings;
    const struct qdq_stage_use *stages; /* n_timings of them */
    const struct qdq_warning *warnings; /* warnings of the plan and of later stages */
    struct qdq_graph_report graph;      /* the rows of `edges`, in their order */
    int64_t evaluated_of; /* the samples that the evaluation would compare at most */
    /* why it compared no more: "all", "settled", because its figures stand for all (`is_settled`), or
       "max_seconds"; NULL: there was none */
    const char *evaluation_rule;
    bool evaluation_is_settled;
    int64_t layer_samples; /* of evaluated_samples, by which layer_errors were made */
};

QDQ_API void qdq_report_free(struct qdq_report **report);

#endif
