/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "members.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { MANY = INT32_MAX }; /* bound of counts */

/* --- readers and writers of one value ------------------------------------- */

struct label
api_label(const struct member *m)
{
    struct label label;
    snprintf(label.text, sizeof label.text, "%s", m->pointer + 1);
    char *slash = strchr(label.text, '/');
    if (slash)
        *slash = '.';
    return label;
}

static bool
unsupported(struct reader *r, const struct member *m, const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    bool is_short = text && strlen(text) <= 64;
    api_problem_set(r->problem, API_UNSUPPORTED, QDQ_AT_POINTER, m->pointer,
                    "this version cannot do %s%s%s", api_label(m).text,
                    is_short ? ": " : "", is_short ? text : "");
    free(text);
    return false;
}

static void *
field_of(struct qdq_spec *spec, const struct member *m)
{
    return (char *)spec + m->field;
}

static const void *
const_field_of(const struct qdq_spec *spec, const struct member *m)
{
    return (const char *)spec + m->field;
}

/* Index among the names up to the next NULL, or -1. */
static int
find_name(const char *const *names, const char *name)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

/* The names that are only known: those behind the first NULL. */
static const char *const *
later_names(const struct member *m)
{
    const char *const *names = m->names;
    while (*names)
        names++;
    return names + 1;
}

static void
add_names(char *to, size_t size, const char *const *names)
{
    for (; *names; names++) {
        api_text_add(to, size, *to ? ", " : "");
        api_text_add(to, size, *names);
    }
}

/* The value's index among the names that can be done, or -1 with a problem. */
static int
choose(struct reader *r, const struct member *m, json_t *value)
{
    const char *const *later = later_names(m);
    const char *text = json_string_value(value);
    int i = text ? find_name(m->names, text) : -1;
    if (i >= 0)
        return i;
    if (!text || find_name(later, text) >= 0) {
        unsupported(r, m, value);
        return -1;
    }
    char known[256] = "";
    add_names(known, sizeof known, m->names);
    add_names(known, sizeof known, later);
    if (m->types & OBJECT)
        add_names(known, sizeof known, NAMES("an object"));
    if (m->types & INTEGER)
        add_names(known, sizeof known, NAMES("an integer"));
    api_problem_set(r->problem, API_INVALID_SPEC, QDQ_AT_POINTER, m->pointer,
                    "%s is to be one of %s; not \"%.64s\"", api_label(m).text, known,
                    text);
    return -1;
}

static_assert(sizeof(enum qdq_mode) == sizeof(int), "choices are read as ints");

/* An enum field. */
static bool
read_choice(struct reader *r, const struct member *m, json_t *value)
{
    int i = choose(r, m, value);
    if (i >= 0 && m->field != NO_FIELD)
        *(int *)field_of(&r->to->spec, m) = i;
    return i >= 0;
}

static json_t *
write_choice(const struct qdq_spec *spec, const struct member *m)
{
    bool only_one = !m->names[1];
    if (m->field == NO_FIELD)
        return only_one ? json_string(m->names[0]) : json_null();
    return json_string(m->names[*(const int *)const_field_of(spec, m)]);
}

/* A choice kept as its name. */
static bool
read_name(struct reader *r, const struct member *m, json_t *value)
{
    int i = choose(r, m, value);
    if (i >= 0)
        *(const char **)field_of(&r->to->spec, m) = m->names[i];
    return i >= 0;
}

static json_t *
write_name(const struct qdq_spec *spec, const struct member *m)
{
    return json_string(*(const char *const *)const_field_of(spec, m));
}

/* A choice of two, kept as a bool. */
static bool
read_switch(struct reader *r, const struct member *m, json_t *value)
{
    int i = choose(r, m, value);
    if (i >= 0)
        *(bool *)field_of(&r->to->spec, m) = i;
    return i >= 0;
}

static json_t *
write_switch(const struct qdq_spec *spec, const struct member *m)
{
    return json_string(m->names[*(const bool *)const_field_of(spec, m)]);
}

static bool
read_count(struct reader *r, const struct member *m, json_t *value)
{
    int64_t n = 0;
    api_json_integer(value, &n);
    if (n < m->min || n > MANY)
        return api_problem_set(r->problem, API_INVALID_SPEC, QDQ_AT_POINTER, m->pointer,
                               "%s is to be from %lld to %lld, not %lld",
                               api_label(m).text, (long long)m->min, (long long)MANY,
                               (long long)n);
    if (m->field == NO_FIELD)
        return unsupported(r, m, value);
    *(int64_t *)field_of(&r->to->spec, m) = n;
    return true;
}

static json_t *
write_count(const struct qdq_spec *spec, const struct member *m)
{
    return json_integer(*(const int64_t *)const_field_of(spec, m));
}

/* Only the one value that means "without it" can be done, if there is one. */
static bool
read_fixed(struct reader *r, const struct member *m, json_t *value)
{
    json_t *only = api_json_embed(m->names[0]);
    if (!only)
        return api_problem_set(r->problem, API_NO_MEMORY, QDQ_AT_NOTHING, NULL,
                               "out of memory");
    bool ok = json_equal(only, value);
    json_decref(only);
    return ok || unsupported(r, m, value);
}

static json_t *
write_fixed(const struct qdq_spec *spec, const struct member *m)
{
    (void)spec;
    json_t *only = api_json_embed(m->names[0]);
    if (!only || json_is_boolean(only))
        return only;
    json_decref(only);
    return json_null();
}

static bool
read_object(struct reader *r, const struct member *m, json_t *value)
{
    return api_read_members(r, m->pointer, value);
}

