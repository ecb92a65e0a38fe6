/* SPDX-License-Identifier: Apache-2.0 */
/* Takes a spec with several targets apart, into one for each. */
#include "config.h"
#include "api/targets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/spec.h"
#include "base/json.h"
#include "qdq/targets.h"
#include "qdq/words.h"

/* --- the list ---------------------------------------------------------------- */

static const char *
name_at(const void *arg, size_t i)
{
    const struct qdq_target *row = qdq_target_row(i);
    (void)arg;
    return row ? row->name : NULL;
}

/* Refuses item i of the list, which is no name of a target. */
static bool
refuse_item(size_t i, const json_t *item, struct api_problem *problem)
{
    const char *text = json_string_value(item), *name;
    const char *nearest = text ? qdq_nearest_word(text, name_at, NULL) : NULL;
    char where[32], known[256] = "";
    snprintf(where, sizeof where, "/targets/%zu", i);
    for (size_t k = 0; (name = name_at(NULL, k)); k++) {
        api_text_add(known, sizeof known, *known ? ", " : "");
        api_text_add(known, sizeof known, name);
    }
    if (!text)
        return api_fail_at(problem, API_INVALID_SPEC, where,
                           "targets[%zu] is to be one of %s, not %s", i, known,
                           api_json_type_name(item));
    return api_fail_at(problem, API_INVALID_SPEC, where,
                       "targets[%zu] is to be one of %s; not \"%.64s\"%s%s%s", i, known,
                       text, nearest ? "; did you mean \"" : "", nearest ? nearest : "",
                       nearest ? "\"?" : "");
}

/* Checks item i, and that no item before it is the same. */
static bool
check_item(const json_t *list, size_t i, struct api_problem *problem)
{
    const json_t *item = json_array_get(list, i);
    char where[32];
    snprintf(where, sizeof where, "/targets/%zu", i);
    if (!json_is_string(item) || !qdq_target_find(json_string_value(item)))
        return refuse_item(i, item, problem);
    for (size_t k = 0; k < i; k++)
        if (json_equal(item, json_array_get(list, k)))
            return api_fail_at(problem, API_INVALID_SPEC, where,
                               "targets[%zu] is \"%s\", as targets[%zu] is: name each "
                               "target once",
                               i, json_string_value(item), k);
    return true;
}

static bool
check_list(const json_t *root, const json_t *list, struct api_problem *problem)
{
    if (json_object_get(root, "target"))
        return api_fail_at(
            problem, API_INVALID_SPEC, "/targets",
            "the spec has both target and targets: leave one of them out");
    if (!json_is_array(list))
        return api_fail_at(problem, API_INVALID_SPEC, "/targets",
                           "targets is to be an array of names, not %s",
                           api_json_type_name(list));
    if (json_array_size(list) == 0)
        return api_fail_at(problem, API_INVALID_SPEC, "/targets",
                           "targets is empty: name one target or several");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!check_item(list, i, problem))
            return false;
    return true;
}

/* --- one spec ---------------------------------------------------------------- */

bool
api_spec_without_frontier(const char *text, char **ret, struct api_problem *why)
{
    struct api_spec *decoded = NULL;
    struct api_problem ignored = {0};
    const size_t len = strlen(text);
    *ret = NULL;
    *why = (struct api_problem){0};
    if (api_spec_decode(text, len, &decoded, why) || why->code != API_UNSUPPORTED ||
        strcmp(why->where, "/frontier") != 0) {
        api_spec_free(&decoded);
        return true;
    }
    json_t *spec = api_json_load(text, len, API_INVALID_SPEC, &ignored);
    *ret = api_json_dump(api_json_if(json_object_del(spec, "frontier") == 0, spec), 0);
    return *ret;
}

/* Decodes the spec of a target for its mistakes, in which the target is named. */
static bool
check_spec(const struct api_target_spec *one, struct api_problem *problem)
{
    struct api_spec *decoded = NULL;
    struct api_problem mistake = {0};
    if (api_spec_decode(one->text, strlen(one->text), &decoded, &mistake)) {
        api_spec_free(&decoded);
        return true;
    }
    return api_problem_set(problem, mistake.code, mistake.kind,
                           mistake.kind == QDQ_AT_NOTHING ? NULL : mistake.where,
                           "with target %s: %s", one->target, mistake.detail);
}

/* Leaves out a frontier that the target cannot measure, and counts it in *left_out. */
static bool
leave_out_frontier(struct api_target_spec *one, size_t *left_out,
                   struct api_problem *why, struct api_problem *problem)
{
    struct api_problem found;
    char *without;
    if (!api_spec_without_frontier(one->text, &without, &found))
        return api_problem_no_memory(problem);
    if (!without)
        return true;
    free(one->text);
    one->text = without;
    *why = found;
    ++*left_out;
    return true;
}

static bool
make_spec(json_t *root, const char *name, struct api_target_spec *ret,
          struct api_problem *problem)
{
    json_t *one = json_copy(root);
    const char *target = qdq_target_find(name)->name;
    bool ok = one && json_object_del(one, "targets") == 0 &&
              json_object_set_new(one, "target", json_string(target)) == 0;
    char *text = api_json_dump(api_json_if(ok, one), 0);
    *ret = (struct api_target_spec){target, text};
    return text || api_problem_no_memory(problem);
}

static bool
make_specs(json_t *root, const json_t *list, struct api_target_specs *ret,
           struct api_problem *problem)
{
    size_t n = json_array_size(list), left_out = 0;
    struct api_problem why = {0};
    ret->items = calloc(n, sizeof *ret->items);
    if (!ret->items)
        return api_problem_no_memory(problem);
    ret->n = n;
    for (size_t i = 0; i < n; i++) {
        struct api_target_spec *one = &ret->items[i];
        if (!make_spec(root, json_string_value(json_array_get(list, i)), one,
                       problem) ||
            !leave_out_frontier(one, &left_out, &why, problem) ||
            !check_spec(one, problem))
            return false;
    }
    if (left_out < n)
        return true;
    *problem = why;
    return false;
}

bool
api_spec_split(const char *text, size_t len, struct api_target_specs *ret,
               struct api_problem *problem)
{
    struct api_problem ignored = {0};
    *ret = (struct api_target_specs){.n = 0};
    json_t *root = text ? api_json_load(text, len, API_INVALID_SPEC, &ignored) : NULL;
    const json_t *list = json_object_get(root, "targets");
    bool ok = !list ||
              (check_list(root, list, problem) && make_specs(root, list, ret, problem));
    json_decref(root);
    return ok;
}

void
api_target_specs_fini(struct api_target_specs *specs)
{
    for (size_t i = 0; i < specs->n; i++)
        free(specs->items[i].text);
    free(specs->items);
    *specs = (struct api_target_specs){.n = 0};
}
