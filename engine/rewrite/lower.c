/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts a model to float16 or bfloat16 in one pass over the nodes of the main graph,
 * which are in topological order. Each float32 tensor has up to two forms: in float32
 * ("high") and in the 16-bit type ("low"). One form exists at first. The other one is
 * made by a Cast before the first node that reads it.
 */
#include "config.h"
#include "rewrite/lower.h"

#include "number/low.h"
#include "weights/lowered.h"

#include <stdio.h>
#include <string.h>

enum { RAW_DATA = 9 }; /* the field's number in TensorProto */

/* A float32 tensor that nodes of the main graph read. */
struct value {
    const char *name;
    /* names of the float32 form and of the 16-bit form; NULL when there is none yet */
    const char *high, *low;
    /* the constant, if it can be converted, or NULL */
    const Onnx__TensorProto *constant;
    size_t n_low, n_high; /* number of inputs of nodes that read each form */
    /* name and type must stay, because graph inputs or outputs or nested graphs use
       them */
    bool is_fixed;
    bool is_changed; /* its name now stands for the 16-bit form */
    bool is_scale;   /* the scale of a Q/DQ pair that becomes 16-bit */
};

enum kind {
    HIGH,    /* reads and makes float32 */
    NEUTRAL, /* reads either form */
    LOW,
    PAIR, /* a Q/DQ pair: becomes LOW or HIGH with its scale */
};

struct lowering {
    const struct qdq_model *source;
    const struct qdqi_edited *edited;
    const struct qdqi_low *low;
    struct qdqi_arena *arena;
    struct qdq_model bulky; /* the source with the bulk data of the edited model */
    const Onnx__GraphProto *from; /* the main graph of the edited model */
    struct qdqi_map *names;       /* all names in use */
    struct qdqi_map *values;      /* name -> struct value */
    enum kind *kinds;             /* by node of `from` */
    Onnx__NodeProto **nodes;
    size_t n, cap;
    struct qdqi_bulk *bulks; /* has room for one more per constant */
    size_t n_bulks;
};

static void *
copy_of(struct lowering *l, const void *from, size_t n, size_t size)
{
    void *copy = qdqi_arena_array(l->arena, n, size);
    if (copy && n)
        memcpy(copy, from, n * size);
    return copy;
}

static struct value *
value_of(const struct lowering *l, const char *name)
{
    return name && *name ? qdqi_map_get(l->values, name) : NULL;
}

/* --- names ---------------------------------------------------------------- */

static void
record_name(struct lowering *l, const char *name)
{
    if (name && *name)
        qdqi_map_put(l->names, name, l);
}

static const char *
new_name(struct lowering *l, const char *base, const char *suffix)
{
    const char *name = qdqi_arena_printf(l->arena, "%s%s", base, suffix);
    for (unsigned n = 1; name && (qdqi_map_get(l->names, name) ||
                                  qdqi_map_get(l->source->graph.names, name));
         n++)
        name = qdqi_arena_printf(l->arena, "%s%s_%u", base, suffix, n);
    if (name)
        record_name(l, name);
    return name;
}

static const char *
type_suffix(const struct lowering *l)
{
    return l->low->dtype == QDQI_FLOAT16 ? "_float16" : "_bfloat16";
}

/* --- values --------------------------------------------------------------- */

static struct value *
add_value(struct lowering *l, const char *name)
{
    struct value *v = qdqi_arena_alloc(l->arena, sizeof *v);
    if (!v || !name || !*name)
        return NULL;
    v->name = v->high = name;
    return qdqi_map_put(l->values, name, v) ? v : NULL;
}

/* Returns whether an edit generates the tensor's data, so that no file has them. */
static bool
is_made(const struct lowering *l, const Onnx__TensorProto *t)
{
    for (size_t i = 0; i < t->base.n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *f = &t->base.unknown_fields[i];
        int64_t index = f->tag == QDQI_BULK_FIELD
                            ? qdqi_bulk_index(f->data, f->len, l->edited->bulks.n)
                            : -1;
        if (index >= 0 && l->edited->bulks.rows[index].made)
            return true;
    }
    return false;
}

