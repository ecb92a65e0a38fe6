/* SPDX-License-Identifier: Apache-2.0 */
/* One function for each change in tbl/opsets.h. Each knows the old and the new
   schema; the number in its name is the opset that it converts to. */
#include "config.h"
#include "transform/prepare/adapt.h"

#include "numbers/arithmetic/both.h"
#include "files/model/constant.h"

#include <string.h>

/* --- attributes that became inputs ---------------------------------------- */

/* Turns an integer attribute into input i. An absent attribute becomes an empty
   input only if `always`. */
static const char *
ints_to_input(struct qdqi_adapting *a, const char *name, size_t i, bool always)
{
    const char *why = NULL, *suffix;
    const Onnx__AttributeProto *attribute = qdqi_adapt_attribute(a, name, &why);
    if (!attribute || why)
        return why;
    suffix = qdqi_arena_printf(a->r->arena, "_%s", name);
    if ((attribute->n_ints || always) && suffix)
        qdqi_adapt_set_input(
            a, i,
            qdqi_adapt_ints(a, suffix, attribute->ints, attribute->n_ints, false));
    qdqi_adapt_drop_attribute(a, name);
    return NULL;
}

/* For Squeeze, Unsqueeze and the Reduce operators. Absent axes need no input. */
static const char *
axes_to_input(struct qdqi_adapting *a)
{
    if (!qdqi_adapt_needs(a, 1, 1))
        return NULL;
    if (strcmp(a->node->op_type, "Unsqueeze") == 0 &&
        !qdqi_node_attribute(a->node, "axes"))
        a->invalid = "the attribute 'axes'";
    return ints_to_input(a, "axes", 1, false);
}

static const char *
slice_10(struct qdqi_adapting *a)
{
    const char *why;
    if (!qdqi_adapt_needs(a, 1, 1))
        return NULL;
    if (!qdqi_node_attribute(a->node, "starts") ||
        !qdqi_node_attribute(a->node, "ends")) {
        a->invalid = "the attributes 'starts' and 'ends'";
        return NULL;
    }
    if ((why = ints_to_input(a, "starts", 1, true)) ||
        (why = ints_to_input(a, "ends", 2, true)))
        return why;
    return ints_to_input(a, "axes", 3, false);
}

static const char *
split_13(struct qdqi_adapting *a)
{
    return qdqi_adapt_needs(a, 1, 1) ? ints_to_input(a, "split", 1, false) : NULL;
}

/* Equal parts used to follow from the number of outputs; now num_outputs states
   them. */
static const char *
split_18(struct qdqi_adapting *a)
{
    bool sized = a->node->n_input > 1 && *a->node->input[1];
    if (qdqi_adapt_needs(a, 1, 1) && !sized)
        qdqi_adapt_set_int(a, "num_outputs", (int64_t)a->node->n_output);
    return NULL;
}

static const char *
topk_10(struct qdqi_adapting *a)
{
    const char *why = NULL;
    const Onnx__AttributeProto *k = qdqi_adapt_attribute(a, "k", &why);
    if (why || !qdqi_adapt_needs(a, 1, 2))
        return why;
    if (!k || !k->has_i) {
        a->invalid = "the attribute 'k'";
        return NULL;
    }
    qdqi_adapt_set_input(a, 1, qdqi_adapt_ints(a, "_k", &k->i, 1, false));
    qdqi_adapt_drop_attribute(a, "k");
    return NULL;
}

/* Turns a float attribute into input i, of the type of input 0; does nothing when it
   is absent. */
static const char *
float_to_input(struct qdqi_adapting *a, const char *name, size_t i)
{
    const char *why = NULL, *suffix = qdqi_arena_printf(a->r->arena, "_%s", name);
    const Onnx__AttributeProto *attribute = qdqi_adapt_attribute(a, name, &why);
    const struct qdqi_value_type *data = qdqi_adapt_known(a, 0);
    enum qdqi_dtype dtype = data ? data->tensor.dtype : QDQI_UNKNOWN;
    if (!attribute || why)
        return why;
    if (dtype != QDQI_FLOAT32 && dtype != QDQI_FLOAT64 && dtype != QDQI_FLOAT16)
        return "the element type of its data is not known to be floating";
    if (suffix)
        qdqi_adapt_set_input(
            a, i, qdqi_adapt_floats(a, suffix, dtype, &attribute->f, 1, true));
    qdqi_adapt_drop_attribute(a, name);
    return NULL;
}

static const char *
clip_11(struct qdqi_adapting *a)
{
    const char *why;
    if (!qdqi_adapt_needs(a, 1, 1))
        return NULL;
    if ((why = float_to_input(a, "min", 1)))
        return why;
    return float_to_input(a, "max", 2);
}

