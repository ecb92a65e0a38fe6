/* SPDX-License-Identifier: Apache-2.0 */
/* Infers the element types of all tensors by the rows of tbl/types.h. */
#include "config.h"
#include "files/model/model.h"

#include <string.h>

enum rule { SAME, FIXED, ATTR, LIKE, VALUE };

/* The outputs that a rule is for: all, those after the first, or the one of this index. */
enum { ALL = -1, REST = -2 };

struct type_rule {
    bool is_microsoft; /* the operators are those of com.microsoft, not of ONNX */
    int outputs;
    enum rule rule;
    int argument;
    const char *const *ops; /* the last one is NULL */
};

static const struct type_rule rules[] = {
#define MS_RULE(outputs, rule, argument, ...) \
    {true, outputs, rule, argument, (const char *const[]){__VA_ARGS__, NULL}},
#define TYPE_RULE(rule, argument, ...) \
    {false, ALL, rule, argument, (const char *const[]){__VA_ARGS__, NULL}},
#define REST_RULE(rule, argument, ...) \
    {false, REST, rule, argument, (const char *const[]){__VA_ARGS__, NULL}},
#include "ground/tbl/types.h"
#undef MS_RULE
#undef TYPE_RULE
#undef REST_RULE
};

enum { N_RULES = sizeof rules / sizeof *rules };

/* Attributes that name an element type; no operator has two of them. */
static const char *const type_attributes[] = {
    "to", "dtype", "output_dtype", "output_datatype", "stash_type",
};

static enum qdqi_dtype
input_dtype(const struct qdqi_node *node, int i)
{
    return (size_t)i < node->proto->n_input && node->inputs[i] ? node->inputs[i]->dtype
                                                               : QDQI_UNKNOWN;
}

static bool
known_dtype(enum qdqi_dtype dtype)
{
    return (int)dtype > 0 && dtype < QDQI_N_DTYPES;
}

/* Reads the type that an attribute names; QDQI_UNKNOWN also when the value is not a
   type. */
static bool
attribute_dtype(const struct qdqi_node *node, enum qdqi_dtype *ret)
{
    const size_t n = sizeof type_attributes / sizeof *type_attributes;
    const Onnx__AttributeProto *a = NULL;
    for (size_t i = 0; i < n && !a; i++)
        a = qdqi_node_attribute(node->proto, type_attributes[i]);
    if (a)
        *ret = a->has_i && a->i > 0 && a->i < QDQI_N_DTYPES ? (enum qdqi_dtype)a->i
                                                            : QDQI_UNKNOWN;
    return a != NULL;
}

static enum qdqi_dtype
output_dtype(const struct qdqi_node *node, const struct type_rule *rule)
{
    const Onnx__AttributeProto *value;
    enum qdqi_dtype said;
    switch (rule->rule) {
    case SAME:
        return input_dtype(node, rule->argument);
    case FIXED:
        return (enum qdqi_dtype)rule->argument;
    case ATTR:
        return attribute_dtype(node, &said) ? said : (enum qdqi_dtype)rule->argument;
    case LIKE:
        return attribute_dtype(node, &said) ? said : input_dtype(node, rule->argument);
    case VALUE:
        value = qdqi_node_attribute(node->proto, "value");
        return value && value->t ? (enum qdqi_dtype)value->t->data_type
                                 : (enum qdqi_dtype)rule->argument;
    }
    return QDQI_UNKNOWN;
}

/* Returns the rule of a node's operator for outputs of that kind, or NULL. */
static const struct type_rule *
find_rule(const Onnx__NodeProto *node, int outputs)
{
    const bool theirs = qdqi_node_is_microsoft(node);
    if (!theirs && !qdqi_is_onnx_domain(node->domain))
        return NULL;
    for (size_t i = 0; i < N_RULES; i++)
        for (const char *const *name = rules[i].ops; *name; name++)
            if (rules[i].is_microsoft == theirs && rules[i].outputs == outputs &&
                strcmp(*name, node->op_type) == 0)
                return &rules[i];
    return NULL;
}

/* Returns the rule for one output, where `rule` is the one for all. */
static const struct type_rule *
rule_of_output(const struct type_rule *rule, const Onnx__NodeProto *node, size_t output)
{
    const struct type_rule *own = NULL;
    if (output > 0 && qdqi_node_is_microsoft(node))
        own = find_rule(node, (int)output);
    if (output > 0 && !own)
        own = find_rule(node, REST);
    return own ? own : rule;
}

enum qdqi_dtype
qdqi_output_dtype(const struct qdqi_node *node, size_t output)
{
    const struct type_rule *rule = find_rule(node->proto, ALL);
    return rule ? output_dtype(node, rule_of_output(rule, node->proto, output))
                : QDQI_UNKNOWN;
}