static bool
read_floats(const struct lowering *l, const Onnx__TensorProto *t,
            struct qdqi_constant *ret)
{
    return t->data_type == QDQI_FLOAT32 && !is_made(l, t) &&
           !qdqi_stored_read(&l->bulky, t, "", ret, NULL);
}

static void
add_constant(struct lowering *l, const char *name, const Onnx__TensorProto *t)
{
    struct qdqi_constant c;
    struct value *v = t->data_type == QDQI_FLOAT32 ? add_value(l, name) : NULL;
    if (v && read_floats(l, t, &c))
        v->constant = t;
}

/* Returns the tensor of a Constant's attribute `value`, the only form of a float32
   Constant that is converted; else NULL. */
static const Onnx__TensorProto *
constant_of(const Onnx__NodeProto *node)
{
    const Onnx__AttributeProto *a =
        qdqi_node_is(node, "Constant") ? qdqi_node_attribute(node, "value") : NULL;
    return a ? a->t : NULL;
}

/* Returns the node of the source that node i was, or NULL if the edit added it. */
static const struct qdqi_node *
origin_of(const struct lowering *l, size_t i)
{
    size_t k = l->edited->origins[i];
    return k == SIZE_MAX ? NULL : &l->source->graph.nodes[k];
}

/* Returns whether the node is a QuantizeLinear or DequantizeLinear that the edit
   added. */
static bool
is_new_pair(const struct lowering *l, size_t i)
{
    const Onnx__NodeProto *node = l->from->node[i];
    return !origin_of(l, i) && node->n_output > 0 && node->n_input > 1 &&
           (qdqi_node_is(node, "QuantizeLinear") ||
            qdqi_node_is(node, "DequantizeLinear"));
}

static void
add_outputs(struct lowering *l, size_t i)
{
    const Onnx__NodeProto *node = l->from->node[i];
    const struct qdqi_node *origin = origin_of(l, i);
    const Onnx__TensorProto *constant = constant_of(node);
    if (constant && node->n_output) {
        add_constant(l, node->output[0], constant);
        return;
    }
    if (is_new_pair(l, i) && qdqi_node_is(node, "DequantizeLinear") &&
        value_of(l, node->input[1]))
        add_value(l, node->output[0]);
    /* The edit may have changed the names of outputs, but not their positions. */
    for (size_t k = 0; origin && k < node->n_output; k++)
        if (origin->outputs[k] && origin->outputs[k]->dtype == QDQI_FLOAT32)
            add_value(l, node->output[k]);
}

static void
fix(struct lowering *l, const char *name)
{
    struct value *v = value_of(l, name);
    if (v)
        v->is_fixed = true;
}

/* Fixes the tensors that nested graphs read and return. The parser bounds the depth
   of the recursion. */
static void fix_nested(struct lowering *l, const Onnx__NodeProto *node);

static void
fix_seen(struct lowering *l, const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_node; i++) {
        const Onnx__NodeProto *node = graph->node[i];
        for (size_t k = 0; k < node->n_input; k++)
            fix(l, node->input[k]);
        for (size_t k = 0; k < node->n_output; k++)
            record_name(l, node->output[k]);
        record_name(l, node->name);
        fix_nested(l, node);
    }
    for (size_t i = 0; i < graph->n_output; i++)
        fix(l, graph->output[i]->name);
}

static void
fix_nested(struct lowering *l, const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_attribute; i++) {
        const Onnx__AttributeProto *a = node->attribute[i];
        if (a->g)
            fix_seen(l, a->g);
        for (size_t k = 0; k < a->n_graphs; k++)
            fix_seen(l, a->graphs[k]);
    }
}

