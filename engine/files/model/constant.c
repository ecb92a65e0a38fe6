/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/model/constant.h"

#include <string.h>

int64_t
qdqi_tensor_bulk(const Onnx__TensorProto *t, size_t n_bulks)
{
    for (size_t i = 0; i < t->base.n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *f = &t->base.unknown_fields[i];
        int64_t index =
            f->tag == QDQI_BULK_FIELD ? qdqi_bulk_index(f->data, f->len, n_bulks) : -1;
        if (index >= 0)
            return index;
    }
    return -1;
}

bool
qdqi_tensor_refer(struct qdqi_arena *arena, Onnx__TensorProto *t, size_t index)
{
    size_t n = t->base.n_unknown_fields, kept = 0;
    ProtobufCMessageUnknownField *fields =
        qdqi_arena_array(arena, n + 1, sizeof *fields);
    uint8_t *reference = qdqi_arena_alloc(arena, QDQI_BULK_REFERENCE);
    if (!fields || !reference)
        return false;
    for (size_t i = 0; i < n; i++)
        if (t->base.unknown_fields[i].tag != QDQI_BULK_FIELD)
            fields[kept++] = t->base.unknown_fields[i];
    fields[kept++] = (ProtobufCMessageUnknownField){
        QDQI_BULK_FIELD, PROTOBUF_C_WIRE_TYPE_VARINT,
        qdqi_bulk_reference(reference, index), reference};
    t->base.unknown_fields = fields;
    t->base.n_unknown_fields = kept;
    return true;
}

bool
qdqi_count_elements(const int64_t *dims, size_t rank, size_t *ret)
{
    int64_t n = 1;
    bool empty = false;
    for (size_t i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return false;
        empty |= dims[i] == 0;
    }
    for (size_t i = 0; i < rank && !empty; i++)
        if (__builtin_mul_overflow(n, dims[i], &n))
            return false;
    *ret = empty ? 0 : (size_t)n;
    return true;
}

/* Returns the field of TensorProto that holds elements of this type as plain bytes,
   other than raw_data. */
static uint32_t
typed_field(enum qdqi_dtype dtype)
{
    return dtype == QDQI_FLOAT32 ? 4 : dtype == QDQI_FLOAT64 ? 10 : 0;
}

static bool
find_bytes(const struct qdq_model *m, const Onnx__TensorProto *t, const uint8_t **ret,
           size_t *ret_size)
{
    const int64_t index = qdqi_tensor_bulk(t, m->bulks.n);
    if (index >= 0) {
        const struct qdqi_bulk *bulk = &m->bulks.rows[index];
        *ret = m->files[bulk->file].map + bulk->offset;
        *ret_size = bulk->size;
        return bulk->field == 9 ||
               bulk->field == typed_field((enum qdqi_dtype)t->data_type);
    }
    if (t->has_raw_data) {
        *ret = t->raw_data.data;
        *ret_size = t->raw_data.len;
        return true;
    }
    if (t->data_type == QDQI_FLOAT32) {
        *ret = (const uint8_t *)t->float_data;
        *ret_size = t->n_float_data * sizeof *t->float_data;
        return true;
    }
    if (t->data_type == QDQI_FLOAT64) {
        *ret = (const uint8_t *)t->double_data;
        *ret_size = t->n_double_data * sizeof *t->double_data;
        return true;
    }
    return false;
}

enum qdq_code
qdqi_stored_read(const struct qdq_model *m, const Onnx__TensorProto *t,
                 const char *name, struct qdqi_constant *ret, struct qdq_error *err)
{
    struct qdqi_constant c = {
        .dtype = (enum qdqi_dtype)t->data_type, .rank = t->n_dims, .dims = t->dims};
    size_t size = 0, needed;
    size_t element = qdqi_dtype_size(t->data_type);
    if (!qdqi_count_elements(t->dims, t->n_dims, &c.n) ||
        __builtin_mul_overflow(c.n, element, &needed))
        return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_TENSOR, name,
                             "tensor '%s' has an impossible shape", name);
    if (!element || !find_bytes(m, t, &c.bytes, &size))
        return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_TENSOR, name,
                             "tensor '%s' keeps its data in a form that is not read",
                             name);
    if (size != needed)
        return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_TENSOR, name,
                             "tensor '%s' has %zu bytes of data, its shape asks for "
                             "%zu",
                             name, size, needed);
    *ret = c;
    return QDQ_OK;
}

