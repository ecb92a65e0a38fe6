/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The quantization spec as plain data; api/ reads and writes its JSON form.
 *
 * A zeroed spec is not valid: qdq_spec_init() writes every default, and a marker for
 * defaults that depend on other members (the target). qdq_spec_complete() replaces the
 * markers when all members are set. Strings and arrays are borrowed from the caller
 * that filled the spec.
 */
#ifndef QDQ_SPEC_H
#define QDQ_SPEC_H

#include "qdq/rules.h"

enum qdq_mode { QDQ_MODE_FULL, QDQ_MODE_PARTIAL };
enum qdq_device { QDQ_DEVICE_AUTO, QDQ_DEVICE_CPU, QDQ_DEVICE_CUDA };
enum qdq_granularity {
    QDQ_GRANULARITY_DEFAULT = -1,
    QDQ_PER_TENSOR,
    QDQ_PER_CHANNEL,
    QDQ_PER_BLOCK
};
enum qdq_tristate { QDQ_DEFAULT = -1, QDQ_NO = 0, QDQ_YES = 1 };

/* Which biases take the mean shift that quantized weights cause. A bias is made for a layer
   that has none, unless they are to be EXISTING ones. */
enum qdq_bias_correction {
    QDQ_BIASES_DEFAULT =
        -1, /* ALL where weights are not rounded to the nearest integer */
    QDQ_BIASES_NONE,
    QDQ_BIASES_ALL,
    QDQ_BIASES_EXISTING
};

/* Number formats, generated from the rows of qdq/formats.h. */
enum qdq_format {
    QDQ_FORMAT_DEFAULT = -1, /* the target's default */
#define QDQ_FORMAT(name, ...) QDQ_FORMAT_##name,
#include "qdq/formats.h"
#undef QDQ_FORMAT
    QDQ_N_FORMATS
};

/* The bit of qdq_spec.recipe_formats that stands for a weight that stays as it is. */
enum { QDQ_BIT_FLOAT32 = 31 };

/*
 * The class of processors that the model is made for, generated from the rows of
 * qdq/hosts.h. A frozen spec of version 0.1 states none: rules that depend on the
 * processor are off there unless the spec switches them on.
 */
enum qdq_host {
    QDQ_HOST_UNSTATED = -2,
    QDQ_HOST_AUTO = -1, /* this processor's class */
#define QDQ_HOST(name, ...) QDQ_HOST_##name,
#include "qdq/hosts.h"
#undef QDQ_HOST
    QDQ_N_HOSTS
};

/* Returns the name of class i; NULL past the last. */
QDQ_API const char *qdq_host_name(size_t i);

/* Returns whether a class is that of an accelerator, and no processor's. */
QDQ_API bool qdq_host_is_accelerator(enum qdq_host host);

/* The tensors that a format can be used for; a set of bits. */
enum qdq_format_use {
    QDQ_FOR_WEIGHTS = 1,
    QDQ_FOR_ACTIVATIONS = 2,
    QDQ_FOR_BOTH = QDQ_FOR_WEIGHTS | QDQ_FOR_ACTIVATIONS,
};

/* The type of everything that stays floating point in the result. */
enum qdq_float { QDQ_FLOAT_KEEP, QDQ_FLOAT_FLOAT16, QDQ_FLOAT_BFLOAT16 };

/* A weight is stored as float behind Q and DQ, or as integers behind DQ alone. */
enum qdq_storage { QDQ_STORE_DEFAULT = -1, QDQ_STORE_QDQ, QDQ_STORE_DQ };

/* A weight's range is its largest absolute value, or has the least squared error. */
enum qdq_weight_method { QDQ_WEIGHT_DEFAULT = -1, QDQ_WEIGHT_MAX, QDQ_WEIGHT_MSE };

/*
 * How a weight becomes integers. GPTQ compensates the errors of rounding by each other,
 * given the second moment of the layer's input; AUTO is GPTQ for formats of fewer than 8
 * bits and NEAREST with the correction of biases for the others. RECONSTRUCT is GPTQ against
 * what the model makes in float, given what the layers before it make of the same samples when
 * they are rounded; its scales are those by MOMENTS.
 */