static void
find_values(struct lowering *l)
{
    const Onnx__GraphProto *graph = l->from;
    for (size_t i = 0; i < graph->n_initializer; i++) {
        record_name(l, graph->initializer[i]->name);
        add_constant(l, graph->initializer[i]->name, graph->initializer[i]);
    }
    for (size_t i = 0; i < graph->n_sparse_initializer; i++) {
        const Onnx__TensorProto *t = graph->sparse_initializer[i]->values;
        record_name(l, t ? t->name : NULL);
        if (t && t->data_type == QDQI_FLOAT32)
            add_value(l, t->name);
    }
    for (size_t i = 0; i < graph->n_input; i++) {
        const char *name = graph->input[i]->name;
        const struct qdqi_tensor *t =
            name ? qdqi_map_get(l->source->graph.tensors, name) : NULL;
        if (t && t->dtype == QDQI_FLOAT32 && !value_of(l, name))
            add_value(l, name);
        fix(l, name);
    }
    for (size_t i = 0; i < graph->n_node; i++) {
        const Onnx__NodeProto *node = graph->node[i];
        record_name(l, node->name);
        for (size_t k = 0; k < node->n_output; k++)
            record_name(l, node->output[k]);
        add_outputs(l, i);
    }
    for (size_t i = 0; i < graph->n_node; i++)
        fix_nested(l, graph->node[i]);
    for (size_t i = 0; i < graph->n_output; i++)
        fix(l, graph->output[i]->name);
}

/* --- kinds ---------------------------------------------------------------- */

static enum kind
kind_of(const struct lowering *l, size_t i)
{
    const Onnx__NodeProto *node = l->from->node[i];
    const struct qdqi_node *origin = origin_of(l, i);
    if (is_new_pair(l, i))
        return PAIR;
    if (qdqi_node_is(node, "Cast") || qdqi_node_is(node, "Shape") ||
        qdqi_node_is(node, "Size"))
        return NEUTRAL;
    /* The edit may have changed the node's operator. */
    return origin && l->low->nodes[l->edited->origins[i]] &&
                   strcmp(origin->proto->op_type, node->op_type) == 0
               ? LOW
               : HIGH;
}

static bool
is_exact(const struct lowering *l, const struct value *scale)
{
    struct qdqi_constant c;
    if (!scale->constant || !read_floats(l, scale->constant, &c))
        return false;
    for (size_t i = 0; i < c.n; i++) {
        float x;
        memcpy(&x, c.bytes + i * sizeof x, sizeof x);
        if (!qdqi_low_has(l->low->dtype, x))
            return false;
    }
    return true;
}

/* Returns the scale of a QuantizeLinear or DequantizeLinear node, or NULL. */
static struct value *
scale_of(const struct lowering *l, const Onnx__NodeProto *node)
{
    return value_of(l, node->input[1]);
}

/* Returns whether that input of the node reads the 16-bit form. */
static bool
reads_low(const Onnx__NodeProto *node, enum kind kind, size_t input)
{
    if (kind != LOW || qdqi_node_is(node, "QuantizeLinear") ||
        qdqi_node_is(node, "DequantizeLinear"))
        return kind == LOW;
    const struct qdqi_low_op *op = qdqi_low_op(node->op_type);
    return !op || input >= 32 || !(op->high_inputs >> input & 1);
}

/* Chooses the pairs that become 16-bit: those that LOW nodes read, if their scales
   are exact in the type. */
static bool
choose_pairs(struct lowering *l)
{
    struct qdqi_map *wanted = qdqi_map_new(l->arena);
    if (!wanted)
        return false;
    for (size_t i = 0; i < l->from->n_node; i++) {
        const Onnx__NodeProto *node = l->from->node[i];
        for (size_t k = 0; k < node->n_input && l->kinds[i] == LOW; k++)
            if (*node->input[k] && reads_low(node, LOW, k) &&
                !qdqi_map_put(wanted, node->input[k], l))
                return false;
    }
    for (size_t i = 0; i < l->from->n_node; i++) {
        const Onnx__NodeProto *node = l->from->node[i];
        struct value *scale = l->kinds[i] == PAIR ? scale_of(l, node) : NULL;
        if (scale && !scale->is_scale && qdqi_map_get(wanted, node->output[0]))
            scale->is_scale = is_exact(l, scale);
    }
    for (size_t i = 0; i < l->from->n_node; i++) {
        if (l->kinds[i] != PAIR)
            continue;
        const struct value *scale = scale_of(l, l->from->node[i]);
        l->kinds[i] = scale && scale->is_scale ? LOW : HIGH;
    }
    return true;
}

