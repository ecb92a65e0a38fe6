/* SPDX-License-Identifier: Apache-2.0 */
/* The members weights and activations, of the spec and of the entries of layers. */
#include "config.h"
#include "spec/members.h"

#include <stdio.h>
#include <string.h>

/* --- weights --------------------------------------------------------------- */

enum { MIN_BLOCK = 2 };

/* "tensor", "channel", or {"block": n}. */
static bool
decode_granularity(struct decoder *d, const struct member *m, json_t *value)
{
    struct qdq_weights *weights = d->object;
    json_t *block = json_object_get(value, "block");
    const char *key;
    json_t *other;
    int64_t n;
    char where[64];
    if (!json_is_object(value))
        return api_decode_choice(d, m, value);
    json_object_foreach (value, key, other)
        if (other != block) {
            char unknown[256];
            snprintf(unknown, sizeof unknown, "%s", m->pointer);
            api_json_pointer_add(unknown, sizeof unknown, key);
            return api_refuse(d, API_INVALID_SPEC, unknown,
                              "unknown member \"%.64s\"; known is block", key);
        }
    snprintf(where, sizeof where, "%s/block", m->pointer);
    if (!api_json_integer(block, &n))
        return api_refuse(d, API_INVALID_SPEC, block ? where : m->pointer,
                          "%s is to have a member block, an integer",
                          api_label(d, m->pointer).text);
    weights->granularity = QDQ_PER_BLOCK;
    return api_parse_integer(d, where, block, MIN_BLOCK, API_COUNT_MAX,
                             &weights->block);
}

static json_t *
encode_granularity(const void *object, const struct member *m)
{
    const struct qdq_weights *weights = object;
    if (weights->granularity == QDQ_PER_BLOCK)
        return json_pack("{s:I}", "block", (json_int_t)weights->block);
    return api_encode_choice(object, m);
}

/* A spec that says nothing of rounding stays as it was before there was a choice. */
static json_t *
encode_rounding(const void *object, const struct member *m)
{
    const struct qdq_weights *weights = object;
    return weights->rounding == QDQ_ROUND_NEAREST && weights->scales == QDQ_SCALES_RANGE
               ? json_null()
               : api_encode_choice(object, m);
}

static json_t *
encode_range(const void *object, const struct member *m)
{
    const struct qdq_weights *weights = object;
    return weights->range == QDQ_RANGE_NARROW && weights->scales == QDQ_SCALES_RANGE
               ? json_null()
               : api_encode_choice(object, m);
}

static json_t *
encode_scales(const void *object, const struct member *m)
{
    const struct qdq_weights *weights = object;
    return weights->scales == QDQ_SCALES_RANGE ? json_null()
                                               : api_encode_choice(object, m);
}

static const char *
layer_activation_format(size_t i)
{
    return api_name_with_float(api_activation_format, i);
}

#define FIELD(name) ((ptrdiff_t)offsetof(struct qdq_weights, name))
#define WEIGHTS(formats, encode_rounding, encode_range, encode_scales)              \
    {                                                                               \
        {"/dtype", STRING, FORMAT(format, NAMES_OF_ROWS(formats))},                 \
            {"/granularity", STRING | OBJECT,                                       \
             OWN(decode_granularity, encode_granularity, granularity,               \
                 NAMES("tensor", "channel"))},                                      \
            {"/storage", STRING, CHOICE(storage, "qdq", "dq")},                     \
            {"/method", STRING, CHOICE(method, "max", "mse")},                      \
            {"/rounding", STRING,                                                   \
             OWN(api_decode_choice, encode_rounding, rounding,                      \
                 NAMES("nearest", "gptq", "auto", "reconstruct"))},                 \
            {"/range", STRING,                                                      \
             OWN(api_decode_choice, encode_range, range, NAMES("narrow", "full"))}, \
            {"/scales", STRING,                                                     \
             OWN(api_decode_choice, encode_scales, scales,                          \
                 NAMES("range", "moments"))},                                       \
    }

static const struct member weights[] =
    WEIGHTS(api_weight_format, encode_rounding, encode_range, encode_scales);
static const struct member layer_weights[] = WEIGHTS(
    api_layer_weight_format, api_encode_choice, api_encode_choice, api_encode_choice);
#undef FIELD

/* --- activations ------------------------------------------------------------ */

#define FIELD(name) ((ptrdiff_t)offsetof(struct qdq_activations, name))
#define ACTIVATIONS(formats)                                                  \
    {                                                                         \
        {"/dtype", STRING, FORMAT(format, NAMES_OF_ROWS(formats))},           \
            {"/symmetric", BOOL,                                              \
             OWN(api_decode_tristate, api_encode_tristate, symmetric, NULL)}, \
    }

