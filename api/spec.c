/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table, `members`, says everything about the spec's JSON: which members there are,
 * which types they take, which values this version can do and which it only knows, and
 * where the value goes. Decoder and encoder walk it; a new member is a row and a field.
 */
#include "config.h"
#include "api/spec.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

struct api_spec {
    struct qdq_spec spec;
    json_t *root; /* strings of `spec` live here */
    struct qdq_given_range *ranges;
};

struct member;

struct reader {
    struct api_spec *to;
    struct api_problem *problem;
};

/* Reads a value of a type that the member takes. False when a problem was set. */
typedef bool (*read_fn)(struct reader *r, const struct member *m, json_t *value);
/* The member's value in the effective spec; null when there is nothing to say. */
typedef json_t *(*write_fn)(const struct qdq_spec *spec, const struct member *m);

enum {
    BOOL = 1 << 0,
    INTEGER = 1 << 1, /* an integral number, however written */
    NUMBER = 1 << 2,
    STRING = 1 << 3,
    ARRAY = 1 << 4,
    OBJECT = 1 << 5,
};

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { NO_FIELD = -1 };
enum { MANY = INT32_MAX }; /* bound of counts */

struct member {
    const char *pointer; /* RFC 6901, from the spec's root */
    unsigned types;
    read_fn read;
    write_fn write;
    ptrdiff_t field; /* offset in struct qdq_spec */
    /* Choices: those that can be done, in the order of the field's enum, NULL, those
       that are only known, NULL. Fixed values: the only value that can be done, as
       JSON, or NULL. */
    const char *const *names;
    int64_t min; /* of integers */
};

/* --- readers and writers of one value --------------------------------------------- */

struct label {
    char text[64];
};

/* The member as people write it: "weights.dtype". */
static struct label
label_of(const struct member *m)
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
                    "this version cannot do %s%s%s", label_of(m).text,
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

/* Index among the names up to the next NULL, or -1; *next is behind that NULL. */
static int
find_name(const char *const *names, const char *name, const char *const **next)
{
    int found = -1;
    int i = 0;
    for (; names[i]; i++)
        if (strcmp(names[i], name) == 0)
            found = i;
    *next = names + i + 1;
    return found;
}

static void
add_text(char *to, size_t size, const char *text)
{
    size_t len = strlen(to);
    snprintf(to + len, size - len, "%s", text);
}

static void
add_names(char *to, size_t size, const char *const *names)
{
    for (; *names; names++) {
        add_text(to, size, *to ? ", " : "");
        add_text(to, size, *names);
    }
}

