/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "runtimes/engine.h"

#include "numbers/cuda/device.h"
#include "qdq/catalog.h"

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
    enum qdq_code code = qdqi_slots_open(engine, options, err);
    if (!code && options->cuda_module &&
        !(engine->cuda_module = strdup(options->cuda_module)))
        code = qdqi_no_memory(err);
    if (!code)
        code = qdq_catalog_open(options->catalog, &engine->catalog, err);
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
    qdqi_slots_restart(engine);
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
    qdqi_slots_close(*engine);
    qdq_catalog_free(&(*engine)->catalog);
    qdqi_cuda_close(&(*engine)->cuda);
    free((*engine)->dev);
    free((*engine)->cuda_module);
    free(*engine);
    *engine = NULL;
}

void
qdq_engine_set_judge(struct qdq_engine *engine, qdq_connect_judge_fn fn, void *arg)
{
    const struct qdq_runtime_row *row;
    for (size_t i = 0; (row = qdq_runtime_row(i)); i++) {
        const struct qdq_served_runtime served = {
            .name = row->name, .connect = fn, .arg = arg};
        /* Without memory the runtime is not started here instead. */
        if (row->own_process)
            (void)!qdq_engine_serve(engine, &served, &engine->slots[i].why_not);
    }
}
