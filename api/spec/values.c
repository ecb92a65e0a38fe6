/* SPDX-License-Identifier: Apache-2.0 */
/* Decoders and encoders of a single value, for the rows of all tables. */
#include "config.h"
#include "spec/values.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXISTING "existing"

void *
api_field(struct decoder *d, const struct member *m)
{
    return (char *)d->object + m->field;
}

static const void *
const_field(const void *object, const struct member *m)
{
    return (const char *)object + m->field;
}

/* --- choices -------------------------------------------------------------- */

/* Returns name i of the member's choices, or NULL behind the last one. */
static const char *
name_at(const struct member *m, size_t i)
{
    return m->choices->names ? m->choices->names[i] : m->choices->name_of_row(i);
}

static void
add_name(char *to, size_t size, const char *name)
{
    api_text_add(to, size, *to ? ", " : "");
    api_text_add(to, size, name);
}

/* Returns the index of the value, a string, among the choices, or -1 when it has set a
   problem. */
static int
choose(struct decoder *d, const struct member *m, json_t *value)
{
    const char *text = json_string_value(value), *name;
    char known[256] = "";
    for (int i = 0; (name = name_at(m, (size_t)i)); i++) {
        if (strcmp(name, text) == 0)
            return i;
        add_name(known, sizeof known, name);
    }
    if (m->types & OBJECT)
        add_name(known, sizeof known, "an object");
    if (m->types & INTEGER)
        add_name(known, sizeof known, "an integer");
    api_refuse(d, API_INVALID_SPEC, m->pointer, "%s is to be one of %s; not \"%.64s\"",
               api_label(d, m->pointer).text, known, text);
    return -1;
}

static_assert(sizeof(enum qdq_mode) == sizeof(int), "choices are read as ints");

bool
api_decode_choice(struct decoder *d, const struct member *m, json_t *value)
{
    int i = choose(d, m, value);
    if (i >= 0 && m->field != NO_FIELD)
        *(int *)api_field(d, m) = i;
    return i >= 0;
}

json_t *
api_encode_choice(const void *object, const struct member *m)
{
    int i = *(const int *)const_field(object, m);
    return i >= 0 ? json_string(name_at(m, (size_t)i))
                  : json_null(); /* -1: not decided yet */
}

static const struct {
    const char *name;
    bool is_float;
    unsigned uses;
    int block; /* of a format whose blocks are its own; else 0 */
} formats[QDQ_N_FORMATS] = {
#define QDQ_FORMAT(name, text, bits, lowest, highest, fraction, min, opset, uses) \
    {text, fraction > 0, uses, 0},
#define QDQ_BLOCK_FORMAT(name, text, bits, lowest, highest, fraction, min, opset, \
                         uses, element, block, scales)                            \
    {text, fraction > 0, uses, block},
#include "qdq/formats.h"
#undef QDQ_FORMAT
};

/* Returns the name of format i of those for a use. */
static const char *
format_name(enum qdq_format_use use, size_t i)
{
    for (int k = 0; k < QDQ_N_FORMATS; k++)
        if (formats[k].uses & (unsigned)use && i-- == 0)
            return formats[k].name;
    return NULL;
}

const char *
api_weight_format(size_t i)
{
    return format_name(QDQ_FOR_WEIGHTS, i);
}

const char *
api_activation_format(size_t i)
{
    return format_name(QDQ_FOR_ACTIVATIONS, i);
}

bool
api_format_is_float(enum qdq_format format)
{
    return format != QDQ_FORMAT_DEFAULT && formats[format].is_float;
}

bool
api_decode_format(struct decoder *d, const struct member *m, json_t *value)
{
    int i = choose(d, m, value);
    for (int k = 0; i >= 0 && k < QDQ_N_FORMATS; k++)
        if (strcmp(formats[k].name, name_at(m, (size_t)i)) == 0)
            *(enum qdq_format *)api_field(d, m) = (enum qdq_format)k;
    return i >= 0;
}

json_t *
api_encode_format(const void *object, const struct member *m)
{
    enum qdq_format format = *(const enum qdq_format *)const_field(object, m);
    return format == QDQ_FORMAT_DEFAULT ? json_null()
                                        : json_string(formats[format].name);
}

const char *
api_name_with_float(const char *(*name)(size_t), size_t i)
{
    const char *text = name(i);
    return text || (i > 0 && !name(i - 1)) ? text : API_FLOAT32;
}

const char *
api_layer_weight_format(size_t i)
{
    return api_name_with_float(api_weight_format, i);
}

