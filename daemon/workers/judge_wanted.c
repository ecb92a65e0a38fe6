/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/judge_wanted.h"
#include "workers/message.h"
#include "workers/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct one {
    const char *runtime;
    bool *gone;
};

struct judge_wanted {
    size_t n;
    struct one *runtimes;
    char *list; /* the names of those with a runner */
};

/* It is a qdq_connect_judge_fn whose `arg` is a struct one. */
static int
connect_judge(void *arg, bool again, char *text, size_t size)
{
    const struct one *one = arg;
    const struct message message = {.type = MESSAGE_JUDGE_WANTED,
                                    .body.judge_wanted.again = again,
                                    .text = (char *)(uintptr_t)one->runtime,
                                    .text_len = strlen(one->runtime)};
    struct message answer;
    int fd = -1;
    if (*one->gone || !message_send(WORKER_SOCKET, -1, &message) ||
        message_receive(WORKER_SOCKET, -1, -1, &answer) != MESSAGE_GOT) {
        *one->gone = true;
        return -1;
    }
    *one->gone = answer.type != MESSAGE_JUDGE;
    if (answer.n_fds == 1 && !*one->gone)
        fd = answer.fds[--answer.n_fds];
    snprintf(text, size, "%s", answer.text ? answer.text : "");
    message_fini(&answer);
    return fd;
}

static bool
add(struct judge_wanted *wanted, const char *runtime, struct qdq_engine *engine,
    bool *gone)
{
    struct one *one = &wanted->runtimes[wanted->n++];
    struct qdq_error ignored = {0};
    *one = (struct one){runtime, gone};
    const struct qdq_served_runtime served = {
        .name = runtime, .connect = connect_judge, .arg = one};
    return qdq_engine_serve(engine, &served, &ignored) == QDQ_OK;
}

/* Adds the runtimes of the list, which is cut into names. */
static bool
add_list(struct judge_wanted *wanted, struct qdq_engine *engine, bool *gone)
{
    bool ok = true;
    char *rest;
    for (char *name = strtok_r(wanted->list, ",", &rest); ok && name;
         name = strtok_r(NULL, ",", &rest)) {
        const struct qdq_runtime_row *row = qdq_runtime_find(name);
        ok = (row && row->own_process) || add(wanted, name, engine, gone);
    }
    return ok;
}

struct judge_wanted *
judge_wanted_new(struct qdq_engine *engine, const char *list, bool *gone)
{
    struct judge_wanted *wanted = calloc(1, sizeof *wanted);
    const struct qdq_runtime_row *row;
    size_t n = strlen(list) + 1; /* more than the list has names */
    while (qdq_runtime_row(n - strlen(list) - 1))
        n++;
    bool ok = wanted && (wanted->list = strdup(list)) &&
              (wanted->runtimes = calloc(n, sizeof *wanted->runtimes));
    for (size_t i = 0; ok && (row = qdq_runtime_row(i)); i++)
        ok = !row->own_process || add(wanted, row->name, engine, gone);
    ok = ok && add_list(wanted, engine, gone);
    if (!ok)
        judge_wanted_free(&wanted);
    return wanted;
}

void
judge_wanted_free(struct judge_wanted **wanted)
{
    if (*wanted) {
        free((*wanted)->runtimes);
        free((*wanted)->list);
    }
    free(*wanted);
    *wanted = NULL;
}
