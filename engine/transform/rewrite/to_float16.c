/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts a model to float16 or bfloat16 in one pass over the nodes of the main graph,
 * which are in topological order. Each float32 tensor has up to two forms: float32 and
 * the 16-bit type, float16 or bfloat16 (named float16 here). One form exists at first.
 * A Cast before the first node that reads the other form computes that one.
 */
#include "config.h"
#include "transform/rewrite/to_float16.h"

#include "numbers/arithmetic/both.h"
#include "numbers/arithmetic/float16.h"
#include "graph/weights/float16_data.h"
#include "transform/prepare/nodes.h"

#include <stdio.h>
#include <string.h>

enum { RAW_DATA = 9 }; /* the field's number in TensorProto */

/* A float32 tensor that nodes of the main graph read. */
struct value {
    const char *name;
    /* names of the float32 form and of the 16-bit form; NULL when there is none yet */
    const char *as_float32, *as_float16;
    /* the constant, if it can be converted, or NULL */
    const Onnx__TensorProto *constant;
    size_t n_float16, n_float32; /* number of inputs of nodes that read each form */
    /* name and type must stay, because graph inputs or outputs or nested graphs use
       them */
    bool is_fixed;
    bool is_changed; /* its name now stands for the 16-bit form */
    bool is_scale;   /* the scale of a Q/DQ pair that becomes 16-bit */
};

enum kind {
    FLOAT32, /* reads and makes float32 */
    NEUTRAL, /* reads either form */
    FLOAT16,
    PAIR, /* a Q/DQ pair: becomes FLOAT16 or FLOAT32 with its scale */
};

struct conversion {
    const struct qdq_model *source;
    const struct qdqi_edited *edited;
    const struct qdqi_float16_nodes *chosen;
    struct qdqi_arena *arena;
    struct qdq_model bulky; /* the source with the bulk data of the edited model */
    const Onnx__GraphProto *from; /* the main graph of the edited model */
    struct qdqi_map *names;       /* all names in use */
    struct qdqi_map *values;      /* name -> struct value */
    enum kind *kinds;             /* by node of `from` */
    struct qdqi_nodes nodes;
    struct qdqi_bulk *bulks; /* has room for one more per constant */
    size_t n_bulks;
};

static void *
copy_of(struct conversion *cv, const void *from, size_t n, size_t size)
{
    return qdqi_arena_copy(cv->arena, from, n, size);
}

static struct value *
value_of(const struct conversion *cv, const char *name)
{
    return name && *name ? qdqi_map_get(cv->values, name) : NULL;
}

/* --- names ---------------------------------------------------------------- */

static void
record_name(struct conversion *cv, const char *name)
{
    if (name && *name)
        qdqi_map_put(cv->names, name, cv);
}

static const char *
new_name(struct conversion *cv, const char *base, const char *suffix)
{
    const char *name = qdqi_arena_printf(cv->arena, "%s%s", base, suffix);
    for (unsigned n = 1; name && (qdqi_map_get(cv->names, name) ||
                                  qdqi_map_get(cv->source->graph.names, name));
         n++)
        name = qdqi_arena_printf(cv->arena, "%s%s_%u", base, suffix, n);
    if (name)
        record_name(cv, name);
    return name;
}

static const char *
type_suffix(const struct conversion *cv)
{
    return cv->chosen->dtype == QDQI_FLOAT16 ? "_float16" : "_bfloat16";
}

/* --- values --------------------------------------------------------------- */

static struct value *
add_value(struct conversion *cv, const char *name)
{
    struct value *v = qdqi_arena_alloc(cv->arena, sizeof *v);
    if (!v || !name || !*name)
        return NULL;
    v->name = v->as_float32 = name;
    return qdqi_map_put(cv->values, name, v) ? v : NULL;
}

