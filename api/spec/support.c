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
    {"/class", STRING, TEXT(cls)},
    {"/kind", STRING, CHOICE(kind, "weighted", "non_weighted", "multi_input")},
    {"/weight_input", INTEGER,
     OWN(decode_weight_input, encode_weight_input, weight_input, NULL)},
    {"/channel_axis", INTEGER | NULL_VALUE,
     OWN(decode_axis, encode_axis, channel_axis, NULL)},
    {"/quantize_input", BOOL, FLAG(quantize_input)},
    {"/quantize_weight", BOOL, FLAG(quantize_weight)},
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
decode_row(struct decoder *d, const char *key, json_t *item)
{
    struct qdq_support *support = d->object;
    (void)key;
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

const struct list api_support = {
    .types = OBJECT,
    .size = sizeof(struct qdq_support),
    .max = API_COUNT_MAX,
    .table = &table,
    .decode = decode_row,
    .items = offsetof(struct qdq_spec, support),
    .n = offsetof(struct qdq_spec, n_support),
};
