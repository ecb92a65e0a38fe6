/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "pool/judging.h"
#include "settings/gpu_list.h"
#include "settings/settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WHY = 256 };

/* Makes sure that the process is alive and serves. */
static bool
start(struct lane *lane, char why[WHY])
{
    struct api_problem problem = {0};
    char how[64];
    if (!*lane->settings->engine_openvino) {
        snprintf(why, WHY, "OpenVINO is not configured (engine.openvino)");
        return false;
    }
    switch (process_start(&lane->judge, GPUS_NONE, &problem)) {
    case PROCESS_RUNS:
        return true;
    case PROCESS_FAILED:
        snprintf(why, WHY, "%.200s", problem.detail);
        return false;
    default:
        process_end(&lane->judge, true, how);
        snprintf(why, WHY,
                 "the process that judges by OpenVINO %s at its start; the log of the "
                 "daemon says why",
                 how);
        return false;
    }
}

/* Returns the worker's end of a socket whose other end the process serves; -1: there is
   none. */
static int
connect_judge(struct lane *lane, int within_ms, char why[WHY])
{
    int sockets[2];
    if (!start(lane, why))
        return -1;
    lane->judge.jobs++;
    process_allow(&lane->judge);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets)) {
        snprintf(why, WHY, "a socket: %s", strerror(errno));
        return -1;
    }
    const struct message serve = {
        .type = MESSAGE_SERVE, .fds = {sockets[1]}, .n_fds = 1};
    bool sent = message_send(lane->judge.socket, within_ms, &serve);
    close(sockets[1]);
    if (sent)
        return sockets[0];
    snprintf(why, WHY, "the process that judges by OpenVINO does not answer");
    close(sockets[0]);
    process_end(&lane->judge, true, NULL);
    return -1;
}

bool
judging_answer(struct lane *lane, int within_ms)
{
    char why[WHY] = "";
    int fd = connect_judge(lane, within_ms, why);
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
