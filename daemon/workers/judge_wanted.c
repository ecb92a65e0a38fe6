/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/judge_wanted.h"
#include "workers/message.h"
#include "workers/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Runtimes with processes: those of the engine's rows, and those with runners. */
enum { MOST_WANTED = 64 };

/* One of the runtimes. */
struct judge_wanted {
    char runtime[MESSAGE_MAX_RUNTIME];
    bool *gone;
};

/* It is a qdq_connect_judge_fn whose `arg` is a struct judge_wanted. */
static int
connect_judge(void *arg, bool again, char *text, size_t size)
{
    const struct judge_wanted *one = arg;
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
serve(struct judge_wanted *wanted, const char *runtime, struct qdq_engine *engine,
      bool *gone)
{
    struct qdq_error ignored = {0};
    wanted->gone = gone;
    snprintf(wanted->runtime, sizeof wanted->runtime, "%s", runtime);
    const struct qdq_served_runtime served = {
        .name = wanted->runtime, .connect = connect_judge, .arg = wanted};
    return qdq_engine_serve(engine, &served, &ignored) == QDQ_OK;
}

/* Copies the next name of a list and moves *list behind it. Returns false at the end. */
static bool
next_name(const char **list, char ret[MESSAGE_MAX_RUNTIME])
{
    const size_t n = strcspn(*list, ",");
    snprintf(ret, MESSAGE_MAX_RUNTIME, "%.*s", (int)n, *list);
    *list += n + ((*list)[n] == ',');
    return n > 0;
}

struct judge_wanted *
judge_wanted_new(struct qdq_engine *engine, const char *runners, bool *gone)
{
    const struct qdq_runtime_row *row;
    char name[MESSAGE_MAX_RUNTIME];
    struct judge_wanted *all = calloc(MOST_WANTED, sizeof *all);
    size_t n = 0;
    bool ok = all != NULL;
    for (size_t i = 0; ok && (row = qdq_runtime_row(i)) && n < MOST_WANTED; i++)
        ok = !row->own_process || serve(&all[n++], row->name, engine, gone);
    while (ok && n < MOST_WANTED && next_name(&runners, name))
        ok = serve(&all[n++], name, engine, gone);
    if (ok)
        return all;
    free(all);
    return NULL;
}
