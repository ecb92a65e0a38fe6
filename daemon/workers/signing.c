/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's side of signatures: the files of the section [signing], and who is asked. */
#include "config.h"
#include "workers/signer.h"
#include "base/clock.h"
#include "workers/cage.h"
#include "workers/process.h"
#include "workers/token_key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SIGN_MS 30000
enum { MOST_SIGNERS = 8, NO_DEVICE = -1 };

bool
signer_is_configured(const struct settings *settings)
{
    return *settings->signing_key;
}

/* Opens a file of the section. Returns its descriptor, or -1 with the reason. */
static int
open_file(const char *path, bool is_secret, char why[SETTINGS_ERROR])
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        snprintf(why, SETTINGS_ERROR, "%.200s cannot be opened: %s", path,
                 strerror(errno));
        return -1;
    }
    bool is_file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    if (is_file && !(is_secret && (st.st_mode & 077)))
        return fd;
    snprintf(why, SETTINGS_ERROR, "%.200s %s", path,
             is_file ? "can be used by others than its owner; make its mode 0600"
                     : "is no regular file");
    close(fd);
    return -1;
}

/* Checks that no worker can read the key: one with a GPU may read the folders in which drivers
   look for theirs. */
static bool
check_place(const struct settings *settings, char error[SETTINGS_ERROR])
{
    char *path = *settings->gpu_devices ? realpath(settings->signing_key, NULL) : NULL;
    bool ok = !path || !cage_may_read(CAGE_GPU, path);
    if (!ok)
        snprintf(
            error, SETTINGS_ERROR,
            "signing.key: %.200s is in a folder that a worker with a GPU may read; "
            "keep the key elsewhere, for example below /var/lib",
            path);
    free(path);
    return ok;
}

bool
signer_check(const struct settings *settings, char error[SETTINGS_ERROR])
{
    char why[SETTINGS_ERROR];
    const char *const paths[] = {settings->signing_key, settings->signing_certificate};
    bool in_token = token_key_is_uri(paths[0]);
    const char *wrong = in_token ? token_key_check(paths[0]) : NULL;
    if (wrong || (*paths[1] && !*paths[0])) {
        snprintf(error, SETTINGS_ERROR, "signing.%s %s",
                 wrong ? "key: the URI" : "certificate:",
                 wrong ? wrong : "there is no signing.key");
        return false;
    }
    for (int i = in_token; i < 2; i++) {
        int fd = *paths[i] ? open_file(paths[i], i == 0, why) : -1;
        if (*paths[i] && fd < 0) {
            snprintf(error, SETTINGS_ERROR, "signing.%s: %.400s",
                     i ? "certificate" : "key", why);
            return false;
        }
        if (fd >= 0)
            close(fd);
    }
    return !*paths[0] || in_token || check_place(settings, error);
}

/* Returns the descriptor of a file in memory with the URI of a key; -1: it cannot be made. */
static int
write_uri(const char *uri)
{
    int fd = memfd_create("signing.key", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, uri, strlen(uri)) == (ssize_t)strlen(uri))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Adds the descriptors of the files to a message, which owns them. A key in a token is the text of
   its URI. */
static bool
add_files(const struct settings *settings, struct message *message,
          struct api_problem *p)
{
    const char *const paths[] = {settings->signing_key, settings->signing_certificate};
    char why[SETTINGS_ERROR] = "there is no memory";
    for (int i = 0; i < 2; i++) {
        int fd = !*paths[i]                   ? -1
                 : token_key_is_uri(paths[i]) ? write_uri(paths[i])
                                              : open_file(paths[i], i == 0, why);
        if (*paths[i] && fd < 0)
            return api_fail(p, API_UNAVAILABLE,
                            "the service cannot sign: signing.%s: %s",
                            i ? "certificate" : "key", why);
        if (fd >= 0)
            message->fds[message->n_fds++] = fd;
    }
    return true;
}

/* Sends the request and waits for the answer, which the caller ends. */
static bool
ask(struct process *process, const struct message *request, struct message *answer,
    struct api_problem *p)
{
    enum process_started started = process_start(process, NO_DEVICE, p);
    if (started == PROCESS_FAILED)
        return false;
    bool ok = started == PROCESS_RUNS &&
              message_send(process->socket, SIGN_MS, request) &&
              message_receive(process->socket, SIGN_MS, SIGN_MS, answer) == MESSAGE_GOT;
    process_relay(process);
    if (!ok)
        return api_fail(p, API_UNAVAILABLE, "the process that signs does not answer");
    if (answer->type == MESSAGE_RESULT && answer->text)
        return true;
    if (answer->type == MESSAGE_FAILED) {
        *p = answer->body.failed;
        p->set = true;
    }
    message_fini(answer);
    return api_fail(p, API_UNAVAILABLE, "the process that signs does not sign");
}

/* the processes that sign now */
static atomic_int n_running;

/* Waits until fewer processes sign than may. */
static bool
take_turn(struct api_problem *p)
{
    const struct timespec nap = {0, 10 * 1000000};
    int64_t deadline = clock_steady_ms() + SIGN_MS;
    while (atomic_fetch_add(&n_running, 1) >= MOST_SIGNERS) {
        atomic_fetch_sub(&n_running, 1);
        if (clock_steady_ms() >= deadline)
            return api_fail(
                p, API_BUSY,
                "there are more signatures to be made than can be made now");
        nanosleep(&nap, NULL);
    }
    return true;
}

bool
signer_sign(const struct settings *settings, struct metrics *metrics,
            const char *statement, enum signed_form form, char **ret,
            struct api_problem *p)
{
    struct process process;
    struct message answer;
    struct message request = {.type = MESSAGE_SIGN,
                              .body.sign.form = form,
                              .text = (char *)(uintptr_t)statement,
                              .text_len = strlen(statement)};
    if (!take_turn(p))
        return false;
    process_init(&process, settings, metrics);
    process.role = "signer";
    bool in_token = token_key_is_uri(settings->signing_key);
    bool ok = (process_set_extra(&process, in_token ? SIGNER_WITH_TOKEN : NULL) ||
               api_problem_no_memory(p)) &&
              add_files(settings, &request, p) && ask(&process, &request, &answer, p);
    if (ok) {
        *ret = answer.text;
        answer.text = NULL;
        message_fini(&answer);
    }
    for (size_t i = 0; i < request.n_fds; i++)
        close(request.fds[i]);
    process_end(&process, !ok, NULL);
    process_fini(&process);
    atomic_fetch_sub(&n_running, 1);
    return ok;
}