/* Returns whether an edit generates the tensor's data, so that no file has them. */
static bool
is_made(const struct conversion *cv, const Onnx__TensorProto *t)
{
    int64_t index = qdqi_tensor_bulk(t, cv->edited->bulks.n);
    return index >= 0 && cv->edited->bulks.rows[index].made;
}

static bool
read_floats(const struct conversion *cv, const Onnx__TensorProto *t,
            struct qdqi_constant *ret)
{
    return t->data_type == QDQI_FLOAT32 && !is_made(cv, t) &&
           !qdqi_stored_read(&cv->bulky, t, "", ret, NULL);
}

static void
add_constant(struct conversion *cv, const char *name, const Onnx__TensorProto *t)
{
    struct qdqi_constant c;
    struct value *v = t->data_type == QDQI_FLOAT32 ? add_value(cv, name) : NULL;
    if (v && read_floats(cv, t, &c))
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
origin_of(const struct conversion *cv, size_t i)
{
    size_t k = cv->edited->origins[i];
    return k == SIZE_MAX ? NULL : &cv->source->graph.nodes[k];
}

/* Returns whether the node is a QuantizeLinear or DequantizeLinear that the edit
   added. */
static bool
is_new_pair(const struct conversion *cv, size_t i)
{
    const Onnx__NodeProto *node = cv->from->node[i];
    return !origin_of(cv, i) && node->n_output > 0 && node->n_input > 1 &&
           (qdqi_node_is(node, "QuantizeLinear") ||
            qdqi_node_is(node, "DequantizeLinear"));
}

/* Returns whether the node is a Transpose that the edit added: it stands behind a pair, and reads and
   makes what that does. */
static bool
is_new_transpose(const struct conversion *cv, size_t i)
{
    return !origin_of(cv, i) && qdqi_node_is(cv->from->node[i], "Transpose");
}

static void
add_outputs(struct conversion *cv, size_t i)
{
    const Onnx__NodeProto *node = cv->from->node[i];
    const struct qdqi_node *origin = origin_of(cv, i);
    const Onnx__TensorProto *constant = constant_of(node);
    if (constant && node->n_output) {
        add_constant(cv, node->output[0], constant);
        return;
    }
    if ((is_new_pair(cv, i) && qdqi_node_is(node, "DequantizeLinear") &&
         value_of(cv, node->input[1])) ||
        is_new_transpose(cv, i))
        add_value(cv, node->output[0]);
    /* The edit may have changed the names of outputs, but not their positions. */
    for (size_t k = 0; origin && k < node->n_output; k++)
        if (origin->outputs[k] && origin->outputs[k]->dtype == QDQI_FLOAT32)
            add_value(cv, node->output[k]);
}

static void
fix(struct conversion *cv, const char *name)
{
    struct value *v = value_of(cv, name);
    if (v)
        v->is_fixed = true;
}

/* Fixes the tensors that nested graphs read and return. The parser bounds the depth
   of the recursion. */
static void fix_nested(struct conversion *cv, const Onnx__NodeProto *node);

static void
fix_seen(struct conversion *cv, const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_node; i++) {
        const Onnx__NodeProto *node = graph->node[i];
        for (size_t k = 0; k < node->n_input; k++)
            fix(cv, node->input[k]);
        for (size_t k = 0; k < node->n_output; k++)
            record_name(cv, node->output[k]);
        record_name(cv, node->name);
        fix_nested(cv, node);
    }
    for (size_t i = 0; i < graph->n_output; i++)
        fix(cv, graph->output[i]->name);
}

static void
fix_nested(struct conversion *cv, const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_attribute; i++) {
        const Onnx__AttributeProto *a = node->attribute[i];
        if (a->g)
            fix_seen(cv, a->g);
        for (size_t k = 0; k < a->n_graphs; k++)
            fix_seen(cv, a->graphs[k]);
    }
}

