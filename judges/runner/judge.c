/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime by a runner: what a process that judges serves, a program for each model. */
#include "config.h"
#include "judges/runner.h"
#include "runner/session.h"
#include "runner/walls.h"

#include <stdlib.h>
#include <string.h>

struct place {
    const struct runner_config *runner;
    struct runner_folder folder; /* of this process; the programs have theirs in it */
    struct runner_session
        *spare;               /* greeted, and without a model; NULL: there is none */
    struct runner_about said; /* by the program that was greeted last */
    struct qdq_runtime_about about;
    struct qdq_runtime_calls calls;
};

static void
close_session(struct runner_session **session)
{
    if (*session)
        runner_session_close(*session);
    free(*session);
    *session = NULL;
}

/* Starts and greets a program. */
static enum qdq_code
open_session(struct place *p, struct runner_session **ret, struct qdq_error *err)
{
    struct runner_session *session = calloc(1, sizeof *session);
    if (!session)
        return qdq_error_set(err, QDQ_NO_MEMORY, QDQ_AT_NOTHING, NULL, "out of memory");
    enum qdq_code code = runner_session_open(p->runner, p->folder.path, session, err);
    if (code) {
        close_session(&session);
        return code;
    }
    p->said = session->about;
    *ret = session;
    return QDQ_OK;
}

/* Makes sure that a program has said what it is. A failure is reported when a model is opened. */
static void
greet(struct place *p)
{
    struct runner_session *session = NULL;
    struct qdq_error ignored = {0};
    if (!*p->said.version)
        (void)!open_session(p, &session, &ignored);
    close_session(&session);
}

static const char *
version(void *arg)
{
    struct place *p = arg;
    greet(p);
    return p->said.version;
}

static const struct qdq_runtime_about *
about(void *arg)
{
    struct place *p = arg;
    greet(p);
    p->about = (struct qdq_runtime_about){.name = p->said.name,
                                          .device = p->said.device,
                                          .runner = p->runner->name,
                                          .only_plans = p->said.only_plans};
    return &p->about;
}

static enum qdq_code
open_model(void *arg, const void *bytes, size_t size,
           const struct qdq_run_options *options, void **ret, struct qdq_error *err)
{
    struct place *p = arg;
    struct runner_session *session = NULL;
    enum qdq_code code = open_session(p, &session, err);
    if (!code)
        code = runner_session_load(session, bytes, size, options, err);
    if (code)
        close_session(&session);
    else
        *ret = session;
    return code;
}

static const char *
precision(void *model)
{
    return ((const struct runner_session *)model)->precision;
}

static enum qdq_code
run_model(void *model, const struct qdq_tensor *inputs, size_t n_inputs,
          const struct qdq_tensor **ret, size_t *ret_n, double *ret_ms,
          struct qdq_error *err)
{
    struct runner_session *session = model;
    enum qdq_code code = runner_session_run(session, inputs, n_inputs, ret_ms, err);
    *ret = session->outputs.list;
    *ret_n = session->outputs.n;
    return code;
}

static enum qdq_code
nodes_of(void *model, const struct qdq_run_node **ret, size_t *ret_n,
         struct qdq_error *err)
{
    struct runner_session *session = model;
    enum qdq_code code = runner_session_ask_kernels(session, ret_n, err);
    *ret = session->nodes;
    return code;
}

static void
close_model(void *model)
{
    struct runner_session *session = model;
    close_session(&session);
}

static void
end(void *arg)
{
    struct place *p = arg;
    runner_folder_remove(&p->folder);
    free(p);
}

enum qdq_code
runner_judge_new(const struct runner_config *runner, const char *runtime,
                 const char *above, struct qdq_judge **ret, struct qdq_error *err)
{
    char lacking[WALL_TEXT];
    struct place *p = calloc(1, sizeof *p);
    if (!p)
        return qdq_error_set(err, QDQ_NO_MEMORY, QDQ_AT_NOTHING, NULL, "out of memory");
    *p = (struct place){.runner = runner,
                        .folder.fd = -1,
                        .calls = {.name = runtime,
                                  .version = version,
                                  .about = about,
                                  .open = open_model,
                                  .precision = precision,
                                  .run = run_model,
                                  .nodes = nodes_of,
                                  .close = close_model,
                                  .end = end}};
    runner_folder_sweep(above);
    enum qdq_code code = runner_folder_make(above, &p->folder, err);
    if (!code && !walls_enter_around(runner, p->folder.path, lacking))
        code = qdq_error_set(err, QDQ_RUNNER_FAILED, QDQ_AT_NOTHING, NULL,
                             "the walls of the runner '%s' cannot be built: %s",
                             runner->name, lacking);
    if (!code)
        return qdq_judge_new(&p->calls, p, ret, err);
    end(p);
    return code;
}
