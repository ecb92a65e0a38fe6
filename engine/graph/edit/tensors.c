/* SPDX-License-Identifier: Apache-2.0 */
/* Initializers that an edit adds or replaces, operator set imports and metadata. */
#include "config.h"
#include "graph/edit/state.h"

#include "files/model/constant.h"

#include <string.h>

enum { RAW_DATA = 9 }; /* the field's number in TensorProto */

/* --- initializers --------------------------------------------------------- */

/* Adds an initializer without data. Returns NULL when out of memory. */
static Onnx__TensorProto *
add_tensor(struct qdqi_edit *e, const char *name, enum qdqi_dtype dtype, size_t rank,
           const int64_t *dims)
{
    Onnx__TensorProto *t = qdqi_edit_array(e, 1, sizeof *t);
    int64_t *own = qdqi_arena_copy(e->arena, dims, rank, sizeof *own);
    struct qdqi_added *added = qdqi_edit_array(e, 1, sizeof *added);
    e->out_of_memory |= !own;
    if (!t || !own || !added)
        return NULL;
    onnx__tensor_proto__init(t);
    t->name = qdqi_edit_text(e, name);
    t->has_data_type = 1;
    t->data_type = (int32_t)dtype;
    t->dims = own;
    t->n_dims = rank;
    added->tensor = t;
    qdqi_edit_append(e, &e->initializers, added);
    return t;
}

void
qdqi_edit_add_initializer(struct qdqi_edit *e, const char *name, enum qdqi_dtype dtype,
                          size_t n, bool scalar, const void *data)
{
    const int64_t dims[] = {(int64_t)n};
    qdqi_edit_add_tensor(e, name, dtype, scalar ? 0 : 1, dims, data,
                         n * qdqi_dtype_size((int)dtype));
}

void
qdqi_edit_add_tensor(struct qdqi_edit *e, const char *name, enum qdqi_dtype dtype,
                     size_t rank, const int64_t *dims, const void *data, size_t size)
{
    Onnx__TensorProto *t = e ? add_tensor(e, name, dtype, rank, dims) : NULL;
    if (!t)
        return;
    t->has_raw_data = 1;
    t->raw_data.data = (uint8_t *)(uintptr_t)data;
    t->raw_data.len = size;
}

/* Makes a tensor's data bulk data of the edit. */
static void
set_made(struct qdqi_edit *e, Onnx__TensorProto *t, uint64_t size,
         const struct qdqi_made *made)
{
    struct qdqi_bulk *bulk = qdqi_edit_array(e, 1, sizeof *bulk);
    if (!bulk || !qdqi_tensor_refer(e->arena, t, e->source->bulks.n + e->bulks.n)) {
        e->out_of_memory = true;
        return;
    }
    *bulk = (struct qdqi_bulk){.size = size, .field = RAW_DATA, .made = made};
    qdqi_edit_append(e, &e->bulks, bulk);
}

void
qdqi_edit_add_made(struct qdqi_edit *e, const char *name, enum qdqi_dtype dtype,
                   size_t rank, const int64_t *dims, uint64_t size,
                   const struct qdqi_made *made)
{
    Onnx__TensorProto *t = e ? add_tensor(e, name, dtype, rank, dims) : NULL;
    if (t)
        set_made(e, t, size, made);
}

/* Replaces the tensor of a Constant. */
static void
set_value(struct qdqi_edit *e, size_t i, Onnx__TensorProto *t)
{
    Onnx__NodeProto *node = qdqi_edit_change_node(e, i);
    Onnx__AttributeProto **all =
        node ? qdqi_edit_array(e, node->n_attribute, sizeof *all) : NULL;
    Onnx__AttributeProto *value = qdqi_edit_array(e, 1, sizeof *value);
    if (!all || !value)
        return;
    for (size_t k = 0; k < node->n_attribute; k++) {
        all[k] = node->attribute[k];
        if (!all[k]->name || strcmp(all[k]->name, "value") != 0)
            continue;
        *value = *all[k];
        value->t = t;
        all[k] = value;
    }
    node->attribute = all;
}

void
qdqi_edit_set_made(struct qdqi_edit *e, const struct qdqi_tensor *tensor, uint64_t size,
                   const struct qdqi_made *made)
{
    Onnx__TensorProto *t = e ? qdqi_edit_array(e, 1, sizeof *t) : NULL;
    if (!t)
        return;
    *t = *tensor->constant;
    t->n_float_data = t->n_double_data = t->n_int32_data = t->n_int64_data = 0;
    t->n_uint64_data = 0;
    t->has_raw_data = 0;
    set_made(e, t, size, made);
    if (tensor->producer >= 0)
        set_value(e, (size_t)tensor->producer, t);
    else if (!qdqi_map_put(e->replaced, tensor->name, t))
        e->out_of_memory = true;
}

/* --- imports and metadata ------------------------------------------------- */

void
qdqi_edit_import(struct qdqi_edit *e, const char *domain, int64_t version)
{
    Onnx__OperatorSetIdProto *id = e ? qdqi_edit_array(e, 1, sizeof *id) : NULL;
    if (!id)
        return;
    onnx__operator_set_id_proto__init(id);
    id->domain = qdqi_edit_text(e, domain);
    id->has_version = 1;
    id->version = version;
    qdqi_edit_append(e, &e->imports, id);
}

void
qdqi_edit_metadata(struct qdqi_edit *e, const char *key, const char *value)
{
    Onnx__StringStringEntryProto *entry =
        e ? qdqi_edit_array(e, 1, sizeof *entry) : NULL;
    if (!entry)
        return;
    onnx__string_string_entry_proto__init(entry);
    entry->key = qdqi_edit_text(e, key);
    entry->value = qdqi_edit_text(e, value);
    qdqi_edit_append(e, &e->metadata, entry);
}
