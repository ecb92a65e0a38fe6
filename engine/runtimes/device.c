/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU of an engine. */
#include "config.h"
#include "runtimes/engine.h"

#include "ground/base/errors.h"
#include "run/operators/device_memory.h"

#include <stdio.h>
#include <stdlib.h>

/* Opens the device. Sets *ret_there to true when there is one, even if it cannot be
   used. */
static enum qdq_code
open_device(struct qdq_engine *engine, bool *ret_there, struct qdq_error *err)
{
    struct qdqi_runtime *runtime;
    enum qdq_code code;
    if (!engine->cuda_module)
        return qdq_error_set(err, QDQ_NO_DEVICE, QDQ_AT_NOTHING, NULL,
                             "no GPU is configured");
    if (!engine->cuda &&
        (code = qdqi_cuda_open(engine->cuda_module, &engine->cuda, err)))
        return code;
    *ret_there = true;
    if ((code = qdqi_cuda_use(engine->cuda, engine->device, err)) ||
        (code = qdqi_engine_runtime(engine, &runtime, err)))
        return code;
    return qdqi_cuda_functions(engine->cuda)->is_host
               ? QDQ_OK
               : qdqi_runtime_try_device(runtime, engine->device, err);
}

static enum qdq_code
make_place(struct qdq_engine *engine, struct qdq_error *err)
{
    enum qdq_code code = open_device(engine, &engine->has_device, err);
    if (code)
        return code;
    if (!(engine->dev = calloc(1, sizeof *engine->dev)))
        return qdqi_no_memory(err);
    *engine->dev = (struct qdqi_device){engine->cuda, engine->device,
                                        !qdqi_cuda_functions(engine->cuda)->is_host};
    return QDQ_OK;
}

enum qdq_code
qdqi_engine_find_device(struct qdq_engine *engine, struct qdq_error *err)
{
    struct qdq_error why = engine->no_device;
    if (engine->dev || (!why.code && !make_place(engine, &why)))
        return QDQ_OK;
    if (why.code != QDQ_NO_MEMORY && why.code != QDQ_DEVICE_MEMORY)
        engine->no_device = why;
    return qdqi_error_copy(&why, err);
}

enum qdq_code
qdq_engine_gpu(struct qdq_engine *engine, struct qdq_gpu *ret, struct qdq_error *err)
{
    enum qdq_code code = qdqi_engine_find_device(engine, err);
    *ret = (struct qdq_gpu){.cuda = engine->cuda != NULL};
    if (engine->cuda && engine->device < qdqi_cuda_count(engine->cuda))
        snprintf(ret->name, sizeof ret->name, "%s",
                 qdqi_cuda_device(engine->cuda, engine->device)->name);
    return code;
}