static const struct member activations[] = ACTIVATIONS(api_activation_format);
static const struct member layer_activations[] = ACTIVATIONS(layer_activation_format);
#undef FIELD

static const struct table tables[] = {TABLE(weights), TABLE(layer_weights),
                                      TABLE(activations), TABLE(layer_activations)};
enum { WEIGHTS_OF_SPEC, WEIGHTS_OF_LAYER, ACTIVATIONS_OF_SPEC, ACTIVATIONS_OF_LAYER };

/* --- in the spec ------------------------------------------------------------ */

/* Decodes an object that is member `m` of the decoder's into a struct of its own. */
static bool
decode_inner(struct decoder *d, const struct member *m, int table, void *to,
             json_t *value)
{
    char at[sizeof d->problem->where];
    snprintf(at, sizeof at, "%s%s", d->at, m->pointer);
    struct decoder inner = {d->to, d->problem, &tables[table], to, at};
    return api_decode_members(&inner, "", value);
}

bool
api_decode_weights(struct decoder *d, const struct member *m, json_t *value)
{
    return decode_inner(d, m, WEIGHTS_OF_SPEC, &d->to->spec.weights, value);
}

json_t *
api_encode_weights(const void *object, const struct member *m)
{
    (void)m;
    return api_encode_members(&tables[WEIGHTS_OF_SPEC],
                              &((const struct qdq_spec *)object)->weights);
}

/* "none", "dynamic", or an object. */
bool
api_decode_activations(struct decoder *d, const struct member *m, json_t *value)
{
    struct qdq_spec *spec = &d->to->spec;
    spec->weight_only = json_is_string(value);
    spec->dynamic =
        json_is_string(value) && strcmp(json_string_value(value), "dynamic") == 0;
    return json_is_object(value)
               ? decode_inner(d, m, ACTIVATIONS_OF_SPEC, &spec->activations, value)
               : api_decode_choice(d, m, value);
}

json_t *
api_encode_activations(const void *object, const struct member *m)
{
    (void)m;
    const struct qdq_spec *spec = object;
    if (spec->weight_only)
        return json_string(spec->dynamic ? "dynamic" : "none");
    return api_encode_members(&tables[ACTIVATIONS_OF_SPEC], &spec->activations);
}

/* --- in an entry of layers ---------------------------------------------------- */

/* Returns whether the entry's object asks for floating point, which is then all that it
   may ask for. */
static bool
stays_float(const json_t *value)
{
    const char *dtype = json_string_value(json_object_get(value, "dtype"));
    return dtype && strcmp(dtype, API_FLOAT32) == 0;
}

static bool
leave_float(struct decoder *d, const struct member *m, const json_t *value, bool *flag)
{
    *flag = false;
    return json_object_size(value) <= 1 ||
           api_refuse(d, API_INVALID_SPEC, m->pointer,
                      "%s has the dtype " API_FLOAT32
                      ", with which no other member goes",
                      api_label(d, m->pointer).text);
}

bool
api_decode_layer_weights(struct decoder *d, const struct member *m, json_t *value)
{
    struct qdq_layer_entry *entry = d->object;
    if (stays_float(value))
        return leave_float(d, m, value, &entry->quantize_weight);
    struct qdq_weights *own = api_spec_alloc(d, 1, sizeof *own);
    if (!own)
        return false;
    *own = QDQ_WEIGHTS_UNSTATED;
    entry->weights = own;
    return decode_inner(d, m, WEIGHTS_OF_LAYER, own, value);
}

json_t *
api_encode_layer_weights(const void *object, const struct member *m)
{
    (void)m;
    const struct qdq_layer_entry *entry = object;
    return entry->weights
               ? api_encode_members(&tables[WEIGHTS_OF_LAYER], entry->weights)
               : json_null();
}

bool
api_decode_layer_activations(struct decoder *d, const struct member *m, json_t *value)
{
    struct qdq_layer_entry *entry = d->object;
    if (json_is_string(value)) {
        entry->quantize_input = false;
        return api_decode_choice(d, m, value);
    }
    if (stays_float(value))
        return leave_float(d, m, value, &entry->quantize_input);
    struct qdq_activations *own = api_spec_alloc(d, 1, sizeof *own);
    if (!own)
        return false;
    *own = QDQ_ACTIVATIONS_UNSTATED;
    entry->activations = own;
    return decode_inner(d, m, ACTIVATIONS_OF_LAYER, own, value);
}

