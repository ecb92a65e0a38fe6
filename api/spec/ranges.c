/* SPDX-License-Identifier: Apache-2.0 */
/* The member calibration.ranges: {tensor: [min, max]}, the list `tensors` of a report, or
   the text of TensorRT's calibration cache. */
#include "config.h"
#include "spec/members.h"
#include "api/digest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
bad_range(struct decoder *d, const char *where, const char *tensor, const char *text)
{
    return api_fail_at(d->problem, API_INVALID_SPEC, where,
                       "the range of \"%.128s\" %s", tensor, text);
}

static bool
decode_range(struct decoder *d, const char *where, const char *tensor, json_t *min,
             json_t *max)
{
    if (!json_is_number(min) || !json_is_number(max))
        return bad_range(d, where, tensor, "is to be two numbers: minimum, maximum");
    struct qdq_given_range range = {tensor, json_number_value(min),
                                    json_number_value(max)};
    if (range.min > range.max)
        return bad_range(d, where, tensor, "has a minimum above its maximum");
    struct qdq_given_range *ranges = d->object;
    ranges[d->to->spec.calibration.n_ranges++] = range;
    return true;
}

/* The members of an item of a report's `tensors`. A range needs the first three. */
static bool
is_tensor_member(const char *key)
{
    static const char *const known[] = {
        "name",       "min",    "max",     "dtype",     "scale",
        "zero_point", "method", "samples", "converted",
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i], key) == 0)
            return true;
    return false;
}

static bool
decode_tensor(struct decoder *d, const char *where, json_t *tensor)
{
    const char *key;
    json_t *value;
    const char *name = json_string_value(json_object_get(tensor, "name"));
    if (!name)
        return api_fail_at(
            d->problem, API_INVALID_SPEC, where,
            "a range in a list is to be an object with name, min and max");
    json_object_foreach (tensor, key, value)
        if (!is_tensor_member(key))
            return api_fail_at(d->problem, API_INVALID_SPEC, where,
                               "a range in a list has no member \"%.64s\"", key);
    return decode_range(d, where, name, json_object_get(tensor, "min"),
                        json_object_get(tensor, "max"));
}

static int
by_name(const void *a, const void *b)
{
    const struct qdq_given_range *left = a;
    const struct qdq_given_range *right = b;
    return strcmp(left->tensor, right->tensor);
}

static bool
decode_each_range(struct decoder *d, const struct member *m, json_t *value)
{
    const char *key;
    json_t *item;
    size_t i;
    char where[256], number[24];
    json_object_foreach (value, key, item) {
        snprintf(where, sizeof where, "%s", m->pointer);
        api_json_pointer_add(where, sizeof where, key);
        if (json_array_size(item) != 2)
            return bad_range(d, where, key, "is to be two numbers: minimum, maximum");
        if (!decode_range(d, where, key, json_array_get(item, 0),
                          json_array_get(item, 1)))
            return false;
    }
    json_array_foreach (value, i, item) {
        snprintf(where, sizeof where, "%s", m->pointer);
        snprintf(number, sizeof number, "%zu", i);
        api_json_pointer_add(where, sizeof where, number);
        if (!decode_tensor(d, where, item))
            return false;
    }
    return true;
}

/* --- TensorRT's calibration cache ----------------------------------------- */

static size_t
count_lines(const char *text)
{
    size_t n = 0;
    for (; text && *text; text++)
        n += *text == '\n';
    return n + 1;
}

static bool
bad_line(struct decoder *d, const struct member *m, size_t number, const char *what)
{
    return api_refuse(d, API_INVALID_SPEC, m->pointer,
                      "line %zu of the TensorRT calibration cache %s", number, what);
}

