/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "runtimes/common/kernel_names.h"

#include <string.h>

bool
qdqi_node_is_of(const struct qdqi_kernel_names *names,
                const struct qdqi_traced_node *node, enum qdq_node_kind kind)
{
    if (node->kind != QDQ_NODE_BY_NAME)
        return node->kind == kind;
    return kind == QDQ_NODE_INTEGER       ? names->is_integer(node)
           : kind == QDQ_NODE_CONVERSION  ? names->is_conversion(node)
           : kind == QDQ_NODE_FLOAT_LAYER ? names->is_float_layer(node)
                                          : false;
}

static bool
is_unknown(const struct qdqi_traced_node *node)
{
    (void)node;
    return false;
}

const struct qdqi_kernel_names qdqi_told_kernels = {
    .is_integer = is_unknown,
    .is_conversion = is_unknown,
    .is_float_layer = is_unknown,
    .own_length = strlen,
    .why_none = "the runtime has no integer kernel for it as it is",
};