/* "none", or an object. */
static bool
read_activations(struct reader *r, const struct member *m, json_t *value)
{
    return json_is_object(value) ? read_object(r, m, value) : read_choice(r, m, value);
}

/* true, false, or {"samples": n}, which means true. */
static bool
read_evaluate(struct reader *r, const struct member *m, json_t *value)
{
    r->to->spec.evaluate = json_is_false(value) ? QDQ_NO : QDQ_YES;
    return !json_is_object(value) || read_object(r, m, value);
}

static json_t *
write_evaluate(const struct qdq_spec *spec, const struct member *m)
{
    (void)m;
    if (spec->evaluate == QDQ_DEFAULT)
        return json_null();
    if (spec->evaluate == QDQ_YES && spec->evaluate_samples > 0)
        return json_pack("{s:I}", "samples", (json_int_t)spec->evaluate_samples);
    return json_boolean(spec->evaluate == QDQ_YES);
}

/* --- the table ------------------------------------------------------------ */

#define FIELD(name) ((ptrdiff_t)offsetof(struct qdq_spec, name))
#define ONLY(json) ((const char *const[]){json})
#define CHOICE read_choice, write_choice
#define NAME read_name, write_name
#define SWITCH read_switch, write_switch
#define COUNT read_count, write_count
#define FIXED read_fixed, write_fixed
#define GROUP read_object, NULL, NO_FIELD, NULL, 0

const struct member api_members[] = {
    {"/mode", STRING, CHOICE, FIELD(mode), NAMES("full", NULL, "partial"), 0},
    {"/target", STRING, CHOICE, FIELD(target), NAMES("tensorrt", NULL, "onnxruntime"),
     0},
    {"/device", STRING, CHOICE, FIELD(device), NAMES("auto", "cpu", NULL, "cuda"), 0},
    {"/layers", ARRAY, FIXED, NO_FIELD, ONLY("[]"), 0},
    {"/cases", ARRAY, FIXED, NO_FIELD, ONLY("[]"), 0},
    {"/layer_support", ARRAY, FIXED, NO_FIELD, ONLY("[]"), 0},
    {"/weights", OBJECT, GROUP},
    {"/weights/dtype", STRING, CHOICE, NO_FIELD,
     NAMES("int8", NULL, "uint8", "int4", "uint4", "float8e4m3fn", "float8e5m2",
           "float4e2m1"),
     0},
    {"/weights/granularity", STRING | OBJECT, CHOICE, FIELD(weight_granularity),
     NAMES("tensor", "channel", NULL), 0},
    {"/weights/storage", STRING, CHOICE, NO_FIELD, NAMES("qdq", NULL, "dq"), 0},
    {"/weights/method", STRING, CHOICE, NO_FIELD, NAMES("max", NULL, "mse"), 0},
    {"/activations", STRING | OBJECT, read_activations, NULL, NO_FIELD,
     NAMES(NULL, "none"), 0},
    {"/activations/dtype", STRING, CHOICE, NO_FIELD,
     NAMES("int8", NULL, "uint8", "int16", "uint16", "float8e4m3fn", "float8e5m2"), 0},
    {"/activations/symmetric", BOOL, FIXED, NO_FIELD, ONLY("true"), 0},
    {"/float", STRING, CHOICE, NO_FIELD, NAMES("keep", NULL, "float16", "bfloat16"), 0},
    {"/calibration", OBJECT, GROUP},
    {"/calibration/method", STRING, NAME, FIELD(calibration.method),
     NAMES("minmax", NULL, "moving_average", "percentile", "entropy", "mse",
           "output_mse"),
     0},
    {"/calibration/percentile", NUMBER, FIXED, NO_FIELD, ONLY(NULL), 0},
    {"/calibration/ranges", OBJECT | ARRAY, api_read_ranges, api_write_ranges, NO_FIELD,
     NULL, 0},
    {"/calibration/max_samples", INTEGER, COUNT, FIELD(calibration.max_samples), NULL,
     0},
    {"/calibration/batch", INTEGER, COUNT, FIELD(calibration.batch), NULL, 1},
    {"/calibration/dims", OBJECT, FIXED, NO_FIELD, ONLY("{}"), 0},
    {"/calibration/random_samples", INTEGER, read_count, NULL, NO_FIELD, NULL, 0},
    {"/calibration/random", OBJECT, FIXED, NO_FIELD, ONLY("{}"), 0},
    {"/calibration/on_nonfinite", STRING, CHOICE, NO_FIELD,
     NAMES("error", NULL, "skip_sample"), 0},
    {"/equalize", BOOL, FIXED, NO_FIELD, ONLY("false"), 0},
    {"/evaluate", BOOL | OBJECT, read_evaluate, write_evaluate, NO_FIELD, NULL, 0},
    {"/evaluate/samples", INTEGER, read_count, NULL, FIELD(evaluate_samples), NULL, 1},
    {"/accept", OBJECT, FIXED, NO_FIELD, ONLY("{}"), 0},
    {"/sensitivity", OBJECT, FIXED, NO_FIELD, ONLY(NULL), 0},
    {"/search", OBJECT, FIXED, NO_FIELD, ONLY(NULL), 0},
    {"/opset", STRING | INTEGER, CHOICE, NO_FIELD, NAMES("auto", "keep", NULL), 0},
    {"/existing_qdq", STRING, CHOICE, NO_FIELD, NAMES("error", NULL, "keep", "strip"),
     0},
    {"/rules", OBJECT, FIXED, NO_FIELD, ONLY("{}"), 0},
    {"/on_unmatched", STRING, SWITCH, FIELD(unmatched_is_error),
     NAMES("warn", "error", NULL), 0},
};

const size_t api_n_members = sizeof api_members / sizeof *api_members;
