/* SPDX-License-Identifier: Apache-2.0 */
/* The member cases: names of insertion cases, and scripts. */
#include "config.h"
#include "spec/members.h"

#include <string.h>

enum { MAX_CASES = 64, MAX_NAME = 64, MAX_LUA = 256 << 10 };

/* A name is one short line, because reasons and errors cite it. */
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
decode_name(struct decoder *d, const struct member *m, json_t *value)
{
    struct qdq_case_use *use = d->object;
    use->name = json_string_value(value);
    return is_name(use->name) ||
           api_refuse(d, API_INVALID_SPEC, m->pointer,
                      "a case's name has 1 to %d characters, printable ASCII",
                      MAX_NAME);
}

static bool
decode_lua(struct decoder *d, const struct member *m, json_t *value)
{
    struct qdq_case_use *use = d->object;
    use->lua = json_string_value(value);
    return strlen(use->lua) <= MAX_LUA ||
           api_refuse(d, API_LIMIT_EXCEEDED, m->pointer,
                      "a script may have at most %d bytes", MAX_LUA);
}

#define FIELD(name) ((ptrdiff_t)offsetof(struct qdq_case_use, name))

static const struct member members[] = {
    {"/name", STRING, OWN(decode_name, api_encode_text, name, NULL)},
    {"/lua", STRING, OWN(decode_lua, api_encode_text, lua, NULL)},
};

static const struct table table = TABLE(members);

/* An item is a name, or an object with a name and a script. */
static bool
decode_case(struct decoder *d, const char *key, json_t *item)
{
    (void)key;
    const struct qdq_case_use *use = d->object;
    if (json_is_string(item))
        return decode_name(d, &(const struct member){.pointer = ""}, item);
    if (!api_decode_members(d, "", item))
        return false;
    return use->name || api_refuse(d, API_INVALID_SPEC, "", "a case is to have a name");
}

static json_t *
encode_case(const void *item)
{
    const struct qdq_case_use *use = item;
    return use->lua ? api_encode_members(&table, use) : api_json_text(use->name);
}

const struct list api_cases = {
    .types = STRING | OBJECT,
    .size = sizeof(struct qdq_case_use),
    .max = MAX_CASES,
    .table = &table,
    .decode = decode_case,
    .encode = encode_case,
    .items = offsetof(struct qdq_spec, cases),
    .n = offsetof(struct qdq_spec, n_cases),
};
