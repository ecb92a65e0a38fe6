/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/judge.h"
#include "settings/settings.h"
#include "workers/cage.h"
#include "workers/confine.h"
#include "workers/message.h"
#include "workers/trap.h"
#include "workers/worker.h"
#include "api/version.h"
#include "qdq/judge.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

static void
note(enum message_note_event event, char *detail)
{
    const struct message message = {.type = MESSAGE_NOTE,
                                    .body.note.event = event,
                                    .text = detail,
                                    .text_len = strlen(detail)};
    (void)!message_send(WORKER_SOCKET, -1, &message);
}

/* Asks the kernel for the tiles of AMX, which a process has to do once. The call fails
   where there are none, and where OpenVINO does without. */
static void
ask_for_tiles(void)
{
#if defined __x86_64__
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    (void)!syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA);
#endif
}

/* Returns whether memory may become code, as OpenVINO's own becomes. It reports only late, and
   in other words, that it may not. */
static bool
may_make_code(void)
{
    const size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool may = page != MAP_FAILED && mprotect(page, size, PROT_READ | PROT_EXEC) == 0;
    if (!may)
        note(
            MESSAGE_NOTE_RUNTIME_MISSING,
            (char[]){"no memory may become code here, which OpenVINO makes of a model; "
                     "the drop-in openvino.conf allows it to systemd's unit"});
    if (page != MAP_FAILED)
        munmap(page, size);
    return may;
}

static bool
open_judge(const char *library, struct qdq_judge **ret)
{
    struct qdq_error err = {0};
    if (qdq_judge_open(library, ret, &err) == QDQ_OK)
        return true;
    note(MESSAGE_NOTE_RUNTIME_MISSING, err.text);
    return false;
}

/* Finds the folder of OpenVINO's libraries, from the path by which one was loaded. */
static int
find_folder(struct dl_phdr_info *info, size_t size, void *arg)
{
    char *folder = arg;
    const char *slash = strrchr(info->dlpi_name, '/');
    (void)size;
    if (!slash || strncmp(slash, "/libopenvino.so", 15) != 0)
        return 0;
    snprintf(folder, PATH_MAX, "%.*s", (int)(slash - info->dlpi_name), info->dlpi_name);
    return 1;
}

static void
allow_listing(void)
{
    char folder[PATH_MAX] = "", detail[PATH_MAX + 64];
    dl_iterate_phdr(find_folder, folder);
    if (trap_allow_listing(folder))
        return;
    snprintf(detail, sizeof detail, "the folder of OpenVINO, '%.400s': %s", folder,
             strerror(errno));
    note(MESSAGE_NOTE_RUNTIME_MISSING, detail);
}

static bool
enter_cage(const char *setting)
{
    char lacking[CAGE_TEXT];
    if (strcmp(setting, "off") == 0)
        return true;
    if (cage_enter(CAGE_JUDGE, lacking) && !*lacking)
        return true;
    note(MESSAGE_NOTE_CAGE_LACKING, lacking);
    return strcmp(setting, "auto") == 0;
}

/* Tells which OpenVINO it is. */
static bool
send_runtime(const struct qdq_judge *judge, const char *library)
{
    char *text = api_judge_encode(library, qdq_judge_version(judge), NULL);
    const struct message result = {
        .type = MESSAGE_RESULT, .text = text, .text_len = text ? strlen(text) : 0};
    bool sent = text && message_send(WORKER_SOCKET, -1, &result);
    free(text);
    return sent;
}

/* The seconds after which one answer of OpenVINO has taken too long. */
static int64_t patience;

/* Has the kernel end the process (SIGALRM) where OpenVINO works longer. */
static void
watch(unsigned times)
{
    const struct itimerval timer = {.it_value.tv_sec = (time_t)(patience * times)};
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* Serves until the daemon closes the socket. Returns the exit status. */
static int
serve(struct qdq_judge *judge, const char *library)
{
    for (;;) {
        struct message request;
        enum message_got got = message_receive(WORKER_SOCKET, -1, -1, &request);
        if (got != MESSAGE_GOT)
            return got == MESSAGE_EOF ? EXIT_SUCCESS : EXIT_FAILURE;
        bool known = request.type == MESSAGE_SERVE;
        if (known)
            qdq_judge_serve(judge, request.fds[0], watch);
        else if (request.type == MESSAGE_RUNTIME)
            known = send_runtime(judge, library);
        message_fini(&request);
        if (!known)
            return EXIT_FAILURE;
    }
}

static int
run_judge(const struct settings *settings, pid_t parent)
{
    const struct message ready = {.type = MESSAGE_READY};
    struct qdq_judge *judge = NULL;
    if (!confine_process(parent, (rlim_t)settings->workers_memory, "qdqd-judge") ||
        !may_make_code() || !open_judge(settings->engine_openvino, &judge))
        return EXIT_FAILURE;
    confine_yield();
    allow_listing();
    ask_for_tiles();
    patience = settings->workers_short_timeout;
    /* A worker may end while it is answered. */
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    fcntl(WORKER_SOCKET, F_SETFD, FD_CLOEXEC);
    int status =
        enter_cage(settings->workers_cage) && message_send(WORKER_SOCKET, -1, &ready)
            ? serve(judge, settings->engine_openvino)
            : EXIT_FAILURE;
    qdq_judge_close(&judge);
    return status;
}

int
judge_main(int argc, char **argv)
{
    struct settings settings;
    char error[SETTINGS_ERROR];
    if (argc != 2) {
        fprintf(stderr, "qdqd: --judge is started by the daemon itself\n");
        return 2;
    }
    if (!settings_load(NULL, NULL, 0, NULL, &settings, error)) {
        fprintf(stderr, "qdqd: %s\n", error);
        return 2;
    }
    int status = run_judge(&settings, (pid_t)strtol(argv[0], NULL, 10));
    settings_fini(&settings);
    return status;
}
