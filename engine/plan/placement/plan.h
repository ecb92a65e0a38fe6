/* SPDX-License-Identifier: Apache-2.0 */
/* The internals of struct qdq_plan, for the code that carries a plan out. */
#ifndef QDQI_PLAN_PLACEMENT_PLAN_H
#define QDQI_PLAN_PLACEMENT_PLAN_H

#include "files/model/model.h"
#include "numbers/arithmetic/format.h"
#include "qdq/plan.h"

/* Whether a tensor has pairs of two formats, one behind the other. It has two rows then, of which the
   former makes what the tensor's name stands for. The latter stand behind all tensors. */
enum qdqi_conversion {
    QDQI_ONE_FORMAT,
    QDQI_FIRST_FORMAT, /* this pair reads what the tensor's layer makes */
    QDQI_SECOND_FORMAT /* and this one reads what the pair of the other row makes */
};

/* An activation that gets a pair. */
struct qdqi_planned_tensor {
    const struct qdqi_tensor *tensor;
    enum qdqi_dtype dtype; /* float32 or float16 */
    enum qdqi_format format;
    bool symmetric;
    bool everywhere; /* whether all readers read it from its pair */
    bool has_range;  /* whether its values lie in [low, high] for any data */
    float low, high;
    /* row of the activation whose range, scale and zero point it shares; its own row
       if it shares none */
    size_t leader;
    bool is_stated; /* whether an entry states the format */
    enum qdqi_conversion conversion;
    size_t other; /* row of the same tensor in its other format, where there is one */
};

/* A bias that is stored as int32. Its scale is the product of the scales of the
   activation and the weight, or its own, and its zero point is 0. */
struct qdqi_planned_bias {
    const struct qdqi_tensor *tensor; /* of shape [channels], float32 */
    size_t layer;                     /* index of the layer in the plan */
    int input;                        /* input index of the bias in the layer's node */
    /* indices of the layer's activation and weight in the plan */
    size_t activation, weight;
    bool has_own_scale; /* one, by its largest number */
};

#define QDQI_NONE SIZE_MAX

/* An Add, or a Where, whose result a Softmax normalizes, perhaps behind more of them. One operand may be
   a mask. */
struct qdqi_masked_sum {
    size_t operands[2], result; /* rows of activations; QDQI_NONE: it has no pair */
    size_t constant;            /* row of weights: one operand is it; QDQI_NONE */
    bool selects;               /* it is a Where: the mask's numbers stand for others */
    /* it is no sum, but moves the first operand, or bounds it by the second one or the constant */
    bool passes;
    bool is_computed
        [2]; /* by operand: a layer or a reduction made it, so that it is no mask */
};

/* A weight that gets one pair. All layers that use it with the same axis share the
   pair. */
struct qdqi_planned_weight {
    const struct qdqi_tensor *tensor;
    int axis; /* axis of the scales; -1: the weight has one scale */
    /* elements along the axis that share a scale; 0: each channel has one */
    int64_t block;
    const char *layer; /* name of the first layer that uses the weight */
    enum qdqi_format format;
    enum qdq_storage storage;
    enum qdq_weight_method method;
    enum qdq_rounding rounding;
    enum qdq_weight_range range;
    enum qdq_weight_scales scales;
    bool is_reduced; /* whether sums of two products fit 16 bits */
    /* the axis of the inputs where neighbours are together at most 128; -1: each integer is
       limited to -64 to 64 */
    int pair_axis;
    bool is_table; /* rows of its integers are gathered before they are dequantized */
    /* it is an LSTM's: [directions, gates, inputs], with a scale for each gate of each
       direction where there is an axis, else for each direction */
    bool is_gates;
    size_t
        next_axis; /* the next weight of the same tensor, with another axis; QDQI_NONE */
    /* Gathers alone read this tensor, which is the weight or its transpose: they select rows of the
       stored integers; NULL: there is none */
    const struct qdqi_tensor *table;
    bool moves_rows;  /* it is a table, and a Transpose of its rows moves integers */
    int channel_axis; /* axis of the scales that it has without blocks; -1: one scale */
    /* its transpose is stored, which each of its layers dequantizes by itself, with scales of its own */
    bool apart;
    bool is_whole; /* the Gathers of `table` read what is dequantized for the layers */
    /* its scales times that of the activation in row `factor_from`, divided by that of `factor_to`, have few
       binary digits */
    bool has_short_factors;
    size_t factor_from, factor_to;
    bool
        is_moved; /* it has the scale and the zero point of the activation in row `moved_to` */
    size_t moved_to;
};

struct qdq_plan {
    struct qdqi_arena *arena;
    struct qdq_plan_view view;
    struct qdqi_planned_tensor *activations; /* view.n_tensors, in the view's order */
    size_t
        n_conversions; /* of these, behind the others: rows of tensors in a second format */
    struct qdqi_planned_weight *weights; /* view.n_weights */
    /* by layer: the layer reads its inputs without their pairs, though all other
       readers read them from the pairs; NULL: there is no such layer */
    const bool *reads_raw;
    struct qdqi_planned_bias *biases; /* NULL: none */
    size_t n_biases;
    /* biases that stay floating point, and that ONNX Runtime makes int32 of where it runs the
       result; NULL: none */
    struct qdqi_planned_bias *float_biases;
    size_t n_float_biases;
    struct qdq_layer_format format; /* of layers for which no entry states another */
    bool dynamic; /* the runtime quantizes what layers with a weight read */
    enum qdq_decoder_form decoder; /* of the result */
    /* weights that are rounded to the nearest integers have that form, too */
    bool decoder_takes_nearest;
    /* a MatMulNBits has no zero points where all of them are those that it has without any */
    bool leaves_out_middles;
    /* zero points of weights in blocks are not stored where all of them are 0 */
    bool leaves_out_zeros;
    bool short_names; /* names of new tensors do not repeat long names of tensors */
    /* in the order of the nodes, where the lowest numbers of masks are cut off; NULL: they are not */
    const struct qdqi_masked_sum *masked;
    size_t n_masked;
    /* by row of activations: something else than sums in front of a Softmax reads what has this range */
    const bool *read_elsewhere;
    /* a layer inside an If that reads a quantized tensor from outside has a pair there */
    bool pairs_in_branches;
    /* that second moments and the integers that go by them take at their peak, beside what the
       runtime takes; 0: there are none */
    uint64_t moment_bytes;
};

/* Returns the number of activations that get a pair; a tensor of two formats counts once. */
static inline size_t
qdqi_plan_tensors(const struct qdq_plan *plan)
{
    return plan->view.n_tensors - plan->n_conversions;
}

/* Returns whether an activation becomes an 8-bit float. */
bool qdqi_plan_has_float_pairs(const struct qdq_plan *plan);

/* Returns whether the plan has a format that a runtime may lack. Every runtime has the formats of
   the first version of QuantizeLinear. */
bool qdqi_plan_has_optional_format(const struct qdq_plan *plan);

/* The code of a warning that jobs with data leave out. */
#define QDQI_NEEDS_DATA "recipe_needs_data"

/* The code of the warning that no layer is quantized. */
#define QDQI_NOTHING_TO_QUANTIZE "nothing_to_quantize"

#endif
