/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "model/constant.h"

#include <string.h>

/* The bulk that stands for the tensor's data, or NULL when the skeleton has it. */
static const struct qdqi_bulk *
tensor_bulk(const struct qdq_model *m, const Onnx__TensorProto *t)
{
    for (size_t i = 0; i < t->base.n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *f = &t->base.unknown_fields[i];
        int64_t index = f->tag == QDQI_BULK_FIELD
                            ? qdqi_bulk_index(f->data, f->len, m->bulks.n)
                            : -1;
        if (index >= 0)
            return &m->bulks.rows[index];
    }
    return NULL;
}

static bool
count_elements(const Onnx__TensorProto *t, size_t *ret)
{
    size_t n = 1;
    for (size_t i = 0; i < t->n_dims; i++)
        if (t->dims[i] < 0 || __builtin_mul_overflow(n, (size_t)t->dims[i], &n))
            return false;
    *ret = n;
    return true;
}

/* Field of TensorProto that holds this type's elements as plain bytes, besides raw. */
static uint32_t
typed_field(enum qdqi_dtype dtype)
{
    return dtype == QDQI_FLOAT32 ? 4 : dtype == QDQI_FLOAT64 ? 10 : 0;
}

static bool
find_bytes(const struct qdq_model *m, const Onnx__TensorProto *t, const uint8_t **ret,
           size_t *ret_size)
{
    const struct qdqi_bulk *bulk = tensor_bulk(m, t);
    if (bulk) {
        *ret = m->map + bulk->offset;
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
qdqi_constant_read(const struct qdq_model *m, const Onnx__TensorProto *t,
                   const char *name, struct qdqi_constant *ret, struct qdq_error *err)
{
    struct qdqi_constant c = {
        .dtype = (enum qdqi_dtype)t->data_type, .rank = t->n_dims, .dims = t->dims};
    size_t size = 0, needed;
    size_t element = qdqi_dtype_size(t->data_type);
    if (!count_elements(t, &c.n) || __builtin_mul_overflow(c.n, element, &needed))
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

bool
qdqi_constant_ints(const struct qdq_model *m, const Onnx__TensorProto *t, int64_t *ret,
                   size_t max, size_t *ret_n)
{
    struct qdqi_constant c;
    if (t->data_type != QDQI_INT64)
        return false;
    if (!t->has_raw_data && !tensor_bulk(m, t)) {
        if (t->n_int64_data > max)
            return false;
        if (t->n_int64_data)
            memcpy(ret, t->int64_data, t->n_int64_data * sizeof *ret);
        *ret_n = t->n_int64_data;
        return true;
    }
    if (qdqi_constant_read(m, t, "", &c, NULL) || c.n > max)
        return false;
    memcpy(ret, c.bytes, c.n * sizeof *ret);
    *ret_n = c.n;
    return true;
}
