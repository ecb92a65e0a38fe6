/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "pool/judging.h"
#include "settings/gpu_list.h"
#include "settings/settings.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Makes sure that the process is alive and serves. */
static bool
start(struct lane *lane, char why[JUDGING_WHY])
{
    struct api_problem problem = {0};
    char how[64];
    if (!*lane->settings->engine_openvino) {
        snprintf(why, JUDGING_WHY, "OpenVINO is not configured (engine.openvino)");
        return false;
    }
    switch (process_start(&lane->judge, GPUS_NONE, &problem)) {
    case PROCESS_RUNS:
        return true;
    case PROCESS_FAILED:
        snprintf(why, JUDGING_WHY, "%.200s", problem.detail);
        return false;
    default:
        process_end(&lane->judge, true, how);
        snprintf(why, JUDGING_WHY,
                 "the process that judges by OpenVINO %s at its start; the log of the "
                 "daemon says why",
                 how);
        return false;
    }
}

/* Returns whether it is the signal of a fault in OpenVINO. */
static bool
is_fault(int number)
{
    return number == SIGSEGV || number == SIGBUS || number == SIGABRT ||
           number == SIGFPE || number == SIGILL;
}

/* Ends the process that the worker's work had. Returns false where another one would take too
   long, too. Writes to `text` how the process crashed, if it did. */
static bool
end_former(struct lane *lane, char text[JUDGING_WHY])
{
    const struct settings *s = lane->settings;
    char how[64] = "";
    process_end(&lane->judge, false, how);
    if (is_fault(lane->judge.signal))
        snprintf(text, JUDGING_WHY, "%s", how);
    else if (lane->judge.signal == SIGALRM)
        snprintf(text, JUDGING_WHY,
                 "OpenVINO took longer than %lld s for one answer "
                 "(workers.short_timeout)",
                 (long long)s->workers_short_timeout);
    else if (lane->judge.signal == SIGXCPU)
        snprintf(text, JUDGING_WHY,
                 "OpenVINO took more than %lld s of processor time (workers.cpu_time)",
                 (long long)s->workers_cpu_time);
    return lane->judge.signal != SIGALRM && lane->judge.signal != SIGXCPU;
}

/* Returns the worker's end of a socket whose other end the process serves; -1: there is
   none. */
static int
connect_judge(struct lane *lane, bool again, int within_ms, char why[JUDGING_WHY])
{
    int sockets[2];
    if ((again && !end_former(lane, why)) || !start(lane, why))
        return -1;
    lane->judge.jobs++;
    process_allow(&lane->judge);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets)) {
        snprintf(why, JUDGING_WHY, "a socket: %s", strerror(errno));
        return -1;
    }
    const struct message serve = {
        .type = MESSAGE_SERVE, .fds = {sockets[1]}, .n_fds = 1};
    bool sent = message_send(lane->judge.socket, within_ms, &serve);
    close(sockets[1]);
    if (sent)
        return sockets[0];
    snprintf(why, JUDGING_WHY, "the process that judges by OpenVINO does not answer");
    close(sockets[0]);
    process_end(&lane->judge, true, NULL);
    return -1;
}

bool
judging_answer(struct lane *lane, bool again, int within_ms)
{
    char why[JUDGING_WHY] = "";
    int fd = connect_judge(lane, again, within_ms, why);
    const struct message message = {.type = MESSAGE_JUDGE,
                                    .text = why,
                                    .text_len = strlen(why),
                                    .fds = {fd},
                                    .n_fds = fd >= 0 ? 1 : 0};
    bool sent = message_send(lane->process.socket, within_ms, &message);
    if (fd >= 0)
        close(fd);
    return sent;
}

char *
judging_describe(struct lane *lane, char why[JUDGING_WHY])
{
    const struct message request = {.type = MESSAGE_RUNTIME};
    const int within = (int)lane->settings->workers_short_timeout * 1000;
    struct message answer;
    char *text = NULL;
    if (!start(lane, why))
        return NULL;
    if (message_send(lane->judge.socket, within, &request) &&
        message_receive(lane->judge.socket, within, within, &answer) == MESSAGE_GOT) {
        if (answer.type == MESSAGE_RESULT)
            text = strndup(answer.text, answer.text_len);
        message_fini(&answer);
    }
    if (!text)
        snprintf(why, JUDGING_WHY,
                 "the process that judges by OpenVINO does not answer");
    process_end(&lane->judge, !text, NULL);
    return text;
}
