/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/placement/rules.h"

#include "graph/layers/patterns.h"
#include "plan/placement/target.h"

#include <stdlib.h>

/* --- the rules of all targets --------------------------------------------- */

const struct qdq_rule *
qdq_rule(size_t i)
{
    const struct qdq_target *target;
    for (size_t k = 0; (target = qdq_target_row(k)); i -= target->n_rules, k++)
        if (i < target->n_rules)
            return &target->rules[i];
    return NULL;
}

/* Returns the number of a target's first rule among the rules of all targets. */
static size_t
first_rule(const struct qdq_target *target)
{
    size_t first = 0;
    const struct qdq_target *row;
    for (size_t k = 0; (row = qdq_target_row(k)) && row != target; k++)
        first += row->n_rules;
    return first;
}

uint64_t
qdq_target_rules(const struct qdq_target *target)
{
    uint64_t set = 0;
    for (size_t i = 0; i < target->n_rules; i++)
        set |= (uint64_t)1 << i;
    return set << first_rule(target);
}

uint64_t
qdqi_rules_default(void)
{
    uint64_t set = 0;
    for (size_t i = 0; qdq_rule(i); i++)
        if (qdq_rule(i)->is_on)
            set |= (uint64_t)1 << i;
    return set;
}

uint64_t
qdqi_rules_automatic(void)
{
    uint64_t set = 0;
    for (size_t i = 0; qdq_rule(i); i++)
        if (qdq_rule(i)->is_auto)
            set |= (uint64_t)1 << i;
    return set;
}

void
qdqi_rules_decide(struct qdq_spec *spec)
{
    const struct qdq_target *target = spec->target;
    const size_t first = first_rule(target);
    const char *reason;
    for (size_t i = 0; i < target->n_rules; i++) {
        const uint64_t bit = (uint64_t)1 << (first + i);
        if (!(spec->auto_rules & bit) || !target->hooks->decide_rule)
            continue;
        bool on = target->hooks->decide_rule(spec, (int)i, &reason);
        spec->rules = on ? spec->rules | bit : spec->rules & ~bit;
    }
    spec->auto_rules = 0;
}

const char *
qdqi_rule_reason(const struct qdq_spec *spec, int rule, bool *ret_on)
{
    const struct qdq_target *target = spec->target;
    const char *reason;
    if (!target->rules[rule].is_auto || !target->hooks->decide_rule)
        return NULL;
    *ret_on = spec->rules >> (first_rule(target) + (size_t)rule) & 1;
    if (target->hooks->decide_rule(spec, rule, &reason) == *ret_on)
        return reason;
    return *ret_on ? "the spec switches it on" : "the spec switches it off";
}

uint64_t
qdqi_rule_bit(const struct planner *p, int rule)
{
    return (uint64_t)1 << (first_rule(p->spec->target) + (size_t)rule);
}

bool
qdqi_spec_has_rule(const struct qdq_spec *spec, int rule)
{
    return spec->rules >> (first_rule(spec->target) + (size_t)rule) & 1;
}

bool
qdqi_rule_is_on(const struct planner *p, int rule)
{
    return qdqi_spec_has_rule(p->spec, rule);
}

const char *
qdqi_rule_id(const struct planner *p, int rule)
{
    return p->spec->target->rules[rule].id;
}

/* --- which tensors have a pair --------------------------------------------- */

bool
qdqi_layer_is_quantized(const struct qdq_layer *layer)
{
    return layer->n_inputs > 0 || layer->weight_input >= 0;
}

static int
compare_inputs(const void *a, const void *b)
{
    int left = *(const int *)a, right = *(const int *)b;
    return (left > right) - (left < right);
}

bool
qdqi_layer_has_pair(const struct qdq_layer *layer, int i)
{
    return layer->n_inputs > 0 && bsearch(&i, layer->quantized_inputs, layer->n_inputs,
                                          sizeof i, compare_inputs);
}

/* --- rules that keep layers in floating point ------------------------------ */

/* The first function returns the target's first veto, the second one the veto behind
   another. They return NULL where there is none. */
