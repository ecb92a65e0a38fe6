/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/model/model.h"

#include <stdlib.h>
#include <string.h>

static enum qdq_code
fill_shape(struct qdq_model *m, const Onnx__TypeProto *type, struct qdq_value *value,
           struct qdq_error *err)
{
    value->dtype = "";
    if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return QDQ_OK;
    value->dtype = qdqi_dtype_name(type->tensor_type->elem_type);
    const Onnx__TensorShapeProto *shape = type->tensor_type->shape;
    if (!shape)
        return QDQ_OK;
    struct qdq_dim *dims = qdqi_arena_array(m->arena, shape->n_dim, sizeof *dims);
    if (!dims)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < shape->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *d = shape->dim[i];
        bool fixed =
            d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
            d->dim_value >= 0;
        bool symbol =
            d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        dims[i] =
            (struct qdq_dim){fixed ? d->dim_value : -1, symbol ? d->dim_param : NULL};
    }
    value->has_shape = true;
    value->rank = shape->n_dim;
    value->dims = dims;
    return QDQ_OK;
}

/* Lists graph inputs or outputs. `skip_constants` leaves out initializers, which
   files up to IR version 3 list as inputs. */
static enum qdq_code
fill_values(struct qdq_model *m, Onnx__ValueInfoProto **protos, size_t n,
            bool skip_constants, const struct qdq_value **ret, size_t *ret_n,
            struct qdq_error *err)
{
    struct qdq_value *values = qdqi_arena_array(m->arena, n, sizeof *values);
    if (!values)
        return qdqi_no_memory(err);
    size_t filled = 0;
    for (size_t i = 0; i < n; i++) {
        const struct qdqi_tensor *t = qdqi_map_get(m->graph.tensors, protos[i]->name);
        if (skip_constants && t->constant)
            continue;
        values[filled].name = protos[i]->name;
        enum qdq_code code = fill_shape(m, protos[i]->type, &values[filled++], err);
        if (code)
            return code;
    }
    *ret = values;
    *ret_n = filled;
    return QDQ_OK;
}

static int
compare_counts(const void *a, const void *b)
{
    const struct qdq_op_count *x = a, *y = b;
    return strcmp(x->op, y->op);
}

static enum qdq_code
fill_ops(struct qdq_model *m, struct qdq_error *err)
{
    struct qdqi_map *by_op = qdqi_map_new(m->arena);
    struct qdq_op_count *counts =
        qdqi_arena_array(m->arena, m->graph.n_nodes, sizeof *counts);
    if (!by_op || !counts)
        return qdqi_no_memory(err);
    size_t n = 0;
    for (size_t i = 0; i < m->graph.n_nodes; i++) {
        const Onnx__NodeProto *p = m->graph.nodes[i].proto;
        const char *op =
            qdqi_is_onnx_domain(p->domain)
                ? p->op_type
                : qdqi_arena_printf(m->arena, "%s:%s", p->domain, p->op_type);
        struct qdq_op_count *count = op ? qdqi_map_get(by_op, op) : NULL;
        if (!count) {
            count = &counts[n++];
            count->op = op;
            if (!op || !qdqi_map_put(by_op, op, count))
                return qdqi_no_memory(err);
        }
        count->count++;
    }
    qsort(counts, n, sizeof *counts, compare_counts);
    m->info.ops = counts;
    m->info.n_ops = n;
    return QDQ_OK;
}

enum qdq_code
qdqi_model_fill_info(struct qdq_model *m, struct qdq_error *err)
{
    const Onnx__GraphProto *g = m->proto->graph;
    struct qdq_model_info *info = &m->info;
    info->name = g->name ? g->name : "";
    info->producer = m->proto->producer_name ? m->proto->producer_name : "";
    info->ir_version = m->proto->ir_version;
    info->opset = qdqi_model_opset(m->proto);
    info->size = m->files[0].size;
    for (size_t i = 1; i < m->n_files; i++)
        info->external_size += m->files[i].size;
    info->n_nodes = g->n_node;
    info->n_initializers = g->n_initializer;
    enum qdq_code code;
    if ((code = fill_values(m, g->input, g->n_input, true, &info->inputs,
                            &info->n_inputs, err)) ||
        (code = fill_values(m, g->output, g->n_output, false, &info->outputs,
                            &info->n_outputs, err)))
        return code;
    return fill_ops(m, err);
}

void
qdqi_model_forget_piece(const struct qdq_model *m, const uint8_t *piece, size_t size)
{
    for (size_t i = 0; i < m->n_files; i++)
        qdqi_mapped_forget(&m->files[i], piece, size);
}

void
qdqi_model_forget(const struct qdq_model *m)
{
    for (size_t i = 0; i < m->n_files; i++)
        qdqi_mapped_forget(&m->files[i], m->files[i].map, m->files[i].size);
}
