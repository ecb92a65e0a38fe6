/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/judge_wanted.h"
#include "workers/message.h"
#include "workers/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One of the runtimes. */
struct judge_wanted {
    const char *runtime;
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

struct judge_wanted *
judge_wanted_new(struct qdq_engine *engine, bool *gone)
{
    const struct qdq_runtime_row *row;
    struct qdq_error ignored = {0};
    size_t n = 0;
    while (qdq_runtime_row(n))
        n++;
    struct judge_wanted *all = calloc(n, sizeof *all);
    for (size_t i = 0; all && i < n; i++) {
        row = qdq_runtime_row(i);
        all[i] = (struct judge_wanted){row->name, gone};
        const struct qdq_served_runtime served = {
            .name = row->name, .connect = connect_judge, .arg = &all[i]};
        if (row->own_process && qdq_engine_serve(engine, &served, &ignored)) {
            free(all);
            return NULL;
        }
    }
    return all;
}
