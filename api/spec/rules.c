/* SPDX-License-Identifier: Apache-2.0 */
/* The member rules: placement rules of the target, by id, switched on or off, or left to
   the target. */
#include "config.h"
#include "spec/members.h"

#include <stdio.h>
#include <string.h>

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

/* Returns the rows of that id, as a set. */
static uint64_t
rules_of_id(const char *id)
{
    uint64_t set = 0;
    for (size_t i = 0; qdq_rule(i); i++)
        if (strcmp(qdq_rule(i)->id, id) == 0)
            set |= (uint64_t)1 << i;
    return set;
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

/* Decodes one rule. api_check_rules() checks later that it belongs to the target. */
static bool
decode_rule(struct decoder *d, const struct member *m, const char *id,
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
    const uint64_t bits = rules_of_id(id);
    uint64_t *set = &d->to->spec.rules;
    uint64_t *left = &d->to->spec.auto_rules;
    *set = json_is_true(value) ? *set | bits : *set & ~bits;
    *left = is_auto ? *left | bits : *left & ~bits;
    return true;
}

bool
api_decode_rules(struct decoder *d, const struct member *m, json_t *value)
{
    const char *id;
    json_t *on;
    json_object_foreach (value, id, on)
        if (!decode_rule(d, m, id, on))
            return false;
    return true;
}

/* Encodes the state of each rule of the target that can be switched. */
json_t *
api_encode_rules(const void *object, const struct member *m)
{
    const struct qdq_spec *spec = object;
    uint64_t own = qdq_target_rules(spec->target) & ~spec->unstated_rules;
    json_t *rules = json_object();
    bool ok = rules;
    (void)m;
    for (size_t i = 0; ok && qdq_rule(i); i++)
        if (own >> i & 1 && !qdq_rule(i)->is_fixed)
            ok = json_object_set_new(rules, qdq_rule(i)->id,
                                     json_boolean(spec->rules >> i & 1)) == 0;
    return api_json_if(ok, rules);
}

bool
api_check_rules(struct decoder *d)
{
    const char *id;
    json_t *on;
    json_object_foreach (json_object_get(d->to->root, "rules"), id, on) {
        const struct member m = {.pointer = "/rules"};
        const struct place at = place_of(&m, id);
        if (!(qdq_target_rules(d->to->spec.target) & rules_of_id(id)))
            return api_refuse(d, API_INVALID_SPEC, at.pointer,
                              "rule %s is one of another target", id);
    }
    return true;
}