/* The value's index among the names that can be done, or -1 with a problem. */
static int
choose(struct reader *r, const struct member *m, json_t *value)
{
    const char *const *later;
    const char *const *end;
    const char *text = json_string_value(value);
    int i = text ? find_name(m->names, text, &later) : -1;
    if (i >= 0)
        return i;
    if (!text || find_name(later, text, &end) >= 0) {
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
                    "%s is to be one of %s; not \"%.64s\"", label_of(m).text, known,
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
                               label_of(m).text, (long long)m->min, (long long)MANY,
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
    bool ok = json_equal(only, value);
    json_decref(only);
    return ok || unsupported(r, m, value);
}

static json_t *
write_fixed(const struct qdq_spec *spec, const struct member *m)
{
    (void)spec;
    json_t *only = api_json_embed(m->names[0]);
    if (json_is_boolean(only))
        return only;
    json_decref(only);
    return json_null();
}

static bool read_members(struct reader *r, const char *base, json_t *object);

static bool
read_object(struct reader *r, const struct member *m, json_t *value)
{
    return read_members(r, m->pointer, value);
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

/* --- ranges ----------------------------------------------------------------------- */

static bool
bad_range(struct reader *r, const char *where, const char *tensor, const char *text)
{
    return api_problem_set(r->problem, API_INVALID_SPEC, QDQ_AT_POINTER, where,
                           "the range of \"%.128s\" %s", tensor, text);
}

static bool
read_range(struct reader *r, const char *where, const char *tensor, json_t *min,
           json_t *max)
{
    if (!json_is_number(min) || !json_is_number(max))
        return bad_range(r, where, tensor, "is to be two numbers: minimum, maximum");
    struct qdq_given_range range = {tensor, json_number_value(min),
                                    json_number_value(max)};
    if (range.min > range.max)
        return bad_range(r, where, tensor, "has a minimum above its maximum");
    r->to->ranges[r->to->spec.calibration.n_ranges++] = range;
    return true;
}

/* An object of a report's `tensors`. */
static bool
read_tensor(struct reader *r, const char *where, json_t *tensor)
{
    static const char *const known[] = {
        "name", "min", "max", "scale", "zero_point", "method", "samples", NULL,
    };
    const char *key;
    json_t *value;
    const char *const *end;
    const char *name = json_string_value(json_object_get(tensor, "name"));
    if (!name)
        return api_problem_set(r->problem, API_INVALID_SPEC, QDQ_AT_POINTER, where,
                               "a range in a list is to be an object with name, min "
                               "and max");
    json_object_foreach(tensor, key, value) if (
        find_name(known, key, &end) <
        0) return api_problem_set(r->problem, API_INVALID_SPEC, QDQ_AT_POINTER, where,
                                  "a range in a list has no member \"%.64s\"", key);
    return read_range(r, where, name, json_object_get(tensor, "min"),
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
read_each_range(struct reader *r, const struct member *m, json_t *value)
{
    const char *key;
    json_t *item;
    size_t i;
    char where[256], number[24];
    json_object_foreach(value, key, item)
    {
        snprintf(where, sizeof where, "%s", m->pointer);
        api_json_pointer_add(where, sizeof where, key);
        if (json_array_size(item) != 2)
            return bad_range(r, where, key, "is to be two numbers: minimum, maximum");
        if (!read_range(r, where, key, json_array_get(item, 0),
                        json_array_get(item, 1)))
            return false;
    }
    json_array_foreach(value, i, item)
    {
        snprintf(where, sizeof where, "%s", m->pointer);
        snprintf(number, sizeof number, "%zu", i);
        api_json_pointer_add(where, sizeof where, number);
        if (!read_tensor(r, where, item))
            return false;
    }
    return true;
}

/* {tensor: [min, max]}, or a report's `tensors`; kept sorted by name. */
static bool
read_ranges(struct reader *r, const struct member *m, json_t *value)
{
    struct qdq_calibration_spec *to = &r->to->spec.calibration;
    size_t n = json_object_size(value) + json_array_size(value);
    r->to->ranges = calloc(n ? n : 1, sizeof *r->to->ranges);
    if (!r->to->ranges)
        return api_problem_set(r->problem, API_NO_MEMORY, QDQ_AT_NOTHING, NULL,
                               "out of memory");
    to->ranges = r->to->ranges;
    if (!read_each_range(r, m, value))
        return false;
    qsort(r->to->ranges, to->n_ranges, sizeof *r->to->ranges, by_name);
    for (size_t i = 1; i < to->n_ranges; i++)
        if (by_name(&to->ranges[i - 1], &to->ranges[i]) == 0)
            return bad_range(r, m->pointer, to->ranges[i].tensor, "stands there twice");
    return true;
}

static json_t *
write_ranges(const struct qdq_spec *spec, const struct member *m)
{
    (void)m;
    if (spec->calibration.n_ranges == 0)
        return json_null();
    json_t *ranges = json_object();
    for (size_t i = 0; ranges && i < spec->calibration.n_ranges; i++) {
        const struct qdq_given_range *range = &spec->calibration.ranges[i];
        if (json_object_set_new(ranges, range->tensor,
                                json_pack("[o, o]", api_json_real(range->min),
                                          api_json_real(range->max))) != 0) {
            json_decref(ranges);
            ranges = NULL;
        }
    }
    return ranges;
}

/* --- the table -------------------------------------------------------------------- */

#define FIELD(name) ((ptrdiff_t)offsetof(struct qdq_spec, name))
#define ONLY(json) ((const char *const[]){json})
#define CHOICE read_choice, write_choice
#define NAME read_name, write_name
#define SWITCH read_switch, write_switch
#define COUNT read_count, write_count
#define FIXED read_fixed, write_fixed
#define GROUP read_object, NULL, NO_FIELD, NULL, 0

static const struct member members[] = {
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
    {"/calibration/ranges", OBJECT | ARRAY, read_ranges, write_ranges, NO_FIELD, NULL,
     0},
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

enum { N_MEMBERS = sizeof members / sizeof *members };

/* --- decoding --------------------------------------------------------------------- */

/* The member's own name, if it stands directly in the object at `base`; else NULL. */
static const char *
name_in(const struct member *m, const char *base)
{
    size_t len = strlen(base);
    if (strncmp(m->pointer, base, len) != 0 || m->pointer[len] != '/')
        return NULL;
    const char *name = m->pointer + len + 1;
    return strchr(name, '/') ? NULL : name;
}

static const struct member *
find_member(const char *base, const char *key)
{
    for (int i = 0; i < N_MEMBERS; i++) {
        const char *name = name_in(&members[i], base);
        if (name && strcmp(name, key) == 0)
            return &members[i];
    }
    return NULL;
}

/* Edits (insert, delete, replace) from a to b, both shorter than 64. */
static size_t
distance(const char *a, const char *b)
{
    size_t row[64];
    size_t n = strlen(b);
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < n; j++) {
            size_t best = diagonal + (a[i] != b[j]);
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j + 1] + 1 < best)
                best = row[j + 1] + 1;
            diagonal = row[j + 1];
            row[j + 1] = best;
        }
    }
    return row[n];
}

static bool
unknown_member(struct reader *r, const char *base, const char *key)
{
    char where[256], known[320] = "";
    const char *nearest = NULL;
    size_t least = strlen(key) < 64 ? strlen(key) / 2 + 1 : 0;
    for (int i = 0; i < N_MEMBERS; i++) {
        const char *name = name_in(&members[i], base);
        if (!name)
            continue;
        add_text(known, sizeof known, *known ? ", " : "");
        add_text(known, sizeof known, name);
        if (least && distance(key, name) < least) {
            least = distance(key, name);
            nearest = name;
        }
    }
    snprintf(where, sizeof where, "%s", base);
    api_json_pointer_add(where, sizeof where, key);
    return api_problem_set(r->problem, API_INVALID_SPEC, QDQ_AT_POINTER, where,
                           nearest ? "unknown member \"%.64s\"; did you mean \"%s\"?"
                                   : "unknown member \"%.64s\"; known are %s",
                           key, nearest ? nearest : known);
}

static unsigned
types_of(const json_t *value)
{
    int64_t n;
    unsigned integer = api_json_integer(value, &n) ? INTEGER : 0;
    const unsigned types[] = {
        [JSON_OBJECT] = OBJECT,
        [JSON_ARRAY] = ARRAY,
        [JSON_STRING] = STRING,
        [JSON_INTEGER] = NUMBER | integer,
        [JSON_REAL] = NUMBER | integer,
        [JSON_TRUE] = BOOL,
        [JSON_FALSE] = BOOL,
        [JSON_NULL] = 0,
    };
    return types[json_typeof(value)];
}

/* What a real number is that an integer was wanted for. */
static const char *
real_name(const json_t *value)
{
    double number = json_real_value(value);
    return number == floor(number) ? "so large a number" : "a fraction";
}

static bool
wrong_type(struct reader *r, const struct member *m, const json_t *value)
{
    static const char *const names[] = {
        "true or false", "an integer", "a number", "a string", "an array", "an object",
    };
    char wanted[96] = "";
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (m->types & 1U << i) {
            add_text(wanted, sizeof wanted, *wanted ? " or " : "");
            add_text(wanted, sizeof wanted, names[i]);
        }
    return api_problem_set(r->problem, API_INVALID_SPEC, QDQ_AT_POINTER, m->pointer,
                           "%s is to be %s, not %s", label_of(m).text, wanted,
                           json_is_real(value) ? real_name(value)
                                               : api_json_type_name(value));
}

static bool
read_members(struct reader *r, const char *base, json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        const struct member *m = find_member(base, key);
        if (!m)
            return unknown_member(r, base, key);
        if (!(m->types & types_of(value)))
            return wrong_type(r, m, value);
        if (!m->read(r, m, value))
            return false;
    }
    return true;
}