static void
find_values(struct conversion *cv)
{
    const Onnx__GraphProto *graph = cv->from;
    for (size_t i = 0; i < graph->n_initializer; i++) {
        record_name(cv, graph->initializer[i]->name);
        add_constant(cv, graph->initializer[i]->name, graph->initializer[i]);
    }
    for (size_t i = 0; i < graph->n_sparse_initializer; i++) {
        const Onnx__TensorProto *t = graph->sparse_initializer[i]->values;
        record_name(cv, t ? t->name : NULL);
        if (t && t->data_type == QDQI_FLOAT32)
            add_value(cv, t->name);
    }
    for (size_t i = 0; i < graph->n_input; i++) {
        const char *name = graph->input[i]->name;
        const struct qdqi_tensor *t =
            name ? qdqi_map_get(cv->source->graph.tensors, name) : NULL;
        if (t && t->dtype == QDQI_FLOAT32 && !value_of(cv, name))
            add_value(cv, name);
        fix(cv, name);
    }
    for (size_t i = 0; i < graph->n_node; i++) {
        const Onnx__NodeProto *node = graph->node[i];
        record_name(cv, node->name);
        for (size_t k = 0; k < node->n_output; k++)
            record_name(cv, node->output[k]);
        add_outputs(cv, i);
    }
    for (size_t i = 0; i < graph->n_node; i++)
        fix_nested(cv, graph->node[i]);
    for (size_t i = 0; i < graph->n_output; i++)
        fix(cv, graph->output[i]->name);
}

/* --- kinds ---------------------------------------------------------------- */

static enum kind
kind_of(const struct conversion *cv, size_t i)
{
    const Onnx__NodeProto *node = cv->from->node[i];
    const struct qdqi_node *origin = origin_of(cv, i);
    if (is_new_pair(cv, i))
        return PAIR;
    if (is_new_transpose(cv, i))
        return FLOAT16;
    if (qdqi_node_is(node, "Cast") || qdqi_node_is(node, "Shape") ||
        qdqi_node_is(node, "Size"))
        return NEUTRAL;
    /* The edit may have changed the node's operator. */
    return origin && cv->chosen->nodes[cv->edited->origins[i]] &&
                   strcmp(origin->proto->op_type, node->op_type) == 0
               ? FLOAT16
               : FLOAT32;
}

static bool
is_exact(const struct conversion *cv, const struct value *scale)
{
    struct qdqi_constant c;
    if (!scale->constant || !read_floats(cv, scale->constant, &c))
        return false;
    for (size_t i = 0; i < c.n; i++)
        if (!qdqi_float16_has(cv->chosen->dtype, qdqi_float_at(c.bytes, i)))
            return false;
    return true;
}

/* Returns the scale of a QuantizeLinear or DequantizeLinear node, or NULL. */
static struct value *
scale_of(const struct conversion *cv, const Onnx__NodeProto *node)
{
    return value_of(cv, node->input[1]);
}

/* Returns whether that input of the node reads the 16-bit form. */
static bool
reads_float16(const Onnx__NodeProto *node, enum kind kind, size_t input)
{
    if (kind != FLOAT16 || qdqi_node_is(node, "QuantizeLinear") ||
        qdqi_node_is(node, "DequantizeLinear"))
        return kind == FLOAT16;
    const struct qdqi_float16_op *op = qdqi_float16_op(node->op_type);
    return !op || input >= 32 || !(op->float32_inputs >> input & 1);
}

/* Chooses the pairs that become 16-bit: those that FLOAT16 nodes read, if their scales
   are exact in the type. */
