/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "run/session/float_weights.h"

#include "files/model/constant.h"
#include "ground/base/map.h"
#include "numbers/arithmetic/format.h"

#include <math.h>
#include <string.h>

#define MAX_BYTES (UINT64_C(1) << 30) /* of all floats */

enum { RAW_DATA = 9, MAX_DEPTH = 2 };

/* Functions here do not report a failed allocation: the arena remembers it, and
   qdqi_float_weights() checks it at its end. */
struct floating {
    const struct qdqi_runnable *model;
    struct qdqi_arena *arena;
    struct qdqi_map *tensors; /* initializers of all graphs, by name */
    struct qdqi_map *makers;  /* DequantizeLinear nodes, by their output */
    struct qdqi_map *read;    /* tensors that are replaced; keys are their names */
    uint64_t bytes;           /* of the floats */
    size_t n;                 /* nodes that are replaced */
};

/* --- stored numbers ------------------------------------------------------------ */

struct numbers {
    float *values;
    size_t n, rank;
    const int64_t *dims;
};

static bool
find_bytes(const struct floating *f, const Onnx__TensorProto *t, const uint8_t **ret,
           uint64_t *ret_size)
{
    const int64_t index = qdqi_tensor_bulk(t, f->model->bulks.n);
    if (index >= 0) {
        const struct qdqi_bulk *bulk = &f->model->bulks.rows[index];
        if (bulk->made || bulk->field != RAW_DATA || bulk->file >= f->model->n_files)
            return false;
        *ret = f->model->files[bulk->file].map + bulk->offset;
        *ret_size = bulk->size;
        return f->model->files[bulk->file].map != NULL;
    }
    *ret = t->raw_data.data;
    *ret_size = t->raw_data.len;
    return t->has_raw_data;
}

/* Returns a format whose elements have the type, or NULL. */
static const struct qdqi_format_row *
float_format(int dtype)
{
    for (int i = 0; i < QDQI_N_FORMATS; i++) {
        const struct qdqi_format_row *row = qdqi_format_row(i);
        if ((int)row->dtype == dtype && row->fraction_bits > 0)
            return row;
    }
    return NULL;
}

/* Returns code i of a tensor whose elements follow each other without gaps, the first one in
   the lowest bits. */
static unsigned
code_at(const uint8_t *bytes, size_t i, unsigned bits)
{
    const size_t bit = i * bits;
    unsigned all = bytes[bit / 8];
    if (bit % 8 + bits > 8)
        all |= (unsigned)bytes[bit / 8 + 1] << 8;
    return all >> (bit % 8) & ((1U << bits) - 1);
}

static float
number_of(const struct qdqi_format_row *row, unsigned code)
{
    if (row->dtype == QDQI_FLOAT8E4M3FN && (code & 0x7f) == 0x7f)
        return NAN;
    return qdqi_float_number(code, row->bits, row->fraction_bits, row->min_exponent);
}

/* Returns the number that a code of float8e8m0 stands for. */
static float
power_of(uint8_t code)
{
    return code == 0xff ? NAN : ldexpf(1, code - 127);
}

static bool
read_stored(const struct floating *f, const Onnx__TensorProto *t, struct numbers *ret)
{
    const struct qdqi_format_row *row = float_format(t->data_type);
    const bool powers = t->data_type == QDQI_FLOAT8E8M0;
    const unsigned bits = row ? (unsigned)row->bits : powers ? 8 : 32;
    const uint8_t *bytes;
    uint64_t size;
    *ret = (struct numbers){.rank = t->n_dims, .dims = t->dims};
    if ((!row && !powers && t->data_type != QDQI_FLOAT32) ||
        !qdqi_count_elements(t->dims, t->n_dims, &ret->n) || ret->n > MAX_BYTES ||
        !find_bytes(f, t, &bytes, &size) || size != (ret->n * bits + 7) / 8)
        return false;
    ret->values = qdqi_arena_array(f->arena, ret->n, sizeof *ret->values);
    for (size_t i = 0; ret->values && i < ret->n; i++)
        ret->values[i] = bits == 32 ? qdqi_float_at(bytes, i)
                         : powers   ? power_of(bytes[i])
                                    : number_of(row, code_at(bytes, i, bits));
    return ret->values != NULL;
}

/* --- DequantizeLinear ------------------------------------------------------------ */

static bool has_floats(const struct floating *f, const Onnx__NodeProto *node, int depth,
                       struct numbers *ret);

/* Reads an initializer, or scales that another node makes of initializers. */
static bool
read_named(const struct floating *f, const char *name, int depth, struct numbers *ret)
{
    const Onnx__TensorProto *t = qdqi_map_get(f->tensors, name);
    const Onnx__NodeProto *maker = t ? NULL : qdqi_map_get(f->makers, name);
    return t ? read_stored(f, t, ret) : maker && has_floats(f, maker, depth + 1, ret);
}

static bool
has_zero(const Onnx__NodeProto *node)
{
    return node->n_input > 2 && *node->input[2];
}

