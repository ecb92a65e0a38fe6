/* SPDX-License-Identifier: Apache-2.0 */
/* The members sensitivity and search, which ask for what-ifs, their conflict with the
   recipe, frontier, and profile. */
#include "config.h"
#include "spec/members.h"

#include <math.h>

#include "qdq/targets.h"

enum { SAMPLES = 128 }; /* the default number */

bool
api_decode_sensitivity(struct decoder *d, const struct member *m, json_t *value)
{
    d->to->spec.sensitivity_samples = SAMPLES;
    return api_decode_members(d, m->pointer, value);
}

bool
api_decode_search(struct decoder *d, const struct member *m, json_t *value)
{
    struct qdq_search *search = &d->to->spec.search;
    search->samples = SAMPLES;
    if (!api_decode_members(d, m->pointer, value))
        return false;
    return qdq_spec_searches(&d->to->spec) ||
           api_refuse(
               d, API_INVALID_SPEC, m->pointer,
               "search has no goal: min_sqnr_db, min_top1_agreement or max_task_drop");
}

/* true, false, or an object, which means true. */
bool
api_decode_frontier(struct decoder *d, const struct member *m, json_t *value)
{
    struct qdq_spec *spec = &d->to->spec;
    spec->frontier_points = json_is_false(value) ? 0 : QDQ_FRONTIER_POINTS;
    if (json_is_object(value) && !api_decode_members(d, m->pointer, value))
        return false;
    return spec->frontier_points <= QDQ_MOST_FRONTIER_POINTS ||
           api_refuse(d, API_INVALID_SPEC, "/frontier/points",
                      "frontier.points is to be at most %d, not %lld",
                      QDQ_MOST_FRONTIER_POINTS, (long long)spec->frontier_points);
}

json_t *
api_encode_frontier(const void *object, const struct member *m)
{
    const struct qdq_spec *spec = object;
    (void)m;
    return spec->frontier_points
               ? json_pack("{s:I}", "points", (json_int_t)spec->frontier_points)
               : json_null();
}

bool
api_check_recipe(struct decoder *d)
{
    const struct qdq_spec *spec = &d->to->spec;
    if (spec->frontier_points > 0 && !qdq_spec_measures(spec) && !spec->recipe_formats)
        return api_refuse(d, API_UNSUPPORTED, "/frontier",
                          "a frontier is measured with the targets onnxruntime, "
                          "openvino and tensorrt, "
                          "activations of 8 bits and "
                          "the recipe auto or one with goals, or with recipe.formats");
    if (spec->recipe < QDQ_RECIPE_AUTO)
        return true;
    if (json_object_get(d->to->root, "search"))
        return api_refuse(
            d, API_INVALID_SPEC, "/recipe",
            "recipe and search both choose the layers that stay in float; "
            "ask for one of them");
    if (spec->recipe == QDQ_RECIPE_BEST && spec->target->recipe != QDQ_RECIPE_NONE &&
        !spec->target->runtime)
        return api_refuse(d, API_UNSUPPORTED, "/recipe",
                          "the target %s has the recipes none and auto alone",
                          spec->target->name);
    return spec->target->recipe != QDQ_RECIPE_NONE || spec->recipe_formats ||
           qdq_spec_keeps_journal(spec) ||
           api_refuse(
               d, API_UNSUPPORTED, "/recipe", "the target %s has no recipe but none%s",
               spec->target->name,
               spec->target->searches_patterns
                   ? ", unless a frontier or recipe.max_latency_ratio is asked for"
                   : "");
}

/* The largest values, which keep the time and the threads of a job within reason. */
enum { MAX_RUNS = 10000, MAX_THREADS = 256 };

bool
api_decode_profile(struct decoder *d, const struct member *m, json_t *value)
{
    struct qdq_profile_spec *profile = &d->to->spec.profile;
    *profile = (struct qdq_profile_spec){QDQ_PROFILE_RUNS, QDQ_PROFILE_THREADS,
                                         QDQ_PROFILE_BATCH};
    if (!api_decode_members(d, m->pointer, value))
        return false;
    if (profile->runs > MAX_RUNS)
        return api_refuse(d, API_INVALID_SPEC, "/profile/runs",
                          "profile.runs is to be at most %d, not %lld", MAX_RUNS,
                          (long long)profile->runs);
    return profile->threads <= MAX_THREADS ||
           api_refuse(d, API_INVALID_SPEC, "/profile/threads",
                      "profile.threads is to be at most %d, not %lld", MAX_THREADS,
                      (long long)profile->threads);
}
