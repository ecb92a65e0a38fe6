/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The quantization spec as plain data. Its JSON form is read and written in api/.
 *
 * Zero is never a meaning of its own: qdq_spec_init() writes every default, and where
 * that depends on other members (the target), that it is to be told from these;
 * qdq_spec_complete() does so when all have been read. Strings and arrays are borrowed
 * from whoever filled the spec in.
 */
#ifndef QDQ_SPEC_H
#define QDQ_SPEC_H

#include "qdq/error.h"

enum qdq_mode { QDQ_MODE_FULL, QDQ_MODE_PARTIAL };
enum qdq_device { QDQ_DEVICE_AUTO, QDQ_DEVICE_CPU, QDQ_DEVICE_CUDA };
enum qdq_granularity { QDQ_PER_TENSOR, QDQ_PER_CHANNEL, QDQ_PER_BLOCK };
enum qdq_tristate { QDQ_DEFAULT = -1, QDQ_NO = 0, QDQ_YES = 1 };

/* Number formats, by the rows of qdq/formats.h. */
enum qdq_format {
    QDQ_FORMAT_DEFAULT = -1, /* the target's */
#define QDQ_FORMAT(name, ...) QDQ_FORMAT_##name,
#include "qdq/formats.h"
#undef QDQ_FORMAT
    QDQ_N_FORMATS
};

/* The tensors that a format is for; bits. */
enum qdq_format_use {
    QDQ_FOR_WEIGHTS = 1,
    QDQ_FOR_ACTIVATIONS = 2,
    QDQ_FOR_BOTH = QDQ_FOR_WEIGHTS | QDQ_FOR_ACTIVATIONS,
};

/* The type of all that stays floating point in the result. */
enum qdq_float { QDQ_FLOAT_KEEP, QDQ_FLOAT_FLOAT16, QDQ_FLOAT_BFLOAT16 };

/* How an entry names nodes; where several name one node, a later kind here wins. */
enum qdq_selector { QDQ_BY_CLASS, QDQ_BY_MATCH, QDQ_BY_NAME };

/*
 * What is to be quantized of the nodes that the entry names: an element of `layers`, or
 * one that an insertion case returned. The entry that wins a node decides alone.
 *   BY_CLASS  names[0] is a class of the layer support, or an ONNX operator's name
 *   BY_MATCH  names[0] is a glob over node names: `*` any text, `?` one byte
 *   BY_NAME   node names; "@TENSOR" is the node that makes that tensor
 */
struct qdq_layer_entry {
    enum qdq_selector by;
    const char *const *names;
    size_t n_names; /* 1 unless BY_NAME */
    bool is_list;   /* the names were given as a list: they have a place of their own */
    bool quantize_input, quantize_weight;
    const int
        *index; /* quantization_index: node input indices; NULL: all data inputs */
    size_t n_index;
};

/* An insertion case to run: one that the catalog has under the name, or a script. */
struct qdq_case_use {
    const char *name; /* as reasons and errors cite it */
    const char *lua;  /* source text, or NULL */
};

/* What of a layer's inputs is what. */
enum qdq_kind {
    QDQ_WEIGHTED,     /* one data input and a constant weight */
    QDQ_NON_WEIGHTED, /* input 0 is data */
    QDQ_MULTI_INPUT,  /* every input that is computed and floating is data */
};

