/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "spec/table.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qdq/words.h"

/* --- memory, messages ----------------------------------------------------- */

/* Memory of an array of the spec. */
struct block {
    struct block *next;
    max_align_t bytes[];
};

void *
api_spec_alloc(struct decoder *d, size_t n, size_t size)
{
    struct block *block = calloc(1, sizeof *block + n * size);
    if (!block) {
        api_problem_no_memory(d->problem);
        return NULL;
    }
    block->next = d->to->blocks;
    d->to->blocks = block;
    return block->bytes;
}

void
api_spec_free_arrays(struct api_spec *spec)
{
    for (struct block *block = spec->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    spec->blocks = NULL;
}

struct label
api_label(const struct decoder *d, const char *pointer)
{
    struct label label = {""};
    char whole[sizeof label.text], part[sizeof label.text];
    snprintf(whole, sizeof whole, "%s%s", d->at, pointer);
    for (const char *s = whole; *s;) {
        size_t n = strcspn(s + 1, "/");
        bool is_index = s[1] >= '0' && s[1] <= '9';
        snprintf(part, sizeof part, is_index ? "[%.*s]" : ".%.*s", (int)n, s + 1);
        api_text_add(label.text, sizeof label.text, part + (s == whole));
        s += n + 1;
    }
    return label;
}

bool
api_refuse(struct decoder *d, enum api_code code, const char *pointer, const char *fmt,
           ...)
{
    char where[sizeof d->problem->where];
    snprintf(where, sizeof where, "%s%s", d->at, pointer);
    va_list args;
    va_start(args, fmt);
    api_problem_vset(d->problem, code, QDQ_AT_POINTER, where, fmt, args);
    va_end(args);
    return false;
}

/* --- decoding ------------------------------------------------------------- */

/* Returns the name of the member if it is directly in the object at `base`, else NULL. */
static const char *
name_below(const struct member *m, const char *base)
{
    size_t len = strlen(base);
    if (strncmp(m->pointer, base, len) != 0 || m->pointer[len] != '/')
        return NULL;
    const char *name = m->pointer + len + 1;
    return strchr(name, '/') ? NULL : name;
}

static const struct member *
find_member(const struct table *table, const char *base, const char *key)
{
    for (size_t i = 0; i < table->n; i++) {
        const char *name = name_below(&table->members[i], base);
        if (name && strcmp(name, key) == 0)
            return &table->members[i];
    }
    return NULL;
}

enum { MAX_MEMBERS = 64 };

/* The names of the members that an object may have. */
struct names {
    const char *names[MAX_MEMBERS];
    size_t n;
};

static const char *
name_at(const void *arg, size_t i)
{
    const struct names *known = arg;
    return i < known->n ? known->names[i] : NULL;
}

static bool
unknown_member(struct decoder *d, const char *base, const char *key)
{
    char where[sizeof d->problem->where], all[320] = "";
    struct names known = {.n = 0};
    for (size_t i = 0; i < d->table->n && known.n < MAX_MEMBERS; i++) {
        const char *name = name_below(&d->table->members[i], base);
        if (!name)
            continue;
        api_text_add(all, sizeof all, *all ? ", " : "");
        api_text_add(all, sizeof all, name);
        known.names[known.n++] = name;
    }
    const char *nearest = qdq_nearest_word(key, name_at, &known);
    snprintf(where, sizeof where, "%s%s", d->at, base);
    api_json_pointer_add(where, sizeof where, key);
    return api_fail_at(d->problem, API_INVALID_SPEC, where,
                       nearest ? "unknown member \"%.64s\"; did you mean \"%s\"?"
                               : "unknown member \"%.64s\"; known are %s",
                       key, nearest ? nearest : all);
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
        [JSON_NULL] = NULL_VALUE,
    };
    return types[json_typeof(value)];
}

/* Names the kind of a real number that stands where an integer belongs. */
static const char *
real_name(const json_t *value)
{
    double number = json_real_value(value);
    return number == floor(number) ? "so large a number" : "a fraction";
}