json_t *
api_encode_layer_activations(const void *object, const struct member *m)
{
    (void)m;
    const struct qdq_layer_entry *entry = object;
    return entry->activations
               ? api_encode_members(&tables[ACTIVATIONS_OF_LAYER], entry->activations)
               : json_null();
}

bool
api_check_layer_formats(struct decoder *d, const json_t *item)
{
    const struct {
        const char *flag, *group;
    } pairs[] = {{"quantize_input", "activations"}, {"quantize_weight", "weights"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const json_t *group = json_object_get(item, pairs[i].group);
        const json_t *flag = json_object_get(item, pairs[i].flag);
        const bool is_float = json_is_string(group) || stays_float(group);
        char where[32];
        snprintf(where, sizeof where, "/%s", pairs[i].group);
        if (group && flag && json_is_true(flag) == is_float)
            return api_refuse(d, API_INVALID_SPEC, where,
                              "%s and %s contradict each other",
                              api_label(d, where).text, pairs[i].flag);
    }
    return true;
}

/* --- both -------------------------------------------------------------------- */

static bool
check_symmetry(struct decoder *d, const char *group, enum qdq_format format,
               enum qdq_tristate symmetric)
{
    char where[96];
    snprintf(where, sizeof where, "%s/symmetric", group);
    return !api_format_is_float(format) || symmetric != QDQ_NO ||
           api_refuse(d, API_INVALID_SPEC, where,
                      "%s: a floating format has no zero point",
                      api_label(d, where).text);
}

/* A scale for each channel is what a spec has that says nothing, so that it is no contradiction. */
static bool
check_blocks(struct decoder *d, const char *group, const struct qdq_weights *w)
{
    const int own = api_format_block(w->format);
    char where[96];
    snprintf(where, sizeof where, "%s/granularity", group);
    return own == 0 || w->granularity == QDQ_PER_CHANNEL ||
           w->granularity == QDQ_GRANULARITY_DEFAULT ||
           (w->granularity == QDQ_PER_BLOCK && w->block == own) ||
           api_refuse(d, API_INVALID_SPEC, where,
                      "%s: the format has blocks of %d elements, and no others",
                      api_label(d, where).text, own);
}

/* AWQ changes weights for the sake of their own steps, and no attempt of a recipe has it. */
static bool
check_awq(struct decoder *d)
{
    const struct qdq_spec *spec = &d->to->spec;
    if (!spec->smooth_awq)
        return true;
    if (!spec->weight_only || spec->dynamic)
        return api_refuse(d, API_INVALID_SPEC, "/smooth",
                          "%s: \"awq\" is for weights alone: give \"activations\": "
                          "\"none\", or \"smooth\": true",
                          api_label(d, "/smooth").text);
    return spec->recipe == QDQ_RECIPE_DEFAULT || spec->recipe == QDQ_RECIPE_NONE ||
           api_refuse(d, API_INVALID_SPEC, "/recipe",
                      "%s: no recipe tries \"smooth\": \"awq\"; give \"none\"",
                      api_label(d, "/recipe").text);
}

bool
api_check_formats(struct decoder *d)
{
    const struct qdq_spec *spec = &d->to->spec;
    bool ok = check_awq(d) && check_blocks(d, "/weights", &spec->weights);
    for (size_t i = 0; ok && i < spec->n_layers; i++) {
        char group[64];
        snprintf(group, sizeof group, "/layers/%zu/weights", i);
        ok =
            !spec->layers[i].weights || check_blocks(d, group, spec->layers[i].weights);
    }
    ok = ok && check_symmetry(d, "/activations", spec->activations.format,
                              spec->activations.symmetric);
    for (size_t i = 0; ok && i < spec->n_layers; i++) {
        const struct qdq_activations *own = spec->layers[i].activations;
        char group[64];
        if (!own)
            continue;
        snprintf(group, sizeof group, "/layers/%zu/activations", i);
        if (spec->weight_only)
            return api_refuse(d, API_INVALID_SPEC, group,
                              "%s: the spec's activations are \"%s\"; give these a "
                              "dtype, and the other layers \"quantize_input\": false",
                              api_label(d, group).text,
                              spec->dynamic ? "dynamic" : "none");
        ok = check_symmetry(d, group,
                            own->format == QDQ_FORMAT_DEFAULT ? spec->activations.format
                                                              : own->format,
                            own->symmetric);
    }
    return ok;
}