/* "NAME: 3c010a14": the bits of the tensor's float32 scale; names may hold colons. */
static bool
decode_scale(struct decoder *d, const struct member *m, char *line, size_t number)
{
    char *colon = strrchr(line, ':');
    if (!colon || colon == line)
        return bad_line(d, m, number, "is not a name, a colon and a scale");
    const char *hex = colon + 1 + strspn(colon + 1, " ");
    size_t digits = strspn(hex, "0123456789abcdefABCDEF");
    if (digits == 0 || digits > 8 || hex[digits])
        return bad_line(d, m, number,
                        "does not end in the eight hexadecimal digits "
                        "of a float32 scale");
    uint32_t bits = (uint32_t)strtoul(hex, NULL, 16);
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    if (!isfinite(scale) || signbit(scale))
        return bad_line(d, m, number, "has a scale that is negative or not finite");
    *colon = '\0';
    double amax = (double)scale * 127;
    struct qdq_given_range *ranges = d->object;
    ranges[d->to->spec.calibration.n_ranges++] =
        (struct qdq_given_range){line, -amax, amax};
    return true;
}

/* Parses the text. Its first line names TensorRT's version and calibrator. */
static bool
decode_cache(struct decoder *d, const struct member *m, const char *text)
{
    size_t size = strlen(text) + 1, number = 0;
    if (strncmp(text, "TRT-", 4) != 0)
        return api_refuse(d, API_INVALID_SPEC, m->pointer,
                          "ranges in a string are to be the text of a TensorRT "
                          "calibration cache, which begins with \"TRT-\"");
    char *lines = api_spec_alloc(d, size, 1), *next;
    if (!lines)
        return false;
    memcpy(lines, text, size);
    for (char *line = lines; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        line[strcspn(line, "\r")] = '\0';
        if (number++ > 0 && *line && !decode_scale(d, m, line, number))
            return false;
    }
    return true;
}

/* --- the member ----------------------------------------------------------- */

/* Decodes the ranges and sorts them by the tensors' names. */
bool
api_decode_ranges(struct decoder *d, const struct member *m, json_t *value)
{
    struct qdq_calibration_spec *to = &d->to->spec.calibration;
    const char *text = json_string_value(value);
    size_t n =
        text ? count_lines(text) : json_object_size(value) + json_array_size(value);
    struct qdq_given_range *ranges = api_spec_alloc(d, n, sizeof *ranges);
    struct decoder inner = {d->to, d->problem, NULL, ranges, d->at};
    to->ranges = ranges;
    if (!ranges ||
        !(text ? decode_cache(&inner, m, text) : decode_each_range(&inner, m, value)))
        return false;
    qsort(ranges, to->n_ranges, sizeof *ranges, by_name);
    for (size_t i = 1; i < to->n_ranges; i++)
        if (by_name(&ranges[i - 1], &ranges[i]) == 0)
            return bad_range(d, m->pointer, ranges[i].tensor, "stands there twice");
    return true;
}

bool
api_decode_source(struct decoder *d, const struct member *m, json_t *value)
{
    const char *id = json_string_value(value);
    if (!digest_is_id(id))
        return api_refuse(d, API_INVALID_SPEC, m->pointer,
                          "%s is to be sha256: and 64 hexadecimal digits, not "
                          "\"%.80s\"",
                          api_label(d, m->pointer).text, id);
    *(const char **)api_field(d, m) = id;
    return true;
}

/* Returns whether JSON can hold the name: models may use bytes that are not UTF-8. */
static bool
is_text(const char *tensor)
{
    json_t *text = api_json_text(tensor);
    bool ok = !text || strcmp(json_string_value(text), tensor) == 0;
    json_decref(text);
    return ok;
}

json_t *
api_encode_ranges(const void *object, const struct member *m)
{
    const struct qdq_spec *spec = object;
    (void)m;
    if (spec->calibration.n_ranges == 0)
        return json_null();
    json_t *ranges = json_object();
    bool ok = ranges;
    for (size_t i = 0; ok && i < spec->calibration.n_ranges; i++) {
        const struct qdq_given_range *range = &spec->calibration.ranges[i];
        if (is_text(range->tensor))
            ok = json_object_set_new(ranges, range->tensor,
                                     json_pack("[o, o]", api_json_real(range->min),
                                               api_json_real(range->max))) == 0;
    }
    return api_json_if(ok, ranges);
}