/* Checks that the value has one of these types. */
static bool
check_type(struct decoder *d, const char *pointer, unsigned types, const json_t *value)
{
    static const char *const names[] = {
        "true or false", "an integer", "a number", "a string",
        "an array",      "an object",  "null",
    };
    if (types & types_of(value))
        return true;
    char wanted[96] = "";
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (types & 1U << i) {
            api_text_add(wanted, sizeof wanted, *wanted ? " or " : "");
            api_text_add(wanted, sizeof wanted, names[i]);
        }
    return api_refuse(d, API_INVALID_SPEC, pointer, "%s is to be %s, not %s",
                      api_label(d, pointer).text, wanted,
                      json_is_real(value) ? real_name(value)
                                          : api_json_type_name(value));
}

bool
api_decode_members(struct decoder *d, const char *base, json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach (object, key, value) {
        const struct member *m = find_member(d->table, base, key);
        if (!m)
            return unknown_member(d, base, key);
        if (!check_type(d, m->pointer, m->types, value) || !m->decode(d, m, value))
            return false;
    }
    return true;
}

static bool
check_size(struct decoder *d, const struct member *m, size_t n, const struct list *list)
{
    if (n < list->min)
        return api_refuse(d, API_INVALID_SPEC, m->pointer, "%s is empty",
                          api_label(d, m->pointer).text);
    return n <= list->max || api_refuse(d, API_LIMIT_EXCEEDED, m->pointer,
                                        "%s has %zu items, and %zu may",
                                        api_label(d, m->pointer).text, n, list->max);
}

void *
api_decode_list(struct decoder *d, const struct member *m, json_t *value,
                const struct list *list)
{
    const size_t n =
        json_is_object(value) ? json_object_size(value) : json_array_size(value);
    void *iter = json_object_iter(value);
    if (!check_size(d, m, n, list))
        return NULL;
    char *items = api_spec_alloc(d, n, list->size);
    for (size_t i = 0; items && i < n; i++) {
        char at[sizeof d->problem->where];
        const char *key = json_object_iter_key(iter);
        json_t *item = key ? json_object_iter_value(iter) : json_array_get(value, i);
        snprintf(at, sizeof at, key ? "%s%s" : "%s%s/%zu", d->at, m->pointer, i);
        if (key)
            api_json_pointer_add(at, sizeof at, key);
        struct decoder inner = {d->to, d->problem, list->table, items + i * list->size,
                                at};
        if ((list->types && !check_type(&inner, "", list->types, item)) ||
            !list->decode(&inner, key, item))
            return NULL;
        iter = json_object_iter_next(value, iter);
    }
    return items;
}

bool
api_decode_items(struct decoder *d, const struct member *m, json_t *value)
{
    void *items = api_decode_list(d, m, value, m->list);
    memcpy((char *)d->object + m->list->items, &items, sizeof items);
    *(size_t *)((char *)d->object + m->list->n) =
        json_is_object(value) ? json_object_size(value) : json_array_size(value);
    return items;
}

/* --- encoding ------------------------------------------------------------- */

/* Adds `value` to `root` at a pointer of one or two segments, and takes ownership of it. */
static int
add_at(json_t *root, const char *pointer, json_t *value)
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

json_t *
api_encode_members(const struct table *table, const void *object)
{
    json_t *root = json_object();
    bool ok = root;
    for (size_t i = 0; ok && i < table->n; i++) {
        const struct member *m = &table->members[i];
        json_t *value = m->encode ? m->encode(object, m) : json_null();
        if (!json_is_null(value) || m->types & NULL_VALUE)
            ok = add_at(root, m->pointer, value) == 0;
    }
    return api_json_if(ok, root);
}

json_t *
api_encode_items(const void *object, const struct member *m)
{
    const struct list *list = m->list;
    const char *item;
    memcpy(&item, (const char *)object + list->items, sizeof item);
    const size_t n = *(const size_t *)((const char *)object + list->n);
    const bool named = m->types & OBJECT;
    if (named && n == 0)
        return json_null();
    json_t *json = named ? json_object() : json_array();
    bool ok = json;
    for (size_t i = 0; ok && i < n; i++, item += list->size) {
        json_t *value =
            list->encode ? list->encode(item) : api_encode_members(list->table, item);
        ok = (named ? json_object_set_new(json, *(const char *const *)item, value)
                    : json_array_append_new(json, value)) == 0;
    }
    return api_json_if(ok, json);
}
