/* SPDX-License-Identifier: Apache-2.0 */
/* The table of runtimes. It is made from the list RUNTIMES in engine/local.mk. */
#include "config.h"
#include "runtimes/engine.h"

#include "runtimes/process/serve.h"

#include <string.h>

#define RUNTIME(name) extern const struct qdqi_deploy_ops qdqi_deploy_##name;
#include "runtimes.inc"
#undef RUNTIME

static const struct qdqi_deploy_ops *const rows[] = {
#define RUNTIME(name) &qdqi_deploy_##name,
#include "runtimes.inc"
#undef RUNTIME
};

enum { N_ROWS = sizeof rows / sizeof *rows };

const struct qdqi_deploy_ops *
qdqi_deploy_row(size_t i)
{
    return i < N_ROWS ? rows[i] : NULL;
}

const struct qdq_runtime_row *
qdq_runtime_row(size_t i)
{
    return i < N_ROWS ? rows[i]->row : NULL;
}

static const struct qdqi_deploy_ops *
find(const char *name)
{
    for (size_t i = 0; i < N_ROWS; i++)
        if (strcmp(rows[i]->row->name, name) == 0)
            return rows[i];
    return NULL;
}

const struct qdq_runtime_row *
qdq_runtime_find(const char *name)
{
    const struct qdqi_deploy_ops *ops = find(name);
    return ops ? ops->row : NULL;
}

/* --- judges ----------------------------------------------------------------- */

enum qdq_code
qdq_judge_open_runtime(const char *name, const char *library, struct qdq_judge **ret,
                       struct qdq_error *err)
{
    struct qdqi_deploy runtime = {.ops = find(name)};
    const struct qdqi_deploy_start from = {.library = library, .threads = 1};
    if (!runtime.ops || !runtime.ops->load)
        return qdq_error_set(err, QDQ_RUNTIME_MISSING, QDQ_AT_NOTHING, NULL,
                             "there is no runtime '%s' for a process that judges",
                             name);
    enum qdq_code code = runtime.ops->start(runtime.ops, &from, &runtime.place, err);
    return code ? code : qdqi_judge_new(&runtime, ret, err);
}

enum qdq_code
qdq_judge_open(const char *library, struct qdq_judge **ret, struct qdq_error *err)
{
    size_t i = 0;
    while (i + 1 < N_ROWS && !rows[i]->row->own_process)
        i++;
    return qdq_judge_open_runtime(rows[i]->row->name, library, ret, err);
}
