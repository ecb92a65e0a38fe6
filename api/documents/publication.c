/* SPDX-License-Identifier: Apache-2.0 */
/* Documents about what came from remotes and goes there: sources, figures, tags, events. */
#include "config.h"
#include "api/remote.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const inputs[API_N_INPUTS] = {"model", "calibration"};

/* --- sources --------------------------------------------------------------- */

static json_t *
encode_place(const struct api_place *place)
{
    if (!place->ref)
        return json_null();
    return json_pack("{s:s, s:o, s:n, s:n}", "remote", place->remote, "ref",
                     api_json_text(place->ref), "resolved", "digest");
}

char *
api_source_encode(const struct api_place *model, const struct api_place *calibration)
{
    return api_json_dump(json_pack("{s:o, s:o}", inputs[API_INPUT_MODEL],
                                   encode_place(model), inputs[API_INPUT_CALIBRATION],
                                   encode_place(calibration)),
                         0);
}

bool
api_source_decode(const char *text, struct api_place ret[API_N_INPUTS],
                  struct api_problem *problem)
{
    json_t *json = api_json_load(text, strlen(text), API_INTERNAL, problem);
    bool ok = json != NULL;
    for (int i = 0; i < API_N_INPUTS; i++) {
        const json_t *one = json_object_get(json, inputs[i]);
        ret[i] = (struct api_place){.ref = NULL};
        if (!json_is_object(one))
            continue;
        snprintf(ret[i].remote, sizeof ret[i].remote, "%s", api_text_at(one, "remote"));
        ret[i].ref = strdup(api_text_at(one, "ref"));
        ok = ok && (ret[i].ref || api_problem_no_memory(problem));
    }
    json_decref(json);
    return ok;
}

char *
api_source_fill(const char *text, enum api_input input, const char *resolved,
                const char *digest)
{
    json_t *json = api_json_embed(text);
    json_t *one = json_object_get(json, inputs[input]);
    if (json_object_set_new(one, "resolved", api_json_text(resolved)) != 0 ||
        json_object_set_new(one, "digest", api_json_text(digest)) != 0) {
        json_decref(json);
        return NULL;
    }
    return api_json_dump(json, 0);
}

bool
api_source_resolved(const char *text, enum api_input input, const char *remote,
                    char **ret, struct api_problem *problem)
{
    *ret = NULL;
    if (!text)
        return true;
    json_t *json = api_json_load(text, strlen(text), API_INTERNAL, problem);
    const json_t *one = json_object_get(json, inputs[input]);
    const char *resolved = api_text_at(one, "resolved");
    bool ok = json != NULL;
    if (*resolved && (!remote || strcmp(api_text_at(one, "remote"), remote) == 0)) {
        *ret = strdup(resolved);
        ok = *ret || api_problem_no_memory(problem);
    }
    json_decref(json);
    return ok;
}

/* --- figures --------------------------------------------------------------- */

/* The function that gets the figures. */
struct visitor {
    api_figure_fn visit;
    void *arg;
    struct api_problem *problem;
};

/* Visits a figure, unless it is no number. MLflow takes letters, digits, and _-. :/ in its
   name. */
