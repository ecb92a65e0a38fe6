/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/placement/float16_nodes.h"

#include "graph/layers/layers.h"
#include "files/model/constant.h"
#include "numbers/arithmetic/float16.h"

#include <string.h>

/* --- the table ------------------------------------------------------------ */

static const struct qdqi_float16_op ops[] = {
#define OPS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define FLOAT16_OPS(half, bfloat, ...) {OPS(__VA_ARGS__), half, bfloat, 0, 0, NULL},
#define FLOAT16_OPS_EXCEPT(half, bfloat, inputs, outputs, ...) \
    {OPS(__VA_ARGS__), half, bfloat, inputs, outputs, NULL},
#define FLOAT32_OPS(reason, ...) {OPS(__VA_ARGS__), 0, 0, 0, 0, reason},
#include "ground/tbl/float16_ops.h"
#undef FLOAT16_OPS
#undef FLOAT16_OPS_EXCEPT
#undef FLOAT32_OPS
};

const struct qdqi_float16_op *
qdqi_float16_op(const char *op)
{
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        for (const char *const *name = ops[i].ops; *name; name++)
            if (strcmp(*name, op) == 0)
                return &ops[i];
    return NULL;
}

enum qdqi_dtype
qdqi_float16_dtype(const struct qdq_spec *spec)
{
    static const enum qdqi_dtype types[] = {
        [QDQ_FLOAT_KEEP] = QDQI_UNKNOWN,
        [QDQ_FLOAT_FLOAT16] = QDQI_FLOAT16,
        [QDQ_FLOAT_BFLOAT16] = QDQI_BFLOAT16,
    };
    return types[spec->float_type];
}

enum qdq_code
qdqi_float16_check(const struct qdq_model *model, const struct qdq_spec *spec,
                   struct qdq_error *err)
{
    int64_t opset = qdqi_model_opset(model->proto);
    const char *type = qdqi_dtype_name((int)qdqi_float16_dtype(spec));
    if (spec->float_type == QDQ_FLOAT_KEEP)
        return QDQ_OK;
    if (model->proto->n_training_info)
        return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_POINTER, "/float",
                             "a model that can be trained on is not made %s", type);
    if (opset >= QDQI_OPSET_FLOAT16)
        return QDQ_OK;
    return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_POINTER, "/float",
                         "the model's opset is %lld; pairs of %s need opset %d",
                         (long long)opset, type, QDQI_OPSET_FLOAT16);
}

/* --- constants ------------------------------------------------------------ */

struct deciding {
    const struct qdq_model *model;
    enum qdqi_dtype dtype;
    const struct qdqi_map *beyond;
    struct qdqi_map *seen; /* maps a constant to the index of its row in `found` */
    int64_t opset;
    struct qdqi_float16_nodes *ret;
};

/* The reason why a constant does not fit the type; "" when it fits or does not
   matter. */
static const char *const found[] = {
    "",
    "a constant is beyond the type's range",
    "a constant would become zero",
    "a constant is kept in a form that is not read",
};

enum { FITS, TOO_LARGE, VANISHES, NOT_READ };

/* Returns the bits of the largest finite magnitude in the constant. */
static uint32_t
largest_bits(const struct qdqi_constant *c)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < c->n; i++) {
        uint32_t bits;
        memcpy(&bits, c->bytes + i * sizeof bits, sizeof bits);
        bits &= 0x7fffffff;
        bits = bits < 0x7f800000 ? bits : 0;
        largest = largest < bits ? bits : largest;
    }
    return largest;
}

static size_t
judge_constant(const struct deciding *d, const struct qdqi_tensor *t)
{
    struct qdqi_constant c;
    float largest;
    uint16_t rounded;
    if (qdqi_stored_read(d->model, t->constant, t->name, &c, NULL))
        return NOT_READ;
    uint32_t bits = largest_bits(&c);
    memcpy(&largest, &bits, sizeof largest);
    if (largest > qdqi_float16_largest(d->dtype))
        return TOO_LARGE;
    qdqi_float16_of_floats(&rounded, d->dtype, &largest, 1);
    return bits > 0 && rounded == 0 ? VANISHES : FITS;
}