/* Returns whether the zero points, if there are any, are zeros, as floats must have them. */
static bool
is_unshifted(const struct floating *f, const Onnx__NodeProto *node)
{
    const Onnx__TensorProto *t =
        has_zero(node) ? qdqi_map_get(f->tensors, node->input[2]) : NULL;
    const uint8_t *bytes;
    uint64_t size;
    if (!has_zero(node))
        return true;
    if (!t || !find_bytes(f, t, &bytes, &size))
        return false;
    for (uint64_t i = 0; i < size; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

/* The elements that share a scale: x is [outer][length][inner], scales are
   [outer][scales][inner], or one for each of length, or one. */
struct layout {
    size_t outer, length, inner, scales, block;
};

static bool
find_layout(const Onnx__NodeProto *node, const struct numbers *x,
            const struct numbers *scale, struct layout *ret)
{
    const int64_t rank = (int64_t)x->rank;
    const int64_t block = qdqi_node_int(node, "block_size", 0);
    int64_t axis = qdqi_node_int(node, "axis", 1);
    *ret = (struct layout){.outer = 1, .length = 1, .inner = 1, .scales = 0};
    if (scale->n == 1)
        return true;
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank || block < 0)
        return false;
    for (int64_t i = 0; i < rank; i++)
        *(i < axis    ? &ret->outer
          : i == axis ? &ret->length
                      : &ret->inner) *= (size_t)x->dims[i];
    ret->block = block > 0 ? (size_t)block : 1;
    ret->scales = (ret->length + ret->block - 1) / ret->block;
    if (block == 0)
        return scale->n == ret->length;
    return scale->rank == x->rank && scale->n == ret->outer * ret->scales * ret->inner;
}

static size_t
scale_of(const struct layout *l, size_t element, bool in_blocks)
{
    const size_t inner = element % l->inner, k = element / l->inner % l->length;
    if (l->scales == 0)
        return 0;
    if (!in_blocks)
        return k;
    return (element / l->inner / l->length * l->scales + k / l->block) * l->inner +
           inner;
}

/* Computes what the node makes. Returns false where it is no float32 of stored floats. */
static bool
has_floats(const struct floating *f, const Onnx__NodeProto *node, int depth,
           struct numbers *ret)
{
    struct numbers x, scale;
    struct layout layout;
    const int64_t type = qdqi_node_int(node, "output_dtype", QDQI_FLOAT32);
    if (depth > MAX_DEPTH || (type != 0 && type != QDQI_FLOAT32) ||
        !is_unshifted(f, node) || !read_named(f, node->input[0], depth, &x) ||
        !read_named(f, node->input[1], depth, &scale) ||
        !find_layout(node, &x, &scale, &layout))
        return false;
    const bool in_blocks = qdqi_node_int(node, "block_size", 0) > 0;
    for (size_t i = 0; i < x.n; i++)
        x.values[i] *= scale.values[scale_of(&layout, i, in_blocks)];
    *ret = x;
    return true;
}

/* Returns whether the runtime lacks a kernel for the node's types. */
static bool
is_lacking(const struct floating *f, const Onnx__NodeProto *node)
{
    const Onnx__TensorProto *x = qdqi_map_get(f->tensors, node->input[0]);
    const Onnx__TensorProto *scale = qdqi_map_get(f->tensors, node->input[1]);
    return x && (x->data_type == QDQI_FLOAT4E2M1 || x->data_type == QDQI_FLOAT6E2M3 ||
                 (scale && scale->data_type == QDQI_FLOAT8E8M0));
}

/* Returns the floats as an initializer with the name of the node's output, or NULL where the
   node stays. */
static Onnx__TensorProto *
replace(struct floating *f, const Onnx__NodeProto *node)
{
    struct numbers made;
    if (!qdqi_node_is(node, "DequantizeLinear") || node->n_input < 2 ||
        node->n_output != 1 || !is_lacking(f, node) || !has_floats(f, node, 0, &made) ||
        (f->bytes += made.n * sizeof *made.values) > MAX_BYTES)
        return NULL;
    Onnx__TensorProto *t = qdqi_arena_alloc(f->arena, sizeof *t);
    if (!t)
        return NULL;
    *t = (Onnx__TensorProto)ONNX__TENSOR_PROTO__INIT;
    t->name = node->output[0];
    t->has_data_type = 1;
    t->data_type = QDQI_FLOAT32;
    t->n_dims = made.rank;
    t->dims = (int64_t *)(uintptr_t)made.dims;
    t->has_raw_data = 1;
    t->raw_data.data = (uint8_t *)made.values;
    t->raw_data.len = made.n * sizeof *made.values;
    for (size_t i = 0; i < node->n_input; i++)
        if (qdqi_map_get(f->tensors, node->input[i]))
            (void)!qdqi_map_put(f->read, node->input[i], t);
    f->n++;
    return t;
}

/* --- graphs ------------------------------------------------------------------------ */

/* Lists the initializers and the nodes of a graph and of all inside. */
static void
collect(struct floating *f, const Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_initializer; i++)
        if (g->initializer[i]->name)
            (void)!qdqi_map_put(f->tensors, g->initializer[i]->name, g->initializer[i]);
    for (size_t i = 0; i < g->n_node; i++) {
        Onnx__NodeProto *node = g->node[i];
        if (qdqi_node_is(node, "DequantizeLinear") && node->n_input > 1 &&
            node->n_output == 1)
            (void)!qdqi_map_put(f->makers, node->output[0], node);
        for (size_t k = 0; k < node->n_attribute; k++)
            if (node->attribute[k]->g)
                collect(f, node->attribute[k]->g);
    }
}