enum qdq_rounding {
    QDQ_ROUND_DEFAULT = -1,
    QDQ_ROUND_NEAREST,
    QDQ_ROUND_GPTQ,
    QDQ_ROUND_AUTO,
    QDQ_ROUND_RECONSTRUCT
};

/* Whether weights of integers of fewer than 8 bits, with negative ones, use the lowest of
   them: scales have a sign then. */
enum qdq_weight_range { QDQ_RANGE_DEFAULT = -1, QDQ_RANGE_NARROW, QDQ_RANGE_FULL };

/* By what scales are chosen: the weights themselves, or the error of the layer's output, which
   the second moment of its input knows, together with the integers. */
enum qdq_weight_scales {
    QDQ_SCALES_DEFAULT = -1,
    QDQ_SCALES_RANGE,
    QDQ_SCALES_MOMENTS
};

/* How weights are stored as other numbers. In an entry of `layers` a member that is
   ..._DEFAULT is the spec's. */
struct qdq_weights {
    enum qdq_format format; /* a format for weights (QDQ_FOR_WEIGHTS) */
    enum qdq_granularity granularity;
    /* for PER_BLOCK: number of elements that share a scale, >= 2 */
    int64_t block;
    enum qdq_storage storage;
    enum qdq_weight_method method;
    enum qdq_rounding rounding;
    enum qdq_weight_range range;
    enum qdq_weight_scales scales;
};

/* How activations are quantized. In an entry of `layers` the format QDQ_FORMAT_DEFAULT is the
   spec's, and the symmetry QDQ_DEFAULT that of the entry's format, or else the spec's. */
struct qdq_activations {
    enum qdq_format format; /* a format for activations (QDQ_FOR_ACTIVATIONS) */
    /* the zero point is 0, or the middle of the format */
    enum qdq_tristate symmetric;
};

/* The formats of one layer. */
struct qdq_layer_format {
    struct qdq_weights weights;
    struct qdq_activations activations;
};

/* The members of an entry that states none of them. */
#define QDQ_WEIGHTS_UNSTATED                                      \
    ((struct qdq_weights){.format = QDQ_FORMAT_DEFAULT,           \
                          .granularity = QDQ_GRANULARITY_DEFAULT, \
                          .storage = QDQ_STORE_DEFAULT,           \
                          .method = QDQ_WEIGHT_DEFAULT,           \
                          .rounding = QDQ_ROUND_DEFAULT,          \
                          .range = QDQ_RANGE_DEFAULT,             \
                          .scales = QDQ_SCALES_DEFAULT})
#define QDQ_ACTIVATIONS_UNSTATED \
    ((struct qdq_activations){QDQ_FORMAT_DEFAULT, QDQ_DEFAULT})

/* How an entry selects nodes. When several entries select one node, the later kind
   in this list wins. */
enum qdq_selector { QDQ_BY_CLASS, QDQ_BY_MATCH, QDQ_BY_NAME };

enum { QDQ_SHORT_INDEX = 1024 };

/*
 * States what to quantize in the nodes that it selects: an element of `layers`, or an
 * entry that an insertion case returned. The winning entry alone decides a node.
 *   BY_CLASS  names[0] is a class of the layer support, or an ONNX operator's name
 *   BY_MATCH  names[0] is a glob over node names: `*` any text, `?` one byte
 *   BY_NAME   node names; "@TENSOR" is the node that computes that tensor
 */
struct qdq_layer_entry {
    enum qdq_selector by;
    const char *const *names;
    size_t n_names; /* 1 unless BY_NAME */
    bool is_list; /* the names were given as a list, so each has its own JSON pointer */
    bool quantize_input, quantize_weight;
    /* quantization_index: indices of the node's inputs, ascending where there are more than
       QDQ_SHORT_INDEX; NULL: all data inputs */
    const int *index;
    size_t n_index;
    const struct qdq_weights *weights; /* NULL: the spec's */
    const struct qdq_activations *activations;
};

