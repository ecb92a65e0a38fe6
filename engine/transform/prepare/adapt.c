/* SPDX-License-Identifier: Apache-2.0 */
/* The building blocks of the operator adapters. */
#include "config.h"
#include "transform/prepare/adapt.h"

#include "numbers/arithmetic/both.h"

#include <string.h>

static void *
grab(struct qdqi_adapting *a, size_t n, size_t size)
{
    return qdqi_arena_array(a->r->arena, n, size);
}

static char *
copy_text(struct qdqi_adapting *a, const char *text)
{
    return text ? qdqi_arena_strdup(a->r->arena, text) : NULL;
}

/* --- queries ------------------------------------------------------------- */

bool
qdqi_adapt_needs(struct qdqi_adapting *a, size_t inputs, size_t outputs)
{
    const Onnx__NodeProto *node = a->node;
    bool ok = node->n_input >= inputs && node->n_output >= outputs;
    for (size_t i = 0; ok && i < inputs; i++)
        ok = *node->input[i] != '\0';
    for (size_t i = 0; ok && i < outputs; i++)
        ok = *node->output[i] != '\0';
    if (!ok)
        a->invalid = "an input or output that its schema asks for";
    return ok;
}

const Onnx__AttributeProto *
qdqi_adapt_attribute(const struct qdqi_adapting *a, const char *name, const char **why)
{
    const Onnx__AttributeProto *attribute = qdqi_node_attribute(a->node, name);
    if (attribute && attribute->ref_attr_name && *attribute->ref_attr_name)
        *why = "an attribute that became an input is a parameter of its function";
    return attribute;
}

const struct qdqi_value_type *
qdqi_adapt_known(const struct qdqi_adapting *a, size_t i)
{
    return i < a->node->n_input && *a->node->input[i]
               ? qdqi_map_get(a->r->known, a->node->input[i])
               : NULL;
}

bool
qdqi_adapt_is_idle(const struct qdqi_adapting *a, size_t output)
{
    const char *name = output < a->node->n_output ? a->node->output[output] : "";
    const struct qdqi_tensor *t = qdqi_map_get(a->r->source->graph.tensors, name);
    return !*name || (t && !t->uses && !t->is_output && !t->is_captured);
}

/* --- changes of the node ------------------------------------------------- */

void
qdqi_adapt_rename(struct qdqi_adapting *a, const char *op)
{
    a->node->op_type = (char *)(uintptr_t)op; /* a literal */
}

void
qdqi_adapt_drop_attribute(struct qdqi_adapting *a, const char *name)
{
    Onnx__NodeProto *node = a->node;
    size_t left = 0;
    for (size_t i = 0; i < node->n_attribute; i++)
        if (!node->attribute[i]->name || strcmp(node->attribute[i]->name, name) != 0)
            node->attribute[left++] = node->attribute[i];
    node->n_attribute = left;
}

/* Adds an attribute, replacing one of the same name. Returns NULL when out of
   memory. */
static Onnx__AttributeProto *
set_attribute(struct qdqi_adapting *a, Onnx__NodeProto *node, const char *name)
{
    Onnx__AttributeProto *attribute = grab(a, 1, sizeof *attribute);
    Onnx__AttributeProto **all = grab(a, node->n_attribute + 1, sizeof *all);
    if (!attribute || !all)
        return NULL;
    onnx__attribute_proto__init(attribute);
    attribute->name = copy_text(a, name);
    attribute->has_type = 1;
    size_t n = 0;
    for (size_t i = 0; i < node->n_attribute; i++)
        if (!node->attribute[i]->name || strcmp(node->attribute[i]->name, name) != 0)
            all[n++] = node->attribute[i];
    all[n++] = attribute;
    node->attribute = all;
    node->n_attribute = n;
    return attribute;
}

void
qdqi_adapt_set_int(struct qdqi_adapting *a, const char *name, int64_t value)
{
    Onnx__AttributeProto *attribute = set_attribute(a, a->node, name);
    if (attribute)
        qdqi_attribute_set_int(attribute, value);
}

void
qdqi_adapt_set_text(struct qdqi_adapting *a, const char *name, const char *text)
{
    Onnx__AttributeProto *attribute = set_attribute(a, a->node, name);
    char *copy = copy_text(a, text);
    if (!attribute || !copy)
        return;
    attribute->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
    attribute->has_s = 1;
    attribute->s.data = (uint8_t *)copy;
    attribute->s.len = strlen(copy);
}

void
qdqi_adapt_set_input(struct qdqi_adapting *a, size_t i, const char *tensor)
{
    Onnx__NodeProto *node = a->node;
    size_t n = node->n_input > i ? node->n_input : i + 1;
    char **inputs = grab(a, n, sizeof *inputs);
    char *copy = copy_text(a, tensor);
    if (!inputs || !copy)
        return;
    for (size_t k = 0; k < n; k++)
        inputs[k] = k < node->n_input ? node->input[k] : (char *)(uintptr_t) "";
    inputs[i] = copy;
    node->input = inputs;
    node->n_input = n;
}