static Onnx__GraphProto *float_graph(struct floating *f,
                                     const Onnx__GraphProto *source);

static Onnx__NodeProto *
float_bodies(struct floating *f, Onnx__NodeProto *source)
{
    bool any = false;
    for (size_t i = 0; i < source->n_attribute; i++)
        any |= source->attribute[i]->g != NULL;
    if (!any)
        return source;
    Onnx__NodeProto *node = qdqi_arena_copy(f->arena, source, 1, sizeof *source);
    Onnx__AttributeProto **all =
        qdqi_arena_array(f->arena, source->n_attribute, sizeof *all);
    for (size_t i = 0; node && all && i < source->n_attribute; i++) {
        all[i] = source->attribute[i];
        Onnx__AttributeProto *a =
            all[i]->g ? qdqi_arena_copy(f->arena, all[i], 1, sizeof *a) : NULL;
        if (!a)
            continue;
        a->g = float_graph(f, a->g);
        all[i] = a;
    }
    if (!node || !all)
        return source;
    node->attribute = all;
    return node;
}

static Onnx__GraphProto *
float_graph(struct floating *f, const Onnx__GraphProto *source)
{
    Onnx__GraphProto *g = qdqi_arena_copy(f->arena, source, 1, sizeof *source);
    Onnx__NodeProto **nodes = qdqi_arena_array(f->arena, source->n_node, sizeof *nodes);
    Onnx__TensorProto **tensors = qdqi_arena_array(
        f->arena, source->n_initializer + source->n_node, sizeof *tensors);
    size_t n_nodes = 0, n_made = 0, n = 0;
    Onnx__TensorProto **made = qdqi_arena_array(f->arena, source->n_node, sizeof *made);
    if (!g || !nodes || !tensors || !made)
        return g;
    for (size_t i = 0; i < source->n_node; i++) {
        Onnx__TensorProto *t = replace(f, source->node[i]);
        if (t)
            made[n_made++] = t;
        else
            nodes[n_nodes++] = float_bodies(f, source->node[i]);
    }
    for (size_t i = 0; i < source->n_initializer; i++)
        if (!source->initializer[i]->name ||
            !qdqi_map_get(f->read, source->initializer[i]->name))
            tensors[n++] = source->initializer[i];
    for (size_t i = 0; i < n_made; i++)
        tensors[n++] = made[i];
    g->node = nodes;
    g->n_node = n_nodes;
    g->initializer = tensors;
    g->n_initializer = n;
    return g;
}

/* Returns whether a type of the kind is among the stored ones: most models have none. */
static bool
has_lacking(const Onnx__GraphProto *g)
{
    bool any = false;
    for (size_t i = 0; i < g->n_initializer && !any; i++) {
        const int type = g->initializer[i]->data_type;
        any = type == QDQI_FLOAT4E2M1 || type == QDQI_FLOAT6E2M3 ||
              type == QDQI_FLOAT8E8M0;
    }
    for (size_t i = 0; i < g->n_node && !any; i++)
        for (size_t k = 0; k < g->node[i]->n_attribute && !any; k++)
            any =
                g->node[i]->attribute[k]->g && has_lacking(g->node[i]->attribute[k]->g);
    return any;
}

enum qdq_code
qdqi_float_weights(const struct qdqi_runnable *model, struct qdqi_arena *arena,
                   const Onnx__ModelProto **ret, struct qdq_error *err)
{
    struct floating f = {.model = model, .arena = arena};
    *ret = model->proto;
    if (!has_lacking(model->proto->graph))
        return QDQ_OK;
    f.tensors = qdqi_map_new(arena);
    f.makers = qdqi_map_new(arena);
    f.read = qdqi_map_new(arena);
    Onnx__ModelProto *copy = qdqi_arena_copy(arena, model->proto, 1, sizeof *copy);
    if (!f.tensors || !f.makers || !f.read || !copy)
        return qdqi_no_memory(err);
    collect(&f, model->proto->graph);
    copy->graph = float_graph(&f, model->proto->graph);
    if (qdqi_arena_exhausted(arena))
        return qdqi_no_memory(err);
    *ret = f.n > 0 ? copy : model->proto;
    return QDQ_OK;
}
