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
#include "judges/judges.h"
#include "judges/runner.h"
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
#include <sys/stat.h>
#include <sys/syscall.h>
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
   where there are none, and where a runtime does without. */
static void
ask_for_tiles(void)
{
#if defined __x86_64__
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    (void)!syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA);
#endif
}

/* Returns whether memory may become code, as a runtime's own may. It reports only late, and in
   other words, that it may not. */
static bool
may_make_code(const struct qdq_runtime_row *row)
{
    const size_t size = (size_t)sysconf(_SC_PAGESIZE);
    char detail[256];
    void *page =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool may = page != MAP_FAILED && mprotect(page, size, PROT_READ | PROT_EXEC) == 0;
    snprintf(detail, sizeof detail,
             "no memory may become code here, which %s makes of a model; the drop-in "
             "%s.conf allows it to systemd's unit",
             row->title, row->name);
    if (!may)
        note(MESSAGE_NOTE_RUNTIME_MISSING, detail);
    if (page != MAP_FAILED)
        munmap(page, size);
    return may;
}

static bool
open_judge(const struct qdq_runtime_row *row, const char *library,
           struct qdq_judge **ret)
{
    struct qdq_error err = {0};
    if (qdq_judge_open_runtime(row->name, library, ret, &err) == QDQ_OK)
        return true;
    note(MESSAGE_NOTE_RUNTIME_MISSING, err.text);
    return false;
}

/* The folder of a runtime's libraries. */
struct folder {
    char file[64]; /* "/lib", the runtime's name, and ".so" */
    char path[PATH_MAX];
};

/* Finds it from the path by which the library of the runtime's name was loaded. */
static int
find_folder(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct folder *folder = arg;
    const char *slash = strrchr(info->dlpi_name, '/');
    (void)size;
    if (!slash || strncmp(slash, folder->file, strlen(folder->file)) != 0)
        return 0;
    snprintf(folder->path, sizeof folder->path, "%.*s", (int)(slash - info->dlpi_name),
             info->dlpi_name);
    return 1;
}

/* Allows the runtime to list the folder of its libraries, as it may whenever it reads a model. */
static void
allow_listing(const struct qdq_runtime_row *row)
{
    struct folder folder = {.path = ""};
    char detail[PATH_MAX + 64];
    snprintf(folder.file, sizeof folder.file, "/lib%.32s.so", row->name);
    dl_iterate_phdr(find_folder, &folder);
    if (trap_allow_listing(folder.path))
        return;
    snprintf(detail, sizeof detail, "the folder of %s, '%.400s': %s", row->title,
             folder.path, strerror(errno));
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

/* Tells which version of the runtime it is. */
static bool
send_runtime(const struct qdq_judge *judge, const char *library)
{
    char *text = api_judge_encode(qdq_judge_runtime(judge), library,
                                  qdq_judge_version(judge), NULL);
    const struct message result = {
        .type = MESSAGE_RESULT, .text = text, .text_len = text ? strlen(text) : 0};
    bool sent = text && message_send(WORKER_SOCKET, -1, &result);
    free(text);
    return sent;
}

/* Serves until the daemon closes the socket. Returns the exit status. */
static int
serve(struct qdq_judge *judge, const char *library, qdq_judge_watch_fn watch)
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

/* Serves a runtime by a runner, which judges in programs behind walls of their own. */
static int
run_runner(const struct settings *settings, pid_t parent, const char *runtime,
           const char *text)
{
    const struct message ready = {.type = MESSAGE_READY};
    struct qdq_error err = {0};
    struct runner_config runner;
    struct qdq_judge *judge = NULL;
    if (runner_decode(text, &runner, &err))
        return EXIT_FAILURE;
    /* A program cannot have more than this process. */
    const int64_t own = settings->workers_memory;
    const int64_t memory = !own || !runner.memory ? 0
                           : own > runner.memory  ? own
                                                  : runner.memory;
    if (!confine_process(parent, (rlim_t)memory, "qdqd-runner"))
        return EXIT_FAILURE;
    confine_yield();
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    fcntl(WORKER_SOCKET, F_SETFD, FD_CLOEXEC);
    (void)!mkdir(runner.folder, 0700);
    int status = EXIT_FAILURE;
    if (runner_judge_new(&runner, runtime, runner.folder, &judge, &err))
        note(MESSAGE_NOTE_RUNTIME_MISSING, err.text);
    else if (message_send(WORKER_SOCKET, -1, &ready))
        status = serve(judge, runner.name, NULL);
    qdq_judge_close(&judge);
    runner_fini(&runner);
    return status;
}

static int
run_judge(const struct settings *settings, pid_t parent,
          const struct qdq_runtime_row *row)
{
    const struct message ready = {.type = MESSAGE_READY};
    const char *library = settings_library(settings, row->name);
    struct qdq_judge *judge = NULL;
    if (!confine_process(parent, (rlim_t)settings->workers_memory, "qdqd-judge") ||
        !may_make_code(row) || !open_judge(row, library, &judge))
        return EXIT_FAILURE;
    confine_yield();
    allow_listing(row);
    ask_for_tiles();
    judges_set_patience(settings->workers_short_timeout);
    /* A worker may end while it is answered. */
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    fcntl(WORKER_SOCKET, F_SETFD, FD_CLOEXEC);
    int status =
        enter_cage(settings->workers_cage) && message_send(WORKER_SOCKET, -1, &ready)
            ? serve(judge, library, judges_watch)
            : EXIT_FAILURE;
    qdq_judge_close(&judge);
    return status;
}

int
judge_main(int argc, char **argv)
{
    const struct qdq_runtime_row *row = argc == 3 ? qdq_runtime_find(argv[2]) : NULL;
    const char *runner = argc == 4 ? argv[3] : NULL;
    struct settings settings;
    char error[SETTINGS_ERROR];
    if (!row && !runner) {
        fprintf(stderr, "qdqd: --judge is started by the daemon itself\n");
        return 2;
    }
    if (!settings_load(NULL, NULL, 0, NULL, &settings, error)) {
        fprintf(stderr, "qdqd: %s\n", error);
        return 2;
    }
    const pid_t parent = (pid_t)strtol(argv[0], NULL, 10);
    int status = runner ? run_runner(&settings, parent, argv[2], runner)
                        : run_judge(&settings, parent, row);
    settings_fini(&settings);
    return status;
}