static bool
choose_pairs(struct conversion *cv)
{
    struct qdqi_map *wanted = qdqi_map_new(cv->arena);
    if (!wanted)
        return false;
    for (size_t i = 0; i < cv->from->n_node; i++) {
        const Onnx__NodeProto *node = cv->from->node[i];
        for (size_t k = 0; k < node->n_input && cv->kinds[i] == FLOAT16; k++)
            if (*node->input[k] && reads_float16(node, FLOAT16, k) &&
                !qdqi_map_put(wanted, node->input[k], cv))
                return false;
    }
    for (size_t i = 0; i < cv->from->n_node; i++) {
        const Onnx__NodeProto *node = cv->from->node[i];
        struct value *scale = cv->kinds[i] == PAIR ? scale_of(cv, node) : NULL;
        if (scale && !scale->is_scale && qdqi_map_get(wanted, node->output[0]))
            scale->is_scale = is_exact(cv, scale);
    }
    for (size_t i = 0; i < cv->from->n_node; i++) {
        if (cv->kinds[i] != PAIR)
            continue;
        const struct value *scale = scale_of(cv, cv->from->node[i]);
        cv->kinds[i] = scale && scale->is_scale ? FLOAT16 : FLOAT32;
    }
    return true;
}

static void
count_readers(struct conversion *cv)
{
    for (size_t i = 0; i < cv->from->n_node; i++) {
        const Onnx__NodeProto *node = cv->from->node[i];
        for (size_t k = 0; k < node->n_input; k++) {
            struct value *v = value_of(cv, node->input[k]);
            if (!v || cv->kinds[i] == NEUTRAL)
                continue;
            if (reads_float16(node, cv->kinds[i], k))
                v->n_float16++;
            else
                v->n_float32++;
        }
    }
}

static bool
find_kinds(struct conversion *cv)
{
    cv->kinds = qdqi_arena_array(cv->arena, cv->from->n_node, sizeof *cv->kinds);
    if (!cv->kinds)
        return false;
    for (size_t i = 0; i < cv->from->n_node; i++)
        cv->kinds[i] = kind_of(cv, i);
    if (!choose_pairs(cv))
        return false;
    count_readers(cv);
    return true;
}

/* --- constants ------------------------------------------------------------ */

static bool
becomes_float16(const struct value *v)
{
    return v && v->constant && v->n_float16 > 0 && v->n_float32 == 0 && !v->is_fixed;
}

/* Returns a copy of the tensor in the 16-bit type. Its data are generated while the
   model is written. NULL when out of memory. */
static Onnx__TensorProto *
converted(struct conversion *cv, const Onnx__TensorProto *from)
{
    struct qdqi_constant c;
    Onnx__TensorProto *t = copy_of(cv, from, 1, sizeof *from);
    if (!t || !read_floats(cv, from, &c) ||
        !qdqi_tensor_refer(cv->arena, t, cv->n_bulks))
        return NULL;
    const struct qdqi_made *made =
        qdqi_float16_data_new(cv->arena, cv->chosen->dtype, &c);
    if (!made)
        return NULL;
    cv->bulks[cv->n_bulks++] = (struct qdqi_bulk){
        .size = c.n * sizeof(uint16_t), .field = RAW_DATA, .made = made};
    t->data_type = (int32_t)cv->chosen->dtype;
    t->n_float_data = 0;
    t->has_raw_data = 0;
    return t;
}

static void
mark_low(struct value *v)
{
    v->as_float16 = v->name;
    v->as_float32 = NULL;
    v->is_changed = true;
}

static bool
lower_initializers(struct conversion *cv, Onnx__GraphProto *graph)
{
    Onnx__TensorProto **all =
        copy_of(cv, graph->initializer, graph->n_initializer, sizeof *all);
    if (!all)
        return false;
    for (size_t i = 0; i < graph->n_initializer; i++) {
        struct value *v = value_of(cv, all[i]->name);
        if (!becomes_float16(v) || v->constant != all[i])
            continue;
        if (!(all[i] = converted(cv, all[i])))
            return false;
        mark_low(v);
    }
    graph->initializer = all;
    return true;
}

