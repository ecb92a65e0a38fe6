/* SPDX-License-Identifier: Apache-2.0 */
/* Element types of the main graph's tensors, by the rows of tbl/types.h. */
#include "config.h"
#include "model/model.h"

#include <string.h>

enum rule { SAME, FIXED, ATTR };

struct type_rule {
    const char *op;
    enum rule rule;
    int argument;
};

static const struct type_rule rules[] = {
#define TYPE_RULE(op, rule, argument) {op, rule, argument},
#define SECOND_FIXED(op, dtype)
#include "tbl/types.h"
#undef TYPE_RULE
#undef SECOND_FIXED
};

static const struct {
    const char *op;
    enum qdqi_dtype dtype;
} second_outputs[] = {
#define TYPE_RULE(op, rule, argument)
#define SECOND_FIXED(op, dtype) {op, dtype},
#include "tbl/types.h"
#undef TYPE_RULE
#undef SECOND_FIXED
};

enum { N_RULES = sizeof rules / sizeof *rules };

static enum qdqi_dtype
input_dtype(const struct qdqi_node *node, int i)
{
    return (size_t)i < node->proto->n_input && node->inputs[i] ? node->inputs[i]->dtype
                                                               : QDQI_UNKNOWN;
}

static enum qdqi_dtype
output_dtype(const struct qdqi_node *node, const struct type_rule *rule, size_t output)
{
    if (output > 0)
        for (size_t i = 0; i < sizeof second_outputs / sizeof *second_outputs; i++)
            if (strcmp(second_outputs[i].op, rule->op) == 0)
                return second_outputs[i].dtype;
    if (rule->rule == SAME)
        return input_dtype(node, rule->argument);
    if (rule->rule == FIXED)
        return (enum qdqi_dtype)rule->argument;
    const Onnx__AttributeProto *a = qdqi_node_attribute(node->proto, "to");
    if (!a)
        a = qdqi_node_attribute(node->proto, "dtype");
    if (a && a->has_i && a->i > 0 && a->i < QDQI_N_DTYPES)
        return (enum qdqi_dtype)a->i;
    return rule->argument ? (enum qdqi_dtype)rule->argument : input_dtype(node, 0);
}

static bool
known_dtype(enum qdqi_dtype dtype)
{
    return (int)dtype > 0 && dtype < QDQI_N_DTYPES;
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
                node->outputs[k]->dtype = output_dtype(node, rule, k);
    }
    return QDQ_OK;
}
