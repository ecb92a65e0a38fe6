/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/prepare/functions.h"

#include <string.h>

/* Limits of functions that call each other: of their depth, and of the nodes that there
   are when each call is replaced by its function's nodes, as runtimes do it. */
enum { MAX_DEPTH = 500, MAX_NODES = 1 << 21 };
/* fields that are newer than the installed schema */
enum { NODE_OVERLOAD = 8, OVERLOAD = 13, DEFAULTS = 11 };
enum { NOT_YET, NOW, DONE };

/* --- fields that the schema does not know -------------------------------- */

/* Finds the payload of a length-delimited unknown field, behind its length. */
static bool
payload(const ProtobufCMessageUnknownField *f, const uint8_t **ret, size_t *ret_size)
{
    size_t i = 0;
    if (f->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
        return false;
    while (i < f->len && f->data[i] & 0x80)
        i++;
    if (i >= f->len)
        return false;
    *ret = f->data + i + 1;
    *ret_size = f->len - i - 1;
    return true;
}

/* Returns a text field that the parser's schema does not know; "" when it is absent. */
static const char *
unknown_text(const ProtobufCMessage *m, uint32_t field, struct qdqi_arena *arena)
{
    const uint8_t *text;
    size_t size;
    for (size_t i = m->n_unknown_fields; i-- > 0;)
        if (m->unknown_fields[i].tag == field &&
            payload(&m->unknown_fields[i], &text, &size))
            return qdqi_arena_strndup(arena, (const char *)text, size);
    return "";
}

const Onnx__AttributeProto *
qdqi_function_default(const struct qdqi_function *function, const char *name,
                      struct qdqi_arena *arena)
{
    const ProtobufCMessage *m = &function->proto->base;
    ProtobufCAllocator allocator = qdqi_arena_allocator(arena);
    const uint8_t *data;
    size_t size;
    for (size_t i = 0; i < m->n_unknown_fields; i++) {
        if (m->unknown_fields[i].tag != DEFAULTS ||
            !payload(&m->unknown_fields[i], &data, &size))
            continue;
        const Onnx__AttributeProto *a =
            onnx__attribute_proto__unpack(&allocator, size, data);
        if (a && a->name && strcmp(a->name, name) == 0)
            return a;
    }
    return NULL;
}

/* --- calls --------------------------------------------------------------- */

static const char *
key_of(struct qdqi_arena *arena, const char *domain, const char *name,
       const char *overload)
{
    return overload ? qdqi_arena_printf(arena, "%s:%s:%s", domain ? domain : "",
                                        name ? name : "", overload)
                    : NULL;
}

struct qdqi_function *
qdqi_function_called(const struct qdqi_functions *f, const Onnx__NodeProto *node)
{
    if (f->n == 0 || qdqi_is_onnx_domain(node->domain))
        return NULL;
    const char *key = key_of(f->arena, node->domain, node->op_type,
                             unknown_text(&node->base, NODE_OVERLOAD, f->arena));
    return key ? qdqi_map_get(f->by_key, key) : NULL;
}

/* Returns whether the function's operators mean the same in the model. An operator
   set that the model does not import can be added. */
static bool
fits(const struct qdqi_functions *f, const Onnx__FunctionProto *proto)
{
    const Onnx__ModelProto *model = f->model->proto;
    for (size_t i = 0; i < proto->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *wants = proto->opset_import[i];
        const Onnx__OperatorSetIdProto *has =
            qdqi_import_of(model->opset_import, model->n_opset_import, wants->domain);
        if (has && has->version && has->version != wants->version)
            return false;
    }
    return true;
}

struct look {
    const struct qdqi_functions *functions;
    unsigned depth;
    struct qdq_error *err;
    bool mark_needed;
};

/* The facts about some nodes, without and with those of the functions that they call. */
struct found {
    bool wanted;      /* there is a wanted operator */
    uint64_t n_nodes; /* with each call replaced by the function's nodes */
    unsigned depth;   /* that of the deepest function that they call */
};

static enum qdq_code visit_function(struct look *l, struct qdqi_function *function);

static enum qdq_code
add_nodes(const struct look *l, struct found *found, uint64_t n)
{
    found->n_nodes += n;
    return found->n_nodes <= MAX_NODES
               ? QDQ_OK
               : qdq_error_set(l->err, QDQ_LIMIT_EXCEEDED, QDQ_AT_NOTHING, NULL,
                               "the model's functions come to more than %d nodes, with "
                               "each call replaced by the nodes of its function",
                               MAX_NODES);
}

static enum qdq_code
visit_nodes(struct look *l, Onnx__NodeProto *const *nodes, size_t n, struct found *ret)
{
    enum qdq_code code = add_nodes(l, ret, n);
    for (size_t i = 0; i < n && !code; i++) {
        const Onnx__NodeProto *node = nodes[i];
        struct qdqi_function *called = qdqi_function_called(l->functions, node);
        ret->wanted |=
            node->op_type && qdqi_map_get(l->functions->wanted, node->op_type);
        if (called && !(code = visit_function(l, called)))
            code = add_nodes(l, ret, called->n_nodes);
        ret->wanted |= called && called->is_inlined;
        if (called && called->depth > ret->depth)
            ret->depth = called->depth;
        for (size_t k = 0; k < node->n_attribute && !code; k++) {
            const Onnx__AttributeProto *a = node->attribute[k];
            if (a->g)
                code = visit_nodes(l, a->g->node, a->g->n_node, ret);
            for (size_t j = 0; j < a->n_graphs && !code; j++)
                code = visit_nodes(l, a->graphs[j]->node, a->graphs[j]->n_node, ret);
        }
    }
    return code;
}

static enum qdq_code
too_deep(const struct look *l)
{
    return qdq_error_set(
        l->err, QDQ_LIMIT_EXCEEDED, QDQ_AT_NOTHING, NULL,
        "the model's functions call each other more than %d deep, which "
        "ONNX Runtime cannot inline: call fewer of them",
        MAX_DEPTH);
}

static enum qdq_code
visit_function(struct look *l, struct qdqi_function *function)
{
    const Onnx__FunctionProto *proto = function->proto;
    struct found found = {.n_nodes = 0};
    if (l->mark_needed)
        function->is_needed = true;
    if (function->visited == DONE)
        return QDQ_OK;
    if (function->visited == NOW)
        return qdq_error_set(l->err, QDQ_INVALID_MODEL, QDQ_AT_NOTHING, NULL,
                             "the model's function '%s' calls itself",
                             proto->name ? proto->name : "");
    if (l->depth == MAX_DEPTH)
        return too_deep(l);
    function->visited = NOW;
    l->depth++;
    enum qdq_code code = visit_nodes(l, proto->node, proto->n_node, &found);
    l->depth--;
    function->visited = DONE;
    function->n_nodes = found.n_nodes;
    function->depth = found.depth + 1;
    if (!code && function->depth > MAX_DEPTH)
        code = too_deep(l);
    if (!l->mark_needed) {
        function->is_inlined = found.wanted && fits(l->functions, proto);
        function->is_foreign = found.wanted && !function->is_inlined;
    }
    return code;
}

/* --- the choice ---------------------------------------------------------- */

enum { IS_ON, IS_OFF, IS_ASKED, IS_NAMED };

static const struct {
    const char *cls, *op;
    bool is_on;
} layers[] = {
#define LAYER(cls, op, kind, weight, axis, state, is, text) \
    {cls, op, IS_##state == IS_ON},
#include "ground/tbl/layers.h"
#undef LAYER
};

enum { N_LAYERS = sizeof layers / sizeof *layers };

static bool
mark_wanted(struct qdqi_functions *f, const char *name)
{
    bool ok = qdqi_map_put(f->wanted, name, f);
    for (size_t i = 0; ok && i < N_LAYERS; i++)
        if (strcmp(layers[i].cls, name) == 0)
            ok = qdqi_map_put(f->wanted, layers[i].op, f);
    return ok;
}

static bool
want_all(struct qdqi_functions *f, const struct qdq_spec *spec)
{
    bool ok = true;
    for (size_t i = 0; ok && i < N_LAYERS; i++)
        ok = !layers[i].is_on || qdqi_map_put(f->wanted, layers[i].op, f);
    for (size_t i = 0; ok && i < spec->n_support; i++)
        ok = mark_wanted(f, spec->support[i].cls);
    for (size_t i = 0; ok && i < spec->n_layers; i++)
        for (size_t k = 0; ok && k < spec->layers[i].n_names; k++)
            ok = spec->layers[i].by != QDQ_BY_CLASS ||
                 mark_wanted(f, spec->layers[i].names[k]);
    return ok;
}

enum qdq_code
qdqi_functions_find(const struct qdqi_preparing *p, struct qdqi_arena *arena,
                    struct qdqi_functions *ret, struct qdq_error *err)
{
    const Onnx__ModelProto *model = p->model->proto;
    struct qdqi_functions *f = ret;
    struct look look = {.functions = f, .err = err};
    *f = (struct qdqi_functions){.n = model->n_functions,
                                 .by_key = qdqi_map_new(arena),
                                 .wanted = qdqi_map_new(arena),
                                 .model = p->model,
                                 .arena = arena};
    f->rows = qdqi_arena_array(arena, f->n, sizeof *f->rows);
    bool ok = f->rows && f->by_key && f->wanted && want_all(f, p->spec);
    for (size_t i = 0; ok && i < f->n; i++) {
        const Onnx__FunctionProto *proto = model->functions[i];
        const char *key = key_of(arena, proto->domain, proto->name,
                                 unknown_text(&proto->base, OVERLOAD, arena));
        f->rows[i].proto = proto;
        ok = key && qdqi_map_put(f->by_key, key, &f->rows[i]);
    }
    enum qdq_code code = ok ? QDQ_OK : qdqi_no_memory(err);
    for (size_t i = 0; i < f->n && !code; i++)
        code = visit_function(&look, &f->rows[i]);
    struct found found = {.n_nodes = 0};
    return code ? code
                : visit_nodes(&look, model->graph->node, model->graph->n_node, &found);
}

/* This cannot fail any more: every function was visited before. */
void
qdqi_functions_mark_needed(const struct qdqi_functions *f)
{
    struct look look = {.functions = f, .mark_needed = true};
    for (size_t i = 0; i < f->n; i++)
        f->rows[i].visited = NOT_YET;
    for (size_t i = 0; i < f->n; i++)
        if (!f->rows[i].is_inlined && visit_function(&look, &f->rows[i]))
            f->rows[i].is_needed = true;
}
