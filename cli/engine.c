/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the engine, as every command does it. */
#include "config.h"
#include "libraries.h"
#include "commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *
setting(const char *given, const char *variable, const char *installed)
{
    const char *value = given ? given : getenv(variable);
    if (!value)
        value = installed;
    return *value ? value : NULL;
}

bool
open_engine(const struct options *options, const struct qdq_executor *executor,
            struct qdq_engine **ret, struct api_problem *problem)
{
    const struct qdq_engine_options engine_options = {
        .runtime = setting(NULL, "QDQD_ENGINE_RUNTIME", QDQ_ORT_LIBRARY),
        .threads = options->threads,
        .executor = executor,
        .cuda_module = setting(NULL, "QDQD_GPU_MODULE", QDQ_CUDA_MODULE),
        .catalog = setting(options->cases, "QDQD_ENGINE_CASES", QDQ_CASES),
    };
    struct qdq_engine *engine = NULL;
    struct qdq_error err = {0};
    /* The engine takes a missing folder for an empty one, but here the user named it. */
    if (options->cases && *options->cases && access(options->cases, F_OK) != 0)
        return api_problem_set(problem, API_IO, QDQ_AT_NOTHING, NULL, "%s: %s",
                               options->cases, strerror(errno));
    if (qdq_engine_open(&engine_options, &engine, &err) != QDQ_OK ||
        qdq_catalog_check(qdq_engine_catalog(engine), &err) != QDQ_OK) {
        qdq_engine_close(&engine);
        return api_problem_set_engine(problem, &err);
    }
    *ret = engine;
    return true;
}
