/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a tokenizer.json, and what is wrong with them. */
#include "config.h"
#include "tokenizer/reading.h"

#include <stdio.h>

struct json_place
member_at(const struct json_place *of, const char *name)
{
    struct json_place m = {.json = json_object_get(of->json, name)};
    snprintf(m.where, sizeof m.where, "%s", of->where);
    api_json_pointer_add(m.where, sizeof m.where, name);
    return m;
}

struct json_place
item_at(const struct json_place *of, size_t i)
{
    struct json_place m = {.json = json_array_get(of->json, i)};
    char name[24];
    snprintf(name, sizeof name, "%zu", i);
    snprintf(m.where, sizeof m.where, "%s", of->where);
    api_json_pointer_add(m.where, sizeof m.where, name);
    return m;
}

bool
wrong_member(struct reading *r, const struct json_place *m, const char *wanted)
{
    return api_fail_at(r->problem, API_INVALID_DATASET, m->where, "%s is to be %s",
                       *m->where ? m->where : "the file", wanted);
}

bool
unknown_kind(struct reading *r, const struct json_place *m, const char *kind)
{
    return api_fail_at(r->problem, API_UNSUPPORTED, m->where,
                       "%s is '%.64s', which is "
                       "not done here",
                       m->where, kind);
}

bool
read_flag(struct reading *r, const struct json_place *of, const char *name, bool *ret)
{
    const struct json_place m = member_at(of, name);
    if (m.json && !json_is_null(m.json) && !json_is_boolean(m.json))
        return wrong_member(r, &m, "true or false");
    if (json_is_boolean(m.json))
        *ret = json_is_true(m.json);
    return true;
}

bool
read_text(struct reading *r, const struct json_place *of, const char *name,
          struct qdq_string *ret)
{
    const struct json_place m = member_at(of, name);
    if (!json_is_string(m.json))
        return wrong_member(r, &m, "a string");
    *ret = (struct qdq_string){json_string_value(m.json), json_string_length(m.json)};
    return true;
}

bool
read_optional(struct reading *r, const struct json_place *of, const char *name,
              struct qdq_string *ret)
{
    json_t *json = json_object_get(of->json, name);
    return !json || json_is_null(json) || read_text(r, of, name, ret);
}

bool
read_id(struct reading *r, const struct json_place *m, uint32_t *ret)
{
    const json_int_t id = json_is_integer(m->json) ? json_integer_value(m->json) : -1;
    if (id < 0 || id > UINT32_MAX)
        return wrong_member(r, m, "an id: an integer from 0 to 4294967295");
    *ret = (uint32_t)id;
    return true;
}

const char *
type_of(const struct json_place *m)
{
    return api_text_at(m->json, "type");
}
