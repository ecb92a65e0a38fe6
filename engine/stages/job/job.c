/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/job/job.h"

bool
qdqi_job_is_late(const struct qdqi_job *job, int64_t seconds)
{
    return seconds > 0 && qdqi_seconds_now() - job->stage_began >= (double)seconds;
}

enum qdq_code
qdqi_job_warn_late(struct qdqi_job *job, int64_t seconds, const char *pointer,
                   struct qdq_error *err)
{
    return qdqi_warn(&job->warnings, job->arena, err, "max_seconds_reached", NULL,
                     "%s: this ended after %lld s with the best that was found so far",
                     pointer, (long long)seconds);
}

int
qdqi_job_threads(const struct qdqi_job *job)
{
    return job->engine->executor ? job->engine->threads : 1;
}

bool
qdqi_job_runs_fast(const struct qdqi_job *job)
{
    static const double fast = 0.002;
    return job->run_seconds > 0 && job->run_seconds < fast;
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
qdqi_job_progress(struct qdqi_job *job, enum qdq_stage stage, uint64_t done,
                  uint64_t total, struct qdq_error *err)
{
    const struct qdq_work *work = job->work;
    const struct qdq_progress now = {stage, done, total,
                                     stage < QDQ_STAGE_EVALUATE ? job->to_evaluate : 0};
    if (!job->tries)
        job->shown = latest(&job->shown, &now);
    if (work->progress && work->progress(work->progress_arg, &job->shown))
        return qdq_error_set(err, QDQ_CANCELLED, QDQ_AT_NOTHING, NULL, "cancelled");
    return QDQ_OK;
}

enum qdq_code
qdqi_job_add_warnings(struct qdqi_job *job, const struct qdqi_feed *feed,
                      struct qdq_error *err)
{
    const struct qdq_warning *rows;
    size_t n = qdqi_feed_warnings(feed, &rows);
    for (size_t i = 0; i < n; i++) {
        enum qdq_code code = qdqi_warn(&job->warnings, job->arena, err, rows[i].code,
                                       rows[i].node, "%s", rows[i].detail);
        if (code)
            return code;
    }
    return QDQ_OK;
}

bool
qdqi_job_can_judge(const struct qdqi_job *job)
{
    const struct qdq_spec *spec = job->work->spec;
    return job->work->dataset >= 0 && (!spec->weight_only || spec->dynamic);
}

bool
qdqi_moments_wanted(const struct qdq_spec *spec)
{
    return spec->weight_rounding != QDQ_ROUND_NEAREST ||
           spec->bias_correction != QDQ_BIASES_NONE;
}
