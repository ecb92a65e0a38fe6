/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "store/derive.h"
#include "api/spec.h"
#include "qdq/quantize.h"
#include "qdq/runtime.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

/* Returns whether the job runs its model. Without data it does not. */
static bool
feeds_model(const struct qdq_spec *spec, const char *calibration)
{
    return calibration || spec->calibration.random_samples > 0;
}

/* Returns whether the job wants a GPU: its spec asks for one, or leaves the choice
   and the model runs. */
static bool
wants_gpu(const struct qdq_spec *spec, const char *calibration)
{
    return spec->device == QDQ_DEVICE_CUDA ||
           (spec->device == QDQ_DEVICE_AUTO && feeds_model(spec, calibration));
}

/* Returns the class of processors whose figures the job is asked for: those of the result as
   deployed, and of a profile. NULL: it has none. */
static const char *
processor_of(const struct qdq_spec *spec, const char *calibration)
{
    struct qdq_spec all = *spec;
    qdq_spec_complete(&all);
    const bool runs_here = all.target->runtime && qdq_runtime_find(all.target->runtime);
    bool is_deployed =
        runs_here && all.evaluate != QDQ_NO && feeds_model(spec, calibration);
    return (is_deployed || all.profile.runs > 0) && all.host >= 0 &&
                   !qdq_host_is_accelerator(all.host)
               ? qdq_host_name((size_t)all.host)
               : NULL;
}

const char *
store_own_processor(void)
{
    struct qdq_spec spec;
    qdq_spec_init(&spec);
    qdq_spec_complete(&spec);
    return spec.host >= 0 ? qdq_host_name((size_t)spec.host) : "";
}

/* Writes the key of the job's observations; "": it observes nothing. Returns false
   when out of memory. */
static bool
derive_key(const struct qdq_spec *spec, const char *model, const char *calibration,
           char ret[DIGEST_SIZE])
{
    ret[0] = '\0';
    if (!feeds_model(spec, calibration))
        return true;
    char *identity = qdq_observations_identity(spec, model, calibration);
    bool ok = identity && digest_of(identity, strlen(identity), ret);
    free(identity);
    return ok;
}

bool
store_derive(const struct qdq_spec *spec, struct store_job *job, struct api_problem *p)
{
    job->wants_gpu = wants_gpu(spec, job->calibration);
    job->processor = processor_of(spec, job->calibration);
    return derive_key(spec, job->model, job->calibration, job->observations) ||
           api_problem_no_memory(p);
}

/* --- SQL functions ------------------------------------------------------- */

static const char *
text_of(sqlite3_value *value)
{
    return (const char *)sqlite3_value_text(value);
}

/* Decodes the spec of a row. Rows of version 0.2 may hold an empty one, which was the default
   then. Returns NULL when it cannot be decoded, or when out of memory, which ends the
   statement. */
static struct api_spec *
decode(sqlite3_context *context, const char *text)
{
    struct api_problem problem = {0};
    struct api_spec *spec = NULL;
    if (text && !text[strspn(text, " \t\r\n")])
        text = NULL;
    if (!api_spec_decode(text, text ? strlen(text) : 0, &spec, &problem) &&
        problem.code == API_NO_MEMORY)
        sqlite3_result_error_nomem(context);
    return spec;
}

static void
sql_effective_spec(sqlite3_context *context, int n, sqlite3_value **values)
{
    (void)n;
    sqlite3_result_value(context, values[0]);
    struct api_spec *spec = decode(context, text_of(values[0]));
    if (!spec)
        return;
    char *text = api_spec_encode(api_spec_get(spec));
    if (text)
        sqlite3_result_text(context, text, -1, free);
    else
        sqlite3_result_error_nomem(context);
    api_spec_free(&spec);
}

static void
sql_wants_gpu(sqlite3_context *context, int n, sqlite3_value **values)
{
    (void)n;
    sqlite3_result_int(context, 0);
    struct api_spec *spec = decode(context, text_of(values[0]));
    if (spec)
        sqlite3_result_int(context, wants_gpu(api_spec_get(spec), text_of(values[1])));
    api_spec_free(&spec);
}

static void
sql_observations_key(sqlite3_context *context, int n, sqlite3_value **values)
{
    char key[DIGEST_SIZE];
    (void)n;
    struct api_spec *spec = decode(context, text_of(values[0]));
    if (!spec)
        return;
    if (!derive_key(api_spec_get(spec), text_of(values[1]), text_of(values[2]), key))
        sqlite3_result_error_nomem(context);
    else if (*key)
        sqlite3_result_text(context, key, -1, SQLITE_TRANSIENT);
    api_spec_free(&spec);
}

/* NULL as well for a job of another class, because no daemon of that one is known. */
static void
sql_processor(sqlite3_context *context, int n, sqlite3_value **values)
{
    (void)n;
    struct api_spec *spec = decode(context, text_of(values[0]));
    if (!spec)
        return;
    const char *class = processor_of(api_spec_get(spec), text_of(values[1]));
    if (class && !strcmp(class, store_own_processor()))
        sqlite3_result_text(context, class, -1, SQLITE_TRANSIENT);
    api_spec_free(&spec);
}

bool
store_derive_functions(sqlite3 *db)
{
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
    return !sqlite3_create_function(db, "effective_spec", 1, flags, NULL,
                                    sql_effective_spec, NULL, NULL) &&
           !sqlite3_create_function(db, "wants_gpu", 2, flags, NULL, sql_wants_gpu,
                                    NULL, NULL) &&
           !sqlite3_create_function(db, "observations_key", 3, flags, NULL,
                                    sql_observations_key, NULL, NULL) &&
           !sqlite3_create_function(db, "processor", 2, flags, NULL, sql_processor,
                                    NULL, NULL);
}