static const char *
pad_11(struct qdqi_adapting *a)
{
    const Onnx__AttributeProto *value = qdqi_node_attribute(a->node, "value");
    const Onnx__AttributeProto *pads = qdqi_node_attribute(a->node, "pads");
    const char *why = NULL;
    if (!qdqi_adapt_needs(a, 1, 1))
        return NULL;
    if (!pads)
        a->invalid = "the attribute 'pads'";
    if (a->invalid || (why = ints_to_input(a, "pads", 1, true)))
        return why;
    if (value && value->f == 0 &&
        !(value->ref_attr_name && *value->ref_attr_name)) /* the default is used then */
        qdqi_adapt_drop_attribute(a, "value");
    return float_to_input(a, "value", 2);
}

static const char *
dropout_12(struct qdqi_adapting *a)
{
    const char *why = NULL;
    const Onnx__AttributeProto *ratio = qdqi_adapt_attribute(a, "ratio", &why);
    if (why || !qdqi_adapt_needs(a, 1, 1) || !ratio)
        return why;
    qdqi_adapt_set_input(
        a, 1, qdqi_adapt_floats(a, "_ratio", QDQI_FLOAT32, &ratio->f, 1, true));
    qdqi_adapt_drop_attribute(a, "ratio");
    return NULL;
}

/* States the old default axis, 1: the new default is the last axis but one. */
static const char *
dft_20(struct qdqi_adapting *a)
{
    const char *why = NULL;
    const Onnx__AttributeProto *axis = qdqi_adapt_attribute(a, "axis", &why);
    int64_t value = axis && axis->has_i ? axis->i : 1;
    if (why || !qdqi_adapt_needs(a, 1, 1))
        return why;
    qdqi_adapt_set_input(a, 2, qdqi_adapt_ints(a, "_axis", &value, 1, true));
    qdqi_adapt_drop_attribute(a, "axis");
    return NULL;
}

/* --- attributes and outputs that were removed ---------------------------- */

static const char *
batchnorm_9(struct qdqi_adapting *a)
{
    const char *why = NULL;
    qdqi_adapt_attribute(a, "spatial", &why);
    if (!why && qdqi_node_int(a->node, "spatial", 1) == 0)
        return "it normalizes each activation by itself (spatial is 0)";
    qdqi_adapt_drop_attribute(a, "spatial");
    return why;
}

/* More than one output used to mean training, whether or not they are read. */
static const char *
batchnorm_14(struct qdqi_adapting *a)
{
    if (!qdqi_adapt_needs(a, 5, 1))
        return NULL;
    for (size_t i = 1; i < a->node->n_output; i++)
        if (*a->node->output[i])
            return "it has the outputs of training";
    qdqi_adapt_one_output(a);
    return NULL;
}

/* The type of the mask output changes. */
static const char *
dropout_10(struct qdqi_adapting *a)
{
    if (!qdqi_adapt_needs(a, 1, 1))
        return NULL;
    if (a->node->n_output > 1 && !qdqi_adapt_is_idle(a, 1))
        return "its mask is used, which becomes boolean";
    qdqi_adapt_one_output(a);
    return NULL;
}

static const char *
refuse_integers(const struct qdqi_adapting *a)
{
    const struct qdqi_value_type *data = qdqi_adapt_known(a, 0);
    enum qdqi_dtype dtype = data ? data->tensor.dtype : QDQI_UNKNOWN;
    if (dtype == QDQI_UNKNOWN || dtype == QDQI_FLOAT32 || dtype == QDQI_FLOAT64 ||
        dtype == QDQI_FLOAT16 || dtype == QDQI_BFLOAT16)
        return NULL;
    return "it works on integers";
}

static const char *
erf_13(struct qdqi_adapting *a)
{
    return refuse_integers(a);
}

static const char *
reducelog_28(struct qdqi_adapting *a)
{
    return refuse_integers(a);
}

/* Each element of the batch used to be scanned separately. */
static const char *
scan_9(struct qdqi_adapting *a)
{
    (void)a;
    return "it scans with an axis for the batch, which later ones lack";
}

static const char *
scatter_11(struct qdqi_adapting *a)
{
    qdqi_adapt_rename(a, "ScatterElements");
    return NULL;
}

/* --- changed defaults ---------------------------------------------------- */

static const char *
roialign_16(struct qdqi_adapting *a)
{
    qdqi_adapt_set_text(a, "coordinate_transformation_mode", "output_half_pixel");
    return NULL;
}

static bool
has_text(const Onnx__AttributeProto *attribute, const char *text)
{
    return attribute && attribute->s.len == strlen(text) &&
           memcmp(attribute->s.data, text, attribute->s.len) == 0;
}