enum qdq_code
qdqi_constant_read(const struct qdq_model *m, const struct qdqi_tensor *tensor,
                   struct qdqi_constant *ret, struct qdq_error *err)
{
    const struct qdqi_view *view = &tensor->view;
    if (!view->stored)
        return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_TENSOR, tensor->name,
                             "tensor '%s' is computed from constants in a way that is "
                             "not read",
                             tensor->name);
    enum qdq_code code = qdqi_stored_read(m, view->stored, tensor->name, ret, err);
    if (code)
        return code;
    ret->rank = view->rank;
    ret->dims = view->dims;
    ret->strides = view->strides;
    if (!qdqi_count_elements(view->dims, view->rank, &ret->n))
        return qdq_error_set(err, QDQ_INTERNAL, QDQ_AT_TENSOR, tensor->name,
                             "a view of '%s' has no shape", tensor->name);
    return QDQ_OK;
}

/* Reads the first n integers of a stored tensor. */
static bool
read_ints(const struct qdq_model *m, const Onnx__TensorProto *t, size_t n, int64_t *ret)
{
    struct qdqi_constant c;
    const void *data = t->int64_data;
    if (!t->has_raw_data && qdqi_tensor_bulk(t, m->bulks.n) < 0) {
        if (t->n_int64_data < n)
            return false;
    } else {
        if (qdqi_stored_read(m, t, "", &c, NULL) || c.n < n)
            return false;
        data = c.bytes;
    }
    if (n)
        memcpy(ret, data, n * sizeof *ret);
    return true;
}

bool
qdqi_constant_ints(const struct qdq_model *m, const struct qdqi_tensor *tensor,
                   int64_t *ret, size_t max, size_t *ret_n)
{
    const struct qdqi_view *v = &tensor->view;
    const struct qdqi_constant c = {.strides = v->strides};
    bool fill = qdqi_constant_is_fill(&c);
    size_t n;
    if (!v->stored || v->stored->data_type != QDQI_INT64 || (v->strides && !fill) ||
        !qdqi_count_elements(v->dims, v->rank, &n) || n > max ||
        !read_ints(m, v->stored, fill ? 1 : n, ret))
        return false;
    for (size_t i = 1; fill && i < n; i++)
        ret[i] = ret[0];
    *ret_n = n;
    return true;
}

/* --- tensors of Constant nodes ------------------------------------------- */

Onnx__TensorProto *
qdqi_constant_new(struct qdqi_arena *arena, enum qdqi_dtype dtype, size_t rank,
                  int64_t n)
{
    Onnx__TensorProto *t = qdqi_arena_alloc(arena, sizeof *t);
    int64_t *dims = qdqi_arena_array(arena, rank, sizeof *dims);
    if (!t || !dims)
        return NULL;
    onnx__tensor_proto__init(t);
    t->has_data_type = 1;
    t->data_type = (int32_t)dtype;
    t->n_dims = rank;
    t->dims = dims;
    for (size_t i = 0; i < rank; i++)
        dims[i] = n;
    return t;
}

static const Onnx__TensorProto *
of_floats(struct qdqi_arena *arena, size_t rank, const float *data, size_t n)
{
    Onnx__TensorProto *t = qdqi_constant_new(arena, QDQI_FLOAT32, rank, (int64_t)n);
    if (t) {
        t->float_data = (float *)(uintptr_t)data;
        t->n_float_data = n;
    }
    return t;
}

static const Onnx__TensorProto *
of_ints(struct qdqi_arena *arena, size_t rank, const int64_t *data, size_t n)
{
    Onnx__TensorProto *t = qdqi_constant_new(arena, QDQI_INT64, rank, (int64_t)n);
    if (t) {
        t->int64_data = (int64_t *)(uintptr_t)data;
        t->n_int64_data = n;
    }
    return t;
}

const Onnx__TensorProto *
qdqi_constant_value(struct qdqi_arena *arena, const Onnx__NodeProto *node)
{
    const Onnx__AttributeProto *a;
    if ((a = qdqi_node_attribute(node, "value")))
        return a->t;
    if ((a = qdqi_node_attribute(node, "value_float")))
        return of_floats(arena, 0, &a->f, 1);
    if ((a = qdqi_node_attribute(node, "value_floats")))
        return of_floats(arena, 1, a->floats, a->n_floats);
    if ((a = qdqi_node_attribute(node, "value_int")))
        return of_ints(arena, 0, &a->i, 1);
    if ((a = qdqi_node_attribute(node, "value_ints")))
        return of_ints(arena, 1, a->ints, a->n_ints);
    return NULL;
}

bool
qdqi_constant_is_overridable(const struct qdq_model *model, const struct qdqi_tensor *t)
{
    const Onnx__TensorProto *stored = t->view.stored;
    if (t->constant != stored && stored->name)
        t = qdqi_map_get(model->graph.tensors, stored->name);
    return t && t->constant == stored && t->is_overridable;
}
