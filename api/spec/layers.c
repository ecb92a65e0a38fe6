/* SPDX-License-Identifier: Apache-2.0 */
/* The member layers: entries that select layers and say what of them is quantized. */
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
decode_name(struct decoder *d, const char *key, json_t *value)
{
    (void)key;
    return api_parse_text(d, "", value, d->object);
}

static const struct list names = {
    .types = STRING,
    .size = sizeof(const char *),
    .min = 1,
    .max = API_COUNT_MAX,
    .decode = decode_name,
};

static bool
decode_selector(struct decoder *d, const struct member *m, json_t *value)
{
    struct qdq_layer_entry *entry = d->object;
    entry->by = selector_of(m);
    entry->is_list = json_is_array(value);
    entry->n_names = entry->is_list ? json_array_size(value) : 1;
    if (entry->is_list)
        return (entry->names = api_decode_list(d, m, value, &names));
    const char **one = api_spec_alloc(d, 1, sizeof *one);
    entry->names = one;
    if (!one || !api_parse_text(d, m->pointer, value, one))
        return false;
    if (entry->by == QDQ_BY_MATCH && strlen(*one) > MAX_GLOB)
        return api_refuse(d, API_LIMIT_EXCEEDED, m->pointer,
                          "a glob may have at most %d bytes", MAX_GLOB);
    return true;
}

static json_t *
encode_selector(const void *object, const struct member *m)
{
    const struct qdq_layer_entry *entry = object;
    if (entry->by != selector_of(m))
        return json_null();
    return entry->is_list
               ? api_json_list(entry->names, entry->n_names, api_json_text_item)
               : api_json_text(entry->names[0]);
}

/* --- quantization_index --------------------------------------------------- */

static bool
decode_input(struct decoder *d, const char *key, json_t *value)
{
    (void)key;
    int64_t n;
    if (!api_parse_integer(d, "", value, 0, API_COUNT_MAX, &n))
        return false;
    *(int *)d->object = (int)n;
    return true;
}

static const struct list inputs = {
    .types = INTEGER,
    .size = sizeof(int),
    .min = 1,
    .max = MAX_INDEX, /* each is looked up for every node that the entry selects */
    .decode = decode_input,
};

/* A list of input indices of the node; null means all data inputs. */
static bool
decode_index(struct decoder *d, const struct member *m, json_t *value)
{
    struct qdq_layer_entry *entry = d->object;
    entry->n_index = json_array_size(value);
    return json_is_null(value) ||
           (entry->index = api_decode_list(d, m, value, &inputs));
}

static json_t *
encode_index(const void *object, const struct member *m)
{
    const struct qdq_layer_entry *entry = object;
    (void)m;
    return entry->index ? api_json_list(entry->index, entry->n_index, api_json_int_item)
                        : json_null();
}

/* --- the table ------------------------------------------------------------ */

#define FIELD(name) ((ptrdiff_t)offsetof(struct qdq_layer_entry, name))
static const struct member members[] = {
    {"/name", STRING | ARRAY, WITHOUT_FIELD(decode_selector, encode_selector)},
    {"/match", STRING, WITHOUT_FIELD(decode_selector, encode_selector)},
    {"/class", STRING, WITHOUT_FIELD(decode_selector, encode_selector)},
    {"/quantize_input", BOOL, FLAG(quantize_input)},
    {"/quantize_weight", BOOL, FLAG(quantize_weight)},
    {"/quantization_index", ARRAY | NULL_VALUE,
     WITHOUT_FIELD(decode_index, encode_index)},
    {"/weights", OBJECT,
     WITHOUT_FIELD(api_decode_layer_weights, api_encode_layer_weights)},
    {"/activations", STRING | OBJECT, api_decode_layer_activations,
     api_encode_layer_activations, NO_FIELD, NAMES("none"), 0, NULL},
};

static const struct table table = TABLE(members);

static bool
decode_entry(struct decoder *d, const char *key, json_t *item)
{
    struct qdq_layer_entry *entry = d->object;
    (void)key;
    entry->quantize_input = entry->quantize_weight = true;
    if (!api_decode_members(d, "", item) || !api_check_layer_formats(d, item))
        return false;
    int n = 0;
    for (int by = 0; by < N_SELECTORS; by++)
        n += json_object_get(item, selectors[by]) != NULL;
    if (n != 1)
        return api_refuse(d, API_INVALID_SPEC, "",
                          "an entry of layers is to have exactly one of name, match "
                          "and class, not %d",
                          n);
    return true;
}

const struct list api_layers = {
    .types = OBJECT,
    .size = sizeof(struct qdq_layer_entry),
    .max = API_COUNT_MAX,
    .table = &table,
    .decode = decode_entry,
    .items = offsetof(struct qdq_spec, layers),
    .n = offsetof(struct qdq_spec, n_layers),
};

/* The number of globs is limited, because each is matched against every node. */
bool
api_decode_layers(struct decoder *d, const struct member *m, json_t *value)
{
    const struct qdq_spec *spec = &d->to->spec;
    size_t n = 0;
    if (!api_decode_items(d, m, value))
        return false;
    for (size_t i = 0; i < spec->n_layers; i++)
        n += spec->layers[i].by == QDQ_BY_MATCH;
    return n <= MAX_MATCHES ||
           api_refuse(d, API_LIMIT_EXCEEDED, m->pointer,
                      "%zu entries have a glob, and %d may", n, MAX_MATCHES);
}
