/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "commands.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runners.h"
#include "judges/process.h"
#include "qdq/judge.h"
#include "qdq/targets.h"

#define PATIENCE "QDQD_WORKERS_SHORT_TIMEOUT"

/* Runtimes with a process: those of the engine's rows, and those of runners. */
enum { MOST_JUDGES = 64 };

struct judge_runtime {
    struct judges_process process;
    const struct runner_config *config; /* its runner; NULL: none */
    char *runner;                       /* the same, encoded */
    struct judges_link link;
};

void
judge_variable(const char *runtime, char ret[JUDGE_VARIABLE])
{
    snprintf(ret, JUDGE_VARIABLE, "QDQD_ENGINE_%s", runtime);
    for (; *ret; ret++)
        *ret = (char)toupper((unsigned char)*ret);
}

/* It is a qdq_connect_judge_fn whose `arg` is the struct judge_runtime. */
static int
connect_judge(void *arg, bool again, char *text, size_t size)
{
    const struct judge_runtime *runtime = arg;
    char why[JUDGES_WHY] = "";
    int fd = judges_connect(&runtime->link, again, why);
    snprintf(text, size, "%s", why);
    return fd;
}

/* Has the engine judge by a process. */
static bool
serve(struct judge *judge, const struct judges_process *process,
      struct judges_limits limits, struct qdq_engine *engine,
      struct api_problem *problem)
{
    struct judge_runtime *to = &judge->runtimes[judge->n];
    struct qdq_error err = {0};
    if (judge->n == 0)
        sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, &judge->pipe);
    *to = (struct judge_runtime){.process = *process,
                                 .link = {.host = &judges_process_host,
                                          .arg = &to->process,
                                          .title = process->title,
                                          .limits = limits}};
    judge->n++;
    const struct qdq_served_runtime served = {
        .name = process->runtime, .connect = connect_judge, .arg = to};
    return !qdq_engine_serve(engine, &served, &err) ||
           api_problem_set_engine(problem, &err);
}

/* Adds a runtime, if its library is configured. */
static bool
add(struct judge *judge, const struct qdq_runtime_row *row, int64_t patience,
    struct qdq_engine *engine, struct api_problem *problem)
{
    char variable[JUDGE_VARIABLE];
    judge_variable(row->name, variable);
    const char *library = setting(NULL, variable, row->installed);
    const struct judges_process process = {.runtime = row->name,
                                           .title = row->title,
                                           .library = library,
                                           .patience = patience};
    const struct judges_limits limits = {.answer = patience,
                                         .answer_setting = PATIENCE};
    return !row->own_process || !library ||
           serve(judge, &process, limits, engine, problem);
}

/* --- runners ------------------------------------------------------------------ */

/* Adds the runtime of one target of a runner. */
static bool
add_target(struct judge *judge, size_t i, const char *name, struct qdq_engine *engine,
           struct api_problem *problem)
{
    struct runner_config *runner = &judge->runners->list[i].runner;
    const struct qdq_target *target = qdq_target_find(name);
    if (!target || !target->runtime)
        return api_problem_set(
            problem, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
            "[runner %s] targets: %s \"%s\"", runner->name,
            target ? "no runtime judges results for" : "there is no target", name);
    struct judge_runtime *to = &judge->runtimes[judge->n];
    char *text = runner_encode(runner);
    if (!text)
        return api_problem_no_memory(problem);
    const struct judges_process process = {.runtime = target->runtime,
                                           .title = runner->name,
                                           .runner = text,
                                           .patience = runner->timeout};
    const struct judges_limits limits = {.answer = runner->timeout,
                                         .answer_setting = "timeout"};
    bool ok = serve(judge, &process, limits, engine, problem);
    to->runner = text;
    to->config = runner;
    return ok;
}

/* Adds the runtimes of all targets of the runners of the file. */
static bool
add_runners(struct judge *judge, const char *path, struct qdq_engine *engine,
            struct api_problem *problem)
{
    judge->runners = calloc(1, sizeof *judge->runners);
    if (!judge->runners)
        return api_problem_no_memory(problem);
    bool ok = runners_read(path, judge->runners, problem);
    for (size_t i = 0; ok && i < judge->runners->n; i++) {
        char *rest, *list = judge->runners->list[i].targets;
        for (char *name = strtok_r(list, ", \t", &rest); ok && name;
             name = strtok_r(NULL, ", \t", &rest))
            ok = judge->n < MOST_JUDGES
                     ? add_target(judge, i, name, engine, problem)
                     : api_problem_set(problem, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                                       "%s: too many targets", path);
    }
    return ok;
}

bool
judge_init(struct judge *judge, int64_t patience, const char *runners,
           struct qdq_engine *engine, struct api_problem *problem)
{
    const struct qdq_runtime_row *row;
    *judge = (struct judge){.runtimes = calloc(MOST_JUDGES, sizeof *judge->runtimes)};
    bool ok = judge->runtimes || api_problem_no_memory(problem);
    for (size_t i = 0; ok && (row = qdq_runtime_row(i)) && i < MOST_JUDGES; i++)
        ok = add(judge, row, patience, engine, problem);
    ok = ok && (!runners || add_runners(judge, runners, engine, problem));
    if (!ok)
        judge_fini(judge);
    return ok;
}

const struct runner_config *
judge_runner(const struct judge *judge, const char *runtime)
{
    for (size_t i = 0; runtime && i < judge->n; i++)
        if (judge->runtimes[i].config &&
            strcmp(judge->runtimes[i].process.runtime, runtime) == 0)
            return judge->runtimes[i].config;
    return NULL;
}

void
judge_fini(struct judge *judge)
{
    for (size_t i = 0; judge->runtimes && i < judge->n; i++) {
        judges_process_end(&judge->runtimes[i].process);
        free(judge->runtimes[i].runner);
    }
    if (judge->n > 0)
        sigaction(SIGPIPE, &judge->pipe, NULL);
    free(judge->runtimes);
    if (judge->runners)
        runners_fini(judge->runners);
    free(judge->runners);
    *judge = (struct judge){0};
}

bool
open_judge(const struct options *options, struct qdq_engine *engine, struct judge *ret,
           struct api_problem *problem)
{
    const char *patience = setting(NULL, PATIENCE, "120");
    char *end = NULL;
    const long seconds = patience ? strtol(patience, &end, 10) : 120;
    if (patience && (*end || seconds < 1 || seconds > 3600))
        return api_problem_set(problem, API_IO, QDQ_AT_NOTHING, NULL,
                               PATIENCE " is to be a number from 1 to 3600");
    return judge_init(ret, seconds, setting(options->runners, "QDQD_RUNNERS", ""),
                      engine, problem);
}
