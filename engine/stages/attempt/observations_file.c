/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/attempt/observations_file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

char *
qdqi_observations_file_identity(const struct qdqi_attempt *a)
{
    const struct qdq_work *work = a->context->work;
    const char *library = qdqi_engine_runtime_path(a->context->engine);
    const bool own = a->observations >= 0;
    char *key = qdq_observations_identity(a->spec, own ? NULL : work->model_id,
                                          own ? NULL : work->dataset_id);
    struct stat st = {.st_size = -1};
    if (library && strchr(library, '/') && stat(library, &st))
        st.st_size = -1;
    char *text = key ? qdqi_arena_printf(
                           a->scratch, "%sruntime %lld %lld.%09ld\nran on %s\n", key,
                           (long long)st.st_size, (long long)st.st_mtim.tv_sec,
                           st.st_mtim.tv_nsec, a->context->dev ? "cuda" : "cpu")
                     : NULL;
    free(key);
    return text;
}

bool
qdqi_attempt_keeps(const struct qdqi_attempt *a)
{
    const struct qdq_work *work = a->context->work;
    return a->observations >= 0 || qdqi_keeps_observations(work);
}

bool
qdqi_keeps_observations(const struct qdq_work *work)
{
    return work->observations >= 0 && work->model_id &&
           (work->dataset < 0 || work->dataset_id);
}

int
qdqi_observations_file(const struct qdqi_attempt *a)
{
    return a->observations >= 0 ? a->observations : a->context->work->observations;
}

enum qdq_code
qdqi_observations_file_write(const struct qdqi_attempt *a, const char *identity,
                             const struct qdqi_observed *all,
                             const struct qdqi_observations *earlier,
                             const struct qdqi_observed_rows *rows,
                             struct qdq_error *err)
{
    struct qdq_error why = {0};
    if (!qdqi_observations_write(qdqi_observations_file(a), identity, all, earlier,
                                 rows, &why))
        return QDQ_OK;
    return qdqi_attempt_warn(
        a, err, "observations_not_kept", NULL,
        "a later calibration of the same model and data will run it again: %s",
        why.text);
}
