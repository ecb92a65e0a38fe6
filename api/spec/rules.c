/* SPDX-License-Identifier: Apache-2.0 */
/* The member rules: placement rules of the target, by id, switched on or off, or left to
   the target. */
#include "config.h"
#include "spec/members.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "qdq/rules.h"
#include "qdq/targets.h"
#include "qdq/words.h"

static const char *
id_at(const void *arg, size_t i)
{
    const struct qdq_rule *rule = qdq_rule(i);
    (void)arg;
    return rule ? rule->id : NULL;
}

/* Returns the number of the first rule with that id, or -1. Targets that share a rule
   have a row of it each. */
static int
find_rule(const char *id)
{
    for (int i = 0; qdq_rule((size_t)i); i++)
        if (strcmp(qdq_rule((size_t)i)->id, id) == 0)
            return i;
    return -1;
}

struct place {
    char pointer[256];
};

static struct place
place_of(const struct member *m, const char *id)
{
    struct place place;
    snprintf(place.pointer, sizeof place.pointer, "%s", m->pointer);
    api_json_pointer_add(place.pointer, sizeof place.pointer, id);
    return place;
}

static bool
unknown_rule(struct decoder *d, const char *pointer, const char *id)
{
    const char *nearest = qdq_nearest_word(id, id_at, NULL);
    return api_refuse(d, API_INVALID_SPEC, pointer,
                      "no target has a rule \"%.64s\"%s%s%s", id,
                      nearest ? ", did you mean \"" : "", nearest ? nearest : "",
                      nearest ? "\"?" : "");
}

static bool
refuse_value(struct decoder *d, const char *pointer, int i, const json_t *value)
{
    const struct qdq_rule *rule = qdq_rule((size_t)i);
    const char *known = rule->is_auto ? "true, false or \"auto\"" : "true or false";
    if (json_is_string(value))
        return api_refuse(d, API_INVALID_SPEC, pointer,
                          "rules.%s is to be %s, not \"%.64s\"", rule->id, known,
                          json_string_value(value));
    return api_refuse(d, API_INVALID_SPEC, pointer, "rules.%s is to be %s, not %s",
                      rule->id, known, api_json_type_name(value));
}

/* Checks one rule by itself: the spec's target may not be known yet. */
static bool
check_rule(struct decoder *d, const struct member *m, const char *id,
           const json_t *value)
{
    const struct place at = place_of(m, id);
    int i = find_rule(id);
    if (i < 0)
        return unknown_rule(d, at.pointer, id);
    const bool is_auto = json_is_string(value) && qdq_rule((size_t)i)->is_auto &&
                         strcmp(json_string_value(value), "auto") == 0;
    if (!json_is_boolean(value) && !is_auto)
        return refuse_value(d, at.pointer, i, value);
    if (qdq_rule((size_t)i)->is_fixed && json_is_false(value))
        return api_refuse(d, API_UNSUPPORTED, at.pointer,
                          "cannot do without rule %s: %s", id,
                          qdq_rule((size_t)i)->text);
    return true;
}

bool
api_decode_rules(struct decoder *d, const struct member *m, json_t *value)
{
    const char *id;
    json_t *on;
    json_object_foreach (value, id, on)
        if (!check_rule(d, m, id, on))
            return false;
    return true;
}

/* Returns whether the spec has the rule and states it. A frozen spec states no rule that is younger
   than the version that froze it: they are automatic. */
static bool
is_stated(const struct qdq_spec *spec, size_t rule)
{
    if (qdq_rule_set_has(&spec->rules_later, rule))
        return false;
    return spec->host != QDQ_HOST_UNSTATED || !spec->target->rules[rule].is_auto ||
           qdq_rule_set_has(&spec->rules_on, rule) ||
           qdq_rule_set_has(&spec->rules_off, rule);
}

/* Encodes the state of each rule of the target that can be switched. */
json_t *
api_encode_rules(const void *object, const struct member *m)
{
    const struct qdq_spec *spec = object;
    json_t *rules = json_object();
    bool ok = rules;
    (void)m;
    for (size_t i = 0; ok && i < spec->target->n_rules; i++) {
        const struct qdq_rule *rule = &spec->target->rules[i];
        if (!rule->is_fixed && is_stated(spec, i))
            ok = json_object_set_new(rules, rule->id,
                                     json_boolean(qdq_spec_has_rule(spec, i))) == 0;
    }
    return api_json_if(ok, rules);
}

/* Returns whether the spec has members that a frozen one always has, and a person hardly states
   together. */
static bool
looks_frozen(const json_t *root)
{
    static const char *const always[] = {"existing_qdq", "layer_support",
                                         "on_unmatched", "opset", "output"};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (!json_object_get(root, always[i]))
            return false;
    return true;
}

/* Returns the number behind the last of the target's rules that the spec states. */
static size_t
end_of_stated(const struct qdq_spec *spec, const json_t *rules)
{
    size_t end = 0;
    for (size_t i = 0; i < spec->target->n_rules; i++)
        if (json_object_get(rules, spec->target->rules[i].id))
            end = i + 1;
    return end;
}

/* Finds the rules that a frozen spec does not state: they are younger than
   the version that froze it, which stated all that it had. Automatic ones may stand anywhere, others
   stand behind those that it states. A frozen spec has the recipe none; one with another recipe may
   leave rules open to it. */
static void
find_later_rules(const struct decoder *d, struct qdq_spec *spec)
{
    const json_t *rules = json_object_get(d->to->root, "rules");
    const bool is_settled =
        json_object_get(d->to->root, "recipe")
            ? strcmp(api_text_at(d->to->root, "recipe"), "none") == 0
            : spec->target->recipe == QDQ_RECIPE_NONE;
    if (json_object_size(rules) == 0 || !is_settled || !looks_frozen(d->to->root))
        return;
    const size_t end = end_of_stated(spec, rules);
    for (size_t i = 0; i < spec->target->n_rules; i++) {
        const struct qdq_rule *rule = &spec->target->rules[i];
        if ((rule->is_auto || i >= end) && !rule->is_fixed &&
            !json_object_get(rules, rule->id))
            qdq_rule_set_add(&spec->rules_later, i);
    }
}

bool
api_settle_rules(struct decoder *d)
{
    struct qdq_spec *spec = &d->to->spec;
    const char *id;
    json_t *value;
    json_object_foreach (json_object_get(d->to->root, "rules"), id, value) {
        const struct member m = {.pointer = "/rules"};
        const struct place at = place_of(&m, id);
        const int rule = qdq_target_find_rule(spec->target, id);
        if (rule < 0)
            return api_refuse(d, API_INVALID_SPEC, at.pointer,
                              "rule %s is one of another target", id);
        if (json_is_boolean(value)) /* or "auto" */
            qdq_spec_switch_rule(spec, (size_t)rule, json_is_true(value));
    }
    find_later_rules(d, spec);
    return true;
}
