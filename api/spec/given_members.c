/* SPDX-License-Identifier: Apache-2.0 */
/* Adds members that are given one by one to the text of a spec. */
#include "config.h"
#include "api/given_members.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

enum { NAME = 512 }; /* bytes of one name of a path, with its end */

/* --- paths ---------------------------------------------------------------------- */

/* Takes the next name from a path, where a pointer's "~1" is a slash and "~0" a tilde. Returns what
   follows it, or NULL where the name is empty or too long. */
static const char *
take_name(const char *path, bool is_pointer, char name[NAME])
{
    size_t len = 0;
    path += is_pointer && *path == '/';
    for (; *path && *path != (is_pointer ? '/' : '.'); path++) {
        char c = *path;
        if (is_pointer && c == '~' && (path[1] == '0' || path[1] == '1'))
            c = *++path == '0' ? '~' : '/';
        if (len + 1 >= NAME)
            return NULL;
        name[len++] = c;
    }
    name[len] = '\0';
    if (len == 0)
        return NULL;
    return path + (!is_pointer && *path == '.' && path[1]);
}

/* Returns the item of an array at an index in digits, or NULL. */
static json_t *
item_at(json_t *array, const char *index)
{
    char *end;
    if (!isdigit((unsigned char)*index))
        return NULL;
    unsigned long i = strtoul(index, &end, 10);
    return *end ? NULL : json_array_get(array, i);
}

/* Returns the object or array that a name leads to; an object that is missing is made. */
static json_t *
go_into(json_t *from, const char *name, const struct api_spec_member *member,
        struct api_problem *problem)
{
    json_t *to =
        json_is_array(from) ? item_at(from, name) : json_object_get(from, name);
    if (!to && json_is_object(from)) {
        to = json_object();
        if (json_object_set_new(from, name, to) != 0) {
            api_problem_no_memory(problem);
            return NULL;
        }
    }
    if (json_is_object(to) || json_is_array(to))
        return to;
    api_fail(problem, API_INVALID_SPEC,
             "%s: the spec has no object \"%.80s\" there, but %s", member->giver, name,
             to ? api_json_type_name(to) : "an array without it");
    return NULL;
}

/* Finds what holds the last name of the member's path. Returns it, or NULL. */
static json_t *
find_holder(json_t *root, const struct api_spec_member *member, char name[NAME],
            struct api_problem *problem)
{
    bool is_pointer = *member->path == '/';
    const char *rest = member->path;
    json_t *at = root;
    while (at) {
        rest = take_name(rest, is_pointer, name);
        if (!rest) {
            api_fail(
                problem, API_INVALID_SPEC,
                "%s: \"%.80s\" is no path of a member, as \"weights.dtype\" is one",
                member->giver, member->path);
            return NULL;
        }
        if (!*rest)
            return at;
        at = go_into(at, name, member, problem);
    }
    return NULL;
}

/* --- values --------------------------------------------------------------------- */

static bool
is_word(const char *text)
{
    if (!isalpha((unsigned char)*text))
        return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && !strchr("_-.", *text))
            return false;
    return true;
}

static json_t *
decode_value(const struct api_spec_member *member, struct api_problem *problem)
{
    struct api_problem mistake = {0};
    json_t *value =
        api_json_load(member->value, strlen(member->value), API_INVALID_SPEC, &mistake);
    if (!value && is_word(member->value))
        value = json_string(member->value);
    if (!value)
        api_fail(problem, API_INVALID_JSON,
                 "%s: the value is neither JSON nor a word: %s", member->giver,
                 mistake.detail);
    return value;
}

/* Puts the value, which this takes, in the place of the name. */
static bool
put(json_t *holder, const char *name, json_t *value,
    const struct api_spec_member *member, struct api_problem *problem)
{
    json_t *present =
        json_is_array(holder) ? item_at(holder, name) : json_object_get(holder, name);
    bool same = present && json_equal(present, value);
    if (same || present || !json_is_object(holder)) {
        json_decref(value);
        return same ||
               api_fail(problem, API_INVALID_SPEC,
                        present ? "%s: the spec has another value for this member; "
                                  "give it in one place"
                                : "%s: the array has no such item",
                        member->giver);
    }
    return json_object_set_new(holder, name, value) == 0 ||
           api_problem_no_memory(problem);
}

static bool
add(json_t *root, const struct api_spec_member *member, struct api_problem *problem)
{
    char name[NAME];
    json_t *holder = find_holder(root, member, name, problem);
    json_t *value = holder ? decode_value(member, problem) : NULL;
    return value && put(holder, name, value, member, problem);
}

char *
api_spec_with_members(const char *text, size_t len,
                      const struct api_spec_member *members, size_t n,
                      struct api_problem *problem)
{
    json_t *root =
        text ? api_json_load(text, len, API_INVALID_SPEC, problem) : json_object();
    bool ok = root || api_problem_no_memory(problem);
    if (ok && !json_is_object(root))
        ok = api_fail(problem, API_INVALID_SPEC, "a spec is to be an object, not %s",
                      api_json_type_name(root));
    for (size_t i = 0; ok && i < n; i++)
        ok = add(root, &members[i], problem);
    char *ret = ok ? api_json_dump(json_incref(root), 0) : NULL;
    if (ok && !ret)
        api_problem_no_memory(problem);
    json_decref(root);
    return ret;
}
