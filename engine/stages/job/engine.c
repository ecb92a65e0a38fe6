/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/job/engine.h"

#include "runtimes/openvino/openvino.h"
#include "run/operators/device_memory.h"

#include <stdlib.h>
#include <string.h>

enum qdq_code
qdq_engine_open(const struct qdq_engine_options *options, struct qdq_engine **ret,
                struct qdq_error *err)
{
    struct qdq_engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return qdqi_no_memory(err);
    engine->threads = options->threads > 1 ? options->threads : 1;
    engine->executor = options->executor;
    engine->limits = options->limits;
    engine->device = options->device;
    engine->device_chosen = options->device_chosen;
    if ((options->runtime && !(engine->library = strdup(options->runtime))) ||
        (options->openvino &&
         !(engine->openvino_library = strdup(options->openvino))) ||
        (options->cuda_module &&
         !(engine->cuda_module = strdup(options->cuda_module)))) {
        qdq_engine_close(&engine);
        return qdqi_no_memory(err);
    }
    enum qdq_code code = qdq_catalog_open(options->catalog, &engine->catalog, err);
    if (code) {
        qdq_engine_close(&engine);
        return code;
    }
    *ret = engine;
    return QDQ_OK;
}

void
qdq_engine_set_threads(struct qdq_engine *engine, int threads)
{
    engine->threads = threads > 1 ? threads : 1;
    qdqi_runtime_close(&engine->runtime);
}

const struct qdq_catalog *
qdq_engine_catalog(const struct qdq_engine *engine)
{
    return engine->catalog;
}

const struct qdq_limits *
qdq_engine_limits(const struct qdq_engine *engine)
{
    return &engine->limits;
}

void
qdq_engine_close(struct qdq_engine **engine)
{
    if (!engine || !*engine)
        return;
    qdqi_runtime_close(&(*engine)->runtime);
    qdqi_openvino_close(&(*engine)->openvino);
    qdq_catalog_free(&(*engine)->catalog);
    qdqi_cuda_close(&(*engine)->cuda);
    free((*engine)->dev);
    free((*engine)->cuda_module);
    free((*engine)->openvino_library);
    free((*engine)->library);
    free(*engine);
    *engine = NULL;
}

enum qdq_code
qdqi_engine_runtime(struct qdq_engine *engine, struct qdqi_runtime **ret,
                    struct qdq_error *err)
{
    struct qdq_error *why = &engine->no_runtime;
    if (!engine->library)
        return qdq_error_set(err, QDQ_RUNTIME_MISSING, QDQ_AT_NOTHING, NULL,
                             "ONNX Runtime is not configured, so no model can be run");
    enum qdq_code code = why->code;
    if (!engine->runtime && !code)
        code =
            qdqi_runtime_open(engine->library, engine->threads, &engine->runtime, why);
    if (code)
        return qdq_error_set(err, why->code, why->kind, why->where, "%s", why->text);
    *ret = engine->runtime;
    return QDQ_OK;
}

enum qdq_code
qdq_engine_runtime_version(struct qdq_engine *engine, const char **ret,
                           struct qdq_error *err)
{
    struct qdqi_runtime *runtime = NULL;
    enum qdq_code code = qdqi_engine_runtime(engine, &runtime, err);
    if (!code)
        *ret = qdqi_runtime_version(runtime);
    return code;
}
