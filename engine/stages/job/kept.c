/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/job/kept.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

char *
qdqi_kept_identity(const struct qdqi_job *job)
{
    const struct qdq_work *work = job->work;
    const char *library = qdqi_engine_runtime_path(job->engine);
    const bool own = job->observations >= 0;
    char *key = qdq_observations_identity(work->spec, own ? NULL : work->model_id,
                                          own ? NULL : work->dataset_id);
    struct stat st = {.st_size = -1};
    if (library && strchr(library, '/') && stat(library, &st))
        st.st_size = -1;
    char *text = key ? qdqi_arena_printf(
                           job->scratch, "%sruntime %lld %lld.%09ld\nran on %s\n", key,
                           (long long)st.st_size, (long long)st.st_mtim.tv_sec,
                           st.st_mtim.tv_nsec, job->dev ? "cuda" : "cpu")
                     : NULL;
    free(key);
    return text;
}

bool
qdqi_job_keeps(const struct qdqi_job *job)
{
    const struct qdq_work *work = job->work;
    return job->observations >= 0 || qdqi_keeps_observations(work);
}

bool
qdqi_keeps_observations(const struct qdq_work *work)
{
    return work->observations >= 0 && work->model_id &&
           (work->dataset < 0 || work->dataset_id);
}

int
qdqi_kept_file(const struct qdqi_job *job)
{
    return job->observations >= 0 ? job->observations : job->work->observations;
}

enum qdq_code
qdqi_kept_write(struct qdqi_job *job, const char *identity,
                const struct qdqi_observed *all,
                const struct qdqi_observations *earlier,
                const struct qdqi_observed_rows *rows, struct qdq_error *err)
{
    struct qdq_error why = {0};
    if (!qdqi_observations_write(qdqi_kept_file(job), identity, all, earlier, rows,
                                 &why))
        return QDQ_OK;
    return qdqi_warn(
        &job->warnings, job->arena, err, "observations_not_kept", NULL,
        "a later calibration of the same model and data will run it again: %s",
        why.text);
}