void
qdqi_adapt_one_output(struct qdqi_adapting *a)
{
    a->node->n_output = a->node->n_output ? 1 : 0;
}

const char *
qdqi_adapt_name(struct qdqi_adapting *a, const char *suffix)
{
    struct qdqi_opset_conversion *r = a->r;
    const char *base = a->node->n_output ? a->node->output[0] : "";
    if (!base) /* an earlier allocation failed */
        return NULL;
    const char *name = qdqi_arena_printf(r->arena, "%s%s", base, suffix);
    for (unsigned n = 1; name && (qdqi_map_get(r->source->graph.names, name) ||
                                  qdqi_map_get(r->names, name));
         n++)
        name = qdqi_arena_printf(r->arena, "%s%s_%u", base, suffix, n);
    return name && qdqi_map_put(r->names, name, r) ? name : NULL;
}

/* --- added nodes --------------------------------------------------------- */

/* Makes a node that computes `output`. The list of inputs ends with NULL. Returns
   NULL when out of memory. */
static Onnx__NodeProto *
new_node(struct qdqi_adapting *a, const char *op, const char *const *inputs,
         const char *output)
{
    size_t n = 0;
    while (inputs[n])
        n++;
    const char *name = output ? qdqi_adapt_name(a, "_node") : NULL;
    return name ? qdqi_node_new(a->r->arena, op, name, inputs, n, output) : NULL;
}

const char *
qdqi_adapt_before(struct qdqi_adapting *a, const char *op, const char *suffix,
                  const char *const *inputs, const char *attribute, int64_t value)
{
    const char *output = qdqi_adapt_name(a, suffix);
    Onnx__NodeProto *node = new_node(a, op, inputs, output);
    if (!node || (attribute && !qdqi_node_add_int(a->r->arena, node, attribute, value)))
        return NULL;
    qdqi_nodes_add(&a->r->nodes, a->r->arena, node);
    return output;
}

void
qdqi_adapt_after(struct qdqi_adapting *a, const char *op, const char *const *inputs,
                 const char *output)
{
    Onnx__NodeProto *node = new_node(a, op, inputs, output);
    if (node)
        qdqi_nodes_add(&a->after, a->r->arena, node);
}

/* Adds a Constant of raw bytes, which lie in the arena. Returns its tensor's name. */
static const char *
add_constant(struct qdqi_adapting *a, const char *suffix, enum qdqi_dtype dtype,
             size_t n, bool scalar, void *bytes)
{
    Onnx__TensorProto *t = grab(a, 1, sizeof *t);
    int64_t *dims = grab(a, 1, sizeof *dims);
    const char *output = qdqi_adapt_name(a, suffix);
    Onnx__NodeProto *node =
        new_node(a, "Constant", (const char *const[]){NULL}, output);
    Onnx__AttributeProto *value = node ? set_attribute(a, node, "value") : NULL;
    if (!t || !dims || !bytes || !value)
        return NULL;
    onnx__tensor_proto__init(t);
    t->has_data_type = 1;
    t->data_type = (int32_t)dtype;
    dims[0] = (int64_t)n;
    t->dims = dims;
    t->n_dims = scalar ? 0 : 1;
    t->has_raw_data = 1;
    t->raw_data.data = bytes;
    t->raw_data.len = n * qdqi_dtype_size((int)dtype);
    value->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
    value->t = t;
    qdqi_nodes_add(&a->r->nodes, a->r->arena, node);
    return output;
}

const char *
qdqi_adapt_ints(struct qdqi_adapting *a, const char *suffix, const int64_t *values,
                size_t n, bool scalar)
{
    int64_t *own = grab(a, n, sizeof *own);
    if (own && n)
        memcpy(own, values, n * sizeof *own);
    return add_constant(a, suffix, QDQI_INT64, n, scalar, own);
}

const char *
qdqi_adapt_floats(struct qdqi_adapting *a, const char *suffix, enum qdqi_dtype dtype,
                  const float *values, size_t n, bool scalar)
{
    uint8_t *own = grab(a, n, sizeof(double));
    for (size_t i = 0; own && i < n; i++) {
        const double wide = (double)values[i];
        const uint16_t half = qdqi_half_narrowed(values[i]);
        if (dtype == QDQI_FLOAT64)
            memcpy(own + i * sizeof wide, &wide, sizeof wide);
        else if (dtype == QDQI_FLOAT16)
            memcpy(own + i * sizeof half, &half, sizeof half);
        else
            memcpy(own + i * sizeof *values, &values[i], sizeof *values);
    }
    return add_constant(a, suffix, dtype, n, scalar, own);
}
