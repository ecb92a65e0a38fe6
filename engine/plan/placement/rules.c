/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/placement/rules.h"

#include "plan/placement/target.h"

#include <stdlib.h>
#include <string.h>

/* --- sets ------------------------------------------------------------------ */

bool
qdq_rule_set_has(const struct qdq_rule_set *set, size_t rule)
{
    return set->words[rule / 64] >> rule % 64 & 1;
}

void
qdq_rule_set_add(struct qdq_rule_set *set, size_t rule)
{
    set->words[rule / 64] |= (uint64_t)1 << rule % 64;
}

void
qdq_rule_set_remove(struct qdq_rule_set *set, size_t rule)
{
    set->words[rule / 64] &= ~((uint64_t)1 << rule % 64);
}

/* --- the rules of a target ------------------------------------------------- */

int
qdq_target_find_rule(const struct qdq_target *target, const char *id)
{
    for (size_t i = 0; i < target->n_rules; i++)
        if (strcmp(target->rules[i].id, id) == 0)
            return (int)i;
    return -1;
}

/* --- the rules of a spec --------------------------------------------------- */

/* Returns whether the spec states a rule, whose state is not the default one then. */
static bool
is_switched(const struct qdq_spec *spec, size_t rule)
{
    return qdq_rule_set_has(&spec->rules_on, rule) ||
           qdq_rule_set_has(&spec->rules_off, rule);
}

bool
qdq_spec_has_rule(const struct qdq_spec *spec, size_t rule)
{
    return is_switched(spec, rule) ? qdq_rule_set_has(&spec->rules_on, rule)
                                   : spec->target->rules[rule].is_on &&
                                         !qdq_rule_set_has(&spec->rules_later, rule);
}

void
qdq_spec_switch_rule(struct qdq_spec *spec, size_t rule, bool on)
{
    qdq_rule_set_add(on ? &spec->rules_on : &spec->rules_off, rule);
    qdq_rule_set_remove(on ? &spec->rules_off : &spec->rules_on, rule);
}

void
qdqi_rules_decide(struct qdq_spec *spec)
{
    const struct qdq_target *target = spec->target;
    const char *reason;
    if (!target->hooks->decide_rule || spec->host == QDQ_HOST_UNSTATED)
        return;
    for (size_t i = 0; i < target->n_rules; i++)
        if (target->rules[i].is_auto && !is_switched(spec, i) &&
            !qdq_rule_set_has(&spec->rules_later, i))
            qdq_spec_switch_rule(spec, i,
                                 target->hooks->decide_rule(spec, (int)i, &reason));
}

const char *
qdqi_rule_reason(const struct qdq_spec *spec, int rule, bool *ret_on)
{
    const struct qdq_target *target = spec->target;
    const char *reason;
    if (!target->rules[rule].is_auto || !target->hooks->decide_rule)
        return NULL;
    *ret_on = qdq_spec_has_rule(spec, (size_t)rule);
    if (target->hooks->decide_rule(spec, rule, &reason) == *ret_on)
        return reason;
    return *ret_on ? "the spec switches it on" : "the spec switches it off";
}

bool
qdqi_rule_is_on(const struct planner *p, int rule)
{
    return qdq_spec_has_rule(p->spec, (size_t)rule);
}

const char *
qdqi_rule_id(const struct planner *p, int rule)
{
    return p->spec->target->rules[rule].id;
}

/* --- the rules of a layer -------------------------------------------------- */

void
qdqi_rule_cite(struct qdq_layer *layer, int rule)
{
    qdq_rule_set_add(&layer->rules, (size_t)rule);
}

void
qdqi_layer_leave(struct qdq_layer *layer, int rule, const char *reason)
{
    layer->quantized_inputs = NULL;
    layer->n_inputs = 0;
    layer->weight_input = layer->weight_axis = -1;
    layer->weight = NULL;
    layer->reason = reason;
    layer->reason_kind = QDQ_REASON_RULE;
    layer->rules = (struct qdq_rule_set){{0}};
    qdqi_rule_cite(layer, rule);
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

bool
qdqi_rule_means(const struct planner *p, int rule, const struct qdq_layer *layer)
{
    const struct qdqi_veto *v = p->spec->target->hooks->vetoes;
    for (; v && v->means; v++)
        if (v->rule == rule)
            return v->means(p, layer);
    return false;
}

/* Applies the vetoes that ask about the layers behind a layer, or those that do not. */
static void
apply(struct planner *p, struct qdq_layer *layer, bool asks_behind)
{
    if (!qdqi_layer_is_quantized(layer) ||
        p->selection.choices[layer->node].rank >= QDQI_BY_MATCH)
        return;
    const struct qdqi_veto *v = p->spec->target->hooks->vetoes;
    for (; v && v->means; v++) {
        if (v->asks_behind != asks_behind || !qdqi_rule_is_on(p, v->rule) ||
            !v->means(p, layer))
            continue;
        qdqi_layer_leave(layer, v->rule, v->reason);
        return;
    }
}

void
qdqi_rules_apply(struct planner *p, struct qdq_layer *layer)
{
    apply(p, layer, false);
}

/* --- after all decisions --------------------------------------------------- */

/* Goes from the last node to the first, so that the decision about a layer is known
   when the layers that feed it are decided on. */
enum qdq_code
qdqi_rules_settle(struct planner *p, struct qdq_error *err)
{
    const struct qdqi_hooks *hooks = p->spec->target->hooks;
    size_t n = p->model->graph.n_nodes;
    p->by_node = qdqi_arena_array(p->plan->arena, n, sizeof *p->by_node);
    if (!p->by_node)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < p->n_layers; i++)
        p->by_node[p->layers[i].node] = &p->layers[i];
    for (size_t i = n; i-- > 0;) {
        if (hooks->settle_node)
            hooks->settle_node(p, i);
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
