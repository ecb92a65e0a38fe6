/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/judging.h"
#include "workers/worker.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define LATE_METRIC "the metric takes longer than it may"

/* Answers that the metric takes too long, and ends the process. It runs in the handler of a signal
   while the engine runs the metric, so that no message is half sent. */
static void
on_late(int number)
{
    struct message message = {.type = MESSAGE_FAILED};
    (void)number;
    message.body.failed.set = true;
    message.body.failed.code = API_LIMIT_EXCEEDED;
    message.body.failed.kind = QDQ_AT_POINTER;
    memcpy(message.body.failed.where, "/task/model", sizeof "/task/model");
    memcpy(message.body.failed.detail, LATE_METRIC, sizeof LATE_METRIC);
    (void)!message_send(WORKER_SOCKET, -1, &message);
    _exit(0);
}

/* Is a qdq_judging.bound. The process's own limit bounds its memory. */
static void
bound_metric(void *arg, unsigned seconds)
{
    const struct itimerval timer = {.it_value = {.tv_sec = (time_t)seconds}};
    const struct sigaction action = {.sa_handler = on_late};
    (void)arg;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

struct qdq_judging
judging_of(const struct message *request)
{
    const struct message_quantize *ids = &request->body.quantize;
    const bool has_data = *ids->evaluation_id != '\0';
    size_t end = message_own_fds(request);
    struct qdq_judging judging = {.data = -1, .metric = -1, .bound = bound_metric};
    if (ids->has_metric && end > MESSAGE_FD_DATASET)
        judging.metric = request->fds[--end];
    if (has_data && end > MESSAGE_FD_DATASET) {
        judging.data = request->fds[--end];
        judging.data_id = ids->evaluation_id;
    }
    return judging;
}
