/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes what ONNX Runtime's optimizer fused as the operators of ONNX that it was made of: a model
 * that was saved behind the optimizer has its layers in the domain com.microsoft, version 1.
 *
 *   FusedConv    a Conv, the Add of its fourth input, and an activation
 *   FusedGemm    a Gemm and an activation
 *   FusedMatMul  a MatMul whose constant weight may be transposed, and the Mul by alpha
 *   Attention    unfuse_attention.h
 */
#include "config.h"
#include "transform/prepare/named.h"
#include "transform/prepare/prepare.h"

#include "files/model/constant.h"
#include "graph/edit/edit.h"
#include "plan/targets/shared/plain_forms.h"
#include "transform/prepare/unfuse_attention.h"

#include <math.h>
#include <string.h>

enum { ADDEND = 3, MAX_PARAMETERS = 2, OPSET_CLIP = 11 };

/* An activation that a fused operator may have. */
struct activation {
    const char *op;
    const char *parameters[MAX_PARAMETERS]; /* attributes; Clip has inputs for them */
};

static const struct activation activations[] = {
    {"Relu", {NULL, NULL}},
    {"Sigmoid", {NULL, NULL}},
    {"Tanh", {NULL, NULL}},
    {"LeakyRelu", {"alpha", NULL}},
    {"HardSigmoid", {"alpha", "beta"}},
    {"Clip", {"min", "max"}},
};

struct unfusing {
    const struct qdq_model *model;
    struct qdqi_edit *edit;
    struct qdqi_arena *arena;
    const struct qdqi_map *named;   /* by the spec */
    bool layers, attention, causal; /* rules P1, P3 and P7 */
    const char *first;
    size_t n;
    /* Attention that stays as it is: the first, and why */
    const char *kept, *why_kept;
    size_t n_kept;
};

/* The nodes that follow the layer in the place of a fused operator. */
struct behind {
    const char *addend;                  /* a tensor, or NULL */
    const float *factor;                 /* or NULL */
    const struct activation *activation; /* or NULL */
    float parameters[MAX_PARAMETERS];
};

static bool
is_fused(const struct qdqi_node *node, const char *op)
{
    return qdqi_node_is_microsoft(node->proto) &&
           strcmp(node->proto->op_type, op) == 0 && node->proto->n_output == 1 &&
           node->outputs[0] && node->proto->n_input >= 2 && node->inputs[1] &&
           node->inputs[1]->dtype == QDQI_FLOAT32;
}

static float
float_of(const struct qdqi_node *node, const char *name, float otherwise)
{
    const Onnx__AttributeProto *a = qdqi_node_attribute(node->proto, name);
    return a ? a->f : otherwise;
}

/* Finds the row of an activation by the name in the node. Returns false for another one. */
static bool
read_activation(const struct qdqi_node *node, struct behind *ret)
{
    const Onnx__AttributeProto *a = qdqi_node_attribute(node->proto, "activation");
    if (!a || a->s.len == 0)
        return true;
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
        if (strlen(activations[i].op) == a->s.len &&
            memcmp(activations[i].op, a->s.data, a->s.len) == 0)
            ret->activation = &activations[i];
    return ret->activation;
}

static size_t
count_parameters(const struct activation *a)
{
    size_t n = 0;
    while (a && n < MAX_PARAMETERS && a->parameters[n])
        n++;
    return n;
}

/* --- what comes behind the layer --------------------------------------------- */

/* Adds a node behind the fused one that reads the tensor in *at, and sets *at to its output. */
static Onnx__NodeProto *
add_behind(struct unfusing *u, const struct qdqi_node *node, const char *op,
           const char *const *others, size_t n, const char *output, const char **at)
{
    const char *inputs[3] = {*at, n > 0 ? others[0] : NULL, n > 1 ? others[1] : NULL};
    const char *name = qdqi_edit_name(u->edit, node->name, "_unfused");
    *at = output;
    return qdqi_edit_add_node(u->edit, qdqi_edit_behind(u->model, node->outputs[0]), op,
                              name, inputs, 1 + n, output);
}