static bool
visit_figure(const struct visitor *visitor, const char *name, const char *output,
             double value)
{
    static const char fits[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "0123456789_-. :/";
    char text[200];
    snprintf(text, sizeof text, "%s%s%s", name, *output ? "." : "", output);
    for (char *c = text; *c; c++)
        if (!strchr(fits, *c))
            *c = '_';
    return !isfinite(value) ||
           visitor->visit(visitor->arg, text, value, visitor->problem);
}

static bool
visit_outputs(const struct visitor *visitor, const json_t *outputs)
{
    static const char *const names[] = {"sqnr_db", "cosine", "top1_agreement"};
    bool ok = true, several = json_array_size(outputs) > 1;
    size_t i;
    json_t *output;
    json_array_foreach (outputs, i, output)
        for (size_t k = 0; ok && k < sizeof names / sizeof *names; k++) {
            const json_t *value = json_object_get(output, names[k]);
            ok = !json_is_number(value) ||
                 visit_figure(visitor, names[k],
                              several ? api_text_at(output, "name") : "",
                              json_number_value(value));
        }
    return ok;
}

bool
api_figures_each(const char *report, size_t len, api_figure_fn visit, void *arg,
                 struct api_problem *problem)
{
    const struct visitor visitor = {visit, arg, problem};
    json_t *json = api_json_load(report, len, API_INTERNAL, problem);
    const json_t *evaluation = json_object_get(json, "evaluation");
    const json_t *deployed =
        json_object_get(json_object_get(evaluation, "deployed"), "outputs");
    const json_t *summary = json_object_get(json, "summary");
    double before = json_number_value(json_object_get(summary, "size_before"));
    double after = json_number_value(json_object_get(summary, "size_after"));
    const json_t *ratio = json_object_get(json_object_get(json, "profile"), "ratio");
    bool ok =
        json &&
        visit_outputs(&visitor,
                      deployed ? deployed : json_object_get(evaluation, "outputs")) &&
        (before <= 0 || visit_figure(&visitor, "size_ratio", "", after / before)) &&
        (!json_is_number(ratio) ||
         visit_figure(&visitor, "latency_ratio", "", json_number_value(ratio)));
    json_decref(json);
    return ok;
}

/* --- tags ------------------------------------------------------------------ */

bool
api_tags_each(const char *text, api_tag_fn visit, void *arg,
              struct api_problem *problem)
{
    const char *key;
    json_t *value;
    json_t *json =
        text ? api_json_load(text, strlen(text), API_INTERNAL, problem) : NULL;
    bool ok = json || !text;
    json_object_foreach (json, key, value)
        ok = ok && visit(arg, key, api_text_at(json, key), problem);
    json_decref(json);
    return ok;
}

/* --- events ---------------------------------------------------------------- */

char *
api_event_encode(const char *type, int64_t timestamp, const char *job)
{
    return api_json_dump(api_pack("type:t timestamp:m data:e", type, timestamp, job),
                         0);
}

/* Returns whether the tags name a member of ours. Tags are an object, or as in MLflow's
   interface an array of {"key", "value"}. */
static bool
has_our_tags(json_t *tags)
{
    const char *key;
    size_t i;
    json_t *value;
    bool found = false;
    json_object_foreach (tags, key, value)
        found = found || strncmp(key, API_OUR_TAGS, strlen(API_OUR_TAGS)) == 0;
    json_array_foreach (tags, i, value)
        found = found || strncmp(api_text_at(value, "key"), API_OUR_TAGS,
                                 strlen(API_OUR_TAGS)) == 0;
    return found;
}

static bool
is_new_version(const json_t *json)
{
    return (!strcmp(api_text_at(json, "entity"), "model_version") &&
            !strcmp(api_text_at(json, "action"), "created")) ||
           !strcmp(api_text_at(json, "type"), "model_version.created");
}

bool
api_news_decode(const char *text, size_t len, struct api_news *ret, bool *ret_any,
                struct api_problem *problem)
{
    char number[24];
    json_t *json = api_json_load(text, len, API_BAD_REQUEST, problem);
    json_t *data = json_object_get(json, "data");
    const json_t *version = json_object_get(data, "version");
    const char *name = api_text_at(data, "name"), *shown = api_text_at(data, "version");
    bool ok = json != NULL;
    if (json_is_integer(version)) {
        snprintf(number, sizeof number, "%lld", (long long)json_integer_value(version));
        shown = number;
    }
    *ret = (struct api_news){.is_ours = has_our_tags(json_object_get(data, "tags"))};
    *ret_any = ok && is_new_version(json) && *name && *shown;
    if (*ret_any) {
        ret->name = strdup(name);
        ret->version = strdup(shown);
        ok = (ret->name && ret->version) || api_problem_no_memory(problem);
    }
    json_decref(json);
    if (!ok)
        api_news_fini(ret);
    return ok;
}

void
api_news_fini(struct api_news *news)
{
    free(news->name);
    free(news->version);
    *news = (struct api_news){0};
}