/* An insertion case to run: the name of one in the catalog, or a script. */
struct qdq_case_use {
    const char *name; /* cited in reasons and errors */
    const char *lua;  /* source text of a script; NULL: the catalog's case */
};

/* The roles of a layer's inputs. */
enum qdq_kind {
    QDQ_WEIGHTED,     /* one data input and a constant weight */
    QDQ_NON_WEIGHTED, /* input 0 is data */
    QDQ_MULTI_INPUT,  /* every computed floating-point input is data */
};

/* Layer support beyond the catalog's: an element of `layer_support`. */
struct qdq_support {
    const char *cls; /* ONNX operator, or a class of the catalog to replace */
    enum qdq_kind kind;
    int weight_input; /* for WEIGHTED; -1 otherwise */
    int channel_axis; /* axis of the weight, negative from the end; QDQ_NO_AXIS: none */
    bool quantize_input, quantize_weight; /* without an entry in the spec */
};

enum { QDQ_NO_AXIS = -128 };

/* A range given by hand for one activation tensor: min <= max, both finite. */
struct qdq_given_range {
    const char *tensor;
    double min, max;
};

/* A size for a symbolic dimension of the model's inputs. */
struct qdq_dim_value {
    const char *symbol;
    int64_t size; /* >= 1 */
};

/* The interval of one input's random samples; values are distributed evenly. */
struct qdq_random_input {
    const char *input;
    double low, high; /* low <= high; their difference is finite */
};

/* The channels of an image as the model gets them. QDQ_CHANNELS_AUTO: gray for one channel,
   else red, green, blue. */
enum qdq_channels {
    QDQ_CHANNELS_AUTO,
    QDQ_CHANNELS_RGB,
    QDQ_CHANNELS_BGR,
    QDQ_CHANNELS_GRAY
};

enum qdq_resize {
    QDQ_RESIZE_BILINEAR,
    QDQ_RESIZE_BICUBIC,
    QDQ_RESIZE_NEAREST,
    QDQ_RESIZE_NONE,
};

/*
 * How the elements of one input's array become the values that the model gets:
 * (element * scale - mean) / std, each step rounded to float32.
 */
struct qdq_preprocess {
    const char *input;
    bool
        channels_last; /* the layout is nhwc: channels are the last axis, and not axis 1 */
    double scale;      /* finite, not 0 */
    /* one for all channels, or one for each; of std none is 0 */
    const double *mean, *std;
    size_t n_mean, n_std; /* 0: means of 0, and deviations of 1 */
    /* These are for images alone, which are resized and then cut. */
    enum qdq_channels channels;
    enum qdq_resize resize;
    /* 2: height and width after resizing; 1: the shorter side; 0: the input's size */
    size_t n_size;
    int64_t size[2];
    /* height and width that are cut from the middle; 0: nothing is cut */
    int64_t crop[2];
};

enum qdq_nonfinite { QDQ_NONFINITE_ERROR, QDQ_NONFINITE_SKIP };

/* A method that finds a range from the observations of a tensor. */
struct qdq_range_method {
    const char *name;
    bool uses_percentile; /* the method reads calibration.percentile */
};

/* Writes method i to *ret. Returns false past the last. */
QDQ_API bool qdq_range_method(size_t i, struct qdq_range_method *ret);

struct qdq_calibration_spec {
    const char *method; /* name of a qdq_range_method(): "mse" */
    double percentile;  /* the share of |x| that is kept, in (0, 100] */
    const struct qdq_given_range *ranges;
    size_t n_ranges;
    /* id of the data that `ranges` were found with, or NULL; written to the
       metadata of a model that needed no other ranges */
    const char *source;
    int64_t max_samples; /* 0: all */
    int64_t max_seconds; /* for methods that try ranges; 0: no bound */
    int64_t batch;       /* samples in a run, where the model's axis 0 is symbolic */
    const struct qdq_dim_value *dims;
    size_t n_dims;
    /* number of generated samples when there is no data; 0: none */
    int64_t random_samples;
    const struct qdq_random_input *random;
    size_t n_random;
    enum qdq_nonfinite on_nonfinite;
    bool cast; /* integers for a floating-point input are meant as they are */
};

