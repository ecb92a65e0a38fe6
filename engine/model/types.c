/* SPDX-License-Identifier: Apache-2.0 */
/* Element types of the main graph's tensors, by the rows of tbl/types.h. */
#include "config.h"
#include "model/model.h"

#include <string.h>

enum rule { SAME, FIXED, ATTR, LIKE, VALUE };

struct type_rule {
    const char *op;
    enum rule rule;
    int argument;
};

static const struct type_rule rules[] = {
#define TYPE_RULE(op, rule, argument) {op, rule, argument},
#define REST_RULE(op, rule, argument)
#include "tbl/types.h"
#undef TYPE_RULE
#undef REST_RULE
};

static const struct type_rule rest_rules[] = {
#define TYPE_RULE(op, rule, argument)
#define REST_RULE(op, rule, argument) {op, rule, argument},
#include "tbl/types.h"
#undef TYPE_RULE
#undef REST_RULE
};

enum {
    N_RULES = sizeof rules / sizeof *rules,
    N_REST_RULES = sizeof rest_rules / sizeof *rest_rules
};

/* Attributes that say an element type; no operator has two of them. */
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

/* What an attribute says; QDQI_UNKNOWN also where what it says is no type. */
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

static const struct type_rule *
rule_of_output(const struct type_rule *rule, size_t output)
{
    for (size_t i = 0; output > 0 && i < N_REST_RULES; i++)
        if (strcmp(rest_rules[i].op, rule->op) == 0)
            return &rest_rules[i];
    return rule;
}

enum qdq_code
qdqi_graph_infer_types(struct qdq_model *m, struct qdq_error *err)
{
    struct qdqi_map *by_op = qdqi_map_new(m->arena);
    if (!by_op)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < N_RULES; i++)
        if (!qdqi_map_put(by_op, rules[i].op, (void *)(uintptr_t)&rules[i]))
            return qdqi_no_memory(err);
    for (size_t i = 0; i < m->graph.n_nodes; i++) {
        const struct qdqi_node *node = &m->graph.nodes[i];
        if (!qdqi_is_onnx_domain(node->proto->domain))
            continue;
        const struct type_rule *rule = qdqi_map_get(by_op, node->proto->op_type);
        for (size_t k = 0; rule && k < node->proto->n_output; k++)
            if (node->outputs[k] && !known_dtype(node->outputs[k]->dtype))
                node->outputs[k]->dtype = output_dtype(node, rule_of_output(rule, k));
    }
    return QDQ_OK;
}