bool
api_decode_format_set(struct decoder *d, const struct member *m, json_t *value,
                      unsigned *ret)
{
    size_t i;
    json_t *item;
    *ret = 0;
    json_array_foreach (value, i, item) {
        const struct member one = {.pointer = m->pointer,
                                   .choices = NAMES_OF_ROWS(api_layer_weight_format)};
        const int k = json_is_string(item) ? choose(d, &one, item) : -1;
        if (!json_is_string(item))
            return api_refuse(d, API_INVALID_SPEC, m->pointer,
                              "%s is a list of names of formats",
                              api_label(d, m->pointer).text);
        if (k < 0)
            return false;
        const char *const name = api_layer_weight_format((size_t)k);
        if (strcmp(name, API_FLOAT32) == 0)
            *ret |= 1U << QDQ_BIT_FLOAT32;
        for (unsigned f = 0; f < QDQ_N_FORMATS; f++) {
            if (strcmp(formats[f].name, name) != 0)
                continue;
            if (formats[f].block > 0)
                return api_refuse(d, API_INVALID_SPEC, m->pointer,
                                  "%s: %s has blocks of its own, and the formats of an "
                                  "allocation share those of the spec",
                                  api_label(d, m->pointer).text, formats[f].name);
            *ret |= 1U << f;
        }
    }
    return *ret != 0 || api_refuse(d, API_INVALID_SPEC, m->pointer,
                                   "%s names no format", api_label(d, m->pointer).text);
}

int
api_format_block(enum qdq_format format)
{
    return format >= 0 && format < QDQ_N_FORMATS ? formats[format].block : 0;
}

json_t *
api_encode_format_set(unsigned set)
{
    json_t *names = json_array();
    bool ok = names;
    for (unsigned f = 0; ok && f < QDQ_N_FORMATS; f++)
        if (set & (1U << f))
            ok = json_array_append_new(names, json_string(formats[f].name)) == 0;
    if (ok && set & (1U << QDQ_BIT_FLOAT32))
        ok = json_array_append_new(names, json_string(API_FLOAT32)) == 0;
    return api_json_if(ok, names);
}

bool
api_decode_name(struct decoder *d, const struct member *m, json_t *value)
{
    int i = choose(d, m, value);
    if (i >= 0)
        *(const char **)api_field(d, m) = name_at(m, (size_t)i);
    return i >= 0;
}

bool
api_decode_switch(struct decoder *d, const struct member *m, json_t *value)
{
    int i = choose(d, m, value);
    if (i >= 0)
        *(bool *)api_field(d, m) = i;
    return i >= 0;
}

json_t *
api_encode_switch(const void *object, const struct member *m)
{
    return json_string(name_at(m, *(const bool *)const_field(object, m)));
}

/* --- flags, texts, numbers ------------------------------------------------ */

bool
api_decode_flag(struct decoder *d, const struct member *m, json_t *value)
{
    *(bool *)api_field(d, m) = json_is_true(value);
    return true;
}

json_t *
api_encode_flag(const void *object, const struct member *m)
{
    return json_boolean(*(const bool *)const_field(object, m));
}

bool
api_decode_tristate(struct decoder *d, const struct member *m, json_t *value)
{
    *(enum qdq_tristate *)api_field(d, m) = json_is_true(value) ? QDQ_YES : QDQ_NO;
    return true;
}

/* true, false, or "existing". */
bool
api_decode_bias_correction(struct decoder *d, const struct member *m, json_t *value)
{
    if (json_is_string(value) && strcmp(json_string_value(value), EXISTING) != 0)
        return api_refuse(d, API_INVALID_SPEC, m->pointer,
                          "bias_correction is to be true, false or \"" EXISTING
                          "\"; not \"%.64s\"",
                          json_string_value(value));
    *(enum qdq_bias_correction *)api_field(d, m) =
        json_is_string(value) ? QDQ_BIASES_EXISTING
        : json_is_true(value) ? QDQ_BIASES_ALL
                              : QDQ_BIASES_NONE;
    return true;
}

json_t *
api_encode_bias_correction(enum qdq_bias_correction value)
{
    return value == QDQ_BIASES_EXISTING ? json_string(EXISTING)
                                        : json_boolean(value == QDQ_BIASES_ALL);
}

json_t *
api_encode_tristate(const void *object, const struct member *m)
{
    enum qdq_tristate is = *(const enum qdq_tristate *)const_field(object, m);
    return is == QDQ_DEFAULT ? json_null() : json_boolean(is == QDQ_YES);
}

bool
api_parse_text(struct decoder *d, const char *pointer, json_t *value, const char **ret)
{
    *ret = json_string_value(value);
    return **ret || api_refuse(d, API_INVALID_SPEC, pointer, "%s is empty",
                               api_label(d, pointer).text);
}

bool
api_decode_text(struct decoder *d, const struct member *m, json_t *value)
{
    return api_parse_text(d, m->pointer, value, api_field(d, m));
}

json_t *
api_encode_text(const void *object, const struct member *m)
{
    return api_json_text(*(const char *const *)const_field(object, m));
}

bool
api_parse_integer(struct decoder *d, const char *pointer, json_t *value, int64_t min,
                  int64_t max, int64_t *ret)
{
    int64_t n = 0;
    api_json_integer(value, &n);
    if (n < min || n > max)
        return api_refuse(
            d, API_INVALID_SPEC, pointer, "%s is to be from %lld to %lld, not %lld",
            api_label(d, pointer).text, (long long)min, (long long)max, (long long)n);
    *ret = n;
    return true;
}

bool
api_decode_count(struct decoder *d, const struct member *m, json_t *value)
{
    return api_parse_integer(d, m->pointer, value, m->min, API_COUNT_MAX,
                             api_field(d, m));
}

json_t *
api_encode_count(const void *object, const struct member *m)
{
    int64_t n = *(const int64_t *)const_field(object, m);
    return n < m->min ? json_null() : json_integer(n);
}