static void
count_readers(struct lowering *l)
{
    for (size_t i = 0; i < l->from->n_node; i++) {
        const Onnx__NodeProto *node = l->from->node[i];
        for (size_t k = 0; k < node->n_input; k++) {
            struct value *v = value_of(l, node->input[k]);
            if (!v || l->kinds[i] == NEUTRAL)
                continue;
            if (reads_low(node, l->kinds[i], k))
                v->n_low++;
            else
                v->n_high++;
        }
    }
}

static bool
find_kinds(struct lowering *l)
{
    l->kinds = qdqi_arena_array(l->arena, l->from->n_node, sizeof *l->kinds);
    if (!l->kinds)
        return false;
    for (size_t i = 0; i < l->from->n_node; i++)
        l->kinds[i] = kind_of(l, i);
    if (!choose_pairs(l))
        return false;
    count_readers(l);
    return true;
}

/* --- constants ------------------------------------------------------------ */

static bool
becomes_low(const struct value *v)
{
    return v && v->constant && v->n_low > 0 && v->n_high == 0 && !v->is_fixed;
}

/* Returns a copy of the tensor in the 16-bit type. Its data are generated while the
   model is written. NULL when out of memory. */
static Onnx__TensorProto *
lowered(struct lowering *l, const Onnx__TensorProto *from)
{
    struct qdqi_constant c;
    Onnx__TensorProto *t = copy_of(l, from, 1, sizeof *from);
    size_t n = from->base.n_unknown_fields, kept = 0;
    ProtobufCMessageUnknownField *fields =
        qdqi_arena_array(l->arena, n + 1, sizeof *fields);
    uint8_t *reference = qdqi_arena_alloc(l->arena, QDQI_BULK_REFERENCE);
    if (!t || !fields || !reference || !read_floats(l, from, &c))
        return NULL;
    const struct qdqi_made *made = qdqi_lowered_new(l->arena, l->low->dtype, &c);
    if (!made)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (from->base.unknown_fields[i].tag != QDQI_BULK_FIELD)
            fields[kept++] = from->base.unknown_fields[i];
    size_t len = qdqi_bulk_reference(reference, l->n_bulks);
    l->bulks[l->n_bulks++] = (struct qdqi_bulk){
        .size = c.n * sizeof(uint16_t), .field = RAW_DATA, .made = made};
    fields[kept++] = (ProtobufCMessageUnknownField){
        QDQI_BULK_FIELD, PROTOBUF_C_WIRE_TYPE_VARINT, len, reference};
    t->base.unknown_fields = fields;
    t->base.n_unknown_fields = kept;
    t->data_type = (int32_t)l->low->dtype;
    t->n_float_data = 0;
    t->has_raw_data = 0;
    return t;
}

static void
mark_low(struct value *v)
{
    v->low = v->name;
    v->high = NULL;
    v->is_changed = true;
}

static bool
lower_initializers(struct lowering *l, Onnx__GraphProto *graph)
{
    Onnx__TensorProto **all =
        copy_of(l, graph->initializer, graph->n_initializer, sizeof *all);
    if (!all)
        return false;
    for (size_t i = 0; i < graph->n_initializer; i++) {
        struct value *v = value_of(l, all[i]->name);
        if (!becomes_low(v) || v->constant != all[i])
            continue;
        if (!(all[i] = lowered(l, all[i])))
            return false;
        mark_low(v);
    }
    graph->initializer = all;
    return true;
}

/* Converts the tensor of a Constant node to the 16-bit type. */
static bool
lower_constant(struct lowering *l, Onnx__NodeProto *node, struct value *v)
{
    Onnx__AttributeProto **all =
        copy_of(l, node->attribute, node->n_attribute, sizeof *all);
    for (size_t i = 0; all && i < node->n_attribute; i++) {
        if (all[i]->t != v->constant)
            continue;
        if (!(all[i] = copy_of(l, all[i], 1, sizeof **all)) ||
            !(all[i]->t = lowered(l, v->constant)))
            return false;
    }
    node->attribute = all;
    mark_low(v);
    return all != NULL;
}

