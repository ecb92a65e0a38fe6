/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/attempt/context.h"

bool
qdqi_time_is_up(const struct qdqi_context *c, int64_t seconds)
{
    return seconds > 0 && qdqi_seconds_now() - c->account->began >= (double)seconds;
}

int
qdqi_context_threads(const struct qdqi_context *c)
{
    return c->engine->executor ? c->engine->threads : 1;
}

/* Returns the later of two: runs may be made again, and a stage may repeat earlier ones. */
static struct qdq_progress
latest(const struct qdq_progress *shown, const struct qdq_progress *now)
{
    struct qdq_progress ret = now->stage < shown->stage ? *shown : *now;
    if (ret.stage == shown->stage && ret.total == shown->total &&
        ret.done < shown->done)
        ret.done = shown->done;
    return ret;
}

enum qdq_code
qdqi_context_still_wanted(const struct qdqi_context *c, struct qdq_error *err)
{
    const struct qdq_work *work = c->work;
    if (work->progress && work->progress(work->progress_arg, &c->account->shown))
        return qdq_error_set(err, QDQ_CANCELLED, QDQ_AT_NOTHING, NULL, "cancelled");
    return QDQ_OK;
}

enum qdq_code
qdqi_context_progress(const struct qdqi_context *c, enum qdq_stage stage, uint64_t done,
                      uint64_t total, struct qdq_error *err)
{
    struct qdqi_account *account = c->account;
    const struct qdq_progress now = {
        stage, done, total, stage < QDQ_STAGE_EVALUATE ? account->to_evaluate : 0,
        account->unknown >> (stage + 1) << (stage + 1)};
    account->shown = latest(&account->shown, &now);
    return qdqi_context_still_wanted(c, err);
}

bool
qdqi_context_can_judge(const struct qdqi_context *c)
{
    return c->work->dataset >= 0 &&
           (!c->asked->weight_only || c->asked->dynamic || c->asked->recipe_formats);
}

struct qdq_dataset *
qdqi_context_judging_data(const struct qdqi_context *context)
{
    return context->evaluation ? context->evaluation : context->dataset;
}
