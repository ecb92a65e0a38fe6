/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "pool/judging.h"
#include "judges/judges.h"
#include "settings/gpu_list.h"
#include "settings/runners.h"
#include "settings/settings.h"
#include "tenants/service.h"
#include "tenants/tenants.h"
#include "qdq/runtime.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A runtime of which a lane wants a process. */
struct wanted {
    struct lane *lane;
    const char *name, *title;
    const char *runner; /* encoded; NULL: the runtime's library judges */
    int within_ms;      /* for one message */
};

/* Makes sure that the process is alive and serves. */
static bool
start(const struct wanted *w, char why[JUDGES_WHY])
{
    struct process *process = &w->lane->judge;
    struct api_problem problem = {0};
    char how[64];
    if (!w->runner && !*settings_library(w->lane->settings, w->name)) {
        snprintf(why, JUDGES_WHY, "%s is not configured (engine.%s)", w->title,
                 w->name);
        return false;
    }
    if (strcmp(process->runtime, w->name) != 0)
        process_end(process, false, NULL);
    snprintf(w->lane->judged_by, sizeof w->lane->judged_by, "%s", w->name);
    process->runtime = w->lane->judged_by;
    if (!process_set_extra(process, w->runner)) {
        snprintf(why, JUDGES_WHY, "out of memory");
        return false;
    }
    switch (process_start(process, GPUS_NONE, &problem)) {
    case PROCESS_RUNS:
        return true;
    case PROCESS_FAILED:
        snprintf(why, JUDGES_WHY, "%.200s", problem.detail);
        return false;
    default:
        process_end(process, true, how);
        snprintf(why, JUDGES_WHY,
                 "the process that judges by %s %s at its start; the log of the "
                 "daemon says why",
                 w->title, how);
        return false;
    }
}

static bool
fail_silent(const struct wanted *w, char why[JUDGES_WHY])
{
    snprintf(why, JUDGES_WHY, "the process that judges by %s does not answer",
             w->title);
    return false;
}

/* Returns the worker's end of a socket whose other end the process serves; -1: there is
   none. */
static int
reach(void *arg, char why[JUDGES_WHY])
{
    const struct wanted *w = arg;
    struct process *process = &w->lane->judge;
    int sockets[2];
    if (!start(w, why))
        return -1;
    process->jobs++;
    process_allow(process);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets)) {
        snprintf(why, JUDGES_WHY, "a socket: %s", strerror(errno));
        return -1;
    }
    const struct message serve = {
        .type = MESSAGE_SERVE, .fds = {sockets[1]}, .n_fds = 1};
    bool sent = message_send(process->socket, w->within_ms, &serve);
    close(sockets[1]);
    if (sent)
        return sockets[0];
    fail_silent(w, why);
    close(sockets[0]);
    process_end(process, true, NULL);
    return -1;
}

static int
end(void *arg)
{
    struct process *process = &((const struct wanted *)arg)->lane->judge;
    process_end(process, false, NULL);
    return process->signal;
}

static const struct judges_host host = {.reach = reach, .end = end};

/* Connects the worker to a process of the runtime; -1: there is none. */
static int
connect_judge(struct wanted *w, bool again, char why[JUDGES_WHY])
{
    const struct settings *s = w->lane->settings;
    const struct judges_link link = {
        .host = &host,
        .arg = w,
        .title = w->title,
        .limits = {.answer = s->workers_short_timeout,
                   .answer_setting = "workers.short_timeout",
                   .cpu = s->workers_cpu_time,
                   .cpu_setting = "workers.cpu_time"}};
    return judges_connect(&link, again, why);
}

/* Connects the worker to a process of the runtime by its library. */
static int
connect_library(struct wanted *w, bool again, char why[JUDGES_WHY])
{
    const struct qdq_runtime_row *row = qdq_runtime_find(w->name);
    if (!row || !row->own_process) {
        snprintf(why, JUDGES_WHY, "no process judges by '%.64s'", w->name);
        return -1;
    }
    w->title = row->title;
    return connect_judge(w, again, why);
}

/* Connects the worker to a process of the runtime by the operator's program. */
static int
connect_runner(struct wanted *w, const struct runner_section *section, bool again,
               char why[JUDGES_WHY])
{
    char *text = runner_section_encode(section, w->lane->settings);
    int fd = -1;
    w->runner = text;
    w->title = section->section.name;
    if (text)
        fd = connect_judge(w, again, why);
    else
        snprintf(why, JUDGES_WHY, "out of memory");
    free(text);
    return fd;
}

bool
judging_answer(struct lane *lane, const char *runtime, bool again, int within_ms)
{
    struct wanted wanted = {.lane = lane, .name = runtime, .within_ms = within_ms};
    char why[JUDGES_WHY] = "";
    struct remotes *set = tenants_remotes(lane->service->tenants);
    const struct runner_section *section = runners_find(set, runtime);
    int fd = section ? connect_runner(&wanted, section, again, why)
                     : connect_library(&wanted, again, why);
    remotes_release(&set);
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
judging_describe(struct lane *lane, const struct qdq_runtime_row *row,
                 char why[JUDGES_WHY])
{
    const struct message request = {.type = MESSAGE_RUNTIME};
    const int within = (int)lane->settings->workers_short_timeout * 1000;
    const struct wanted wanted = {
        .lane = lane, .name = row->name, .title = row->title, .within_ms = within};
    struct message answer;
    char *text = NULL;
    if (!start(&wanted, why))
        return NULL;
    if (message_send(lane->judge.socket, within, &request) &&
        message_receive(lane->judge.socket, within, within, &answer) == MESSAGE_GOT) {
        if (answer.type == MESSAGE_RESULT)
            text = strndup(answer.text, answer.text_len);
        message_fini(&answer);
    }
    if (!text)
        fail_silent(&wanted, why);
    process_end(&lane->judge, !text, NULL);
    return text;
}

bool
judging_tell_worker(struct lane *lane)
{
    char list[RUNNER_LIST];
    struct remotes *set = tenants_remotes(lane->service->tenants);
    runners_list(set, list);
    remotes_release(&set);
    if (!lane->process.extra || strcmp(lane->process.extra, list) != 0)
        process_end(&lane->judge, false, NULL); /* its runner may be gone */
    return process_set_extra(&lane->process, list);
}

bool
judging_runner_digest(struct lane *lane, const char *runtime, char ret[DIGEST_SIZE])
{
    struct remotes *set = tenants_remotes(lane->service->tenants);
    const struct runner_section *section = runners_find(set, runtime);
    char *text = section ? runner_section_encode(section, lane->settings) : NULL;
    const bool ok = !section || (text && digest_of(text, strlen(text), ret));
    *ret = section ? *ret : '\0';
    remotes_release(&set);
    free(text);
    return ok;
}
