/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/evaluate/last_candidate.h"

#include "files/model/skeleton.h"

/* Returns whether the files of two models differ in nothing but their metadata. */
static bool
are_same(const struct qdq_model *a, const struct qdq_model *b)
{
    return a->n_files == 1 && b->n_files == 1 && a->files->map && b->files->map &&
           qdqi_same_but_metadata(a->files->map, a->files->size, b->files->map,
                                  b->files->size);
}

void
qdqi_last_candidate_drop(const struct qdqi_context *c)
{
    qdqi_deployed_model_close(&c->last_candidate->deployed);
    qdq_model_free(&c->last_candidate->model);
}

void
qdqi_last_candidate_keep(const struct qdqi_context *c, struct qdq_model **model,
                         struct qdqi_deployed_model *deployed)
{
    if (!deployed->ops || !deployed->ops->opens_slowly || !deployed->ops->nodes)
        return;
    qdqi_last_candidate_drop(c);
    c->last_candidate->model = *model;
    c->last_candidate->deployed = *deployed;
    *model = NULL;
    *deployed = (struct qdqi_deployed_model){0};
}

/* Returns whether the process that has the model answers: by the nodes of its last run. */
static bool
is_there(const struct qdqi_deployed_model *deployed)
{
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdqi_trace ignored;
    struct qdq_error why = {0};
    const bool ret =
        arena && deployed->ops->nodes(deployed->model, arena, &ignored, &why) == QDQ_OK;
    qdqi_arena_free(&arena);
    return ret;
}

bool
qdqi_last_candidate_take(const struct qdqi_context *c, const struct qdq_model *result,
                         struct qdqi_deployed_model *ret)
{
    struct qdqi_last_candidate *last = c->last_candidate;
    if (last->deployed.ops && are_same(last->model, result) &&
        is_there(&last->deployed)) {
        *ret = last->deployed;
        last->deployed = (struct qdqi_deployed_model){0};
        return true;
    }
    qdqi_last_candidate_drop(c);
    return false;
}

void
qdqi_last_candidate_keep_reference(const struct qdqi_context *c,
                                   struct qdqi_reference **reference)
{
    qdqi_reference_close(&c->last_candidate->reference);
    c->last_candidate->reference = *reference;
    *reference = NULL;
}

struct qdqi_reference *
qdqi_last_candidate_take_reference(const struct qdqi_context *c,
                                   const struct qdqi_feed_options *samples)
{
    struct qdqi_reference *r = c->last_candidate->reference;
    c->last_candidate->reference = NULL;
    if (r && (r->options.first != samples->first ||
              r->options.max_samples != samples->max_samples ||
              r->options.batch != samples->batch))
        qdqi_reference_close(&r);
    return r;
}
