/* SPDX-License-Identifier: Apache-2.0 */
/* The runtimes that judge results, each a row here. */
#include "config.h"
#include "stages/job/engine.h"

#include "runtimes/openvino/openvino.h"
#include "runtimes/process/remote.h"

#include <stdio.h>
#include <string.h>

static enum qdq_code
repeat_error(const struct qdq_error *why, struct qdq_error *err)
{
    return why->code
               ? qdq_error_set(err, why->code, why->kind, why->where, "%s", why->text)
               : QDQ_OK;
}

static enum qdq_code
open_onnxruntime(struct qdq_engine *engine, struct qdqi_deploy *ret,
                 struct qdq_error *err)
{
    struct qdqi_runtime *runtime = NULL;
    enum qdq_code code = qdqi_engine_runtime(engine, &runtime, err);
    *ret = (struct qdqi_deploy){&qdqi_deploy_onnxruntime, runtime};
    return code;
}

/* Reaches a process that judges, which takes the place of one that has ended. */
static void
reach_judge(struct qdq_engine *engine, struct qdq_error *why)
{
    char text[256] = "";
    const bool again = engine->remote != NULL;
    int fd = engine->connect_judge(engine->judge_arg, again, text, sizeof text);
    if (fd >= 0 && again)
        snprintf(engine->crashed, sizeof engine->crashed, "%.*s",
                 (int)sizeof engine->crashed - 1, text);
    if (fd < 0)
        qdq_error_set(why, QDQ_RUNTIME_MISSING, QDQ_AT_NOTHING, NULL, "%s", text);
    else if (again)
        (void)!qdqi_remote_renew(engine->remote, fd, why);
    else
        (void)!qdqi_remote_open(fd, &engine->remote, why);
}

/* Reaches OpenVINO in the process that judges. */
static enum qdq_code
open_remote(struct qdq_engine *engine, struct qdqi_deploy *ret, struct qdq_error *err)
{
    struct qdq_error *why = &engine->no_remote;
    const bool gone = engine->remote && qdqi_remote_is_gone(engine->remote);
    if (gone && engine->renewed && !why->code)
        qdq_error_set(why, QDQ_RUNTIME_MISSING, QDQ_AT_NOTHING, NULL,
                      "the process that judges %s, and the one in its place ended, too",
                      *engine->crashed ? engine->crashed : "ended");
    if ((gone || !engine->remote) && !why->code)
        reach_judge(engine, why);
    engine->renewed = engine->renewed || gone;
    *ret = (struct qdqi_deploy){&qdqi_deploy_remote_openvino, engine->remote};
    return repeat_error(why, err);
}

static enum qdq_code
open_openvino(struct qdq_engine *engine, struct qdqi_deploy *ret, struct qdq_error *err)
{
    struct qdq_error *why = &engine->no_openvino;
    if (engine->connect_judge)
        return open_remote(engine, ret, err);
    if (!engine->openvino_library)
        return qdq_error_set(err, QDQ_RUNTIME_MISSING, QDQ_AT_NOTHING, NULL,
                             "OpenVINO is not configured (engine.openvino)");
    if (!engine->openvino && !why->code)
        (void)!qdqi_openvino_open(engine->openvino_library, &engine->openvino, why);
    *ret = (struct qdqi_deploy){&qdqi_deploy_openvino, engine->openvino};
    return repeat_error(why, err);
}

static const struct {
    const struct qdqi_deploy_ops *ops;
    enum qdq_code (*open)(struct qdq_engine *engine, struct qdqi_deploy *ret,
                          struct qdq_error *err);
} rows[] = {
    {&qdqi_deploy_onnxruntime, open_onnxruntime},
    {&qdqi_deploy_openvino, open_openvino},
};

const struct qdqi_deploy_ops *
qdqi_deploy_ops_find(const char *name)
{
    for (size_t i = 0; name && i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].ops->name, name) == 0)
            return rows[i].ops;
    return NULL;
}

enum qdq_code
qdqi_engine_deploy(struct qdq_engine *engine, const char *name, struct qdqi_deploy *ret,
                   struct qdq_error *err)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].ops->name, name) == 0)
            return rows[i].open(engine, ret, err);
    return qdq_error_set(err, QDQ_INTERNAL, QDQ_AT_NOTHING, NULL,
                         "there is no runtime '%s'", name);
}

enum qdq_code
qdqi_engine_deploy_literal(struct qdq_engine *engine, struct qdqi_deploy *ret,
                           struct qdq_error *err)
{
    return open_onnxruntime(engine, ret, err);
}

void
qdqi_engine_release_judge(struct qdq_engine *engine)
{
    qdqi_remote_close(&engine->remote);
    engine->no_remote = (struct qdq_error){0};
    engine->renewed = false;
    *engine->crashed = '\0';
}

void
qdq_engine_set_judge(struct qdq_engine *engine, qdq_connect_judge_fn fn, void *arg)
{
    engine->connect_judge = fn;
    engine->judge_arg = arg;
}