static bool
is_blank(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!memchr(" \t\r\n", text[i], 4))
            return false;
    return true;
}

bool
api_spec_decode(const char *text, size_t len, struct api_spec **ret,
                struct api_problem *problem)
{
    bool ok = false;
    struct api_spec *spec = calloc(1, sizeof *spec);
    if (!spec) {
        api_problem_set(problem, API_NO_MEMORY, QDQ_AT_NOTHING, NULL, "out of memory");
        goto out;
    }
    qdq_spec_init(&spec->spec);
    if (!text || is_blank(text, len)) {
        text = "{}";
        len = 2;
    }
    spec->root = api_json_load(text, len, API_INVALID_SPEC, problem);
    if (!spec->root)
        goto out;
    if (!json_is_object(spec->root)) {
        api_problem_set(problem, API_INVALID_SPEC, QDQ_AT_POINTER, "",
                        "a spec is to be an object, not %s",
                        api_json_type_name(spec->root));
        goto out;
    }
    struct reader reader = {spec, problem};
    if (!read_members(&reader, "", spec->root))
        goto out;
    *ret = spec;
    spec = NULL;
    ok = true;
out:
    api_spec_free(&spec);
    return ok;
}

void
api_spec_free(struct api_spec **spec)
{
    if (!spec || !*spec)
        return;
    json_decref((*spec)->root);
    free((*spec)->ranges);
    free(*spec);
    *spec = NULL;
}

const struct qdq_spec *
api_spec_get(const struct api_spec *spec)
{
    return &spec->spec;
}

/* --- encoding --------------------------------------------------------------------- */

/* Puts `value`, which is taken, at a pointer of one or two segments. */
static int
put(json_t *root, const char *pointer, json_t *value)
{
    const char *name = strrchr(pointer, '/');
    if (name == pointer)
        return json_object_set_new(root, name + 1, value);
    char group[32];
    snprintf(group, sizeof group, "%.*s", (int)(name - pointer - 1), pointer + 1);
    if (!json_object_get(root, group))
        json_object_set_new(root, group, json_object());
    return json_object_set_new(json_object_get(root, group), name + 1, value);
}

char *
api_spec_encode(const struct qdq_spec *spec)
{
    json_t *root = json_object();
    for (int i = 0; root && i < N_MEMBERS; i++) {
        const struct member *m = &members[i];
        json_t *value = m->write ? m->write(spec, m) : json_null();
        if (json_is_null(value))
            continue;
        if (put(root, m->pointer, value) != 0) {
            json_decref(root);
            root = NULL;
        }
    }
    return api_json_dump(root, JSON_SORT_KEYS);
}