static const char *
add_scalar(struct unfusing *u, const struct qdqi_node *node, const float *value)
{
    const char *name = qdqi_edit_name(u->edit, node->name, "_constant");
    float *copy = qdqi_arena_alloc(u->arena, sizeof *copy);
    if (!copy)
        return NULL;
    *copy = *value;
    qdqi_edit_add_initializer(u->edit, name, QDQI_FLOAT32, 1, true, copy);
    return name;
}

static void
add_activation(struct unfusing *u, const struct qdqi_node *node, const struct behind *b,
               const char *output, const char **at)
{
    const size_t n = count_parameters(b->activation);
    const bool as_inputs = strcmp(b->activation->op, "Clip") == 0;
    const char *inputs[MAX_PARAMETERS] = {NULL, NULL};
    for (size_t i = 0; i < n && as_inputs; i++)
        inputs[i] = add_scalar(u, node, &b->parameters[i]);
    Onnx__NodeProto *made =
        add_behind(u, node, b->activation->op, inputs, as_inputs ? n : 0, output, at);
    for (size_t i = 0; i < n && !as_inputs; i++)
        qdqi_edit_add_float(u->edit, made, b->activation->parameters[i],
                            b->parameters[i]);
}

/* Adds what follows the layer. The last node makes the fused one's output. */
static void
add_rest(struct unfusing *u, size_t i, const struct behind *b)
{
    const struct qdqi_node *node = &u->model->graph.nodes[i];
    const char *output = node->outputs[0]->name, *at;
    size_t left = (b->addend != NULL) + (b->factor != NULL) + (b->activation != NULL);
    if (left == 0)
        return;
    at = qdqi_edit_name(u->edit, output, "_layer");
    qdqi_edit_set_output(u->edit, i, 0, at);
#define NEXT (--left == 0 ? output : qdqi_edit_name(u->edit, output, "_layer"))
    if (b->addend)
        add_behind(u, node, "Add", &b->addend, 1, NEXT, &at);
    if (b->factor) {
        const char *factor = add_scalar(u, node, b->factor);
        add_behind(u, node, "Mul", &factor, 1, NEXT, &at);
    }
    if (b->activation)
        add_activation(u, node, b, NEXT, &at);
#undef NEXT
}

/* Makes the node one of an operator of ONNX, without the attributes of the fused one. */
static void
retype(struct unfusing *u, size_t i, const char *op)
{
    static const char *const gone[] = {
        "activation",      "activation_params", "activation_alpha",
        "activation_beta", "activation_gamma",  NULL,
    };
    static const char *const of_matmul[] = {"alpha",       "transA",      "transB",
                                            "transBatchA", "transBatchB", NULL};
    for (size_t k = 0; gone[k]; k++)
        qdqi_edit_retype(u->edit, i, op, "", gone[k]);
    for (size_t k = 0; strcmp(op, "MatMul") == 0 && of_matmul[k]; k++)
        qdqi_edit_retype(u->edit, i, op, "", of_matmul[k]);
    if (u->n++ == 0)
        u->first = u->model->graph.nodes[i].name;
}

/* --- the operators ------------------------------------------------------------- */

static bool
unfuse_conv(struct unfusing *u, size_t i)
{
    const struct qdqi_node *node = &u->model->graph.nodes[i];
    const Onnx__AttributeProto *a =
        qdqi_node_attribute(node->proto, "activation_params");
    struct behind b = {0};
    if (!read_activation(node, &b) ||
        count_parameters(b.activation) > (a ? a->n_floats : 0))
        return false;
    for (size_t k = 0; k < count_parameters(b.activation); k++)
        b.parameters[k] = a->floats[k];
    if (node->proto->n_input > ADDEND && node->inputs[ADDEND])
        b.addend = node->inputs[ADDEND]->name;
    retype(u, i, "Conv");
    if (node->proto->n_input > ADDEND)
        qdqi_edit_drop_last_input(u->edit, i);
    add_rest(u, i, &b);
    return true;
}

static bool
unfuse_gemm(struct unfusing *u, size_t i)
{
    const struct qdqi_node *node = &u->model->graph.nodes[i];
    struct behind b = {0};
    if (!read_activation(node, &b))
        return false;
    b.parameters[0] = float_of(node, "activation_alpha", 0);
    b.parameters[1] = float_of(node, "activation_beta", 0);
    retype(u, i, "Gemm");
    add_rest(u, i, &b);
    return true;
}

