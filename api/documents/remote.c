/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api/remote.h"
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POINTER 256

static const struct {
    const char *name;
    enum api_published bit;
} whats[] = {{"model", API_PUBLISH_MODEL},
             {"report", API_PUBLISH_REPORT},
             {"spec", API_PUBLISH_SPEC},
             {"signature", API_PUBLISH_SIGNATURE},
             {"provenance", API_PUBLISH_PROVENANCE},
             {"bom", API_PUBLISH_BOM}};

#define N_WHATS (sizeof whats / sizeof *whats)

static bool
refuse(struct api_problem *problem, const char *pointer, const char *what)
{
    return api_fail_at(problem, API_BAD_REQUEST, pointer, "%s", what);
}

/* --- places --------------------------------------------------------------- */

static bool
is_name(const char *name, size_t len)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    bool fits = len > 0 && len < API_REMOTE_NAME && strspn(name, letters) >= len;
    return fits && !strchr("_-", *name) && (len != 6 || memcmp(name, "sha256", 6) != 0);
}

void
api_place_fini(struct api_place *place)
{
    free(place->ref);
    *place = (struct api_place){0};
}

bool
api_place_is_text(const char *text)
{
    const char *colon = strchr(text, ':');
    return colon && is_name(text, (size_t)(colon - text));
}

/* Sets a place. A ref has no control characters, because it becomes a part of requests and
   of lines in logs. */
