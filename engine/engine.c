/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages.h"

#include <stdlib.h>

const char *
qdq_version(void)
{
    return PACKAGE_VERSION;
}

enum qdq_code
qdq_engine_open(const struct qdq_engine_options *options, struct qdq_engine **ret,
                struct qdq_error *err)
{
    struct qdq_engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return qdqi_no_memory(err);
    engine->threads = options->threads > 1 ? options->threads : 1;
    enum qdq_code code =
        options->runtime ? qdqi_runtime_open(options->runtime, &engine->runtime, err)
                         : QDQ_OK;
    if (code)
        qdq_engine_close(&engine);
    else
        *ret = engine;
    return code;
}

void
qdq_engine_close(struct qdq_engine **engine)
{
    if (!engine || !*engine)
        return;
    qdqi_runtime_close(&(*engine)->runtime);
    free(*engine);
    *engine = NULL;
}

const char *
qdq_engine_runtime_version(const struct qdq_engine *engine)
{
    return engine->runtime ? qdqi_runtime_version(engine->runtime) : "";
}