/* Bounds that an output must reach; NaN: no bound. */
struct qdq_gate {
    double min_sqnr_db, min_cosine, max_abs_error, min_top1_agreement;
    double min_slice_sqnr_db; /* for slices in the place of min_sqnr_db */
    double max_kl;            /* of a language model's logits, in nats */
};

struct qdq_output_gate {
    const char *output;
    struct qdq_gate gate; /* replaces the gate for all outputs */
};

struct qdq_accept {
    struct qdq_gate all; /* for every floating-point output */
    const struct qdq_output_gate *outputs;
    size_t n_outputs;
    /* for the whole model; NaN: no bound */
    double max_size_ratio, max_latency_ratio, max_task_drop;
    int64_t min_quantized_layers; /* 0: no bound */
};

/* By what the data to judge by is judged. */
enum qdq_task_kind { QDQ_TASK_CLASSIFICATION, QDQ_TASK_METRIC };

/* The user's own task, whose figure is that of the float model and of the result. */
struct qdq_task {
    bool asked; /* else the other members mean nothing */
    enum qdq_task_kind kind;
    const char *model; /* of METRIC: id of the graph */
    const char
        *output; /* of CLASSIFICATION: the output with the classes; NULL: the first
                           floating-point one whose rows are as many as the labels */
    bool once;   /* of METRIC: called once, with all samples */
};

/* Asks for the fewest layers in float with which every floating-point output reaches
   the goal. */
struct qdq_search {
    /* NaN: not asked for; all NaN: no search */
    double min_sqnr_db, min_top1_agreement;
    double max_task_drop;     /* the most that the figure of the task may fall by */
    int64_t max_float_layers; /* QDQ_NO_LIMIT: any number */
    /* largest number of samples to judge by; >= 1 when there is a goal */
    int64_t samples;
    int64_t max_seconds; /* 0: no bound */
};

enum { QDQ_NO_LIMIT = -1, QDQ_EVALUATE_SAMPLES = 128 };

/* Asks for the latency of the float and the quantized model. */
struct qdq_profile_spec {
    int64_t runs; /* of each model; 0: not asked for, and the others mean nothing */
    int64_t threads, batch;
};

/* The values of a profile that is asked for without any. */
enum { QDQ_PROFILE_RUNS = 50, QDQ_PROFILE_THREADS = 1, QDQ_PROFILE_BATCH = 1 };

/* Whether the result's weights are stored in a second file. */
/* The integers of a decoder's caches of keys and values (output.kv_cache). */
enum qdq_kv_form {
    QDQ_KV_NONE,
    QDQ_KV_INT8_PER_TENSOR,
    QDQ_KV_INT8_PER_CHANNEL,
    QDQ_KV_INT4_PER_TENSOR,
    QDQ_KV_INT4_PER_CHANNEL
};

/* How the magnitude that a scale stands for is chosen (output.kv_cache.method). */
enum qdq_kv_method { QDQ_KV_MINMAX, QDQ_KV_PERCENTILE, QDQ_KV_MSE };

/* The form of a decoder with weights of few bits (output.decoder). */
enum qdq_decoder_form {
    QDQ_DECODER_AS_IS,
    QDQ_DECODER_DQ, /* DequantizeLinear, except for a head that embeddings share */
    QDQ_DECODER_MATMULNBITS
};

enum qdq_external_data {
    QDQ_EXTERNAL_AUTO,   /* when one file would be larger than 1.5 GB */
    QDQ_EXTERNAL_ALWAYS, /* all weights that are not small */
    QDQ_EXTERNAL_NEVER   /* more than 2 GB is an error: no ONNX file can hold it */
};

