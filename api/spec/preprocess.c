/* SPDX-License-Identifier: Apache-2.0 */
/* The member preprocess: by input, the scale, mean and deviation of what its array holds, and how
   images become samples. */
#include "config.h"
#include "spec/members.h"

#include <math.h>

enum { MAX_CHANNELS = 4096, MAX_SIDE = 65535 };

#define FIELD(name) ((ptrdiff_t)offsetof(struct qdq_preprocess, name))

static bool
decode_scale(struct decoder *d, const struct member *m, json_t *value)
{
    const double scale = json_number_value(value);
    if (!isfinite((float)scale) || (float)scale == 0)
        return api_refuse(d, API_INVALID_SPEC, m->pointer,
                          "%s is to be other than 0 and within the range of float32",
                          api_label(d, m->pointer).text);
    *(double *)api_field(d, m) = scale;
    return true;
}

/* Decodes a number, or a list of one for each channel. Returns NULL when it has set a
   problem. */
static double *
decode_channels(struct decoder *d, const struct member *m, json_t *value, size_t *ret_n)
{
    const size_t n = json_is_array(value) ? json_array_size(value) : 1;
    double *values =
        n > 0 && n <= MAX_CHANNELS ? api_spec_alloc(d, n, sizeof *values) : NULL;
    if (n == 0 || n > MAX_CHANNELS)
        api_refuse(d, API_INVALID_SPEC, m->pointer, "%s is to have 1 to %d numbers",
                   api_label(d, m->pointer).text, MAX_CHANNELS);
    for (size_t i = 0; values && i < n; i++) {
        const json_t *item = json_is_array(value) ? json_array_get(value, i) : value;
        values[i] = json_number_value(item);
        if (!json_is_number(item)) {
            api_refuse(d, API_INVALID_SPEC, m->pointer, "%s is to hold numbers, not %s",
                       api_label(d, m->pointer).text, api_json_type_name(item));
            return NULL;
        }
        if (!isfinite((float)values[i])) {
            api_refuse(d, API_INVALID_SPEC, m->pointer,
                       "%s is to be within the range of float32, not %g",
                       api_label(d, m->pointer).text, values[i]);
            return NULL;
        }
    }
    *ret_n = n;
    return values;
}

static bool
decode_mean(struct decoder *d, const struct member *m, json_t *value)
{
    struct qdq_preprocess *to = d->object;
    return (to->mean = decode_channels(d, m, value, &to->n_mean));
}

static bool
decode_std(struct decoder *d, const struct member *m, json_t *value)
{
    struct qdq_preprocess *to = d->object;
    double *std = decode_channels(d, m, value, &to->n_std);
    to->std = std;
    for (size_t i = 0; std && i < to->n_std; i++)
        if ((float)std[i] == 0)
            return api_refuse(d, API_INVALID_SPEC, m->pointer,
                              "%s is to have no 0: values are divided by it",
                              api_label(d, m->pointer).text);
    return std;
}

