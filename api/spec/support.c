/* SPDX-License-Identifier: Apache-2.0 */
/* layer_support: classes that the catalog lacks, or that are to be other than there. */
#include "config.h"
#include "spec/members.h"

enum { MAX_AXIS = 64 }; /* ranks beyond that are not to be found */

static bool
read_weight_input(struct reader *r, const struct member *m, json_t *value)
{
    int64_t n;
    if (!api_parse_integer(r, m->pointer, value, 0, API_MANY, &n))
        return false;
    *(int *)api_field(r, m) = (int)n;
    return true;
}

static json_t *
write_weight_input(const void *object, const struct member *m)
{
    const struct qdq_support *support = object;
    (void)m;
    return support->kind == QDQ_WEIGHTED ? json_integer(support->weight_input)
                                         : json_null();
}

/* An axis, from the end when negative; null: per tensor. */
static bool
read_axis(struct reader *r, const struct member *m, json_t *value)
{
    int64_t n = QDQ_NO_AXIS;
    if (!json_is_null(value) &&
        !api_parse_integer(r, m->pointer, value, -MAX_AXIS, MAX_AXIS - 1, &n))
        return false;
    *(int *)api_field(r, m) = (int)n;
    return true;
}

static json_t *
write_axis(const void *object, const struct member *m)
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
    {"/weight_input", INTEGER, read_weight_input, write_weight_input,
     FIELD(weight_input), NULL, 0},
    {"/channel_axis", INTEGER | NOTHING, read_axis, write_axis, FIELD(channel_axis),
     NULL, 0},
    {"/quantize_input", BOOL, FLAG, FIELD(quantize_input), NULL, 0},
    {"/quantize_weight", BOOL, FLAG, FIELD(quantize_weight), NULL, 0},
};

static const struct table table = TABLE(members);

/* What the members say together. */
static bool
check_weight(struct reader *r, json_t *item)
{
    struct qdq_support *support = r->object;
    bool is_weighted = support->kind == QDQ_WEIGHTED;
    if (is_weighted && !json_object_get(item, "weight_input"))
        support->weight_input = 1;
    if (is_weighted && !json_object_get(item, "channel_axis"))
        support->channel_axis = 0;
    if (!is_weighted && support->weight_input >= 0)
        return api_refuse(r, API_INVALID_SPEC, "/weight_input",
                          "only a weighted layer has a weight_input");
    if (!is_weighted && support->channel_axis != QDQ_NO_AXIS)
        return api_refuse(r, API_INVALID_SPEC, "/channel_axis",
                          "only a weighted layer has a channel_axis");
    return true;
}

static bool
read_row(struct reader *r, json_t *item)
{
    struct qdq_support *support = r->object;
    support->weight_input = -1;
    support->channel_axis = QDQ_NO_AXIS;
    support->quantize_input = support->quantize_weight = true;
    if (!api_read_members(r, "", item))
        return false;
    if (!support->cls)
        return api_refuse(r, API_INVALID_SPEC, "", "layer support is to name a class");
    if (!json_object_get(item, "kind"))
        return api_refuse(r, API_INVALID_SPEC, "",
                          "layer support is to have a kind: weighted, non_weighted or "
                          "multi_input");
    return check_weight(r, item);
}

static const struct list rows = {
    .types = OBJECT,
    .size = sizeof(struct qdq_support),
    .max = API_MANY,
    .table = &table,
    .read = read_row,
};

bool
api_read_support(struct reader *r, const struct member *m, json_t *value)
{
    struct qdq_spec *spec = &r->to->spec;
    spec->support = api_read_list(r, m, value, &rows);
    if (!spec->support)
        return false;
    spec->n_support = json_array_size(value);
    return true;
}

static json_t *
encode_row(const void *items, size_t i)
{
    return api_write_members(&table, (const struct qdq_support *)items + i);
}

json_t *
api_write_support(const void *object, const struct member *m)
{
    const struct qdq_spec *spec = object;
    (void)m;
    return api_json_list(spec->support, spec->n_support, encode_row);
}