/* Values of `opset` that are not an opset to convert to. */
enum {
    QDQ_OPSET_KEEP = -1, /* the opset stays */
    QDQ_OPSET_AUTO = 0,  /* the opset is raised to what the spec's formats need */
};

/* The treatment of Q/DQ pairs that the model already has. */
enum qdq_existing {
    QDQ_EXISTING_ERROR, /* the model is refused */
    QDQ_EXISTING_KEEP,  /* they stay, and their tensors get no second pair */
    QDQ_EXISTING_STRIP, /* they are removed */
};

/* Whether the target leaves in floating point the layers by whose integers its runtime
   gains nothing (AUTO), tries more of them (BEST), or quantizes every layer that it can
   (NONE). A frozen spec of version 0.1 states neither, which means NONE. */
enum qdq_recipe {
    QDQ_RECIPE_UNSTATED = -2,
    QDQ_RECIPE_DEFAULT = -1, /* the target's */
    QDQ_RECIPE_NONE,
    QDQ_RECIPE_AUTO,
    QDQ_RECIPE_BEST
};

/* The members that the recipe BEST may choose besides layers in float; a set of bits. AUTO
   chooses SAMPLES alone. */
enum qdq_choice {
    QDQ_CHOICE_METHOD = 1,       /* calibration.method */
    QDQ_CHOICE_EQUALIZE = 2,     /* equalize */
    QDQ_CHOICE_SMOOTH = 4,       /* smooth */
    QDQ_CHOICE_BIASES = 8,       /* bias_correction */
    QDQ_CHOICE_ROUNDING = 16,    /* weights.rounding */
    QDQ_CHOICE_C7 = 32,          /* the rule C7 */
    QDQ_CHOICE_ACTIVATIONS = 64, /* the format of activations */
    QDQ_CHOICE_SAMPLES = 128,    /* calibration.max_samples */
    QDQ_CHOICES = 255,
    QDQ_CHOICE_GRANULARITY = 256 /* weights.granularity, which rules alone choose */
};

/* A release of the target's engine whose own plans decide about the placement, for a target that has
   them. */
enum qdq_target_version {
    QDQ_VERSION_UNSTATED = -1, /* the placement is the target's default */
    QDQ_VERSION_RTX_1_7        /* TensorRT for RTX 1.7 */
};

struct qdq_target;