static json_t *
encode_channels(const double *values, size_t n)
{
    json_t *list = n > 0 ? json_array() : json_null();
    for (size_t i = 0; list && i < n; i++)
        if (json_array_append_new(list, json_real(values[i]))) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *
encode_mean(const void *object, const struct member *m)
{
    const struct qdq_preprocess *from = object;
    (void)m;
    return encode_channels(from->mean, from->n_mean);
}

static json_t *
encode_std(const void *object, const struct member *m)
{
    const struct qdq_preprocess *from = object;
    (void)m;
    return encode_channels(from->std, from->n_std);
}

static json_t *
encode_scale(const void *object, const struct member *m)
{
    (void)m;
    return json_real(((const struct qdq_preprocess *)object)->scale);
}

/* Decodes a count of pixels, or a height and a width. Returns how many; 0: a problem is set. */
static size_t
decode_sides(struct decoder *d, const struct member *m, json_t *value, int64_t to[2])
{
    const size_t n = json_is_array(value) ? json_array_size(value) : 1;
    if (json_is_array(value) && n != 2) {
        api_refuse(d, API_INVALID_SPEC, m->pointer, "%s is to be [height, width]",
                   api_label(d, m->pointer).text);
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        if (!api_parse_integer(d, m->pointer,
                               json_is_array(value) ? json_array_get(value, i) : value,
                               1, MAX_SIDE, &to[i]))
            return 0;
    return n;
}

static bool
decode_size(struct decoder *d, const struct member *m, json_t *value)
{
    struct qdq_preprocess *to = d->object;
    return (to->n_size = decode_sides(d, m, value, to->size));
}

static bool
decode_crop(struct decoder *d, const struct member *m, json_t *value)
{
    struct qdq_preprocess *to = d->object;
    return decode_sides(d, m, value, to->crop);
}

static json_t *
encode_size(const void *object, const struct member *m)
{
    const struct qdq_preprocess *from = object;
    (void)m;
    if (from->n_size == 0)
        return json_null();
    return from->n_size == 1 ? json_integer(from->size[0])
                             : json_pack("[II]", (json_int_t)from->size[0],
                                         (json_int_t)from->size[1]);
}

static json_t *
encode_crop(const void *object, const struct member *m)
{
    const struct qdq_preprocess *from = object;
    (void)m;
    return from->crop[0] == 0 ? json_null()
                              : json_pack("[II]", (json_int_t)from->crop[0],
                                          (json_int_t)from->crop[1]);
}

/* A choice that is left out where it is the default, so that specs from before there were
   images freeze to the same bytes. */
static json_t *
encode_asked(const void *object, const struct member *m)
{
    return *(const int *)(const void *)((const char *)object + m->field) == 0
               ? json_null()
               : api_encode_choice(object, m);
}

#define ASKED(field, ...) \
    OWN(api_decode_choice, encode_asked, field, NAMES(__VA_ARGS__))

static const struct member members[] = {
    {"/layout", STRING, SWITCH(channels_last, "nchw", "nhwc")},
    {"/channels", STRING, ASKED(channels, "auto", "rgb", "bgr", "gray")},
    {"/size", INTEGER | ARRAY, WITHOUT_FIELD(decode_size, encode_size)},
    {"/resize", STRING, ASKED(resize, "bilinear", "bicubic", "nearest", "none")},
    {"/crop", ARRAY, WITHOUT_FIELD(decode_crop, encode_crop)},
    {"/scale", NUMBER, OWN(decode_scale, encode_scale, scale, NULL)},
    {"/mean", NUMBER | ARRAY, WITHOUT_FIELD(decode_mean, encode_mean)},
    {"/std", NUMBER | ARRAY, WITHOUT_FIELD(decode_std, encode_std)},
};

static const struct table table = TABLE(members);

static bool
decode_row(struct decoder *d, const char *input, json_t *item)
{
    struct qdq_preprocess *row = d->object;
    *row = (struct qdq_preprocess){.input = input, .scale = 1};
    if (!json_is_object(item))
        return api_refuse(d, API_INVALID_SPEC, "",
                          "the preprocessing of \"%.128s\" is to be an object, not %s",
                          input, api_json_type_name(item));
    if (!api_decode_members(d, "", item))
        return false;
    return row->n_mean <= 1 || row->n_std <= 1 || row->n_mean == row->n_std ||
           api_refuse(d, API_INVALID_SPEC, "",
                      "mean and std of \"%.128s\" have different numbers of channels",
                      input);
}

const struct list api_preprocess = {
    .size = sizeof(struct qdq_preprocess),
    .max = API_COUNT_MAX,
    .table = &table,
    .decode = decode_row,
    .items = offsetof(struct qdq_spec, preprocess),
    .n = offsetof(struct qdq_spec, n_preprocess),
};