/* Converts the tensor of a Constant node to the 16-bit type. */
static bool
lower_constant(struct conversion *cv, Onnx__NodeProto *node, struct value *v)
{
    Onnx__AttributeProto **all =
        copy_of(cv, node->attribute, node->n_attribute, sizeof *all);
    for (size_t i = 0; all && i < node->n_attribute; i++) {
        if (all[i]->t != v->constant)
            continue;
        if (!(all[i] = copy_of(cv, all[i], 1, sizeof **all)) ||
            !(all[i]->t = converted(cv, v->constant)))
            return false;
    }
    node->attribute = all;
    mark_low(v);
    return all != NULL;
}

/* --- converting the nodes ------------------------------------------------ */

/* Adds a Cast from one name to another. */
static bool
add_cast(struct conversion *cv, const char *from, const char *to, enum qdqi_dtype dtype)
{
    const char *name = to ? new_name(cv, to, "_Cast") : NULL;
    Onnx__NodeProto *node =
        name ? qdqi_node_new(cv->arena, "Cast", name, &from, 1, to) : NULL;
    if (!node || !qdqi_node_add_int(cv->arena, node, "to", (int64_t)dtype))
        return false;
    return qdqi_nodes_add(&cv->nodes, cv->arena, node);
}

/* Returns the name of the tensor in that form. Adds a Cast if the form does not
   exist yet. NULL when out of memory. */
static const char *
form_of(struct conversion *cv, struct value *v, bool as_float16)
{
    const char **form = as_float16 ? &v->as_float16 : &v->as_float32;
    if (*form)
        return *form;
    const char *name = new_name(cv, v->name, as_float16 ? type_suffix(cv) : "_float32");
    if (!add_cast(cv, as_float16 ? v->as_float32 : v->as_float16, name,
                  as_float16 ? cv->chosen->dtype : QDQI_FLOAT32))
        return NULL;
    return *form = name;
}

static bool
connect_inputs(struct conversion *cv, Onnx__NodeProto *node, enum kind kind)
{
    for (size_t i = 0; i < node->n_input; i++) {
        struct value *v = value_of(cv, node->input[i]);
        if (!v)
            continue;
        const char *name = kind == NEUTRAL
                               ? (v->as_float32 ? v->as_float32 : v->as_float16)
                               : form_of(cv, v, reads_float16(node, kind, i));
        if (!name)
            return false;
        node->input[i] = (char *)(uintptr_t)name;
    }
    return true;
}

/* Gives the outputs of a FLOAT16 node the 16-bit type. An output gets a new name where
   others need the old name for float32. */
static bool
rename_outputs(struct conversion *cv, Onnx__NodeProto *node)
{
    const struct qdqi_float16_op *op = qdqi_float16_op(node->op_type);
    for (size_t i = 0; i < node->n_output; i++) {
        struct value *v = value_of(cv, node->output[i]);
        if (!v || (op && i < 32 && op->float32_outputs >> i & 1))
            continue;
        if (!v->is_fixed) {
            mark_low(v);
            continue;
        }
        if (!(v->as_float16 = new_name(cv, v->name, type_suffix(cv))))
            return false;
        node->output[i] = (char *)(uintptr_t)v->as_float16;
    }
    return true;
}

static bool
restore_outputs(struct conversion *cv, const Onnx__NodeProto *from,
                const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_output; i++)
        if (node->output[i] != from->output[i] &&
            !add_cast(cv, node->output[i], from->output[i], QDQI_FLOAT32))
            return false;
    return true;
}

static bool
walk_node(struct conversion *cv, size_t i)
{
    const Onnx__NodeProto *from = cv->from->node[i];
    Onnx__NodeProto *node = copy_of(cv, from, 1, sizeof *from);
    struct value *v =
        constant_of(from) && from->n_output ? value_of(cv, from->output[0]) : NULL;
    if (!node ||
        !(node->input = copy_of(cv, from->input, from->n_input, sizeof(char *))) ||
        !(node->output = copy_of(cv, from->output, from->n_output, sizeof(char *))) ||
        !connect_inputs(cv, node, cv->kinds[i]) ||
        (becomes_float16(v) && !lower_constant(cv, node, v)) ||
        (cv->kinds[i] == FLOAT16 && !rename_outputs(cv, node)))
        return false;
    return qdqi_nodes_add(&cv->nodes, cv->arena, node) &&
           restore_outputs(cv, from, node);
}