/* --- converting the nodes ------------------------------------------------ */

static bool
append(struct lowering *l, Onnx__NodeProto *node)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 256;
        Onnx__NodeProto **rows = qdqi_arena_array(l->arena, cap, sizeof *rows);
        if (!rows)
            return false;
        if (l->n)
            memcpy(rows, l->nodes, l->n * sizeof *rows);
        l->nodes = rows;
        l->cap = cap;
    }
    l->nodes[l->n++] = node;
    return true;
}

static Onnx__AttributeProto *
type_attribute(struct lowering *l, enum qdqi_dtype dtype)
{
    Onnx__AttributeProto *a = qdqi_arena_alloc(l->arena, sizeof *a);
    if (!a)
        return NULL;
    onnx__attribute_proto__init(a);
    a->name = (char *)(uintptr_t) "to";
    qdqi_attribute_set_int(a, (int64_t)dtype);
    return a;
}

/* Adds a Cast from one name to another. */
static bool
add_cast(struct lowering *l, const char *from, const char *to, enum qdqi_dtype dtype)
{
    Onnx__NodeProto *node = qdqi_arena_alloc(l->arena, sizeof *node);
    char **ends = qdqi_arena_array(l->arena, 2, sizeof *ends);
    Onnx__AttributeProto **all = qdqi_arena_array(l->arena, 1, sizeof *all);
    const char *name = to ? new_name(l, to, "_Cast") : NULL;
    if (!node || !ends || !all || !name || !(all[0] = type_attribute(l, dtype)))
        return false;
    onnx__node_proto__init(node);
    ends[0] = (char *)(uintptr_t)from;
    ends[1] = (char *)(uintptr_t)to;
    node->op_type = (char *)(uintptr_t) "Cast";
    node->name = (char *)(uintptr_t)name;
    node->input = &ends[0];
    node->n_input = 1;
    node->output = &ends[1];
    node->n_output = 1;
    node->attribute = all;
    node->n_attribute = 1;
    return append(l, node);
}

/* Returns the name of the tensor in that form. Adds a Cast if the form does not
   exist yet. NULL when out of memory. */
static const char *
form_of(struct lowering *l, struct value *v, bool low)
{
    const char **form = low ? &v->low : &v->high;
    if (*form)
        return *form;
    const char *name = new_name(l, v->name, low ? type_suffix(l) : "_float32");
    if (!add_cast(l, low ? v->high : v->low, name, low ? l->low->dtype : QDQI_FLOAT32))
        return NULL;
    return *form = name;
}

static bool
connect_inputs(struct lowering *l, Onnx__NodeProto *node, enum kind kind)
{
    for (size_t i = 0; i < node->n_input; i++) {
        struct value *v = value_of(l, node->input[i]);
        if (!v)
            continue;
        const char *name = kind == NEUTRAL ? (v->high ? v->high : v->low)
                                           : form_of(l, v, reads_low(node, kind, i));
        if (!name)
            return false;
        node->input[i] = (char *)(uintptr_t)name;
    }
    return true;
}

/* Gives the outputs of a LOW node the 16-bit type. An output gets a new name where
   others need the old name for float32. */
static bool
rename_outputs(struct lowering *l, Onnx__NodeProto *node)
{
    const struct qdqi_low_op *op = qdqi_low_op(node->op_type);
    for (size_t i = 0; i < node->n_output; i++) {
        struct value *v = value_of(l, node->output[i]);
        if (!v || (op && i < 32 && op->high_outputs >> i & 1))
            continue;
        if (!v->is_fixed) {
            mark_low(v);
            continue;
        }
        if (!(v->low = new_name(l, v->name, type_suffix(l))))
            return false;
        node->output[i] = (char *)(uintptr_t)v->low;
    }
    return true;
}

static bool
restore_outputs(struct lowering *l, const Onnx__NodeProto *from,
                const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_output; i++)
        if (node->output[i] != from->output[i] &&
            !add_cast(l, node->output[i], from->output[i], QDQI_FLOAT32))
            return false;
    return true;
}

