/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api/spec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "members.h"

/* --- decoding ------------------------------------------------------------- */

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
    for (size_t i = 0; i < api_n_members; i++) {
        const char *name = name_in(&api_members[i], base);
        if (name && strcmp(name, key) == 0)
            return &api_members[i];
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
    for (size_t i = 0; i < api_n_members; i++) {
        const char *name = name_in(&api_members[i], base);
        if (!name)
            continue;
        api_text_add(known, sizeof known, *known ? ", " : "");
        api_text_add(known, sizeof known, name);
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
            api_text_add(wanted, sizeof wanted, *wanted ? " or " : "");
            api_text_add(wanted, sizeof wanted, names[i]);
        }
    return api_problem_set(r->problem, API_INVALID_SPEC, QDQ_AT_POINTER, m->pointer,
                           "%s is to be %s, not %s", api_label(m).text, wanted,
                           json_is_real(value) ? real_name(value)
                                               : api_json_type_name(value));
}

bool
api_read_members(struct reader *r, const char *base, json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach (object, key, value) {
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
    if (!api_read_members(&reader, "", spec->root))
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

/* --- encoding ------------------------------------------------------------- */

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
    for (size_t i = 0; root && i < api_n_members; i++) {
        const struct member *m = &api_members[i];
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