static const char *
gridsample_20(struct qdqi_adapting *a)
{
    const char *why = NULL;
    const Onnx__AttributeProto *mode = qdqi_adapt_attribute(a, "mode", &why);
    if (has_text(mode, "bilinear"))
        qdqi_adapt_set_text(a, "mode", "linear");
    else if (has_text(mode, "bicubic"))
        qdqi_adapt_set_text(a, "mode", "cubic");
    return why;
}

/*
 * Softmax, LogSoftmax and Hardmax used to view their data as a matrix whose rows join
 * all axes from `axis` on. For the last axis both meanings agree; otherwise the matrix
 * is made explicitly.
 */
static const char *
softmax_13(struct qdqi_adapting *a)
{
    const char *why = NULL;
    const Onnx__AttributeProto *attribute = qdqi_adapt_attribute(a, "axis", &why);
    int64_t axis = attribute && attribute->has_i ? attribute->i : 1;
    if (why || !qdqi_adapt_needs(a, 1, 1))
        return why;
    const struct qdqi_value_type *data = qdqi_adapt_known(a, 0);
    const char *input = a->node->input[0], *output = a->node->output[0];
    qdqi_adapt_set_int(a, "axis", -1);
    if (axis == -1 || (data && data->rank > 0 && axis == data->rank - 1))
        return NULL;
    const char *shape =
        qdqi_adapt_before(a, "Shape", "_shape", (const char *[]){input, NULL}, NULL, 0);
    const char *flat = qdqi_adapt_before(a, "Flatten", "_flat",
                                         (const char *[]){input, NULL}, "axis", axis);
    const char *result = qdqi_adapt_name(a, "_flat_result");
    char **outputs = qdqi_arena_array(a->r->arena, 1, sizeof *outputs);
    if (!shape || !flat || !result || !outputs)
        return NULL;
    qdqi_adapt_after(a, "Reshape", (const char *[]){result, shape, NULL}, output);
    outputs[0] = (char *)(uintptr_t)result;
    a->node->output = outputs;
    qdqi_adapt_set_input(a, 0, flat);
    return NULL;
}

/* Scale and bias used to be given for each group and are now given for each channel:
   each value is repeated for the channels of its group. */
static const char *
per_channel(struct qdqi_adapting *a, const char *groups, const char *column,
            const char *repeat, const char *flat)
{
    if (!groups || !column || !repeat || !flat)
        return NULL;
    const char *rows = qdqi_adapt_before(
        a, "Reshape", "_rows", (const char *[]){groups, column, NULL}, NULL, 0);
    if (!rows)
        return NULL;
    const char *all = qdqi_adapt_before(a, "Expand", "_repeated",
                                        (const char *[]){rows, repeat, NULL}, NULL, 0);
    if (!all)
        return NULL;
    return qdqi_adapt_before(a, "Reshape", "_channels",
                             (const char *[]){all, flat, NULL}, NULL, 0);
}

static const char *
groupnorm_21(struct qdqi_adapting *a)
{
    const char *why = NULL;
    const Onnx__AttributeProto *groups = qdqi_adapt_attribute(a, "num_groups", &why);
    if (why || !qdqi_adapt_needs(a, 3, 1))
        return why;
    if (!groups || !groups->has_i || groups->i < 1) {
        a->invalid = "the attribute 'num_groups'";
        return NULL;
    }
    const char *column = qdqi_adapt_ints(a, "_column", (const int64_t[]){-1, 1}, 2, 0);
    const char *flat = qdqi_adapt_ints(a, "_flat", (const int64_t[]){-1}, 1, false);
    const char *first = qdqi_adapt_ints(a, "_first", (const int64_t[]){1}, 1, false);
    const char *n = qdqi_adapt_ints(a, "_groups", &groups->i, 1, false);
    const char *shape = qdqi_adapt_before(
        a, "Shape", "_shape", (const char *[]){a->node->input[0], NULL}, NULL, 0);
    if (!column || !flat || !first || !n || !shape)
        return NULL;
    const char *channels = qdqi_adapt_before(
        a, "Gather", "_channel_count", (const char *[]){shape, first, NULL}, "axis", 0);
    if (!channels)
        return NULL;
    const char *each = qdqi_adapt_before(a, "Div", "_group_size",
                                         (const char *[]){channels, n, NULL}, NULL, 0);
    if (!each)
        return NULL;
    const char *repeat = qdqi_adapt_before(
        a, "Concat", "_repeat", (const char *[]){first, each, NULL}, "axis", 0);
    for (size_t i = 1; i <= 2; i++)
        qdqi_adapt_set_input(a, i,
                             per_channel(a, a->node->input[i], column, repeat, flat));
    return NULL;
}

