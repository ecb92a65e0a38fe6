/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "runtimes/onnxruntime/onnxruntime.h"

#include <string.h>

/* Operators that compute with integers. Operators whose name begins with QLinear do
   so, too. */
static const char *const integer_ops[] = {
    "QGemm",        "MatMulIntegerToFloat",     "MatMulInteger",       "ConvInteger",
    "MatMulNBits",  "DynamicQuantizeMatMul",    "DynamicQuantizeLSTM", "QAttention",
    "QOrderedGelu", "QEmbedLayerNormalization",
};

static bool
is_integer(const struct qdqi_traced_node *node)
{
    for (size_t i = 0; i < sizeof integer_ops / sizeof *integer_ops; i++)
        if (strcmp(integer_ops[i], node->op) == 0)
            return true;
    return strncmp(node->op, "QLinear", 7) == 0;
}

static bool
is_conversion(const struct qdqi_traced_node *node)
{
    return strcmp(node->op, "QuantizeLinear") == 0 ||
           strcmp(node->op, "DequantizeLinear") == 0;
}

static bool
is_float_layer(const struct qdqi_traced_node *node)
{
    return !is_integer(node);
}

/* ONNX Runtime adds these to the name of a node whose layout it changes, or of a MatMul that it
   joins with the Add behind it. */
static size_t
own_length(const char *name)
{
    static const char *const added[] = {"_nchwc", "_token_", "/MatMulAddFusion"};
    for (size_t i = 0; i < sizeof added / sizeof *added; i++) {
        const char *suffix = strstr(name, added[i]);
        if (suffix)
            return (size_t)(suffix - name);
    }
    return strlen(name);
}

const struct qdqi_kernel_names qdqi_onnxruntime_kernels = {
    .is_integer = is_integer,
    .is_conversion = is_conversion,
    .is_float_layer = is_float_layer,
    .own_length = own_length,
    .why_none = "onnxruntime has no integer kernel for it as it is",
};