static bool
walk_node(struct lowering *l, size_t i)
{
    const Onnx__NodeProto *from = l->from->node[i];
    Onnx__NodeProto *node = copy_of(l, from, 1, sizeof *from);
    struct value *v =
        constant_of(from) && from->n_output ? value_of(l, from->output[0]) : NULL;
    if (!node ||
        !(node->input = copy_of(l, from->input, from->n_input, sizeof(char *))) ||
        !(node->output = copy_of(l, from->output, from->n_output, sizeof(char *))) ||
        !connect_inputs(l, node, l->kinds[i]) ||
        (becomes_low(v) && !lower_constant(l, node, v)) ||
        (l->kinds[i] == LOW && !rename_outputs(l, node)))
        return false;
    return append(l, node) && restore_outputs(l, from, node);
}

/* --- types of tensors ---------------------------------------------------- */

/* Returns a copy of the entry with the 16-bit type. */
static Onnx__ValueInfoProto *
retyped(struct lowering *l, const Onnx__ValueInfoProto *info)
{
    Onnx__ValueInfoProto *copy = copy_of(l, info, 1, sizeof *info);
    Onnx__TypeProto *type = copy_of(l, info->type, 1, sizeof *type);
    Onnx__TypeProto__Tensor *tensor =
        copy_of(l, info->type->tensor_type, 1, sizeof *tensor);
    if (!copy || !type || !tensor)
        return NULL;
    tensor->has_elem_type = 1;
    tensor->elem_type = (int32_t)l->low->dtype;
    type->tensor_type = tensor;
    copy->type = type;
    return copy;
}

static bool
correct_infos(struct lowering *l, Onnx__GraphProto *graph)
{
    Onnx__ValueInfoProto **all =
        copy_of(l, graph->value_info, graph->n_value_info, sizeof *all);
    for (size_t i = 0; all && i < graph->n_value_info; i++) {
        const struct value *v = value_of(l, all[i]->name);
        if (v && v->is_changed && all[i]->type &&
            all[i]->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE &&
            !(all[i] = retyped(l, all[i])))
            return false;
    }
    graph->value_info = all;
    return all != NULL;
}

/* --- the whole conversion ------------------------------------------------ */

static bool
begin(struct lowering *l)
{
    size_t n = l->edited->bulks.n, more = l->from->n_initializer + l->from->n_node;
    l->bulky = *l->source;
    l->bulky.bulks = l->edited->bulks;
    l->names = qdqi_map_new(l->arena);
    l->values = qdqi_map_new(l->arena);
    l->bulks = qdqi_arena_array(l->arena, n + more, sizeof *l->bulks);
    if (!l->names || !l->values || !l->bulks)
        return false;
    if (n)
        memcpy(l->bulks, l->edited->bulks.rows, n * sizeof *l->bulks);
    l->n_bulks = n;
    return true;
}

static bool
lower(struct lowering *l, Onnx__GraphProto *graph)
{
    find_values(l);
    if (!find_kinds(l) || !lower_initializers(l, graph))
        return false;
    for (size_t i = 0; i < l->from->n_node; i++)
        if (!walk_node(l, i))
            return false;
    graph->node = l->nodes;
    graph->n_node = l->n;
    return correct_infos(l, graph) && !qdqi_arena_exhausted(l->arena);
}

enum qdq_code
qdqi_lower(const struct qdq_model *source, const struct qdqi_edited *edited,
           const struct qdqi_low *low, struct qdqi_arena *arena,
           struct qdqi_edited *ret, struct qdq_error *err)
{
    struct lowering l = {.source = source,
                         .edited = edited,
                         .low = low,
                         .arena = arena,
                         .from = edited->proto->graph};
    Onnx__ModelProto *model = copy_of(&l, edited->proto, 1, sizeof *model);
    Onnx__GraphProto *graph = copy_of(&l, l.from, 1, sizeof *graph);
    if (!model || !graph || !begin(&l) || !lower(&l, graph))
        return qdqi_no_memory(err);
    model->graph = graph;
    *ret = (struct qdqi_edited){.proto = model, .bulks = {l.bulks, l.n_bulks}};
    return QDQ_OK;
}