/* A transposed operand is written where it is a constant, whose transposition costs nothing. */
static bool
unfuse_matmul(struct unfusing *u, size_t i)
{
    const struct qdqi_node *node = &u->model->graph.nodes[i];
    const float alpha = float_of(node, "alpha", 1);
    const struct behind b = {.factor = alpha != 1 ? &alpha : NULL};
    const struct qdqi_tensor *weight = node->inputs[1];
    struct qdqi_constant c;
    const bool transposed = qdqi_node_int(node->proto, "transB", 0);
    if (qdqi_node_int(node->proto, "transA", 0) ||
        qdqi_node_int(node->proto, "transBatchA", 0) ||
        qdqi_node_int(node->proto, "transBatchB", 0) ||
        (transposed && (qdqi_constant_read(u->model, weight, &c, NULL) || c.rank != 2)))
        return false;
    retype(u, i, "MatMul");
    if (transposed) {
        const char *name = qdqi_edit_name(u->edit, node->name, "_unfused");
        const char *made = qdqi_edit_name(u->edit, weight->name, "_transposed");
        qdqi_edit_add_node(u->edit, i, "Transpose", name, &weight->name, 1, made);
        qdqi_edit_set_input(u->edit, i, 1, made);
    }
    add_rest(u, i, &b);
    return true;
}

static void
unfuse(struct unfusing *u, size_t i)
{
    static const struct {
        const char *op;
        bool (*unfuse)(struct unfusing *u, size_t i);
    } rows[] = {{"FusedConv", unfuse_conv},
                {"FusedGemm", unfuse_gemm},
                {"FusedMatMul", unfuse_matmul}};
    const struct qdqi_node *node = &u->model->graph.nodes[i];
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (u->layers && is_fused(node, rows[k].op))
            (void)rows[k].unfuse(u, i);
    if (!u->attention || !qdqi_is_attention(node))
        return;
    const char *why =
        qdqi_unfuse_attention(u->model, u->edit, u->arena, u->named, i, u->causal);
    if (!why && u->n++ == 0)
        u->first = node->name;
    if (why && u->n_kept++ == 0) {
        u->kept = node->name;
        u->why_kept = why;
    }
}

enum qdq_code
qdqi_step_unfuse(struct qdqi_preparing *p, struct qdq_model **ret,
                 struct qdq_error *err)
{
    struct qdq_spec spec = *p->spec;
    qdq_spec_complete(&spec);
    const struct qdqi_graph *graph = &p->model->graph;
    struct unfusing u = {.model = p->model,
                         .layers = qdqi_has_plain_forms(&spec),
                         .attention = qdqi_has_plain_attention(&spec),
                         .causal = qdqi_has_plain_causal(&spec)};
    if ((!u.layers && !u.attention) || p->model->proto->n_training_info ||
        qdqi_model_opset(p->model->proto) < OPSET_CLIP)
        return QDQ_OK;
    u.arena = qdqi_arena_new();
    u.edit = u.arena ? qdqi_edit_new(p->model, u.arena) : NULL;
    u.named = u.edit ? qdqi_named_by_spec(p->spec, u.arena) : NULL;
    enum qdq_code code = u.named ? QDQ_OK : qdqi_no_memory(err);
    for (size_t i = 0; i < graph->n_nodes && !code; i++)
        if (!graph->scopes[graph->nodes[i].scope].is_opaque)
            unfuse(&u, i);
    if (!code && u.n > 0)
        code = qdqi_edit_derive(u.edit, &u.arena, ret, err);
    if (!code && u.n > 0)
        code = qdqi_warn(&p->warnings, p->arena, err, "layers_unfused", u.first,
                         "%zu operators that ONNX Runtime's optimizer fused, this one "
                         "first, are those of ONNX in the result",
                         u.n);
    if (!code && u.n_kept > 0)
        code = qdqi_warn(&p->warnings, p->arena, err, "weights_in_attention", u.kept,
                         "the weights inside %zu Attention of com.microsoft, this one "
                         "first, stay in float, since %s: quantize the model that ONNX "
                         "Runtime's optimizer was given",
                         u.n_kept, u.why_kept);
    qdqi_arena_free(&u.arena);
    return code;
}
