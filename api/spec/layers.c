/* SPDX-License-Identifier: Apache-2.0 */
/* layers: whose inputs and weights are quantized. */
#include "config.h"
#include "spec/members.h"

#include <string.h>

enum { MAX_MATCHES = 1024, MAX_GLOB = 1024, MAX_INDEX = 1024 };

/* --- selectors ------------------------------------------------------------ */

/* An entry has exactly one of these members. */
static const char *const selectors[] = {
    [QDQ_BY_CLASS] = "class",
    [QDQ_BY_MATCH] = "match",
    [QDQ_BY_NAME] = "name",
};

enum { N_SELECTORS = sizeof selectors / sizeof *selectors };

static enum qdq_selector
selector_of(const struct member *m)
{
    int by = 0;
    while (by < N_SELECTORS - 1 && strcmp(selectors[by], m->pointer + 1) != 0)
        by++;
    return (enum qdq_selector)by;
}

static bool
read_name(struct reader *r, json_t *value)
{
    return api_parse_text(r, "", value, r->object);
}

static const struct list names = {
    .types = STRING,
    .size = sizeof(const char *),
    .min = 1,
    .max = API_MANY,
    .read = read_name,
};

static bool
read_selector(struct reader *r, const struct member *m, json_t *value)
{
    struct qdq_layer_entry *entry = r->object;
    entry->by = selector_of(m);
    entry->is_list = json_is_array(value);
    entry->n_names = entry->is_list ? json_array_size(value) : 1;
    if (entry->is_list)
        return (entry->names = api_read_list(r, m, value, &names));
    const char **one = api_spec_alloc(r, 1, sizeof *one);
    entry->names = one;
    if (!one || !api_parse_text(r, m->pointer, value, one))
        return false;
    if (entry->by == QDQ_BY_MATCH && strlen(*one) > MAX_GLOB)
        return api_refuse(r, API_LIMIT_EXCEEDED, m->pointer,
                          "a glob may have at most %d bytes", MAX_GLOB);
    return true;
}

static json_t *
encode_name(const void *items, size_t i)
{
    return api_json_text(((const char *const *)items)[i]);
}

static json_t *
write_selector(const void *object, const struct member *m)
{
    const struct qdq_layer_entry *entry = object;
    if (entry->by != selector_of(m))
        return json_null();
    return entry->is_list ? api_json_list(entry->names, entry->n_names, encode_name)
                          : api_json_text(entry->names[0]);
}

/* --- quantization_index --------------------------------------------------- */

static bool
read_input(struct reader *r, json_t *value)
{
    int64_t n;
    if (!api_parse_integer(r, "", value, 0, API_MANY, &n))
        return false;
    *(int *)r->object = (int)n;
    return true;
}

static const struct list inputs = {
    .types = INTEGER,
    .size = sizeof(int),
    .min = 1,
    .max = MAX_INDEX, /* each is looked for at every node that the entry names */
    .read = read_input,
};

/* Node input indices; null: all data inputs. */
static bool
read_index(struct reader *r, const struct member *m, json_t *value)
{
    struct qdq_layer_entry *entry = r->object;
    entry->n_index = json_array_size(value);
    return json_is_null(value) || (entry->index = api_read_list(r, m, value, &inputs));
}

static json_t *
encode_input(const void *items, size_t i)
{
    return json_integer(((const int *)items)[i]);
}

static json_t *
write_index(const void *object, const struct member *m)
{
    const struct qdq_layer_entry *entry = object;
    (void)m;
    return entry->index ? api_json_list(entry->index, entry->n_index, encode_input)
                        : json_null();
}

/* --- the table ------------------------------------------------------------ */

#define FIELD(name) ((ptrdiff_t)offsetof(struct qdq_layer_entry, name))
#define SELECTOR read_selector, write_selector, NO_FIELD, NULL, 0

static const struct member members[] = {
    {"/name", STRING | ARRAY, SELECTOR},
    {"/match", STRING, SELECTOR},
    {"/class", STRING, SELECTOR},
    {"/quantize_input", BOOL, FLAG, FIELD(quantize_input), NULL, 0},
    {"/quantize_weight", BOOL, FLAG, FIELD(quantize_weight), NULL, 0},
    {"/quantization_index", ARRAY | NOTHING, read_index, write_index, NO_FIELD, NULL,
     0},
};

static const struct table table = TABLE(members);

static bool
read_entry(struct reader *r, json_t *item)
{
    struct qdq_layer_entry *entry = r->object;
    entry->quantize_input = entry->quantize_weight = true;
    if (!api_read_members(r, "", item))
        return false;
    int n = 0;
    for (int by = 0; by < N_SELECTORS; by++)
        n += json_object_get(item, selectors[by]) != NULL;
    if (n != 1)
        return api_refuse(r, API_INVALID_SPEC, "",
                          "an entry of layers is to have exactly one of name, match "
                          "and class, not %d",
                          n);
    return true;
}

static const struct list entries = {
    .types = OBJECT,
    .size = sizeof(struct qdq_layer_entry),
    .max = API_MANY,
    .table = &table,
    .read = read_entry,
};

/* Each glob is held against every node. */
static bool
check_matches(struct reader *r, const struct member *m)
{
    const struct qdq_spec *spec = &r->to->spec;
    size_t n = 0;
    for (size_t i = 0; i < spec->n_layers; i++)
        n += spec->layers[i].by == QDQ_BY_MATCH;
    return n <= MAX_MATCHES ||
           api_refuse(r, API_LIMIT_EXCEEDED, m->pointer,
                      "%zu entries have a glob, and %d may", n, MAX_MATCHES);
}

bool
api_read_layers(struct reader *r, const struct member *m, json_t *value)
{
    struct qdq_spec *spec = &r->to->spec;
    spec->layers = api_read_list(r, m, value, &entries);
    if (!spec->layers)
        return false;
    spec->n_layers = json_array_size(value);
    return check_matches(r, m);
}

static json_t *
encode_entry(const void *items, size_t i)
{
    return api_write_members(&table, (const struct qdq_layer_entry *)items + i);
}

json_t *
api_write_layers(const void *object, const struct member *m)
{
    const struct qdq_spec *spec = object;
    (void)m;
    return api_json_list(spec->layers, spec->n_layers, encode_entry);
}
