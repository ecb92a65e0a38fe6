/* SPDX-License-Identifier: Apache-2.0 */
/* cases: insertion cases by name, and scripts. */
#include "config.h"
#include "spec/members.h"

#include <string.h>

enum { MAX_CASES = 64, MAX_NAME = 64, MAX_LUA = 256 << 10 };

/* Reasons and errors cite the name: one line, of a length that can be read. */
static bool
is_name(const char *name)
{
    size_t len = 0;
    for (; name[len]; len++)
        if (len == MAX_NAME || name[len] < ' ' || name[len] > '~')
            return false;
    return len > 0;
}

static bool
take_name(struct reader *r, const char *pointer, json_t *value)
{
    struct qdq_case_use *use = r->object;
    use->name = json_string_value(value);
    return is_name(use->name) ||
           api_refuse(r, API_INVALID_SPEC, pointer,
                      "a case's name has 1 to %d characters, printable ASCII",
                      MAX_NAME);
}

static bool
read_case_name(struct reader *r, const struct member *m, json_t *value)
{
    return take_name(r, m->pointer, value);
}

static bool
read_lua(struct reader *r, const struct member *m, json_t *value)
{
    struct qdq_case_use *use = r->object;
    use->lua = json_string_value(value);
    return strlen(use->lua) <= MAX_LUA ||
           api_refuse(r, API_LIMIT_EXCEEDED, m->pointer,
                      "a script may have at most %d bytes", MAX_LUA);
}

#define FIELD(name) ((ptrdiff_t)offsetof(struct qdq_case_use, name))

static const struct member members[] = {
    {"/name", STRING, read_case_name, api_write_text, FIELD(name), NULL, 0},
    {"/lua", STRING, read_lua, api_write_text, FIELD(lua), NULL, 0},
};

static const struct table table = TABLE(members);

/* A name, or an object with name and script. */
static bool
read_case(struct reader *r, json_t *item)
{
    const struct qdq_case_use *use = r->object;
    if (json_is_string(item))
        return take_name(r, "", item);
    if (!api_read_members(r, "", item))
        return false;
    return use->name || api_refuse(r, API_INVALID_SPEC, "", "a case is to have a name");
}

static const struct list uses = {
    .types = STRING | OBJECT,
    .size = sizeof(struct qdq_case_use),
    .max = MAX_CASES,
    .table = &table,
    .read = read_case,
};

bool
api_read_cases(struct reader *r, const struct member *m, json_t *value)
{
    struct qdq_spec *spec = &r->to->spec;
    spec->cases = api_read_list(r, m, value, &uses);
    if (!spec->cases)
        return false;
    spec->n_cases = json_array_size(value);
    return true;
}

static json_t *
encode_use(const void *items, size_t i)
{
    const struct qdq_case_use *use = (const struct qdq_case_use *)items + i;
    return use->lua ? api_write_members(&table, use) : api_json_text(use->name);
}

json_t *
api_write_cases(const void *object, const struct member *m)
{
    const struct qdq_spec *spec = object;
    (void)m;
    return api_json_list(spec->cases, spec->n_cases, encode_use);
}