/* Returns the row of `found` that fits the constant, or NULL when out of memory. */
static const char *
constant_reason(const struct deciding *d, const struct qdqi_tensor *t)
{
    const char *const *row = qdqi_map_get(d->seen, t->name);
    if (!row) {
        row = &found[judge_constant(d, t)];
        if (!qdqi_map_put(d->seen, t->name, (void *)(uintptr_t)row))
            return NULL;
    }
    return *row;
}

/* --- one node ------------------------------------------------------------- */

/* Returns whether a Q/DQ pair of the model's own makes the tensor. */
static bool
is_paired(const struct deciding *d, const struct qdqi_tensor *t)
{
    return t->producer >= 0 &&
           qdqi_node_is(d->model->graph.nodes[t->producer].proto, "DequantizeLinear");
}

/* Returns the reason why a node that reads or makes the tensor stays float32; "" if
   there is none. */
static const char *
tensor_reason(const struct deciding *d, const struct qdqi_tensor *t)
{
    if (t->dtype == QDQI_UNKNOWN)
        return "the type of a tensor is not known";
    if (t->dtype != QDQI_FLOAT32)
        return "";
    const char *why = qdqi_map_get(d->beyond, t->name);
    if (why)
        return why;
    if (!t->constant && t->producer < 0 && !t->is_input) /* a sparse constant */
        return found[NOT_READ];
    return t->constant ? constant_reason(d, t) : "";
}

/* Returns whether the node scatters and joins what it meets there. ONNX Runtime's CPU
   provider fails when it runs such a node in float16. */
static bool
scatters_with_reduction(const struct qdqi_node *node)
{
    const Onnx__AttributeProto *a = qdqi_node_attribute(node->proto, "reduction");
    bool scatters = qdqi_node_is(node->proto, "ScatterND") ||
                    qdqi_node_is(node->proto, "ScatterElements");
    bool none = !a || (a->s.len == 4 && memcmp(a->s.data, "none", 4) == 0);
    return scatters && !none;
}

static const char *
operator_reason(const struct deciding *d, const struct qdqi_node *node)
{
    if (!qdqi_is_onnx_domain(node->proto->domain))
        return "the operator is not one of ONNX's own";
    if (node->body > 0)
        return "nested graphs stay float32";
    if (qdqi_node_is(node->proto, "QuantizeLinear") ||
        qdqi_node_is(node->proto, "DequantizeLinear"))
        return "pairs of the model's own stay as they are";
    const struct qdqi_float16_op *op = qdqi_float16_op(node->proto->op_type);
    if (op && op->kept)
        return op->kept;
    if (scatters_with_reduction(node))
        return "ONNX Runtime's kernel does not take the type";
    int64_t since = !op ? 0 : d->dtype == QDQI_FLOAT16 ? op->half : op->bfloat;
    if (since == 0)
        return "the operator does not take the type";
    return since > d->opset ? "the operator takes the type from a later opset on" : "";
}

/* Returns the reason why the node stays float32, "" if there is none, or NULL when
   out of memory. */
static const char *
node_reason(const struct deciding *d, const struct qdqi_node *node)
{
    const char *reason = operator_reason(d, node);
    for (size_t i = 0; reason && !*reason && i < node->proto->n_input; i++) {
        const struct qdqi_tensor *t = node->inputs[i];
        if (t && is_paired(d, t))
            reason = "it reads a pair of the model's own";
        else if (t)
            reason = tensor_reason(d, t);
    }
    for (size_t i = 0; reason && !*reason && i < node->proto->n_output; i++)
        if (node->outputs[i])
            reason = tensor_reason(d, node->outputs[i]);
    return reason;
}