/* --- Upsample and Resize -------------------------------------------------- */

static const char *
upsample_9(struct qdqi_adapting *a)
{
    const char *why = NULL;
    const Onnx__AttributeProto *scales = qdqi_adapt_attribute(a, "scales", &why);
    if (why || !qdqi_adapt_needs(a, 1, 1))
        return why;
    if (!scales) {
        a->invalid = "the attribute 'scales'";
        return NULL;
    }
    qdqi_adapt_set_input(a, 1,
                         qdqi_adapt_floats(a, "_scales", QDQI_FLOAT32, scales->floats,
                                           scales->n_floats, false));
    qdqi_adapt_drop_attribute(a, "scales");
    return NULL;
}

static const char *
upsample_10(struct qdqi_adapting *a)
{
    qdqi_adapt_rename(a, "Resize");
    a->was_upsample = true;
    return NULL;
}

/* Reads constant scales. Returns whether they are known, and whether some are below
   1 or above 1. */
static bool
read_scales(const struct qdqi_adapting *a, bool *below, bool *above)
{
    const struct qdqi_tensor *t =
        qdqi_map_get(a->r->source->graph.tensors, a->node->input[1]);
    struct qdqi_constant c;
    *below = *above = false;
    if (!t || !t->is_fixed || qdqi_constant_read(a->r->source, t, &c, NULL) ||
        c.dtype != QDQI_FLOAT32 || (c.strides && !qdqi_constant_is_fill(&c)))
        return false;
    size_t n = qdqi_constant_is_fill(&c) ? c.n > 0 : c.n;
    for (size_t i = 0; i < n; i++) {
        float scale = qdqi_float_at(c.bytes, i);
        *below |= scale < 1;
        *above |= scale > 1;
    }
    return true;
}

/*
 * Nearest elements used to be found without half pixels: rounded down when upsampling,
 * up when downsampling, as ONNX Runtime does and as ONNX's own tests of that opset
 * require.
 */
static const char *
resize_11(struct qdqi_adapting *a)
{
    const char *why = NULL, *nearest = "floor", *roi = "";
    const Onnx__AttributeProto *mode = qdqi_adapt_attribute(a, "mode", &why);
    bool linear = has_text(mode, "linear"), below = false, above = false;
    if (why || !qdqi_adapt_needs(a, 2, 1))
        return why;
    if (!linear && !a->was_upsample) {
        if (!read_scales(a, &below, &above))
            return "its scales are not known to be above or below 1";
        if (below && above)
            return "it shrinks one axis and stretches another";
        nearest = below ? "ceil" : "floor";
    }
    const char *scales = a->node->input[1];
    if (a->r->to < 13) /* the input is optional from opset 13 on */
        roi = qdqi_adapt_floats(a, "_roi", QDQI_FLOAT32, NULL, 0, false);
    qdqi_adapt_set_input(a, 2, scales);
    qdqi_adapt_set_input(a, 1, roi);
    qdqi_adapt_set_text(a, "coordinate_transformation_mode", "asymmetric");
    if (!linear)
        qdqi_adapt_set_text(a, "nearest_mode", nearest);
    return NULL;
}

/* --- QuantizeLinear -------------------------------------------------------- */

/* Opsets 19 to 22 want a scale of the input's type, and so none of int32. */
static const char *
quantize_19(struct qdqi_adapting *a)
{
    enum { OPSET_FREE = 23 };
    if (a->r->to >= OPSET_FREE || !qdqi_adapt_needs(a, 2, 1))
        return NULL;
    const struct qdqi_value_type *known = qdqi_adapt_known(a, 0);
    const struct qdqi_tensor *t =
        qdqi_map_get(a->r->source->graph.tensors, a->node->input[0]);
    if ((known ? known->tensor.dtype : QDQI_UNKNOWN) == QDQI_INT32 ||
        (t && t->dtype == QDQI_INT32))
        qdqi_adapt_set_input(
            a, 0,
            qdqi_adapt_before(a, "Cast", "_float",
                              (const char *[]){a->node->input[0], NULL}, "to",
                              QDQI_FLOAT32));
    return NULL;
}

/* --- the table ------------------------------------------------------------ */

const struct qdqi_opset_row qdqi_opset_rows[] = {
#define OPSET_CHANGE(op, opset, adapter) {op, opset, adapter},
#include "ground/tbl/opsets.h"
#undef OPSET_CHANGE
};

const size_t qdqi_n_opset_rows = sizeof qdqi_opset_rows / sizeof *qdqi_opset_rows;
