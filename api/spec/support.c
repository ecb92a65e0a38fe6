/* SPDX-License-Identifier: Apache-2.0 */
/* The member layer_support: rows for classes that the catalog lacks, or rows in the place
   of the catalog's. */
#include "config.h"
#include "spec/members.h"

enum { MAX_AXIS = 64 }; /* no model has tensors of a higher rank */

static bool
decode_weight_input(struct decoder *d, const struct member *m, json_t *value)
{
    int64_t n;
    if (!api_parse_integer(d, m->pointer, value, 0, API_COUNT_MAX, &n))
        return false;
    *(int *)api_field(d, m) = (int)n;
    return true;
}

static json_t *
encode_weight_input(const void *object, const struct member *m)
{
    const struct qdq_support *support = object;
    (void)m;
    return support->kind == QDQ_WEIGHTED ? json_integer(support->weight_input)
                                         : json_null();
}

/* An axis, counted from the end when negative; null means per tensor. */
static bool
decode_axis(struct decoder *d, const struct member *m, json_t *value)
{
    int64_t n = QDQ_NO_AXIS;
    if (!json_is_null(value) &&
        !api_parse_integer(d, m->pointer, value, -MAX_AXIS, MAX_AXIS - 1, &n))
        return false;
    *(int *)api_field(d, m) = (int)n;
    return true;
}

static json_t *
encode_axis(const void *object, const struct member *m)
{
    const struct qdq_support *support = object;
    (void)m;
    return support->channel_axis == QDQ_NO_AXIS ? json_null()
                                                : json_integer(support->channel_axis);
}

#define FIELD(name) ((ptrdiff_t)offsetof(struct qdq_support, name))

static const struct member members[] = {
    {"/class", STRING, TEXT, FIELD(cls), NULL, 0},
    {"/kind", STRING, CHOICE, FIELD(kind),
     NAMES("weighted", "non_weighted", "multi_input"), 0},
    {"/weight_input", INTEGER, decode_weight_input, encode_weight_input,
     FIELD(weight_input), NULL, 0},
    {"/channel_axis", INTEGER | NULL_VALUE, decode_axis, encode_axis,
     FIELD(channel_axis), NULL, 0},
    {"/quantize_input", BOOL, FLAG, FIELD(quantize_input), NULL, 0},
    {"/quantize_weight", BOOL, FLAG, FIELD(quantize_weight), NULL, 0},
};

static const struct table table = TABLE(members);

/* Checks the members against each other, and sets defaults that depend on others. */
static bool
check_weight(struct decoder *d, json_t *item)
{
    struct qdq_support *support = d->object;
    bool is_weighted = support->kind == QDQ_WEIGHTED;
    if (is_weighted && !json_object_get(item, "weight_input"))
        support->weight_input = 1;
    if (is_weighted && !json_object_get(item, "channel_axis"))
        support->channel_axis = 0;
    if (!is_weighted && support->weight_input >= 0)
        return api_refuse(d, API_INVALID_SPEC, "/weight_input",
                          "only a weighted layer has a weight_input");
    if (!is_weighted && support->channel_axis != QDQ_NO_AXIS)
        return api_refuse(d, API_INVALID_SPEC, "/channel_axis",
                          "only a weighted layer has a channel_axis");
    return true;
}

static bool
decode_row(struct decoder *d, json_t *item)
{
    struct qdq_support *support = d->object;
    support->weight_input = -1;
    support->channel_axis = QDQ_NO_AXIS;
    support->quantize_input = support->quantize_weight = true;
    if (!api_decode_members(d, "", item))
        return false;
    if (!support->cls)
        return api_refuse(d, API_INVALID_SPEC, "", "layer support is to name a class");
    if (!json_object_get(item, "kind"))
        return api_refuse(d, API_INVALID_SPEC, "",
                          "layer support is to have a kind: weighted, non_weighted or "
                          "multi_input");
    return check_weight(d, item);
}

static const struct list rows = {
    .types = OBJECT,
    .size = sizeof(struct qdq_support),
    .max = API_COUNT_MAX,
    .table = &table,
    .decode = decode_row,
};

bool
api_decode_support(struct decoder *d, const struct member *m, json_t *value)
{
    struct qdq_spec *spec = &d->to->spec;
    spec->support = api_decode_list(d, m, value, &rows);
    if (!spec->support)
        return false;
    spec->n_support = json_array_size(value);
    return true;
}

static json_t *
encode_row(const void *items, size_t i)
{
    return api_encode_members(&table, (const struct qdq_support *)items + i);
}

json_t *
api_encode_support(const void *object, const struct member *m)
{
    const struct qdq_spec *spec = object;
    (void)m;
    return api_json_list(spec->support, spec->n_support, encode_row);
}