static bool
set_place(const char *name, size_t len, const char *ref, const char *pointer,
          struct api_place *ret, struct api_problem *problem)
{
    if (!is_name(name, len))
        return refuse(
            problem, pointer,
            "a remote's name has 1 to 32 of a-z, 0-9, _ and -, and begins with "
            "a letter or a digit");
    if (!*ref || strlen(ref) > API_MAX_REF)
        return refuse(problem, pointer, "a ref has 1 to 1023 bytes");
    for (const char *c = ref; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return refuse(problem, pointer, "a ref has no control characters");
    struct api_place place = {.ref = strdup(ref)};
    snprintf(place.remote, sizeof place.remote, "%.*s", (int)len, name);
    *ret = place;
    return place.ref || api_problem_no_memory(problem);
}

bool
api_place_parse(const char *text, const char *pointer, struct api_place *ret,
                struct api_problem *problem)
{
    size_t len = strcspn(text, ":");
    return set_place(text, len, text + len + (text[len] == ':'), pointer, ret, problem);
}

/* Returns a member that must be a string; NULL: it is not there, or the error is set. */
static const char *
text_of(const json_t *json, const char *name, const char *pointer,
        struct api_problem *problem)
{
    char where[POINTER];
    const json_t *value = json_object_get(json, name);
    if (!value || json_is_null(value))
        return NULL;
    if (json_is_string(value) &&
        strlen(json_string_value(value)) == json_string_length(value))
        return json_string_value(value);
    snprintf(where, sizeof where, "%s/%s", pointer, name);
    api_fail_at(problem, API_BAD_REQUEST, where,
                "%s is to be a string without NUL, not %s", name,
                api_json_type_name(value));
    return NULL;
}

static bool
check_members(json_t *json, const char *const *names, size_t n, const char *pointer,
              struct api_problem *problem)
{
    char where[POINTER];
    const char *key;
    json_t *value;
    if (!json_is_object(json))
        return api_fail_at(problem, API_BAD_REQUEST, pointer,
                           "this is to be an object with remote and ref, not %s",
                           api_json_type_name(json));
    json_object_foreach (json, key, value) {
        size_t i = 0;
        while (i < n && strcmp(names[i], key) != 0)
            i++;
        if (i < n)
            continue;
        snprintf(where, sizeof where, "%s", pointer);
        api_json_pointer_add(where, sizeof where, key);
        return refuse(problem, where, "a place in a remote has no such member");
    }
    return true;
}

/* Reads remote and ref. */
static bool
read_place(const json_t *json, const char *pointer, struct api_place *ret,
           struct api_problem *problem)
{
    char where[POINTER];
    const char *name = text_of(json, "remote", pointer, problem);
    const char *ref = problem->set ? NULL : text_of(json, "ref", pointer, problem);
    if (problem->set)
        return false;
    if (!name || !ref) {
        snprintf(where, sizeof where, "%s/%s", pointer, name ? "ref" : "remote");
        return refuse(problem, where, "a place in a remote needs remote and ref");
    }
    snprintf(where, sizeof where, "%s/%s", pointer,
             is_name(name, strlen(name)) ? "ref" : "remote");
    return set_place(name, strlen(name), ref, where, ret, problem);
}

bool
api_place_decode(const char *text, const char *pointer, struct api_place *ret,
                 struct api_problem *problem)
{
    static const char *const names[] = {"remote", "ref"};
    json_t *json = api_json_load(text, strlen(text), API_BAD_REQUEST, problem);
    bool ok = json && check_members(json, names, 2, pointer, problem) &&
              read_place(json, pointer, ret, problem);
    json_decref(json);
    return ok;
}

/* --- publications --------------------------------------------------------- */

/* Returns the bit of a name; 0: it is none. */
static unsigned
bit_of(const char *name)
{
    for (size_t i = 0; name && i < N_WHATS; i++)
        if (strcmp(whats[i].name, name) == 0)
            return whats[i].bit;
    return 0;
}

/* Reads what is to be published; without a list that is everything that the job has. */
static bool
read_what(const json_t *list, const char *pointer, struct api_publication *ret,
          struct api_problem *problem)
{
    char where[POINTER];
    size_t n;
    json_t *one;
    snprintf(where, sizeof where, "%s/what", pointer);
    ret->says_what = list && !json_is_null(list);
    for (size_t i = 0; !ret->says_what && i < N_WHATS; i++)
        ret->what |= whats[i].bit;
    bool ok = !ret->says_what || json_array_size(list) > 0;
    json_array_foreach (list, n, one) {
        unsigned bit = bit_of(json_string_value(one));
        ok = ok && bit;
        ret->what |= bit;
    }
    return ok ||
           refuse(problem, where,
                  "what lists model, report, spec, signature, provenance and bom");
}

static bool
read_tags(json_t *tags, const char *pointer, char **ret, struct api_problem *problem)
{
    char where[POINTER];
    const char *key;
    json_t *value;
    if (!tags || json_is_null(tags))
        return true;
    snprintf(where, sizeof where, "%s/tags", pointer);
    if (!json_is_object(tags) || json_object_size(tags) > API_MAX_TAGS)
        return refuse(problem, where, "tags are to be an object of at most 32 strings");
    json_object_foreach (tags, key, value)
        if (!json_is_string(value) || !strncmp(key, "qdqd.", 5)) {
            api_json_pointer_add(where, sizeof where, key);
            return refuse(problem, where,
                          "a tag is to be a string, and its name does not begin with "
                          "qdqd.");
        }
    *ret = api_json_dump(json_incref(tags), JSON_SORT_KEYS);
    return *ret || api_problem_no_memory(problem);
}

static bool
read_publication(json_t *json, size_t i, struct api_publication *ret,
                 struct api_problem *problem)
{
    static const char *const names[] = {"remote", "ref", "alias", "tags", "what"};
    char pointer[32];
    snprintf(pointer, sizeof pointer, "/publish/%zu", i);
    if (!check_members(json, names, sizeof names / sizeof *names, pointer, problem) ||
        !read_place(json, pointer, &ret->place, problem))
        return false;
    const char *alias = text_of(json, "alias", pointer, problem);
    if (alias && !(ret->alias = strdup(alias)))
        return api_problem_no_memory(problem);
    return !problem->set &&
           read_tags(json_object_get(json, "tags"), pointer, &ret->tags, problem) &&
           read_what(json_object_get(json, "what"), pointer, ret, problem);
}

bool
api_publications_decode(const char *text, struct api_publication **ret, size_t *ret_n,
                        struct api_problem *problem)
{
    json_t *json = api_json_load(text, strlen(text), API_BAD_REQUEST, problem);
    size_t n = json_array_size(json);
    bool ok = json && ((json_is_array(json) && n <= API_MAX_PUBLISH) ||
                       refuse(problem, "/publish",
                              "publish is to be an array of at most 16 places"));
    struct api_publication *list = ok ? calloc(n + 1, sizeof *list) : NULL;
    if (ok && !list)
        ok = api_problem_no_memory(problem);
    for (size_t i = 0; ok && i < n; i++)
        ok = read_publication(json_array_get(json, i), i, &list[i], problem);
    json_decref(json);
    if (!ok) {
        if (list)
            api_publications_free(&list, n);
        return false;
    }
    *ret = list;
    *ret_n = n;
    return true;
}

void
api_publications_free(struct api_publication **list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        api_place_fini(&(*list)[i].place);
        free((*list)[i].alias);
        free((*list)[i].tags);
    }
    free(*list);
    *list = NULL;
}