struct qdq_spec {
    enum qdq_mode mode;
    const struct qdq_target *target; /* a row of qdq/targets.h */
    enum qdq_device device;
    enum qdq_host host;
    enum qdq_target_version version;
    enum qdq_recipe recipe;
    /* goals of the recipe, which is BEST then; NaN: not asked for */
    double recipe_sqnr_db, recipe_top1_agreement;
    double
        recipe_task_drop; /* likewise: the most that the figure of the task may fall by */
    double recipe_size_ratio, recipe_latency_ratio; /* upper bounds, likewise */
    double recipe_bytes; /* likewise, of the result's files together */
    /* bits by enum qdq_format, and QDQ_BIT_FLOAT32: those among which the recipe chooses the format of
       each weight; 0: the formats stay */
    unsigned recipe_formats;
    unsigned open; /* bits of enum qdq_choice: what the spec leaves to a recipe */
    int64_t frontier_points; /* of the frontier that the report has; 0: not asked for */
    int64_t recipe_seconds;  /* takes the place of its bound in inferences; 0: none */
    const struct qdq_layer_entry *layers;
    size_t n_layers;
    /* run in this order, each independent of the others */
    const struct qdq_case_use *cases;
    size_t n_cases;
    const struct qdq_support *support;
    size_t n_support;
    /* Rules of the target that are switched on, and off; a rule in neither set has its
       default state. qdq_spec_complete() puts each automatic rule into one of them, except
       where the host is unstated, and those of rules_later: such a rule is off then, and the spec
       does not state it. */
    struct qdq_rule_set rules_on, rules_off;
    struct qdq_rule_set
        rules_later; /* that are younger than the version that froze the spec */
    struct qdq_weights weights; /* of layers without an entry that states others */
    enum qdq_bias_correction bias_correction;
    bool weight_only; /* only weights are stored in another format */
    /* the runtime quantizes activations by the range of each run; weight_only is set, too */
    bool dynamic;
    struct qdq_activations activations; /* likewise */
    enum qdq_float float_type;
    bool equalize; /* cross-layer equalization before calibration */
    double smooth; /* alpha of smoothing, above 0 and below 1; 0: none */
    /* smoothing inserts a Mul where nothing can take the factors of an activation in */
    bool smooth_insert;
    /* factors are chosen by the moments of activations, for weights alone; `smooth` is 0 */
    bool smooth_awq;
    struct qdq_calibration_spec calibration;
    const struct qdq_preprocess *preprocess; /* of all data of the job */
    size_t n_preprocess;
    enum qdq_tristate evaluate; /* QDQ_DEFAULT: evaluate when there is data */
    /* 0: all; a spec that leaves it out has QDQ_EVALUATE_SAMPLES, of samples that calibration
       did not read where there are enough */
    int64_t evaluate_samples;
    int64_t evaluate_seconds; /* after which no more samples run; 0: no bound */
    struct qdq_accept accept;
    struct qdq_task task;
    int64_t sensitivity_samples; /* 0: layers are not ranked */
    int64_t sensitivity_seconds; /* 0: no bound */
    struct qdq_search search;
    struct qdq_profile_spec profile;
    enum qdq_decoder_form decoder; /* output.decoder */
    bool
        context; /* output.context: whoever writes the result writes it compiled, too */
    enum qdq_external_data external_data; /* of the result: output.external_data */
    /* opset to raise the model to, 7 to 28, or one of the values above */
    int64_t opset;
    enum qdq_existing existing_qdq;
    bool unmatched_is_error;      /* on_unmatched: error */
    enum qdq_kv_form kv_cache;    /* output.kv_cache: scales are calibrated for it */
    enum qdq_kv_method kv_method; /* output.kv_cache.method */
    double kv_percentile;         /* output.kv_cache.percentile, for that method */
};

/* Returns whether the result depends on time: there is a bound in seconds, or the recipe
   goes by latencies. */
QDQ_API bool qdq_spec_is_timed(const struct qdq_spec *spec);

/* Returns whether a spec asks for a search, by a goal. */
QDQ_API bool qdq_spec_searches(const struct qdq_spec *spec);

/* Returns whether a job with data measures the times of layers where the runtime of its target
   runs, so that its result depends on them: its recipe is `auto` or has goals. */
QDQ_API bool qdq_spec_measures(const struct qdq_spec *spec);

/* Returns whether such a job searches by patterns where a runner judges, and keeps a journal (struct qdq_work.journal). */
QDQ_API bool qdq_spec_keeps_journal(const struct qdq_spec *spec);

/* The points of a frontier that is asked for without a number, and the most. */
enum { QDQ_FRONTIER_POINTS = 8, QDQ_MOST_FRONTIER_POINTS = 32 };

QDQ_API void qdq_spec_init(struct qdq_spec *spec);

/* Returns whether a rule of the spec's target, by its number, is on. An automatic rule is
   off until qdq_spec_complete() has decided it. */
QDQ_API bool qdq_spec_has_rule(const struct qdq_spec *spec, size_t rule);

/* Returns whether the spec, or an entry of it, has weights that are not simply rounded to the
   nearest integers. */
QDQ_API bool qdq_spec_rounds(const struct qdq_spec *spec);

/* Switches a rule of the spec's target on or off. */
QDQ_API void qdq_spec_switch_rule(struct qdq_spec *spec, size_t rule, bool on);

/*
 * Replaces the markers of formats, storage and symmetry by the target's defaults, the
 * host QDQ_HOST_AUTO by the class of this processor, and decides the automatic rules of
 * the target: the spec is "effective" then. A second call changes nothing. Engine functions that take a
 * spec call it on their copy.
 */
QDQ_API void qdq_spec_complete(struct qdq_spec *spec);

#endif