static bool
has_float32(const struct qdqi_node *node)
{
    for (size_t i = 0; i < node->proto->n_input; i++)
        if (node->inputs[i] && node->inputs[i]->dtype == QDQI_FLOAT32)
            return true;
    for (size_t i = 0; i < node->proto->n_output; i++)
        if (node->outputs[i] && node->outputs[i]->dtype == QDQI_FLOAT32)
            return true;
    return false;
}

/* Returns whether the node reads any type, or only passes on a constant. */
static bool
is_neutral(const struct qdqi_node *node)
{
    static const char *const neutral[] = {"Cast", "Shape", "Size", "Constant"};
    for (size_t i = 0; i < sizeof neutral / sizeof *neutral; i++)
        if (qdqi_node_is(node->proto, neutral[i]))
            return true;
    return false;
}

/* --- all nodes ------------------------------------------------------------ */

enum qdq_code
qdqi_float16_choose_nodes(const struct qdq_model *model, enum qdqi_dtype dtype,
                          const struct qdqi_map *beyond, struct qdqi_map *seen,
                          struct qdqi_arena *arena, struct qdqi_float16_nodes *ret,
                          struct qdq_error *err)
{
    const struct qdqi_graph *graph = &model->graph;
    struct deciding d = {.model = model,
                         .dtype = dtype,
                         .beyond = beyond,
                         .seen = seen,
                         .opset = qdqi_model_opset(model->proto),
                         .ret = ret};
    *ret = (struct qdqi_float16_nodes){
        .dtype = dtype,
        .nodes = qdqi_arena_array(arena, graph->n_nodes, sizeof *ret->nodes),
        .kept = qdqi_arena_array(arena, graph->n_nodes, sizeof *ret->kept)};
    if (!ret->nodes || !ret->kept)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct qdqi_node *node = &graph->nodes[i];
        if (node->scope > 0 || !has_float32(node) || is_neutral(node))
            continue;
        const char *reason = node_reason(&d, node);
        if (!reason)
            return qdqi_no_memory(err);
        if (*reason)
            ret->kept[ret->n_kept++] = (struct qdq_kept_node){node->name, reason};
        ret->nodes[i] = !*reason;
        ret->n_chosen += !*reason;
    }
    return QDQ_OK;
}

/* --- warnings ------------------------------------------------------------- */

/* Adds the warning about the nodes from `first` on that have the same reason; it
   names them as "2 nodes (a, b)". */
static enum qdq_code
warn_of(const struct qdqi_float16_nodes *nodes, size_t first,
        struct qdqi_warnings *warnings, struct qdqi_arena *arena, struct qdq_error *err)
{
    struct qdqi_names names = {0};
    const char *reason = nodes->kept[first].reason;
    for (size_t i = first; i < nodes->n_kept; i++)
        if (strcmp(nodes->kept[i].reason, reason) == 0)
            qdqi_names_add(&names, nodes->kept[i].name);
    const bool one = names.n == 1;
    return qdqi_warn(warnings, arena, err, "float_kept", names.first,
                     "%zu node%s (%s) stay%s float32: %s", names.n, one ? "" : "s",
                     names.text, one ? "s" : "", reason);
}

enum { MAX_REASONS = 64 }; /* larger than the number of different reasons */

enum qdq_code
qdqi_float16_warn(const struct qdqi_float16_nodes *nodes,
                  struct qdqi_warnings *warnings, struct qdqi_arena *arena,
                  struct qdq_error *err)
{
    const char *listed[MAX_REASONS];
    size_t n = 0, k;
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < nodes->n_kept && !code && n < MAX_REASONS; i++) {
        for (k = 0; k < n && strcmp(listed[k], nodes->kept[i].reason) != 0; k++)
            ;
        if (k < n)
            continue;
        listed[n++] = nodes->kept[i].reason;
        code = warn_of(nodes, i, warnings, arena, err);
    }
    return code;
}
