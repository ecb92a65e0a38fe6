/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "commands.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "judges/process.h"
#include "qdq/judge.h"

#define PATIENCE "QDQD_WORKERS_SHORT_TIMEOUT"

struct judge_runtime {
    struct judges_process process;
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

/* Adds a runtime, if its library is configured. */
static bool
add(struct judge *judge, const struct qdq_runtime_row *row, int64_t patience,
    struct qdq_engine *engine, struct qdq_error *err)
{
    struct judge_runtime *to = &judge->runtimes[judge->n];
    char variable[JUDGE_VARIABLE];
    judge_variable(row->name, variable);
    const char *library = setting(NULL, variable, row->installed);
    if (!row->own_process || !library)
        return true;
    if (judge->n == 0)
        sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, &judge->pipe);
    *to = (struct judge_runtime){
        .process = {.runtime = row->name,
                    .title = row->title,
                    .library = library,
                    .patience = patience},
        .link = {.host = &judges_process_host,
                 .arg = &to->process,
                 .title = row->title,
                 .limits = {.answer = patience, .answer_setting = PATIENCE}}};
    judge->n++;
    const struct qdq_served_runtime served = {
        .name = row->name, .connect = connect_judge, .arg = to};
    return qdq_engine_serve(engine, &served, err) == QDQ_OK;
}

bool
judge_init(struct judge *judge, int64_t patience, struct qdq_engine *engine,
           struct api_problem *problem)
{
    struct qdq_error err = {0};
    size_t n = 0;
    while (qdq_runtime_row(n))
        n++;
    *judge = (struct judge){.runtimes = calloc(n, sizeof *judge->runtimes)};
    bool ok = judge->runtimes || api_problem_no_memory(problem);
    for (size_t i = 0; ok && i < n; i++)
        ok = add(judge, qdq_runtime_row(i), patience, engine, &err) ||
             api_problem_set_engine(problem, &err);
    if (!ok)
        judge_fini(judge);
    return ok;
}

void
judge_fini(struct judge *judge)
{
    for (size_t i = 0; i < judge->n; i++)
        judges_process_end(&judge->runtimes[i].process);
    if (judge->n > 0)
        sigaction(SIGPIPE, &judge->pipe, NULL);
    free(judge->runtimes);
    *judge = (struct judge){0};
}

bool
open_judge(struct qdq_engine *engine, struct judge *ret, struct api_problem *problem)
{
    const char *patience = setting(NULL, PATIENCE, "120");
    char *end = NULL;
    const long seconds = patience ? strtol(patience, &end, 10) : 120;
    if (patience && (*end || seconds < 1 || seconds > 3600))
        return api_problem_set(problem, API_IO, QDQ_AT_NOTHING, NULL,
                               PATIENCE " is to be a number from 1 to 3600");
    return judge_init(ret, seconds, engine, problem);
}
