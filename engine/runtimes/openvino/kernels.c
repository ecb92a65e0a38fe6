/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "runtimes/openvino/library.h"

#include <string.h>
#include <strings.h>

/* Operators that multiply by a weight. */
static const char *const products[] = {"Convolution",    "GroupConvolution",
                                       "Deconvolution",  "GroupDeconvolution",
                                       "FullyConnected", "MatMul"};

/* Returns whether the type in a kernel's name is an integer: the name is "jit_avx2_1x1_I8", or
   "brgconv_avx512_amx_i8" where the activations have signs and the processor has AMX. */
static bool
has_integer_type(const char *kernel)
{
    const char *type = strrchr(kernel, '_');
    return type && (strcasecmp(type, "_I8") == 0 || strcasecmp(type, "_U8") == 0);
}

/* Reorders change the layout of a tensor and compute nothing. */
static bool
is_integer(const struct qdqi_traced_node *node)
{
    return has_integer_type(node->provider) && strcmp(node->op, "Reorder") != 0;
}

static bool
is_conversion(const struct qdqi_traced_node *node)
{
    return strcmp(node->op, "FakeQuantize") == 0;
}

static bool
is_float_layer(const struct qdqi_traced_node *node)
{
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        if (strcmp(products[i], node->op) == 0)
            return !has_integer_type(node->provider);
    return false;
}

/* OpenVINO adds a suffix to the name of a product whose bias it takes out. */
static size_t
own_length(const char *name)
{
    static const char suffix[] = "/WithoutBiases";
    const size_t n = strlen(name), added = sizeof suffix - 1;
    return n > added && strcmp(name + n - added, suffix) == 0 ? n - added : n;
}

const struct qdqi_kernel_names qdqi_openvino_kernels = {
    .is_integer = is_integer,
    .is_conversion = is_conversion,
    .is_float_layer = is_float_layer,
    .own_length = own_length,
    .why_none = "OpenVINO has no integer kernel for it as it is",
};