/* --- nested graphs -------------------------------------------------------- */

/*
 * How inputs and outputs of a control flow operator match those of its body, by
 * position: input `inputs` of the owner is input `first` of the body, output 0 of the
 * owner is output `outputs` of the body.
 */
struct body_rule {
    const char *op;
    size_t inputs, first, outputs;
};

static const struct body_rule body_rules[] = {
    {"If", SIZE_MAX, 0, 0},
    /* skips trip count and condition of the owner, counter and condition of the body */
    {"Loop", 2, 2, 1},
    {"Scan", 0, 0, 0}, /* from opset 9 on */
};

enum { OPSET_SCAN = 9 };

static const struct body_rule *
rule_of_body(const struct qdq_model *m, const struct qdqi_scope *scope)
{
    if (scope->owner < 0 || scope->is_opaque)
        return NULL;
    const Onnx__NodeProto *owner = m->graph.nodes[scope->owner].proto;
    if (qdqi_node_is(owner, "Scan") && qdqi_model_opset(m->proto) < OPSET_SCAN)
        return NULL;
    for (size_t i = 0; i < sizeof body_rules / sizeof *body_rules; i++)
        if (qdqi_node_is(owner, body_rules[i].op))
            return &body_rules[i];
    return NULL;
}

static struct qdqi_tensor *
tensor_of(const struct qdq_model *m, const Onnx__ValueInfoProto *v)
{
    return v->name ? qdqi_map_get(m->graph.tensors, v->name) : NULL;
}

/* Gives inputs of a body that have no declared type the types of the owner's inputs. */
static void
type_nested_inputs(const struct qdq_model *m, size_t s)
{
    const struct qdqi_scope *scope = &m->graph.scopes[s];
    const struct body_rule *rule = rule_of_body(m, scope);
    if (!rule)
        return;
    const struct qdqi_node *owner = &m->graph.nodes[scope->owner];
    for (size_t i = rule->first; i < scope->proto->n_input; i++) {
        struct qdqi_tensor *t = tensor_of(m, scope->proto->input[i]);
        if (t && !known_dtype(t->dtype) && rule->inputs != SIZE_MAX)
            t->dtype = input_dtype(owner, (int)(rule->inputs + i - rule->first));
    }
}

/* Gives the outputs of a node with bodies the types of the bodies' outputs. */
static void
type_owner(const struct qdq_model *m, size_t i)
{
    const struct qdqi_node *node = &m->graph.nodes[i];
    for (size_t s = node->body; s > 0; s = m->graph.scopes[s].next) {
        const struct qdqi_scope *scope = &m->graph.scopes[s];
        const struct body_rule *rule = rule_of_body(m, scope);
        for (size_t k = 0; rule && k < node->proto->n_output; k++) {
            size_t at = k + rule->outputs;
            const struct qdqi_tensor *t = at < scope->proto->n_output
                                              ? tensor_of(m, scope->proto->output[at])
                                              : NULL;
            if (t && node->outputs[k] && !known_dtype(node->outputs[k]->dtype))
                node->outputs[k]->dtype = t->dtype;
        }
    }
}

/* Returns the rule of a node's operator for all outputs, or NULL. `by_op` has those of ONNX's
   own operators. */
static const struct type_rule *
rule_of(const struct qdqi_map *by_op, const Onnx__NodeProto *node)
{
    return qdqi_is_onnx_domain(node->domain) ? qdqi_map_get(by_op, node->op_type)
                                             : find_rule(node, ALL);
}

enum qdq_code
qdqi_graph_infer_types(struct qdq_model *m, struct qdq_error *err)
{
    struct qdqi_map *by_op = qdqi_map_new(m->arena);
    if (!by_op)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < N_RULES; i++)
        for (const char *const *op = rules[i].ops; *op; op++)
            if (!rules[i].is_microsoft && rules[i].outputs == ALL &&
                !qdqi_map_put(by_op, *op, (void *)(uintptr_t)&rules[i]))
                return qdqi_no_memory(err);
    size_t scope = 0;
    for (size_t i = 0; i < m->graph.n_nodes; i++) {
        const struct qdqi_node *node = &m->graph.nodes[i];
        while (scope < m->graph.n_scopes && m->graph.scopes[scope].begin <= i)
            type_nested_inputs(m, scope++);
        type_owner(m, i);
        const struct type_rule *rule = rule_of(by_op, node->proto);
        for (size_t k = 0; rule && k < node->proto->n_output; k++)
            if (node->outputs[k] && !known_dtype(node->outputs[k]->dtype))
                node->outputs[k]->dtype =
                    output_dtype(node, rule_of_output(rule, node->proto, k));
    }
    return QDQ_OK;
}
