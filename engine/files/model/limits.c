/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "qdq/limits.h"

#include "files/model/constant.h"
#include "files/model/model.h"

#include <inttypes.h>

static bool
is_over(uint64_t value, uint64_t limit)
{
    return limit && value > limit;
}

static enum qdq_code
refuse(const char *tensor, const char *what, const char *limit, uint64_t value,
       uint64_t most, struct qdq_error *err)
{
    return qdq_error_set(err, QDQ_LIMIT_EXCEEDED,
                         tensor ? QDQ_AT_TENSOR : QDQ_AT_NOTHING, tensor,
                         "%s%s%s has %" PRIu64 " %s, over limits.%s (%" PRIu64 ")",
                         tensor ? "tensor '" : "the model", tensor ? tensor : "",
                         tensor ? "'" : "", value, what, limit, most);
}

/* Returns the nesting depth of a graph. Outer graphs come before those nested in
   them. */
static uint64_t
depth_of(const struct qdqi_graph *graph, size_t scope)
{
    uint64_t depth = 1;
    for (; scope; scope = graph->scopes[scope].outer)
        depth++;
    return depth;
}

static enum qdq_code
check_rank(const struct qdq_limits *limits, const char *name, uint64_t rank,
           struct qdq_error *err)
{
    if (!is_over(rank, limits->tensor_rank))
        return QDQ_OK;
    return refuse(name ? name : "", "dimensions", "tensor_rank", rank,
                  limits->tensor_rank, err);
}

/* Checks a stored tensor. A shape that overflows or a type of unknown width passes
   here: it is refused where the tensor is read. */
static enum qdq_code
check_stored(const struct qdq_limits *limits, const char *name,
             const Onnx__TensorProto *t, struct qdq_error *err)
{
    size_t n = 0;
    enum qdq_code code = check_rank(limits, name, t->n_dims, err);
    if (code || !qdqi_count_elements(t->dims, t->n_dims, &n))
        return code;
    uint64_t known = qdqi_dtype_bits(t->data_type), bits = known ? known : 4;
    uint64_t bytes = n > UINT64_MAX / 128 ? UINT64_MAX : (n * bits + 7) / 8;
    if (!is_over(bytes, limits->tensor_bytes))
        return QDQ_OK;
    return refuse(name ? name : "", "bytes", "tensor_bytes", bytes,
                  limits->tensor_bytes, err);
}

static enum qdq_code
check_values(const struct qdq_limits *limits, Onnx__ValueInfoProto *const *values,
             size_t n, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < n && !code; i++) {
        const Onnx__TypeProto *type = values[i]->type;
        if (type && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE &&
            type->tensor_type->shape)
            code = check_rank(limits, values[i]->name, type->tensor_type->shape->n_dim,
                              err);
    }
    return code;
}

static enum qdq_code
check_node(const struct qdq_limits *limits, const struct qdqi_node *node,
           struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < node->proto->n_attribute && !code; i++) {
        const Onnx__AttributeProto *a = node->proto->attribute[i];
        if (a->t)
            code = check_stored(
                limits, node->proto->n_output ? node->proto->output[0] : node->name,
                a->t, err);
        for (size_t k = 0; k < a->n_tensors && !code; k++)
            code = check_stored(limits, node->name, a->tensors[k], err);
    }
    return code;
}

static enum qdq_code
check_scope(const struct qdq_limits *limits, const struct qdqi_graph *graph,
            size_t scope, struct qdq_error *err)
{
    const Onnx__GraphProto *proto = graph->scopes[scope].proto;
    uint64_t depth = depth_of(graph, scope);
    if (is_over(depth, limits->graph_depth))
        return refuse(NULL, "graphs in one another", "graph_depth", depth,
                      limits->graph_depth, err);
    enum qdq_code code = check_values(limits, proto->input, proto->n_input, err);
    if (!code)
        code = check_values(limits, proto->output, proto->n_output, err);
    for (size_t i = 0; i < proto->n_initializer && !code; i++)
        code = check_stored(limits, proto->initializer[i]->name, proto->initializer[i],
                            err);
    return code;
}

enum qdq_code
qdq_limits_check(const struct qdq_limits *limits, const struct qdq_model *model,
                 struct qdq_error *err)
{
    const struct qdqi_graph *graph = &model->graph;
    enum qdq_code code = QDQ_OK;
    if (is_over(graph->n_nodes, limits->graph_nodes))
        return refuse(NULL, "nodes", "graph_nodes", graph->n_nodes, limits->graph_nodes,
                      err);
    for (size_t i = 0; i < graph->n_scopes && !code; i++)
        code = check_scope(limits, graph, i, err);
    for (size_t i = 0; i < graph->n_nodes && !code; i++)
        code = check_node(limits, &graph->nodes[i], err);
    return code;
}
