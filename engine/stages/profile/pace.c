/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/profile/pace.h"

#include "stages/evaluate/deployed.h"

#include <stdlib.h>

enum { WARM_UP = 2, TURNS = 15 };

struct qdqi_pace {
    struct qdqi_deploy deploy;
    struct qdqi_deploy_options options;
    struct qdqi_deployed_model f; /* the float model */
    struct qdqi_feed *feed;
    const struct qdqi_input *inputs; /* of the first run; the feed owns them */
    size_t n_inputs;
};

static enum qdq_code
open_pace(struct qdqi_pace *p, const struct qdqi_attempt *a, struct qdq_error *err)
{
    const struct qdq_profile_spec *profile = &a->spec->profile;
    const struct qdqi_feed_options options = {.batch = profile->batch};
    int64_t samples;
    enum qdq_code code;
    p->options = (struct qdqi_deploy_options){.dev = a->context->dev,
                                              .threads = (int)profile->threads};
    p->n_inputs = a->context->original->info.n_inputs;
    if ((code = qdqi_deployed_runtime(a->context, &p->deploy, err)) ||
        (code =
             qdqi_feed_open(&a->fixed, a->context->dataset, &options, &p->feed, err)) ||
        (code = qdqi_feed_next(p->feed, &p->inputs, &samples, err)))
        return code;
    return qdqi_deploy_model(&p->deploy, a->context->original, &p->options, &p->f, err);
}

enum qdq_code
qdqi_pace_open(const struct qdqi_attempt *a, struct qdqi_pace **ret,
               struct qdq_error *err)
{
    struct qdqi_pace *p = calloc(1, sizeof *p);
    if (!p)
        return qdqi_no_memory(err);
    enum qdq_code code = open_pace(p, a, err);
    if (code)
        qdqi_pace_close(&p);
    else
        *ret = p;
    return code;
}

void
qdqi_pace_close(struct qdqi_pace **pace)
{
    struct qdqi_pace *p = *pace;
    if (!p)
        return;
    qdqi_deployed_model_close(&p->f);
    qdqi_feed_close(&p->feed);
    free(p);
    *pace = NULL;
}

static enum qdq_code
run(const struct qdqi_pace *p, const struct qdqi_deployed_model *model, double *ret_ms,
    struct qdq_error *err)
{
    const struct qdqi_output *outputs;
    size_t n;
    return qdqi_deployed_model_run(model, p->inputs, p->n_inputs, &outputs, &n, ret_ms,
                                   err);
}

/* Runs both once. Which one is first changes with each turn, so neither gains by its
   place. */
static enum qdq_code
take_turn(const struct qdqi_pace *p, const struct qdqi_deployed_model *q, int turn,
          double *ret_ratio, struct qdq_error *err)
{
    const struct qdqi_deployed_model *const models[] = {&p->f, q};
    double ms[2];
    enum qdq_code code = QDQ_OK;
    for (int k = 0; k < 2 && !code; k++) {
        int i = (turn + k) % 2;
        code = run(p, models[i], &ms[i], err);
    }
    if (!code)
        *ret_ratio = ms[1] / ms[0];
    return code;
}

static int
compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

enum qdq_code
qdqi_pace_measure(struct qdqi_pace *p, const struct qdq_model *candidate, double *ret,
                  struct qdq_error *err)
{
    struct qdqi_deployed_model q = {0};
    double ratios[TURNS], ignored;
    enum qdq_code code = qdqi_deploy_model(&p->deploy, candidate, &p->options, &q, err);
    for (int i = 0; !code && i < WARM_UP + TURNS; i++)
        code = take_turn(p, &q, i, i < WARM_UP ? &ignored : &ratios[i - WARM_UP], err);
    qdqi_deployed_model_close(&q);
    if (code)
        return code;
    qsort(ratios, TURNS, sizeof *ratios, compare_doubles);
    *ret = ratios[TURNS / 2];
    return QDQ_OK;
}