/* Layer support beyond the catalog's: an element of `layer_support`. */
struct qdq_support {
    const char *cls; /* ONNX operator, or a class of the catalog to replace */
    enum qdq_kind kind;
    int weight_input; /* of WEIGHTED; -1 else */
    int channel_axis; /* of the weight, from the end when negative; QDQ_NO_AXIS: none */
    bool quantize_input, quantize_weight; /* by default */
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

/* What random samples of one input are drawn from, evenly. */
struct qdq_random_input {
    const char *input;
    double low, high; /* low <= high; their difference is finite */
};

enum qdq_nonfinite { QDQ_NONFINITE_ERROR, QDQ_NONFINITE_SKIP };

/* How a range is found from what calibration observed of a tensor. */
struct qdq_range_method {
    const char *name;
    bool uses_percentile; /* it reads calibration.percentile, other methods do not */
};

/* Method i into *ret; false past the last. */
QDQ_API bool qdq_range_method(size_t i, struct qdq_range_method *ret);

struct qdq_calibration_spec {
    const char *method; /* a qdq_range_method()'s name: "mse" */
    double percentile;  /* the share of |x| that is kept, in (0, 100] */
    const struct qdq_given_range *ranges;
    size_t n_ranges;
    const char
        *source; /* id of the data that `ranges` were found with, or NULL; it goes
                           into the metadata of a model that needed no others */
    int64_t max_samples; /* 0: all */
    int64_t batch;       /* samples a run, where the model's axis 0 is symbolic */
    const struct qdq_dim_value *dims;
    size_t n_dims;
    int64_t random_samples; /* made up when there is no data; 0: none */
    const struct qdq_random_input *random;
    size_t n_random;
    enum qdq_nonfinite on_nonfinite;
};

/* A float weight behind Q and DQ, or an integer weight behind DQ alone. */
enum qdq_storage { QDQ_STORE_DEFAULT = -1, QDQ_STORE_QDQ, QDQ_STORE_DQ };

/* How a weight's range is chosen: its largest value, or the least squared error. */
enum qdq_weight_method { QDQ_WEIGHT_MAX, QDQ_WEIGHT_MSE };

/* What an output has to reach; NaN where nothing is asked. */
struct qdq_gate {
    double min_sqnr_db, min_cosine, max_abs_error, min_top1_agreement;
};

struct qdq_output_gate {
    const char *output;
    struct qdq_gate gate; /* in the place of the one for all outputs */
};

struct qdq_accept {
    struct qdq_gate all; /* for every floating output */
    const struct qdq_output_gate *outputs;
    size_t n_outputs;
};

/* Leave the fewest layers in float with which every floating output reaches the goal. */
struct qdq_search {
    double min_sqnr_db, min_top1_agreement; /* NaN: not asked; both NaN: no search */
    int64_t max_float_layers;               /* QDQ_NO_LIMIT: none */
    int64_t samples; /* at most so many; >= 1 where there is a goal */
};

enum { QDQ_NO_LIMIT = -1 };

/* Whether the result's weights lie in a file of their own. */
enum qdq_external_data {
    QDQ_EXTERNAL_AUTO,   /* where one file would have more than 1.5 GB */
    QDQ_EXTERNAL_ALWAYS, /* all that are not small */
    QDQ_EXTERNAL_NEVER   /* over 2 GB an error: no ONNX file holds more */
};

/* What is done about the model's opset, where it is no number to raise it to. */
enum {
    QDQ_OPSET_KEEP = -1, /* nothing */
    QDQ_OPSET_AUTO = 0,  /* it is raised to what the scheme needs */
};

/* What becomes of Q/DQ pairs that the model has already. */
enum qdq_existing {
    QDQ_EXISTING_ERROR, /* it is refused */
    QDQ_EXISTING_KEEP,  /* they stay, and their edges get no other */
    QDQ_EXISTING_STRIP, /* they are taken out */
};

struct qdq_target;

struct qdq_spec {
    enum qdq_mode mode;
    const struct qdq_target *target; /* a row of qdq/targets.h */
    enum qdq_device device;
    const struct qdq_layer_entry *layers;
    size_t n_layers;
    const struct qdq_case_use *cases; /* run in this order, each on its own */
    size_t n_cases;
    const struct qdq_support *support;
    size_t n_support;
    uint64_t rules; /* those that are on, of all targets: bit i is qdq_rule(i) */
    enum qdq_format weight_format; /* QDQ_FOR_WEIGHTS */
    enum qdq_granularity weight_granularity;
    int64_t weight_block; /* PER_BLOCK: elements that share a scale, >= 2 */
    enum qdq_storage weight_storage;
    enum qdq_weight_method weight_method;
    bool weight_only;                       /* no activation has a pair */
    enum qdq_format activation_format;      /* QDQ_FOR_ACTIVATIONS */
    enum qdq_tristate activation_symmetric; /* zero point 0, or the format's middle */
    enum qdq_float float_type;
    bool equalize; /* cross-layer equalization before calibration */
    struct qdq_calibration_spec calibration;
    enum qdq_tristate evaluate; /* QDQ_DEFAULT: when there is data */
    int64_t evaluate_samples;   /* 0: all */
    struct qdq_accept accept;
    int64_t sensitivity_samples; /* 0: layers are not ranked */
    struct qdq_search search;
    enum qdq_external_data external_data; /* of the result: output.external_data */
    int64_t opset; /* to raise the model to, 7 to 25; or one of the names above */
    enum qdq_existing existing_qdq;
    bool unmatched_is_error; /* on_unmatched: error */
};

QDQ_API void qdq_spec_init(struct qdq_spec *spec);

/* Writes what the target has by default in the place of the formats, the storage and the
   tri-states of formats that nobody chose: the spec is "effective" then. Doing it again
   changes nothing. Engine functions that take a spec do it for themselves. */
QDQ_API void qdq_spec_complete(struct qdq_spec *spec);

#endif