static const struct qdqi_veto *
first_veto(const struct planner *p)
{
    const struct qdqi_veto *veto = p->spec->target->hooks->vetoes;
    return veto && veto->means ? veto : NULL;
}

static const struct qdqi_veto *
next_veto(const struct qdqi_veto *veto)
{
    return veto[1].means ? veto + 1 : NULL;
}

bool
qdqi_rule_means(const struct planner *p, int rule, const struct qdq_layer *layer)
{
    for (const struct qdqi_veto *v = first_veto(p); v; v = next_veto(v))
        if (v->rule == rule)
            return v->means(p, layer);
    return false;
}

static void
apply(struct planner *p, struct qdq_layer *layer, bool late)
{
    if (!qdqi_layer_is_quantized(layer) ||
        p->selection.choices[layer->node].rank >= QDQI_BY_MATCH)
        return;
    for (const struct qdqi_veto *v = first_veto(p); v; v = next_veto(v)) {
        if (v->is_late != late || !qdqi_rule_is_on(p, v->rule) || !v->means(p, layer))
            continue;
        layer->quantized_inputs = NULL;
        layer->n_inputs = 0;
        layer->weight_input = layer->weight_axis = -1;
        layer->weight = NULL;
        layer->reason = v->reason;
        layer->rules = qdqi_rule_bit(p, v->rule);
        return;
    }
}

void
qdqi_rules_apply(struct planner *p, struct qdq_layer *layer)
{
    apply(p, layer, false);
}

/* --- the layers behind a layer --------------------------------------------- */

/*
 * Returns whether a node is fused into the layer before it, so that a reader of the
 * node reads that layer. Copies and activations are fused, and MaxPool commutes with a
 * pair.
 */
static bool
is_seen_through(const struct planner *p, const struct qdqi_use *use)
{
    const struct qdqi_node *node = &p->model->graph.nodes[use->node];
    return p->graph->passes[use->node] == use->input ||
           (use->input == 0 && qdqi_is_pointwise(node)) ||
           (p->graph->classes[use->node] && qdqi_is_swish(p->graph, node)) ||
           qdqi_node_is(node->proto, "MaxPool");
}

static bool
is_read_as_int8(const struct planner *p, const struct qdqi_use *use)
{
    const struct qdq_layer *layer = p->by_node[use->node];
    if (layer && qdqi_layer_has_pair(layer, use->input))
        return true;
    return is_seen_through(p, use) && p->feeds_int8[use->node];
}

static bool
feeds_int8(const struct planner *p, size_t i)
{
    const struct qdqi_node *node = &p->model->graph.nodes[i];
    for (size_t k = 0; k < node->proto->n_output; k++) {
        const struct qdqi_tensor *t = node->outputs[k];
        /* The readers of a nested graph's outputs are not searched; they count as
           int8. */
        if (t && (t->is_captured || (t->is_output && t->scope > 0)))
            return true;
        for (const struct qdqi_use *use = t ? t->uses : NULL; use; use = use->next)
            if (is_read_as_int8(p, use))
                return true;
    }
    return false;
}

/* --- after all decisions --------------------------------------------------- */

/* Goes from the last node to the first, so that the decision about a layer is known
   when the layers that feed it are decided on. */
enum qdq_code
qdqi_rules_settle(struct planner *p, struct qdq_error *err)
{
    size_t n = p->model->graph.n_nodes;
    p->by_node = qdqi_arena_array(p->plan->arena, n, sizeof *p->by_node);
    p->feeds_int8 = qdqi_arena_array(p->plan->arena, n, sizeof *p->feeds_int8);
    if (!p->by_node || !p->feeds_int8)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < p->n_layers; i++)
        p->by_node[p->layers[i].node] = &p->layers[i];
    for (size_t i = n; i-- > 0;) {
        p->feeds_int8[i] = feeds_int8(p, i);
        if (p->by_node[i])
            apply(p, p->by_node[i], true);
    }
    return QDQ_OK;
}

void
qdqi_rules_cite(struct planner *p)
{
    const struct qdqi_hooks *hooks = p->spec->target->hooks;
    for (size_t i = 0; hooks->cite && i < p->n_layers; i++)
        hooks->cite(p, &p->layers[i]);
}