/* --- types of tensors ---------------------------------------------------- */

/* Returns a copy of the entry with the 16-bit type. */
static Onnx__ValueInfoProto *
retyped(struct conversion *cv, const Onnx__ValueInfoProto *info)
{
    Onnx__ValueInfoProto *copy = copy_of(cv, info, 1, sizeof *info);
    Onnx__TypeProto *type = copy_of(cv, info->type, 1, sizeof *type);
    Onnx__TypeProto__Tensor *tensor =
        copy_of(cv, info->type->tensor_type, 1, sizeof *tensor);
    if (!copy || !type || !tensor)
        return NULL;
    tensor->has_elem_type = 1;
    tensor->elem_type = (int32_t)cv->chosen->dtype;
    type->tensor_type = tensor;
    copy->type = type;
    return copy;
}

static bool
correct_infos(struct conversion *cv, Onnx__GraphProto *graph)
{
    Onnx__ValueInfoProto **all =
        copy_of(cv, graph->value_info, graph->n_value_info, sizeof *all);
    for (size_t i = 0; all && i < graph->n_value_info; i++) {
        const struct value *v = value_of(cv, all[i]->name);
        if (v && v->is_changed && all[i]->type &&
            all[i]->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE &&
            !(all[i] = retyped(cv, all[i])))
            return false;
    }
    graph->value_info = all;
    return all != NULL;
}

/* --- the whole conversion ------------------------------------------------ */

static bool
begin(struct conversion *cv)
{
    size_t n = cv->edited->bulks.n, more = cv->from->n_initializer + cv->from->n_node;
    cv->bulky = *cv->source;
    cv->bulky.bulks = cv->edited->bulks;
    cv->names = qdqi_map_new(cv->arena);
    cv->values = qdqi_map_new(cv->arena);
    cv->bulks = qdqi_arena_array(cv->arena, n + more, sizeof *cv->bulks);
    if (!cv->names || !cv->values || !cv->bulks)
        return false;
    if (n)
        memcpy(cv->bulks, cv->edited->bulks.rows, n * sizeof *cv->bulks);
    cv->n_bulks = n;
    return true;
}

static bool
convert_nodes(struct conversion *cv, Onnx__GraphProto *graph)
{
    find_values(cv);
    if (!find_kinds(cv) || !lower_initializers(cv, graph))
        return false;
    for (size_t i = 0; i < cv->from->n_node; i++)
        if (!walk_node(cv, i))
            return false;
    graph->node = cv->nodes.rows;
    graph->n_node = cv->nodes.n;
    return correct_infos(cv, graph) && !qdqi_arena_exhausted(cv->arena);
}

enum qdq_code
qdqi_convert_to_float16(const struct qdq_model *source,
                        const struct qdqi_edited *edited,
                        const struct qdqi_float16_nodes *chosen,
                        struct qdqi_arena *arena, struct qdqi_edited *ret,
                        struct qdq_error *err)
{
    struct conversion cv = {.source = source,
                            .edited = edited,
                            .chosen = chosen,
                            .arena = arena,
                            .from = edited->proto->graph};
    Onnx__ModelProto *model = copy_of(&cv, edited->proto, 1, sizeof *model);
    Onnx__GraphProto *graph = copy_of(&cv, cv.from, 1, sizeof *graph);
    if (!model || !graph || !begin(&cv) || !convert_nodes(&cv, graph))
        return qdqi_no_memory(err);
    model->graph = graph;
    *ret = (struct qdqi_edited){.proto = model, .bulks = {cv.bulks, cv.n_bulks}};
    return QDQ_OK;
}
